//! Frames of dirty pages. A rewrite of a waiting page replaces its content in place; a rewrite of a
//! page that is being written back takes a new frame behind it (double buffering).
use std::collections::VecDeque;
use tantalum_base::{FastMap, PageNo, PageRange, Payload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Dirty,
    /// Being written back. The number gives the order in which frames were taken, for a dump.
    Flushing(u64),
}

struct Frame<P> {
    page: PageNo,
    content: P,
    state: FrameState,
    /// The command that wrote the page. Ascends along the FIFO.
    command: u64,
    /// The page had no place in the log when it was inserted.
    is_new: bool,
}

/// The write cache's content, which a power loss dumps if the cache is durable.
pub(crate) struct WriteCache<P> {
    frames: Vec<Option<Frame<P>>>,
    free: Vec<u32>,
    // The newest frame of each page.
    newest: FastMap<PageNo, u32>,
    // Dirty frames, oldest first.
    fifo: VecDeque<u32>,
    taken: u64,
    capacity: u32,
    coalesced: u64,
    new_frames: u32,
}

/// Frames taken for one write-back.
#[derive(Default)]
pub(crate) struct TakenFrames(Vec<u32>);

impl<P: Payload> WriteCache<P> {
    /// An empty cache with room for `capacity` pages.
    pub fn new(capacity: u32) -> Self {
        WriteCache {
            frames: (0..capacity).map(|_| None).collect(),
            free: (0..capacity).rev().collect(),
            newest: FastMap::with_capacity_and_hasher(capacity as usize, Default::default()),
            fifo: VecDeque::with_capacity(capacity as usize),
            taken: 0,
            capacity,
            coalesced: 0,
            new_frames: 0,
        }
    }

    /// Capacity in pages.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether it contains no page.
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Frames that are free.
    pub fn free_frames(&self) -> u32 {
        self.free.len() as u32
    }

    /// Frames that wait to be written back.
    pub fn dirty_frames(&self) -> u32 {
        self.fifo.len() as u32
    }

    /// Frames of pages that had no place in the log when they were inserted. This is an upper bound
    /// of the cached pages without a place: a page loses its place only while no frame holds it.
    pub fn new_frames(&self) -> u32 {
        self.new_frames
    }

    /// Rewrites that replaced a waiting page.
    pub fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// The cached pages.
    pub fn pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.newest.keys().copied()
    }

    /// The newest content of `page`.
    #[inline]
    pub fn get(&self, page: PageNo) -> Option<&P> {
        let frame = *self.newest.get(&page)?;
        self.frames[frame as usize].as_ref().map(|frame| &frame.content)
    }

    /// Returns the command after whose end no frame holds `page` any more; `None` if no frame holds
    /// it now.
    pub(crate) fn command_of(&self, page: PageNo) -> Option<u64> {
        let frame = *self.newest.get(&page)?;
        self.frames[frame as usize].as_ref().map(|frame| frame.command)
    }

    /// Returns the command after whose end no frame holds a page of `range` any more; `None` if
    /// none holds one now.
    pub(crate) fn command_of_range(&self, range: PageRange) -> Option<u64> {
        if range.pages <= u64::from(self.capacity) {
            return range.iter().filter_map(|page| self.command_of(page)).max();
        }
        let frames = self.frames.iter().flatten();
        frames.filter(|frame| range.contains(frame.page)).map(|frame| frame.command).max()
    }

    /// The command of the oldest dirty frame: all earlier commands have been taken.
    pub(crate) fn oldest_command(&self) -> Option<u64> {
        let oldest = *self.fifo.front()?;
        self.frames[oldest as usize].as_ref().map(|frame| frame.command)
    }

    /// Adds a page of `command`; `is_new` if it has no place in the log. There must be a free
    /// frame.
    pub(crate) fn insert(&mut self, page: PageNo, content: P, command: u64, is_new: bool) {
        if let Some(number) = self.newest.get(&page)
            && let Some(frame) = &mut self.frames[*number as usize]
            && frame.state == FrameState::Dirty
        {
            frame.content = content;
            self.coalesced += 1;
            return;
        }
        let number = self.free.pop().expect("the caller waited for free frames");
        self.frames[number as usize] =
            Some(Frame { page, content, state: FrameState::Dirty, command, is_new });
        self.new_frames += u32::from(is_new);
        self.newest.insert(page, number);
        self.fifo.push_back(number);
    }

    /// Takes up to `most` dirty frames for write-back, oldest first.
    pub(crate) fn take(
        &mut self,
        most: u32,
        pages: &mut Vec<(PageNo, P)>,
        taken: &mut TakenFrames,
    ) {
        for _ in 0..most.min(self.dirty_frames()) {
            let Some(number) = self.fifo.pop_front() else { break };
            if let Some(frame) = &mut self.frames[number as usize] {
                self.taken += 1;
                frame.state = FrameState::Flushing(self.taken);
                pages.push((frame.page, frame.content.clone()));
                taken.0.push(number);
            }
        }
    }

    /// Frees the frames, which were written back or dropped.
    pub(crate) fn release(&mut self, taken: &mut TakenFrames) {
        for number in taken.0.drain(..) {
            if let Some(frame) = self.frames[number as usize].take() {
                if self.newest.get(&frame.page) == Some(&number) {
                    self.newest.remove(&frame.page);
                }
                self.new_frames -= u32::from(frame.is_new);
                self.free.push(number);
            }
        }
    }

    /// The pages that a power loss must dump: the newest content of each, in write-back order.
    /// Frames that are being written back come first.
    pub(crate) fn newest_in_order(&self) -> Vec<(PageNo, P)> {
        let mut flushing: Vec<(u64, u32)> = Vec::new();
        for (number, frame) in (0..).zip(&self.frames) {
            if let Some(Frame { page, state: FrameState::Flushing(order), .. }) = frame
                && self.newest.get(page) == Some(&number)
            {
                flushing.push((*order, number));
            }
        }
        flushing.sort_unstable();
        let numbers =
            flushing.into_iter().map(|(_, number)| number).chain(self.fifo.iter().copied());
        let frames = numbers.filter_map(|number| self.frames[number as usize].as_ref());
        frames.map(|frame| (frame.page, frame.content.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Stamp;

    fn stamp(page: u64, count: u64) -> Stamp {
        Stamp::new(PageNo(page), count)
    }

    #[test]
    fn rewrites_coalesce_until_taken() {
        let mut cache = WriteCache::new(4);
        cache.insert(PageNo(1), stamp(1, 1), 1, false);
        cache.insert(PageNo(2), stamp(2, 1), 1, false);
        cache.insert(PageNo(1), stamp(1, 2), 1, false);
        assert_eq!((cache.dirty_frames(), cache.coalesced()), (2, 1));
        let (mut pages, mut taken) = (Vec::new(), TakenFrames::default());
        cache.take(1, &mut pages, &mut taken);
        assert_eq!(pages, [(PageNo(1), stamp(1, 2))], "FIFO by first write, newest content");
        cache.insert(PageNo(1), stamp(1, 3), 1, false);
        assert_eq!(cache.free_frames(), 1, "a rewrite behind a write-back takes its own frame");
        cache.release(&mut taken);
        assert_eq!(cache.get(PageNo(1)), Some(&stamp(1, 3)));
        assert_eq!(cache.free_frames(), 2);
    }

    #[test]
    fn frames_of_pages_without_a_place_are_counted() {
        let mut cache = WriteCache::new(4);
        cache.insert(PageNo(1), stamp(1, 1), 1, true);
        cache.insert(PageNo(2), stamp(2, 1), 1, false);
        cache.insert(PageNo(1), stamp(1, 2), 2, true);
        assert_eq!(cache.new_frames(), 1, "a rewrite of a waiting page takes no frame");
        let (mut pages, mut taken) = (Vec::new(), TakenFrames::default());
        cache.take(2, &mut pages, &mut taken);
        cache.insert(PageNo(1), stamp(1, 3), 3, true);
        assert_eq!(cache.new_frames(), 2, "the write-back of the first may fail");
        cache.release(&mut taken);
        assert_eq!(cache.new_frames(), 1);
        cache.take(1, &mut pages, &mut taken);
        cache.release(&mut taken);
        assert_eq!(cache.new_frames(), 0);
    }

    #[test]
    fn a_dump_has_the_newest_of_each_page_in_the_order_of_writing_back() {
        let mut cache = WriteCache::new(8);
        for page in 0..4 {
            cache.insert(PageNo(page), stamp(page, 1), 1, false);
        }
        let (mut pages, mut taken) = (Vec::new(), TakenFrames::default());
        cache.take(2, &mut pages, &mut taken);
        cache.take(1, &mut pages, &mut taken);
        cache.insert(PageNo(0), stamp(0, 2), 1, false);
        let expected = [(1, 1), (2, 1), (3, 1), (0, 2)];
        let expected = expected.map(|(page, count)| (PageNo(page), stamp(page, count)));
        assert_eq!(cache.newest_in_order(), expected);
    }
}
