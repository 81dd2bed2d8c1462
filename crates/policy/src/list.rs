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
    /// Frames that ever held a page; they are numbers 1..=used.
    used: u32,
    /// Of those, the ones that hold none again, by their `next`; [`NO_FRAME`] ends the chain.
    free: u32,
    /// Frames that hold a page.
    cached: u32,
}

impl<T: PageTable> FrameList<T> {
    pub(crate) fn new(frames: u32, pages_end: u64) -> Self {
        assert!(frames > 0 && frames < u32::MAX, "a cache has 1 to 2^32 - 2 frames");
        let empty = Node { key: Key::default(), prev: 0, next: 0 };
        FrameList {
            nodes: vec![empty; frames as usize + 1],
            table: T::new(frames, pages_end),
            used: 0,
            free: NO_FRAME,
            cached: 0,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.cached == self.capacity()
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

    /// Puts the page of `request` at the head, in a free frame.
    pub(crate) fn push(&mut self, request: Request) {
        debug_assert!(!self.is_full());
        let frame = match self.free {
            NO_FRAME => {
                self.used += 1;
                self.used
            }
            frame => {
                self.free = self.nodes[frame as usize].next;
                frame
            }
        };
        self.cached += 1;
        self.fill(frame, request);
    }

    /// Takes the page in `frame` out; the frame is free.
    pub(crate) fn remove(&mut self, frame: u32) -> Key {
        let key = self.key(frame);
        self.table.remove(key.page(), frame);
        self.unlink(frame);
        self.nodes[frame as usize].next = self.free;
        (self.free, self.cached) = (frame, self.cached - 1);
        key
    }

    /// The frames from `frame` on towards newer ones.
    pub(crate) fn from(&self, frame: u32) -> impl Iterator<Item = u32> + '_ {
        let in_list = |frame: &u32| *frame != NO_FRAME;
        std::iter::successors(Some(frame).filter(in_list), move |&frame| {
            Some(self.newer(frame)).filter(in_list)
        })
    }

    /// Of `frames`, the pages of the first `pages_max` dirty ones.
    pub(crate) fn dirty_of(
        &self,
        frames: impl Iterator<Item = u32>,
        pages_max: usize,
        pages: &mut Vec<PageNo>,
    ) {
        let keys = frames.map(|frame| self.key(frame)).filter(|key| key.is_dirty());
        pages.extend(keys.take(pages_max).map(|key| key.page()));
    }

    /// Makes `page` clean where it is cached.
    pub(crate) fn clean(&mut self, page: PageNo) {
        match self.find(page) {
            NO_FRAME => {}
            frame => self.key_mut(frame).clean(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.nodes.len() * size_of::<Node>()) as u64 + self.table.memory_bytes()
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
        self.from(self.tail()).filter(|&frame| self.key(frame).is_dirty()).count() as u32
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
        assert_eq!(seen, self.cached, "a frame with a page is not linked");
        let free =
            std::iter::successors(Some(self.free), |&frame| Some(self.nodes[frame as usize].next));
        let free = free.take_while(|&frame| frame != NO_FRAME).count() as u32;
        assert_eq!(self.cached + free, self.used, "a used frame is neither linked nor free");
    }
}
