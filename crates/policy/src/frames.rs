//! Frames and the page table that finds them, for policies that keep their own order of frames.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// Frames 1..=capacity: 8 bytes a frame plus the table's.
#[derive(Debug)]
pub(crate) struct Frames<T> {
    /// Index 0 is unused: it stands for "no frame". A free frame that has held a page stores the
    /// number of the next such frame instead of a page, and is clean.
    keys: Vec<Key>,
    table: T,
    /// Number of frames that have ever held a page; they are 1..=touched.
    touched: u32,
    /// The first of these frames that is free again.
    free: u32,
    /// Number of frames that hold a page.
    cached: u32,
}

impl<T: PageTable> Frames<T> {
    pub(crate) fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        Frames {
            keys: vec![Key::default(); frames as usize + 1],
            table: T::new(frames, pages_end),
            touched: 0,
            free: NO_FRAME,
            cached: 0,
        }
    }

    pub(crate) fn capacity_pages(&self) -> u32 {
        self.keys.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.cached == self.capacity_pages()
    }

    /// The frame of `page`, or [`NO_FRAME`].
    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |frame| self.keys[frame as usize].page())
    }

    #[inline]
    pub(crate) fn key(&self, frame: u32) -> Key {
        self.keys[frame as usize]
    }

    #[inline]
    pub(crate) fn key_mut(&mut self, frame: u32) -> &mut Key {
        &mut self.keys[frame as usize]
    }

    /// Puts the page of `request` into a free frame.
    pub(crate) fn take(&mut self, request: Request) -> u32 {
        debug_assert!(!self.is_full());
        let frame = match self.free {
            NO_FRAME => {
                self.touched += 1;
                self.touched
            }
            frame => {
                self.free = self.keys[frame as usize].page().0 as u32;
                frame
            }
        };
        self.cached += 1;
        self.fill(frame, request);
        frame
    }

    /// Removes the page in `frame`; the frame becomes free.
    pub(crate) fn release(&mut self, frame: u32) -> Key {
        let key = self.key(frame);
        let keys = &self.keys;
        self.table.remove(key.page(), frame, |frame| keys[frame as usize].page());
        let next_free = PageNo(u64::from(self.free));
        self.keys[frame as usize] = Key::new(Request::new(next_free, false));
        (self.free, self.cached) = (frame, self.cached - 1);
        key
    }

    /// Puts the page of `request` into `frame`. Returns the old page's key.
    #[inline]
    pub(crate) fn replace(&mut self, frame: u32, request: Request) -> Key {
        let old = self.key(frame);
        let keys = &self.keys;
        self.table.remove(old.page(), frame, |frame| keys[frame as usize].page());
        self.fill(frame, request);
        old
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

    /// The frames with dirty pages, in the order of their numbers.
    pub(crate) fn dirty_frames(&self) -> impl Iterator<Item = u32> + '_ {
        (1..=self.touched).filter(|&frame| self.key(frame).is_dirty())
    }

    pub(crate) fn dirty_pages(&self) -> u32 {
        self.dirty_frames().count() as u32
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.keys.len() * size_of::<Key>()) as u64 + self.table.memory_bytes()
    }

    #[inline]
    fn fill(&mut self, frame: u32, request: Request) {
        self.keys[frame as usize] = Key::new(request);
        self.table.insert(request.page(), frame);
    }

    /// Checks that each touched frame is either free or found by its page. Returns the number of
    /// cached pages.
    #[cfg(test)]
    pub(crate) fn validate(&self) -> u32 {
        let mut free = Vec::new();
        let mut next_free = self.free;
        while next_free != NO_FRAME {
            assert!(free.len() < self.touched as usize, "the chain of free frames has a loop");
            free.push(next_free);
            next_free = self.key(next_free).page().0 as u32;
        }
        assert_eq!(self.cached as usize + free.len(), self.touched as usize);
        for frame in (1..=self.touched).filter(|frame| !free.contains(frame)) {
            assert_eq!(self.find(self.key(frame).page()), frame, "the table has another frame");
        }
        self.cached
    }
}
