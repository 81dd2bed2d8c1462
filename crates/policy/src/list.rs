//! Doubly linked lists over frames: links are `u32` indexes into one array, and a sentinel a list
//! closes its ring, so that no link operation has a special case.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    /// Towards the head; a sentinel's is its list's tail.
    prev: u32,
    /// Towards the tail; a sentinel's is its list's head.
    next: u32,
}

/// Frames in `LISTS` lists, each newest at the head, with the table that finds them: 16 bytes a
/// frame (17 where there are several lists) and the table's own. A policy that remembers pages it
/// evicted has frames for them, too, in a list of theirs.
///
/// Methods that name no list mean the first one, number 0.
#[derive(Debug)]
pub(crate) struct FrameList<T, const LISTS: usize = 1> {
    /// The sentinels of the lists, then the frames. The first sentinel is [`NO_FRAME`].
    nodes: Vec<Node>,
    /// The list of each frame; empty where there is only one list.
    lists: Vec<u8>,
    table: T,
    /// Frames that ever held a page; they are the ones behind the sentinels.
    used: u32,
    /// Of those, the ones that hold none again, by their `next`; [`NO_FRAME`] ends the chain.
    free: u32,
    /// Frames in each list.
    lens: [u32; LISTS],
}

impl<T: PageTable, const LISTS: usize> FrameList<T, LISTS> {
    /// Lists over `frames` frames, all told, for pages numbered below `pages_end`.
    pub(crate) fn new(frames: u32, pages_end: u64) -> Self {
        let sentinels = LISTS as u32;
        assert!(frames > 0 && frames < u32::MAX - sentinels, "frame numbers have 32 bits");
        let count = (frames + sentinels) as usize;
        let mut nodes = vec![Node { key: Key::default(), prev: 0, next: 0 }; count];
        for list in 0..sentinels {
            let node = &mut nodes[list as usize];
            (node.prev, node.next) = (list, list);
        }
        FrameList {
            nodes,
            lists: vec![0; if LISTS > 1 { count } else { 0 }],
            table: T::new(frames + sentinels - 1, pages_end),
            used: 0,
            free: NO_FRAME,
            lens: [0; LISTS],
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        (self.nodes.len() - LISTS) as u32
    }

    /// All frame numbers are below this: for what a policy keeps beside the lists.
    pub(crate) fn frames_end(&self) -> usize {
        self.nodes.len()
    }

    /// Frames in `list`.
    #[inline]
    pub(crate) fn len(&self, list: usize) -> u32 {
        self.lens[list]
    }

    /// Whether every frame is in some list.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.lens.iter().sum::<u32>() == self.capacity()
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

    /// The list that `frame` is in.
    #[inline]
    pub(crate) fn list_of(&self, frame: u32) -> usize {
        if LISTS > 1 { usize::from(self.lists[frame as usize]) } else { 0 }
    }

    /// The oldest frame; [`NO_FRAME`] where the list is empty.
    #[inline]
    pub(crate) fn tail(&self) -> u32 {
        self.tail_of(0)
    }

    /// The oldest frame of `list`; [`NO_FRAME`] where it is empty.
    #[inline]
    pub(crate) fn tail_of(&self, list: usize) -> u32 {
        self.or_none(self.nodes[list].prev)
    }

    /// The next newer frame of its list; [`NO_FRAME`] at the head.
    #[inline]
    pub(crate) fn newer(&self, frame: u32) -> u32 {
        self.or_none(self.nodes[frame as usize].prev)
    }

    /// [`NO_FRAME`] for a sentinel.
    #[inline]
    fn or_none(&self, frame: u32) -> u32 {
        if (frame as usize) < LISTS { NO_FRAME } else { frame }
    }

    /// Makes `frame` the newest.
    #[inline]
    pub(crate) fn move_to_head(&mut self, frame: u32) {
        self.move_to(frame, 0);
    }

    /// Makes `frame`, of whichever list, the newest of `list`.
    #[inline]
    pub(crate) fn move_to(&mut self, frame: u32, list: usize) {
        if self.nodes[list].next != frame {
            self.unlink(frame);
            self.link_at_head(frame, list);
        }
    }

    /// Puts the page of `request` at the head, in a free frame.
    pub(crate) fn push(&mut self, request: Request) {
        self.push_to(0, request);
    }

    /// Puts the page of `request` at the head of `list`, in a free frame, which it returns.
    #[inline]
    pub(crate) fn push_to(&mut self, list: usize, request: Request) -> u32 {
        debug_assert!(!self.is_full());
        let frame = match self.free {
            NO_FRAME => {
                self.used += 1;
                self.used + LISTS as u32 - 1
            }
            frame => {
                self.free = self.nodes[frame as usize].next;
                frame
            }
        };
        self.fill(frame, list, request);
        frame
    }

    /// Takes the page in `frame` out; the frame is free.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) -> Key {
        let key = self.key(frame);
        self.forget_page(frame);
        self.unlink(frame);
        self.nodes[frame as usize].next = self.free;
        self.free = frame;
        key
    }

    /// The frames from `frame` on towards newer ones.
    pub(crate) fn from(&self, frame: u32) -> impl Iterator<Item = u32> + '_ {
        let in_list = |frame: &u32| *frame != NO_FRAME;
        std::iter::successors(Some(frame).filter(in_list), move |&frame| {
            Some(self.newer(frame)).filter(in_list)
        })
    }

    /// The frames of `list`, oldest first.
    pub(crate) fn oldest_first(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        self.from(self.tail_of(list))
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
        let lists = self.nodes.len() * size_of::<Node>() + self.lists.len();
        lists as u64 + self.table.memory_bytes()
    }

    /// Takes the page in `frame` out, puts the page of `request` in its place in memory and at the
    /// head of the list. Returns what was there.
    #[inline]
    pub(crate) fn replace(&mut self, frame: u32, request: Request) -> Key {
        let old = self.key(frame);
        let list = self.list_of(frame);
        self.forget_page(frame);
        self.unlink(frame);
        self.fill(frame, list, request);
        old
    }

    /// Dirty frames, of all lists: what a policy keeps of evicted pages is clean.
    pub(crate) fn dirty(&self) -> u32 {
        let frames = (0..LISTS).flat_map(|list| self.oldest_first(list));
        frames.filter(|&frame| self.key(frame).is_dirty()).count() as u32
    }

    #[inline]
    fn fill(&mut self, frame: u32, list: usize, request: Request) {
        self.nodes[frame as usize].key = Key::new(request);
        self.table.insert(request.page(), frame);
        self.link_at_head(frame, list);
    }

    /// Takes the page in `frame` out of the table.
    #[inline]
    fn forget_page(&mut self, frame: u32) {
        let nodes = &self.nodes;
        let page_of = |frame: u32| nodes[frame as usize].key.page();
        self.table.remove(page_of(frame), frame, page_of);
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Node { prev, next, .. } = self.nodes[frame as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        self.lens[self.list_of(frame)] -= 1;
    }

    #[inline]
    fn link_at_head(&mut self, frame: u32, list: usize) {
        let head = std::mem::replace(&mut self.nodes[list].next, frame);
        self.nodes[head as usize].prev = frame;
        let node = &mut self.nodes[frame as usize];
        (node.prev, node.next) = (list as u32, head);
        self.lens[list] += 1;
        if LISTS > 1 {
            self.lists[frame as usize] = list as u8;
        }
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let mut seen = 0;
        for list in 0..LISTS {
            let (mut frame, before) = (self.tail_of(list), seen);
            while frame != NO_FRAME {
                let node = self.nodes[frame as usize];
                assert!((frame as usize) < LISTS + self.used as usize, "an unused frame is linked");
                assert_eq!(self.list_of(frame), list, "a frame is linked elsewhere");
                assert_eq!(self.nodes[node.prev as usize].next, frame);
                assert_eq!(self.nodes[node.next as usize].prev, frame);
                assert_eq!(self.find(node.key.page()), frame, "the table has another frame");
                seen += 1;
                assert!(seen <= self.used, "the list has a loop");
                frame = self.newer(frame);
            }
            assert_eq!(seen - before, self.lens[list], "a frame with a page is not linked");
        }
        let free =
            std::iter::successors(Some(self.free), |&frame| Some(self.nodes[frame as usize].next));
        let free = free.take_while(|&frame| frame != NO_FRAME).count() as u32;
        assert_eq!(seen + free, self.used, "a used frame is neither linked nor free");
    }
}
