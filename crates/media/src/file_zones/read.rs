//! Reads of many slots: nearby slots in one operation, the rest concurrently.
use super::FileZones;
use crate::block_store::BlockStore;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::Poll;
use tantalum_base::{PAGE_BYTES, PageBuf, Result, ResultExt, SlotNo};
use tantalum_runtime::join_all;

/// Maximum slots read in one operation.
const RUN_SLOTS_MAX: u32 = 256;

/// Maximum gap between two requested slots that is read as well. Consecutive appends have a header between them, and
/// reading it costs less than another operation.
const GAP_SLOTS_MAX: u32 = 4;

/// A read of at least this many slots uses [`MANY_LANES`].
const MANY_SLOTS: usize = 64;
const MANY_LANES: usize = 32;

/// State shared by the concurrent lanes of one read.
struct Work<'a> {
    slots: &'a [SlotNo],
    /// Index of the first slot that no lane has taken.
    next: Cell<usize>,
    out: RefCell<&'a mut [PageBuf]>,
}

impl Work<'_> {
    /// Takes the next run: the indexes of ascending slots with at most `gap_max` slots between neighbours.
    fn take_run(&self, gap_max: u32) -> Option<Range<usize>> {
        let first = self.next.get();
        let start = self.slots.get(first)?.0;
        let mut end = first + 1;
        while let Some(slot) = self.slots.get(end)
            && (1..=gap_max + 1).contains(&slot.0.wrapping_sub(self.slots[end - 1].0))
            && slot.0 - start < RUN_SLOTS_MAX
        {
            end += 1;
        }
        self.next.set(end);
        Some(first..end)
    }

    /// Number of slots from the first to the last of the run.
    fn span(&self, run: &Range<usize>) -> usize {
        (self.slots[run.end - 1].0 - self.slots[run.start].0) as usize + 1
    }
}

impl<S: BlockStore> FileZones<S> {
    pub(super) async fn read_slots(&self, slots: &[SlotNo], out: &mut [PageBuf]) -> Result<()> {
        assert_eq!(slots.len(), out.len(), "a read needs one page a slot");
        let end = self.options.zones * self.options.slots_per_zone;
        assert!(slots.iter().all(|slot| slot.0 < end), "a slot to read is outside the medium");
        let work = Work { slots, next: Cell::new(0), out: RefCell::new(out) };
        let Some(first) = work.take_run(GAP_SLOTS_MAX) else { return Ok(()) };
        if work.next.get() == slots.len() {
            return self.read_run(&work, first).await;
        }
        work.next.set(0);
        if slots.len() >= MANY_SLOTS {
            // Typical of a scan over pages that were written in another order: a disk can do far more of these reads
            // at once.
            let lanes = (0..MANY_LANES).map(|_| self.lane(&work)).collect();
            return join_all(lanes).await.map(drop);
        }
        // A fixed number of lanes, each of which takes the next run when it finishes one. This gives a store enough
        // concurrency without allocation.
        let lanes = [
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
            pin!(self.lane(&work)),
        ];
        join(lanes).await
    }

    async fn lane(&self, work: &Work<'_>) -> Result<()> {
        while let Some(run) = work.take_run(GAP_SLOTS_MAX) {
            self.read_run(work, run).await?;
        }
        Ok(())
    }

    async fn read_run(&self, work: &Work<'_>, run: Range<usize>) -> Result<()> {
        let read = self.read_span(work, &run).await;
        if read.is_ok() || work.span(&run) == run.len() {
            return read;
        }
        // The unreadable slot may lie in a gap, so retry without the gaps.
        let slots = &work.slots[run.clone()];
        let without_gaps = Work { slots, next: Cell::new(0), out: RefCell::new(&mut []) };
        while let Some(part) = without_gaps.take_run(0) {
            self.read_span(work, &(run.start + part.start..run.start + part.end)).await?;
        }
        Ok(())
    }

    /// Reads from the first to the last slot of the run in one operation, and keeps the requested slots.
    async fn read_span(&self, work: &Work<'_>, run: &Range<usize>) -> Result<()> {
        let (first, span) = (work.slots[run.start], work.span(run));
        let buf = self.store.buffer(span * PAGE_BYTES);
        let buf = self.store.read(self.byte_of(first), buf).await.context(|| {
            let geometry = crate::zone::ZoneMedia::geometry(self);
            let (zone, offset) = (geometry.zone_of(first), geometry.offset_of(first));
            format!("read of {span} pages at zone {zone}, slot {offset}")
        })?;
        let mut out = work.out.borrow_mut();
        for (page, slot) in out[run.clone()].iter_mut().zip(&work.slots[run.clone()]) {
            let at = (slot.0 - first.0) as usize * PAGE_BYTES;
            *page = PageBuf::copy_from(&buf[at..at + PAGE_BYTES]);
        }
        self.store.recycle(buf);
        Ok(())
    }
}

/// Runs the lanes concurrently until all are done. Returns the first error.
pub(super) async fn join<F, const LANES: usize>(lanes: [Pin<&mut F>; LANES]) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let mut lanes = lanes.map(Some);
    let mut result = Ok(());
    poll_fn(|context| {
        for lane in &mut lanes {
            let Some(running) = lane else { continue };
            if let Poll::Ready(done) = running.as_mut().poll(context) {
                *lane = None;
                if result.is_ok() {
                    result = done;
                }
            }
        }
        if lanes.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    result
}
