//! Reads of many slots: neighbours in one operation, the rest concurrently.
use super::FileZones;
use crate::block_store::BlockStore;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use tantalum_base::{PAGE_BYTES, PageBuf, Result, ResultExt, SlotNo};

/// Most slots read in one operation.
const RUN_SLOTS_MAX: usize = 256;

/// State that the concurrent lanes of one read share.
struct Work<'a> {
    slots: &'a [SlotNo],
    /// Index of the first slot that no lane has taken.
    next: Cell<usize>,
    out: RefCell<&'a mut [PageBuf]>,
}

impl Work<'_> {
    /// Takes the next run of neighbouring slots: index of its first, and its length.
    fn take_run(&self) -> Option<(usize, usize)> {
        let first = self.next.get();
        let rest = &self.slots[first..];
        let start = rest.first()?.0;
        let longest = rest.len().min(RUN_SLOTS_MAX);
        let length = (1..longest).find(|&at| u64::from(rest[at].0) != u64::from(start) + at as u64);
        let length = length.unwrap_or(longest);
        self.next.set(first + length);
        Some((first, length))
    }
}

impl<S: BlockStore> FileZones<S> {
    pub(super) async fn read_slots(&self, slots: &[SlotNo], out: &mut [PageBuf]) -> Result<()> {
        assert_eq!(slots.len(), out.len(), "a read needs one page a slot");
        let end = self.options.zones * self.options.slots_per_zone;
        assert!(slots.iter().all(|slot| slot.0 < end), "a slot to read is outside the medium");
        let work = Work { slots, next: Cell::new(0), out: RefCell::new(out) };
        let Some(first) = work.take_run() else { return Ok(()) };
        if work.next.get() == slots.len() {
            return self.read_run(&work, first).await;
        }
        work.next.set(0);
        // A fixed number of lanes, each taking the next run when it has finished one: enough
        // concurrency for a store, without allocation.
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
        while let Some(run) = work.take_run() {
            self.read_run(work, run).await?;
        }
        Ok(())
    }

    async fn read_run(&self, work: &Work<'_>, (first, length): (usize, usize)) -> Result<()> {
        let slot = work.slots[first];
        let buf = self.store.buffer(length * PAGE_BYTES);
        let buf = self.store.read(self.byte_of(slot), buf).await.context(|| {
            let geometry = crate::zone::ZoneMedia::geometry(self);
            let (zone, offset) = (geometry.zone_of(slot), geometry.offset_of(slot));
            format!("read of {length} pages at zone {zone}, slot {offset}")
        })?;
        let mut out = work.out.borrow_mut();
        for (page, bytes) in out[first..first + length].iter_mut().zip(buf.chunks(PAGE_BYTES)) {
            *page = PageBuf::copy_from(bytes);
        }
        self.store.recycle(buf);
        Ok(())
    }
}

/// Runs the lanes concurrently until all are done; returns the first error.
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
