//! Doubly linked lists over frames, with the page table that finds them: for policies that keep
//! pages in the order of use or arrival, in one list or many.
//!
//! Links are `u32` indexes into one array. Each list is a ring closed by a sentinel, so that no
//! link operation has a special case. The sentinel of list 0 is at index 0, so index 0 is never a
//! frame; frames follow, then the other sentinels.
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Key, Request};
use tantalum_base::PageNo;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    /// Next node towards the head; a sentinel's is its list's tail.
    newer: u32,
    /// Next node towards the tail; a sentinel's is its list's head.
    older: u32,
}

/// The list number stored in a frame: nothing if there is one list, a byte for most policies.
pub(crate) trait ListNo: Copy + Default {
    /// Maximum number of lists.
    const LISTS_MAX: u32;
    fn of(list: u32) -> Self;
    fn get(self) -> u32;
}

impl ListNo for () {
    const LISTS_MAX: u32 = 1;

    #[inline]
    fn of(_list: u32) -> Self {}

    #[inline]
    fn get(self) -> u32 {
        0
    }
}

impl ListNo for u8 {
    const LISTS_MAX: u32 = 1 << u8::BITS;

    #[inline]
    fn of(list: u32) -> Self {
        list as u8
    }

    #[inline]
    fn get(self) -> u32 {
        u32::from(self)
    }
}

impl ListNo for u32 {
    const LISTS_MAX: u32 = u32::MAX;

    #[inline]
    fn of(list: u32) -> Self {
        list
    }

    #[inline]
    fn get(self) -> u32 {
        self
    }
}

/// Frames in lists, the newest at the head. They take 16 bytes a frame, plus an `L` and the bytes of the page table. A
/// policy that remembers evicted pages has frames for them as well, in a list of their own.
///
/// If `AGED`, a frame also stores the time at which it last came to a head (8 bytes), so that it
/// can change its list without being used: see [`AgedLists`].
#[derive(Debug)]
pub(crate) struct FrameLists<T, L = u8, const AGED: bool = false> {
    nodes: Vec<Node>,
    /// The list of each frame.
    lists: Vec<L>,
    /// Frames in each list.
    lens: Vec<u32>,
    table: T,
    /// Number of frames; they are numbered from 1.
    frames: u32,
    /// Number of frames that have ever held a page: these are 1..=touched.
    touched: u32,
    /// The first of these frames that is free again. Its `older` is the next one; [`NO_FRAME`] ends the chain.
    free: u32,
    /// Frames that hold a page.
    used: u32,
    /// The time at which each frame last came to a head; empty unless `AGED`.
    stamps: Vec<u64>,
    clock: u64,
}

/// Lists that stay in the order in which their frames last came to a head, even if a frame [changes
/// its list](FrameLists::move_by_age): a dirty page that is written back joins the clean ones in
/// its place in that order, not at an end.
pub(crate) type AgedLists<T, L = u8> = FrameLists<T, L, true>;

impl<T: PageTable, L: ListNo, const AGED: bool> FrameLists<T, L, AGED> {
    /// `lists` empty lists over `frames` frames in all, for pages numbered below `pages_end`.
    pub(crate) fn new(lists: u32, frames: u32, pages_end: u64) -> Self {
        assert!(lists > 0 && frames > 0, "at least one list and one frame");
        assert!(lists <= L::LISTS_MAX, "{lists} lists have no numbers");
        let nodes = u64::from(lists) + u64::from(frames);
        assert!(nodes <= u64::from(u32::MAX), "{lists} lists of {frames} frames are too many");
        let alone = |node| Node { key: Key::default(), newer: node, older: node };
        FrameLists {
            nodes: (0..nodes as u32).map(alone).collect(),
            lists: vec![L::default(); frames as usize + 1],
            lens: vec![0; lists as usize],
            table: T::new(frames, pages_end),
            frames,
            touched: 0,
            free: NO_FRAME,
            used: 0,
            stamps: vec![0; if AGED { frames as usize + 1 } else { 0 }],
            clock: 0,
        }
    }

    pub(crate) fn capacity_pages(&self) -> u32 {
        self.frames
    }

    /// One past the highest frame number: the length of arrays that a policy keeps beside the
    /// lists.
    pub(crate) fn frames_end(&self) -> usize {
        self.frames as usize + 1
    }

    /// Frames in all lists.
    #[inline]
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Whether every frame is in a list.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.frames
    }

    /// Frames in `list`.
    #[inline]
    pub(crate) fn len(&self, list: u32) -> u32 {
        self.lens[list as usize]
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
    pub(crate) fn list_of(&self, frame: u32) -> u32 {
        self.lists[frame as usize].get()
    }

    /// The oldest frame of `list`; [`NO_FRAME`] if it is empty.
    #[inline]
    pub(crate) fn tail(&self, list: u32) -> u32 {
        self.newer(self.sentinel(list))
    }

    /// The newest frame of `list`; [`NO_FRAME`] if it is empty.
    #[inline]
    pub(crate) fn head(&self, list: u32) -> u32 {
        self.older(self.sentinel(list))
    }

    /// The next newer frame in its list; [`NO_FRAME`] at the head.
    #[inline]
    pub(crate) fn newer(&self, frame: u32) -> u32 {
        self.or_none(self.nodes[frame as usize].newer)
    }

    /// The next older frame in its list; [`NO_FRAME`] at the tail.
    #[inline]
    pub(crate) fn older(&self, frame: u32) -> u32 {
        self.or_none(self.nodes[frame as usize].older)
    }

    /// The frames from `frame` on towards newer ones.
    pub(crate) fn from(&self, frame: u32) -> impl Iterator<Item = u32> + '_ {
        let in_list = |frame: &u32| *frame != NO_FRAME;
        std::iter::successors(Some(frame).filter(in_list), move |&frame| {
            Some(self.newer(frame)).filter(in_list)
        })
    }

    /// The frames of `list`, oldest first.
    pub(crate) fn oldest_first(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        self.from(self.tail(list))
    }

    /// Appends the pages of the first `pages_max` dirty frames in `frames`.
    pub(crate) fn dirty_of(
        &self,
        frames: impl Iterator<Item = u32>,
        pages_max: usize,
        pages: &mut Vec<PageNo>,
    ) {
        let keys = frames.map(|frame| self.key(frame)).filter(|key| key.is_dirty());
        pages.extend(keys.take(pages_max).map(|key| key.page()));
    }

    /// Dirty frames in all lists. Remembered pages that were evicted are clean.
    pub(crate) fn dirty_pages(&self) -> u32 {
        let frames = (0..self.lens.len() as u32).flat_map(|list| self.oldest_first(list));
        frames.filter(|&frame| self.key(frame).is_dirty()).count() as u32
    }

    /// Moves `frame` from any list to the head of `list`.
    #[inline]
    pub(crate) fn move_to_head(&mut self, frame: u32, list: u32) {
        let sentinel = self.sentinel(list);
        self.stamp_now(frame);
        // For aged lists the check costs more than it saves.
        if AGED || self.nodes[sentinel as usize].older != frame {
            self.unlink(frame);
            self.link_at_head(frame, sentinel);
            self.change_list(frame, list);
        }
    }

    /// Moves `frame` from any list to the tail of `list`.
    pub(crate) fn move_to_tail(&mut self, frame: u32, list: u32) {
        self.unlink(frame);
        let sentinel = self.sentinel(list);
        self.link(sentinel, frame, self.nodes[sentinel as usize].newer);
        self.change_list(frame, list);
    }

    /// Puts the page of `request`, which must not be in a list, into a free frame at the head of
    /// `list`. Returns the frame.
    #[inline]
    pub(crate) fn push(&mut self, request: Request, list: u32) -> u32 {
        self.insert(Key::new(request), list)
    }

    /// As [`push`](Self::push), for a page from another part of the cache, by its key.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key, list: u32) -> u32 {
        let frame = match self.free {
            NO_FRAME => {
                assert!(self.touched < self.frames, "no frame is free");
                self.touched += 1;
                self.touched
            }
            frame => {
                self.free = self.nodes[frame as usize].older;
                frame
            }
        };
        self.used += 1;
        self.lens[list as usize] += 1;
        self.lists[frame as usize] = L::of(list);
        self.fill(frame, key, list);
        frame
    }

    /// Removes the page in `frame`; the frame becomes free.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) -> Key {
        let key = self.forget_page(frame);
        self.unlink(frame);
        let list = self.list_of(frame);
        self.lens[list as usize] -= 1;
        self.nodes[frame as usize].older = self.free;
        (self.free, self.used) = (frame, self.used - 1);
        key
    }

    /// Removes the page in `frame` from its list, and puts the page of `request` into the frame, at
    /// the head of `list`. Returns the old page's key.
    #[inline]
    pub(crate) fn replace(&mut self, frame: u32, request: Request, list: u32) -> Key {
        let old = self.forget_page(frame);
        self.unlink(frame);
        self.fill(frame, Key::new(request), list);
        self.change_list(frame, list);
        old
    }

    /// Whether `page` is in a frame.
    pub(crate) fn contains(&self, page: PageNo) -> bool {
        self.find(page) != NO_FRAME
    }

    /// Makes `page` clean. Returns its frame if it was present and dirty, else [`NO_FRAME`].
    pub(crate) fn cleaned(&mut self, page: PageNo) -> u32 {
        let frame = self.find(page);
        if frame == NO_FRAME || !self.key(frame).is_dirty() {
            return NO_FRAME;
        }
        self.key_mut(frame).clean();
        frame
    }

    /// Removes `page` if it is present. Returns whether it was.
    pub(crate) fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.find(page);
        if frame != NO_FRAME {
            self.remove(frame);
        }
        frame != NO_FRAME
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let nodes = self.nodes.len() * size_of::<Node>();
        let stamps = self.stamps.len() * size_of::<u64>();
        let lists = self.lists.len() * size_of::<L>() + self.lens.len() * size_of::<u32>();
        (nodes + stamps + lists) as u64 + self.table.memory_bytes()
    }

    /// The sentinel of `list`.
    #[inline]
    fn sentinel(&self, list: u32) -> u32 {
        if list == 0 { 0 } else { self.frames + list }
    }

    /// [`NO_FRAME`] for any sentinel; the sentinel of list 0 has that number.
    #[inline]
    fn or_none(&self, node: u32) -> u32 {
        if L::LISTS_MAX > 1 && node > self.frames { NO_FRAME } else { node }
    }

    #[inline]
    fn fill(&mut self, frame: u32, key: Key, list: u32) {
        self.stamp_now(frame);
        self.nodes[frame as usize].key = key;
        self.table.insert(key.page(), frame);
        self.link_at_head(frame, self.sentinel(list));
    }

    /// Removes the page in `frame` from the table.
    #[inline]
    fn forget_page(&mut self, frame: u32) -> Key {
        let nodes = &self.nodes;
        let key = nodes[frame as usize].key;
        self.table.remove(key.page(), frame, |frame| nodes[frame as usize].key.page());
        key
    }

    #[inline]
    fn stamp_now(&mut self, frame: u32) {
        if AGED {
            self.clock += 1;
            self.stamps[frame as usize] = self.clock;
        }
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Node { newer, older, .. } = self.nodes[frame as usize];
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
    }

    #[inline]
    fn link_at_head(&mut self, frame: u32, sentinel: u32) {
        self.link(self.nodes[sentinel as usize].older, frame, sentinel);
    }

    /// Links `frame` between two adjacent nodes.
    #[inline]
    fn link(&mut self, older: u32, frame: u32, newer: u32) {
        self.nodes[newer as usize].older = frame;
        self.nodes[older as usize].newer = frame;
        let node = &mut self.nodes[frame as usize];
        (node.newer, node.older) = (newer, older);
    }

    /// Records that `frame` is in `list` now.
    #[inline]
    fn change_list(&mut self, frame: u32, list: u32) {
        if L::LISTS_MAX > 1 {
            let old = std::mem::replace(&mut self.lists[frame as usize], L::of(list));
            self.lens[old.get() as usize] -= 1;
            self.lens[list as usize] += 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let mut seen = 0;
        for list in 0..self.lens.len() as u32 {
            let before = seen;
            for frame in self.oldest_first(list) {
                let Node { key, newer, older } = self.nodes[frame as usize];
                assert!(frame <= self.touched, "an unused frame is linked");
                assert_eq!(self.list_of(frame), list, "a frame is linked elsewhere");
                assert_eq!(self.nodes[newer as usize].older, frame);
                assert_eq!(self.nodes[older as usize].newer, frame);
                assert_eq!(self.find(key.page()), frame, "the table has another frame");
                let in_order =
                    |older: u32| self.stamps[older as usize] < self.stamps[frame as usize];
                assert!(
                    !AGED || self.or_none(older) == NO_FRAME || in_order(older),
                    "out of order"
                );
                seen += 1;
                assert!(seen <= self.used, "a list has a loop");
            }
            assert_eq!(seen - before, self.len(list), "frames are counted wrongly");
        }
        assert_eq!(seen, self.used, "a frame with a page is not linked");
        let free =
            std::iter::successors(Some(self.free), |&frame| Some(self.nodes[frame as usize].older));
        let free = free.take_while(|&frame| frame != NO_FRAME).count() as u32;
        assert_eq!(self.used + free, self.touched, "a frame is neither linked nor free");
    }
}

impl<T: PageTable, L: ListNo> AgedLists<T, L> {
    /// The time at which `frame` last came to a head, counted in such events of all frames.
    #[inline]
    pub(crate) fn stamp(&self, frame: u32) -> u64 {
        self.stamps[frame as usize]
    }

    /// Moves `frame` to `list`, into the place of its age. The search runs from both ends: it takes
    /// one step if the frame is newer or older than all others there.
    #[inline]
    pub(crate) fn move_by_age(&mut self, frame: u32, list: u32) {
        self.unlink(frame);
        self.change_list(frame, list);
        let stamp = self.stamp(frame);
        let sentinel = self.sentinel(list);
        let Node { newer: mut low, older: mut high, .. } = self.nodes[sentinel as usize];
        loop {
            if high == sentinel || self.stamp(high) < stamp {
                return self.link(high, frame, self.nodes[high as usize].newer);
            }
            if self.stamp(low) > stamp {
                return self.link(self.nodes[low as usize].older, frame, low);
            }
            high = self.nodes[high as usize].older;
            low = self.nodes[low as usize].newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_table::SparseTable;

    #[test]
    fn a_frame_that_changes_its_list_finds_its_place_from_either_end() {
        for moved in 1..=7 {
            let mut lists = AgedLists::<SparseTable>::new(2, 7, u64::MAX);
            for frame in 1..=7 {
                let request = Request::new(PageNo(u64::from(frame)), false);
                assert_eq!(lists.push(request, u32::from(frame == moved)), frame);
            }
            lists.move_by_age(moved, 0);
            assert_eq!(lists.oldest_first(0).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
            lists.validate();
            assert_eq!((lists.len(0), lists.tail(1)), (7, NO_FRAME));
        }
    }
}
