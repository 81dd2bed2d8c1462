//! Several doubly linked lists over one set of frames, with one table that finds them: what a
//! policy needs that keeps its pages in more than one queue.
//!
//! As in [`crate::list`], links are `u32` indexes into one array. Each list is closed by a sentinel:
//! that of list 0 is at index 0, so that this is never a frame; frames follow, then the other
//! sentinels.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Key;
use tantalum_base::PageNo;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    /// Towards the head; a sentinel's is the tail.
    prev: u32,
    /// Towards the tail; a sentinel's is the head.
    next: u32,
}

/// Frames in several lists, each with its newest at the head: 16 bytes a frame, 16 a list, and the
/// table's own.
#[derive(Debug)]
pub(crate) struct FrameLists<T> {
    nodes: Vec<Node>,
    table: T,
    /// Frames, numbered from 1.
    frames: u32,
    /// Frames that ever held a page; they are numbers 1..=used.
    used: u32,
    /// Of those, the ones that hold none again, by their `next`; [`NO_FRAME`] ends the chain.
    free: u32,
    /// Frames that hold a page.
    cached: u32,
}

impl<T: PageTable> FrameLists<T> {
    /// `lists` empty lists over `frames` frames, for pages numbered below `pages_end`.
    pub(crate) fn new(lists: u32, frames: u32, pages_end: u64) -> Self {
        assert!(lists > 0 && frames > 0, "at least one list and one frame");
        let nodes = u64::from(lists) + u64::from(frames);
        assert!(nodes <= u64::from(u32::MAX), "links are 32 bits");
        let alone = |node| Node { key: Key::default(), prev: node, next: node };
        FrameLists {
            nodes: (0..nodes as u32).map(alone).collect(),
            table: T::new(frames, pages_end),
            frames,
            used: 0,
            free: NO_FRAME,
            cached: 0,
        }
    }

    /// Frames, all told.
    pub(crate) fn capacity(&self) -> u32 {
        self.frames
    }

    /// Pages in all lists.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.cached
    }

    /// One past the highest frame number: the size of an array by frame.
    pub(crate) fn frames_end(&self) -> usize {
        self.frames as usize + 1
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

    /// The oldest frame of `list`; [`NO_FRAME`] where it is empty.
    #[inline]
    pub(crate) fn tail(&self, list: u32) -> u32 {
        self.or_none(self.nodes[self.sentinel(list)].prev)
    }

    /// The newest frame of `list`; [`NO_FRAME`] where it is empty.
    #[inline]
    pub(crate) fn head(&self, list: u32) -> u32 {
        self.or_none(self.nodes[self.sentinel(list)].next)
    }

    /// The next newer frame in its list; [`NO_FRAME`] at the head.
    #[inline]
    pub(crate) fn newer(&self, frame: u32) -> u32 {
        self.or_none(self.nodes[frame as usize].prev)
    }

    /// The next older frame in its list; [`NO_FRAME`] at the tail.
    #[inline]
    pub(crate) fn older(&self, frame: u32) -> u32 {
        self.or_none(self.nodes[frame as usize].next)
    }

    /// Makes `frame`, from whichever list, the newest of `list`.
    #[inline]
    pub(crate) fn move_to_head(&mut self, list: u32, frame: u32) {
        if self.nodes[self.sentinel(list)].next != frame {
            self.unlink(frame);
            self.link_at_head(list, frame);
        }
    }

    /// Makes `frame`, from whichever list, the oldest of `list`.
    pub(crate) fn move_to_tail(&mut self, list: u32, frame: u32) {
        self.unlink(frame);
        let sentinel = self.sentinel(list);
        let tail = self.nodes[sentinel].prev;
        self.link(tail, frame, sentinel as u32);
    }

    /// Puts a page that is not there into a free frame, as the newest of `list`. Returns the frame.
    #[inline]
    pub(crate) fn insert(&mut self, list: u32, key: Key) -> u32 {
        let frame = match self.free {
            NO_FRAME => {
                assert!(self.used < self.frames, "no frame is free");
                self.used += 1;
                self.used
            }
            frame => {
                self.free = self.nodes[frame as usize].next;
                frame
            }
        };
        self.cached += 1;
        self.nodes[frame as usize].key = key;
        self.table.insert(key.page(), frame);
        self.link_at_head(list, frame);
        frame
    }

    /// Takes the page in `frame` out; the frame is free.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) -> Key {
        let key = self.key(frame);
        let nodes = &self.nodes;
        self.table.remove(key.page(), frame, |frame| nodes[frame as usize].key.page());
        self.unlink(frame);
        self.nodes[frame as usize].next = self.free;
        (self.free, self.cached) = (frame, self.cached - 1);
        key
    }

    /// The frames of `list`, oldest first.
    pub(crate) fn oldest_first(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let in_list = |frame: &u32| *frame != NO_FRAME;
        std::iter::successors(Some(self.tail(list)).filter(in_list), move |&frame| {
            Some(self.newer(frame)).filter(in_list)
        })
    }

    /// The pages of `list`, oldest first.
    pub(crate) fn pages(&self, list: u32) -> impl Iterator<Item = PageNo> + '_ {
        self.oldest_first(list).map(|frame| self.key(frame).page())
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.nodes.len() * size_of::<Node>()) as u64 + self.table.memory_bytes()
    }

    /// The node that closes `list`.
    #[inline]
    fn sentinel(&self, list: u32) -> usize {
        if list == 0 { 0 } else { (self.frames + list) as usize }
    }

    /// A sentinel is no frame.
    #[inline]
    fn or_none(&self, node: u32) -> u32 {
        if node > self.frames { NO_FRAME } else { node }
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Node { prev, next, .. } = self.nodes[frame as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    #[inline]
    fn link_at_head(&mut self, list: u32, frame: u32) {
        let sentinel = self.sentinel(list);
        let head = self.nodes[sentinel].next;
        self.link(sentinel as u32, frame, head);
    }

    /// Puts `frame` between two nodes that are beside each other.
    #[inline]
    fn link(&mut self, newer: u32, frame: u32, older: u32) {
        self.nodes[newer as usize].next = frame;
        self.nodes[older as usize].prev = frame;
        let node = &mut self.nodes[frame as usize];
        (node.prev, node.next) = (newer, older);
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let mut seen = 0;
        for list in 0..self.nodes.len() as u32 - self.frames {
            let sentinel = self.sentinel(list) as u32;
            let mut at = sentinel;
            loop {
                let next = self.nodes[at as usize].next;
                assert_eq!(self.nodes[next as usize].prev, at, "a link has no way back");
                at = next;
                if at == sentinel {
                    break;
                }
                assert!((1..=self.used).contains(&at), "an unused frame is linked");
                assert_eq!(self.find(self.key(at).page()), at, "the table has another frame");
                seen += 1;
                assert!(seen <= self.cached, "a list has a loop");
            }
        }
        assert_eq!(seen, self.cached, "a frame with a page is not linked");
        let free =
            std::iter::successors(Some(self.free), |&frame| Some(self.nodes[frame as usize].next));
        let free = free.take_while(|&frame| frame != NO_FRAME).count() as u32;
        assert_eq!(self.cached + free, self.used, "a frame is neither used nor free");
    }
}
