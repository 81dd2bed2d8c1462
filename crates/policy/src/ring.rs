//! Frames in a ring, filled in order of arrival: what FIFO and CLOCK need instead of links.
use crate::page_table::PageTable;
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

/// Frames 1..=capacity in a ring, with the table that finds them: 8 bytes a frame and the table's.
#[derive(Debug)]
pub(crate) struct FrameRing<T> {
    /// Index 0 is unused: it stands for "no frame".
    keys: Vec<Key>,
    table: T,
    /// Frames that hold a page; they are numbers 1..=used.
    used: u32,
    /// The frame whose turn it is to be replaced: the oldest, once all are used.
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

    pub(crate) fn capacity(&self) -> u32 {
        self.keys.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.capacity()
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

    /// Moves the hand on by one frame.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.hand = if self.hand == self.capacity() { 1 } else { self.hand + 1 };
    }

    /// Puts the page of `request` into the next frame not used before, and returns the frame.
    pub(crate) fn push(&mut self, request: Request) -> u32 {
        debug_assert!(!self.is_full());
        self.used += 1;
        self.fill(self.used, request);
        self.used
    }

    /// Puts the page of `request` into the frame under the hand, moves on, and returns what was
    /// there.
    #[inline]
    pub(crate) fn replace(&mut self, request: Request) -> Key {
        let frame = self.hand;
        let old = self.keys[frame as usize];
        self.table.remove(old.page(), frame);
        self.fill(frame, request);
        self.advance();
        old
    }

    pub(crate) fn dirty(&self) -> u32 {
        self.keys[1..=self.used as usize].iter().filter(|key| key.is_dirty()).count() as u32
    }

    #[inline]
    fn fill(&mut self, frame: u32, request: Request) {
        self.keys[frame as usize] = Key::new(request);
        let keys = &self.keys;
        self.table.insert(request.page(), frame, |frame| keys[frame as usize].page());
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        assert!((1..=self.capacity()).contains(&self.hand));
        assert!(self.is_full() || self.hand == 1, "the hand moved before the ring was full");
        for frame in 1..=self.used {
            assert_eq!(self.find(self.keys[frame as usize].page()), frame);
        }
    }
}
