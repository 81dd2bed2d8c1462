//! Frames in a ring, filled in the order of arrival: used by FIFO and CLOCK instead of links.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// Frames 1..=capacity in a ring, with the page table that finds them: 8 bytes a frame plus the
/// table's.
#[derive(Debug)]
pub(crate) struct FrameRing<T> {
    /// Index 0 is unused: it stands for "no frame".
    keys: Vec<Key>,
    table: T,
    /// Number of frames that hold a page: those from the hand on, round the ring.
    used: u32,
    /// The next frame to be replaced: the oldest.
    hand: u32,
}

impl<T: PageTable> FrameRing<T> {
    pub(crate) fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        FrameRing {
            keys: vec![Key::default(); frames as usize + 1],
            table: T::new(frames, pages_end),
            used: 0,
            hand: 1,
        }
    }

    pub(crate) fn capacity_pages(&self) -> u32 {
        self.keys.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.capacity_pages()
    }

    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |frame| self.keys[frame as usize].page())
    }

    #[inline]
    pub(crate) fn key_mut(&mut self, frame: u32) -> &mut Key {
        &mut self.keys[frame as usize]
    }

    /// The frame under the hand.
    #[inline]
    pub(crate) fn hand(&self) -> u32 {
        self.hand
    }

    /// Advances the hand by one frame.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.hand = if self.hand == self.capacity_pages() { 1 } else { self.hand + 1 };
    }

    /// The frame `steps` after the hand.
    fn behind(&self, steps: u32) -> u32 {
        let at = u64::from(self.hand - 1) + u64::from(steps);
        (at % u64::from(self.capacity_pages())) as u32 + 1
    }

    /// Puts the page of `request` into the next free frame. Returns the frame.
    pub(crate) fn push(&mut self, request: Request) -> u32 {
        debug_assert!(!self.is_full());
        let frame = self.behind(self.used);
        self.used += 1;
        self.fill(frame, request);
        frame
    }

    /// Removes the page in `frame`. To keep the order, newer pages move by one frame each, and
    /// `moved` is called with (from, to); this is a walk.
    pub(crate) fn remove(&mut self, frame: u32, mut moved: impl FnMut(u32, u32)) {
        self.forget_page(frame);
        let capacity = self.capacity_pages();
        let steps = (frame + capacity - self.hand) % capacity;
        for steps in steps + 1..self.used {
            let (from, to) = (self.behind(steps), self.behind(steps - 1));
            let key = self.keys[from as usize];
            self.forget_page(from);
            self.keys[to as usize] = key;
            self.table.insert(key.page(), to);
            moved(from, to);
        }
        self.used -= 1;
    }

    /// The frames that hold a page, oldest first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.used).map(|steps| self.behind(steps))
    }

    /// Appends the pages of the first `pages_max` dirty frames in `frames`.
    pub(crate) fn dirty_of(
        &self,
        frames: impl Iterator<Item = u32>,
        pages_max: usize,
        pages: &mut Vec<PageNo>,
    ) {
        let keys = frames.map(|frame| self.keys[frame as usize]).filter(|key| key.is_dirty());
        pages.extend(keys.take(pages_max).map(|key| key.page()));
    }

    /// Whether `page` is in a frame.
    pub(crate) fn contains(&self, page: PageNo) -> bool {
        self.find(page) != NO_FRAME
    }

    /// Makes `page` clean if it is cached.
    pub(crate) fn cleaned(&mut self, page: PageNo) {
        match self.find(page) {
            NO_FRAME => {}
            frame => self.key_mut(frame).clean(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.keys.len() * size_of::<Key>()) as u64 + self.table.memory_bytes()
    }

    /// Puts the page of `request` into the frame under the hand and advances the hand. Returns the
    /// old page's key.
    #[inline]
    pub(crate) fn replace(&mut self, request: Request) -> Key {
        let frame = self.hand;
        let old = self.keys[frame as usize];
        self.forget_page(frame);
        self.fill(frame, request);
        self.advance();
        old
    }

    pub(crate) fn dirty_pages(&self) -> u32 {
        let frames = self.oldest_first();
        frames.filter(|&frame| self.keys[frame as usize].is_dirty()).count() as u32
    }

    #[inline]
    fn fill(&mut self, frame: u32, request: Request) {
        self.keys[frame as usize] = Key::new(request);
        self.table.insert(request.page(), frame);
    }

    /// Removes the page in `frame` from the table.
    #[inline]
    fn forget_page(&mut self, frame: u32) {
        let keys = &self.keys;
        self.table.remove(keys[frame as usize].page(), frame, |frame| keys[frame as usize].page());
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        assert!((1..=self.capacity_pages()).contains(&self.hand));
        for steps in 0..self.used {
            let frame = self.behind(steps);
            assert_eq!(self.find(self.keys[frame as usize].page()), frame);
        }
    }
}
