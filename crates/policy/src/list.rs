//! A doubly linked list over frames: links are `u32` indexes into one array, and a sentinel at
//! index 0 closes the ring, so that no link operation has a special case.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    /// Towards the head; the sentinel's is the tail.
    prev: u32,
    /// Towards the tail; the sentinel's is the head.
    next: u32,
}

/// Frames in a list, newest at the head, with the table that finds them: 16 bytes a frame and the
/// table's own.
#[derive(Debug)]
pub(crate) struct FrameList<T> {
    nodes: Vec<Node>,
    table: T,
    /// Frames that hold a page; they are numbers 1..=used.
    used: u32,
}

impl<T: PageTable> FrameList<T> {
    pub(crate) fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        let empty = Node { key: Key::default(), prev: 0, next: 0 };
        FrameList {
            nodes: vec![empty; frames as usize + 1],
            table: T::new(frames, pages_end),
            used: 0,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.capacity()
    }

    /// The frame of `page`, or [`NO_FRAME`].
    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |frame| self.nodes[frame as usize].key.page())
    }

    #[inline]
    pub(crate) fn key(&self, frame: u32) -> Key {
        self.nodes[frame as usize].key
    }

    #[inline]
    pub(crate) fn key_mut(&mut self, frame: u32) -> &mut Key {
        &mut self.nodes[frame as usize].key
    }

    /// The oldest frame; [`NO_FRAME`] where the list is empty.
    #[inline]
    pub(crate) fn tail(&self) -> u32 {
        self.nodes[0].prev
    }

    /// The next newer frame; [`NO_FRAME`] at the head.
    #[inline]
    pub(crate) fn newer(&self, frame: u32) -> u32 {
        self.nodes[frame as usize].prev
    }

    /// Makes `frame` the newest.
    #[inline]
    pub(crate) fn move_to_head(&mut self, frame: u32) {
        if self.nodes[0].next != frame {
            self.unlink(frame);
            self.link_at_head(frame);
        }
    }

    /// Puts the page of `request` at the head, in a frame not used before.
    pub(crate) fn push(&mut self, request: Request) {
        debug_assert!(!self.is_full());
        self.used += 1;
        self.fill(self.used, request);
    }

    /// Takes the page in `frame` out, puts the page of `request` in its place in memory and at the
    /// head of the list. Returns what was there.
    #[inline]
    pub(crate) fn replace(&mut self, frame: u32, request: Request) -> Key {
        let old = self.key(frame);
        self.table.remove(old.page(), frame);
        self.unlink(frame);
        self.fill(frame, request);
        old
    }

    pub(crate) fn dirty(&self) -> u32 {
        (1..=self.used).filter(|&frame| self.key(frame).is_dirty()).count() as u32
    }

    #[inline]
    fn fill(&mut self, frame: u32, request: Request) {
        self.nodes[frame as usize].key = Key::new(request);
        let nodes = &self.nodes;
        self.table.insert(request.page(), frame, |frame| nodes[frame as usize].key.page());
        self.link_at_head(frame);
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Node { prev, next, .. } = self.nodes[frame as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    #[inline]
    fn link_at_head(&mut self, frame: u32) {
        let head = std::mem::replace(&mut self.nodes[0].next, frame);
        self.nodes[head as usize].prev = frame;
        let node = &mut self.nodes[frame as usize];
        (node.prev, node.next) = (NO_FRAME, head);
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let (mut frame, mut seen) = (self.tail(), 0);
        while frame != NO_FRAME {
            let node = self.nodes[frame as usize];
            assert!(frame <= self.used, "an unused frame is linked");
            assert_eq!(self.nodes[node.prev as usize].next, frame);
            assert_eq!(self.nodes[node.next as usize].prev, frame);
            assert_eq!(self.find(node.key.page()), frame, "the table has another frame");
            seen += 1;
            assert!(seen <= self.used, "the list has a loop");
            frame = node.prev;
        }
        assert_eq!(seen, self.used, "a used frame is not linked");
    }
}
