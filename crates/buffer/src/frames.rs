//! Frames: their pages, their pins, and the pending writes. No I/O and no content; every link is an
//! index.
use tantalum_base::PageNo;
use tantalum_policy::page_table::{NO_FRAME, PageTable, SparseTable};

/// The state of a frame's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// Not read yet: the next fix reads it.
    Absent,
    /// Being read.
    Reading,
    /// The content is present.
    Ready,
    /// The read failed. The frame is no longer in the table, and is freed with its last pin.
    Failed,
}

/// A frame. It is free, or it has a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub page: PageNo,
    pub content: Content,
    /// Fixes of the page, including waiting ones.
    pub pins: u32,
    /// Those of the pins that end by themselves, because no guard is returned to the caller.
    pub passing_pins: u32,
    /// Those of the pins with the intent to change the page.
    pub update_pins: u32,
    /// Guards that hold the page for reading.
    pub readers: u32,
    /// A guard holds the page for an update.
    pub updating: bool,
    /// Fixes for an update that wait for the latch; later readers wait behind them.
    pub updaters_waiting: u32,
    /// The table maps the page to this frame.
    pub listed: bool,
    /// The policy counts the page as cached.
    pub cached: bool,
    /// Changed since it was read or its last write-back began.
    pub dirty: bool,
    /// A write-back is in flight. There is at most one, so that old content never overwrites newer
    /// content.
    pub writing: bool,
    /// A write-back is due as soon as it is possible.
    pub write_due: bool,
    /// In the queue of pages to write.
    pub queued: bool,
    /// The last write-back failed, and none was requested since.
    pub failed: bool,
    /// Written ahead of its eviction: after the write the policy is informed that the page is
    /// clean.
    pub ahead: bool,
    /// The flusher requested the write.
    pub by_flusher: bool,
    /// The policy evicted it, or requested its write, during an update: the write is due at the unfix.
    pub write_due_at_unfix: bool,
    /// A read of the page together with others failed: it must be read alone.
    pub read_alone: bool,
    /// Prefetched, and not requested since.
    pub prefetched: bool,
    /// Write-backs that a flush waits for.
    pub flush_waits: u8,
    /// Links in the queue of pages to write, or among the prefetched; `next` also links free
    /// frames.
    prev: u32,
    next: u32,
}

impl Frame {
    const EMPTY: Frame = Frame {
        page: PageNo(0),
        content: Content::Absent,
        pins: 0,
        passing_pins: 0,
        update_pins: 0,
        readers: 0,
        updating: false,
        updaters_waiting: 0,
        listed: false,
        cached: false,
        dirty: false,
        writing: false,
        write_due: false,
        queued: false,
        failed: false,
        ahead: false,
        by_flusher: false,
        write_due_at_unfix: false,
        read_alone: false,
        prefetched: false,
        flush_waits: 0,
        prev: NO_FRAME,
        next: NO_FRAME,
    };

    /// Whether a caller keeps a guard of it.
    fn is_kept(&self) -> bool {
        self.pins > self.passing_pins
    }

    /// Whether only the policy keeps the frame.
    pub(crate) fn is_idle(&self) -> bool {
        self.pins == 0 && !self.writing && !self.dirty
    }

    /// Whether its page is cached and can be read now.
    pub(crate) fn is_ready(&self) -> bool {
        self.cached && self.is_readable()
    }

    /// Whether its page can be read now.
    pub(crate) fn is_readable(&self) -> bool {
        self.content == Content::Ready && !self.updating && self.updaters_waiting == 0
    }

    /// Whether a write-back may begin now: not during an update, which may be half done.
    pub(crate) fn is_writable(&self) -> bool {
        self.dirty && !self.writing && !self.updating
    }
}

/// The kind of a pin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pin {
    /// A guard for reading.
    Read,
    /// A guard for an update.
    Update,
    /// A read that copies the page and unfixes it. It never waits for anything that a holder of a
    /// guard may wait for.
    Passing,
}

/// All frames, numbered from 1, with the page table and the queue of pages to write.
pub(crate) struct Frames {
    /// Index 0 is the head of the ring of pages to write, the last index that of prefetched pages.
    all: Vec<Frame>,
    table: SparseTable,
    free: u32,
    free_count: u32,
    /// Frames with a pin.
    pub pinned: u32,
    /// Frames with a pin that does not end by itself.
    pub kept: u32,
    /// Frames with `dirty`.
    pub dirty: u32,
    /// Frames with `writing`.
    pub writing: u32,
    /// Frames with `failed`.
    pub failed: u32,
    /// Frames with `queued`.
    pub queued: u32,
    /// The position of the next search for a frame to reuse.
    hand: u32,
}

impl Frames {
    /// `count` free frames.
    pub(crate) fn new(count: u32) -> Self {
        let mut all = vec![Frame::EMPTY; count as usize + 2];
        let ring = count + 1;
        (all[ring as usize].prev, all[ring as usize].next) = (ring, ring);
        for frame in 1..count {
            all[frame as usize].next = frame + 1;
        }
        Frames {
            all,
            table: SparseTable::new(count, u64::MAX),
            free: 1,
            free_count: count,
            pinned: 0,
            kept: 0,
            dirty: 0,
            writing: 0,
            failed: 0,
            queued: 0,
            hand: 0,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.all.len() as u32 - 2
    }

    pub(crate) fn free_count(&self) -> u32 {
        self.free_count
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.all.len() * size_of::<Frame>()) as u64 + self.table.memory_bytes()
    }

    #[inline]
    pub(crate) fn get(&self, frame: u32) -> &Frame {
        &self.all[frame as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, frame: u32) -> &mut Frame {
        &mut self.all[frame as usize]
    }

    /// The frame of `page`, or [`NO_FRAME`].
    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> u32 {
        self.table.find(page, |frame| self.all[frame as usize].page)
    }

    /// Takes a free frame for `page`, which has none.
    pub(crate) fn take_free(&mut self, page: PageNo) -> u32 {
        let frame = self.free;
        assert!(frame != NO_FRAME, "no frame is free");
        self.free = self.get(frame).next;
        self.free_count -= 1;
        *self.get_mut(frame) = Frame { page, listed: true, ..Frame::EMPTY };
        self.table.insert(page, frame);
        frame
    }

    /// Removes `frame` from the page table.
    pub(crate) fn unlist(&mut self, frame: u32) {
        let Frame { page, listed, .. } = *self.get(frame);
        if listed {
            let all = &self.all;
            self.table.remove(page, frame, |frame| all[frame as usize].page);
            self.get_mut(frame).listed = false;
        }
    }

    /// Frees `frame` if nothing keeps it; returns whether it was freed.
    pub(crate) fn release(&mut self, frame: u32) -> bool {
        let held = self.get(frame);
        let coming = held.prefetched || held.content == Content::Reading;
        if held.cached || coming || !held.is_idle() {
            return false;
        }
        debug_assert!(!held.queued && !held.write_due, "a clean page has nothing to be written");
        self.unlist(frame);
        self.get_mut(frame).next = self.free;
        self.free = frame;
        self.free_count += 1;
        true
    }

    pub(crate) fn pin(&mut self, frame: u32, pin: Pin) {
        let held = self.get_mut(frame);
        let was_kept = held.is_kept();
        held.pins += 1;
        held.update_pins += u32::from(pin == Pin::Update);
        held.passing_pins += u32::from(pin == Pin::Passing);
        let (first, is_kept) = (held.pins == 1, held.is_kept());
        self.pinned += u32::from(first);
        self.kept += u32::from(is_kept) - u32::from(was_kept);
    }

    pub(crate) fn unpin(&mut self, frame: u32, pin: Pin) {
        let held = self.get_mut(frame);
        let was_kept = held.is_kept();
        held.pins -= 1;
        held.update_pins -= u32::from(pin == Pin::Update);
        held.passing_pins -= u32::from(pin == Pin::Passing);
        let (last, is_kept) = (held.pins == 0, held.is_kept());
        self.pinned -= u32::from(last);
        self.kept -= u32::from(was_kept) - u32::from(is_kept);
    }

    pub(crate) fn set_dirty(&mut self, frame: u32, dirty: bool) {
        let was = std::mem::replace(&mut self.get_mut(frame).dirty, dirty);
        self.dirty = self.dirty + u32::from(dirty) - u32::from(was);
    }

    pub(crate) fn set_writing(&mut self, frame: u32, writing: bool) {
        let was = std::mem::replace(&mut self.get_mut(frame).writing, writing);
        self.writing = self.writing + u32::from(writing) - u32::from(was);
    }

    pub(crate) fn set_failed(&mut self, frame: u32, failed: bool) {
        let was = std::mem::replace(&mut self.get_mut(frame).failed, failed);
        self.failed = self.failed + u32::from(failed) - u32::from(was);
    }

    /// Requests a write of the dirty page in `frame`, now or as soon as it is possible.
    pub(crate) fn request_write(&mut self, frame: u32) {
        self.set_failed(frame, false);
        self.get_mut(frame).write_due = true;
        self.enqueue(frame);
    }

    /// Queues `frame` if a write of its page is due and possible.
    pub(crate) fn enqueue(&mut self, frame: u32) {
        let held = self.get(frame);
        if !held.write_due || held.queued || !held.is_writable() {
            return;
        }
        self.get_mut(frame).queued = true;
        self.queued += 1;
        self.link(0, frame);
    }

    /// Adds `frame` at the end of the ring with head `ring`.
    fn link(&mut self, ring: u32, frame: u32) {
        let last = std::mem::replace(&mut self.get_mut(ring).prev, frame);
        self.get_mut(last).next = frame;
        let held = self.get_mut(frame);
        (held.prev, held.next) = (last, ring);
    }

    /// Removes `frame` from its ring.
    fn unlink(&mut self, frame: u32) {
        let Frame { prev, next, .. } = *self.get(frame);
        self.get_mut(prev).next = next;
        self.get_mut(next).prev = prev;
    }

    /// Adds `frame` to the prefetched, or removes it. A prefetched page is never dirty, so that its
    /// frame is in one ring at a time.
    pub(crate) fn set_prefetched(&mut self, frame: u32, prefetched: bool) {
        let was = std::mem::replace(&mut self.get_mut(frame).prefetched, prefetched);
        if prefetched && !was {
            self.link(self.count() + 1, frame);
        } else if was && !prefetched {
            self.unlink(frame);
        }
    }

    /// The frame that was prefetched first, or [`NO_FRAME`].
    pub(crate) fn oldest_prefetched(&self) -> u32 {
        let ring = self.count() + 1;
        match self.get(ring).next {
            frame if frame == ring => NO_FRAME,
            frame => frame,
        }
    }

    /// The frame that has been queued longest, or [`NO_FRAME`].
    pub(crate) fn first_queued(&self) -> u32 {
        self.all[0].next
    }

    /// Removes `frame` from the queue; its write stays due.
    pub(crate) fn dequeue(&mut self, frame: u32) {
        if std::mem::take(&mut self.get_mut(frame).queued) {
            self.queued -= 1;
            self.unlink(frame);
        }
    }

    /// The frame of `page` if it is queued, or [`NO_FRAME`].
    pub(crate) fn find_queued(&self, page: PageNo) -> u32 {
        match self.find(page) {
            frame if frame != NO_FRAME && self.get(frame).queued => frame,
            _ => NO_FRAME,
        }
    }

    /// The numbers of all frames.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.count()
    }

    /// Moves the hand to the next frame whose listed page `suits`, and returns it, or [`NO_FRAME`].
    pub(crate) fn sweep(&mut self, suits: impl Fn(&Frame) -> bool) -> u32 {
        for _ in 0..self.count() {
            self.hand = self.hand % self.count() + 1;
            let held = self.get(self.hand);
            if held.listed && suits(held) {
                return self.hand;
            }
        }
        NO_FRAME
    }

    /// Panics if the frames contradict each other.
    pub(crate) fn validate(&self) {
        let frames = || self.all[1..=self.count() as usize].iter();
        let count = |has: fn(&Frame) -> bool| frames().filter(|frame| has(frame)).count() as u32;
        assert_eq!(self.pinned, count(|frame| frame.pins > 0));
        assert_eq!(self.kept, count(Frame::is_kept));
        assert_eq!(self.dirty, count(|frame| frame.dirty));
        assert_eq!(self.writing, count(|frame| frame.writing));
        assert_eq!(self.failed, count(|frame| frame.failed));
        assert_eq!(self.queued, count(|frame| frame.queued));
        let free = std::iter::successors(Some(self.free), |&frame| Some(self.get(frame).next));
        let free = free.take_while(|&frame| frame != NO_FRAME).count() as u32;
        assert_eq!(free, self.free_count, "the chain of free frames");
        assert_eq!(self.count(), free + count(|frame| !is_free(frame)), "a frame was lost");
        for number in self.numbers() {
            let frame = self.get(number);
            assert!(!frame.listed || self.find(frame.page) == number, "{frame:?}");
            assert!(!frame.queued || (frame.write_due && frame.is_writable()), "{frame:?}");
            assert!(!frame.write_due || frame.dirty, "{frame:?}");
            assert!(frame.update_pins <= frame.pins && frame.readers <= frame.pins, "{frame:?}");
            assert!(!(frame.updating && frame.readers > 0), "{frame:?}");
            assert!(!(frame.prefetched && (frame.dirty || frame.pins > 0)), "{frame:?}");
            let seen = frame.write_due || frame.failed || frame.cached || frame.update_pins > 0;
            assert!(!frame.dirty || frame.writing || seen, "nobody will write {frame:?}");
        }
    }
}

fn is_free(frame: &Frame) -> bool {
    !frame.cached && !frame.listed && frame.is_idle()
}
