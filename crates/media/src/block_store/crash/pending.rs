//! One write that is not durable yet.
use crate::block_store::{BLOCK_BYTES, BlockStore, IoBuf};
use crate::cut::Fate;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use tantalum_base::{Result, Rng};

/// A medium writes a sector of this size whole or not at all.
const SECTOR_BYTES: usize = 512;

/// How far a write has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    InFlight,
    Returned,
    Durable,
}

pub(super) struct PendingWrite {
    /// Order of issue.
    pub(super) number: u64,
    pub(super) stage: Cell<Stage>,
    /// Its fate, where the planned cut decides it.
    pub(super) fate: Cell<Option<Fate>>,
    offset: u64,
    data: Vec<u8>,
    // Per block: whether this write is still to land there. A later durable write clears the flag.
    live: RefCell<Vec<bool>>,
}

impl PendingWrite {
    pub(super) fn new(number: u64, offset: u64, buf: &IoBuf, fate: Option<Fate>) -> Self {
        PendingWrite {
            number,
            stage: Cell::new(Stage::InFlight),
            fate: Cell::new(fate),
            offset,
            data: buf.to_vec(),
            live: RefCell::new(vec![true; buf.len() / BLOCK_BYTES as usize]),
        }
    }

    /// Drops the blocks for whose index in the write `is_lost` returns true.
    pub(super) fn lose(&self, mut is_lost: impl FnMut(usize) -> bool) {
        for (block, live) in self.live.borrow_mut().iter_mut().enumerate() {
            *live &= !is_lost(block);
        }
    }

    /// Whether all of its blocks are live.
    pub(super) fn is_whole(&self) -> bool {
        self.live.borrow().iter().all(|live| *live)
    }

    pub(super) fn overlaps(&self, offset: u64, bytes: usize) -> bool {
        offset < self.offset + self.data.len() as u64 && self.offset < offset + bytes as u64
    }

    /// The part of this write's data that lies in `offset..offset + bytes`.
    fn common(&self, offset: u64, bytes: usize) -> Range<usize> {
        let end = self.offset + self.data.len() as u64;
        let first = offset.clamp(self.offset, end) - self.offset;
        let last = (offset + bytes as u64).clamp(self.offset, end) - self.offset;
        first as usize..last as usize
    }

    /// Clears the blocks in this range, over which a later write is durable.
    pub(super) fn supersede(&self, offset: u64, bytes: usize) {
        let common = self.common(offset, bytes);
        let block = BLOCK_BYTES as usize;
        self.live.borrow_mut()[common.start / block..common.end / block].fill(false);
    }

    /// Copies this write's data over what was read at `offset`.
    pub(super) fn overlay(&self, offset: u64, buf: &mut [u8]) {
        let common = self.common(offset, buf.len());
        for at in common.step_by(BLOCK_BYTES as usize) {
            let block = at..at + BLOCK_BYTES as usize;
            if self.live.borrow()[at / BLOCK_BYTES as usize] {
                let to = (self.offset + at as u64 - offset) as usize;
                buf[to..to + BLOCK_BYTES as usize].copy_from_slice(&self.data[block]);
            }
        }
    }

    /// Writes all live blocks to `inner`.
    pub(super) async fn land<S: BlockStore>(&self, inner: &S) -> Result<()> {
        let block = BLOCK_BYTES as usize;
        let mut at = 0;
        while let Some(run) = self.live_run(at) {
            let bytes = run.start * block..run.end * block;
            let mut buf = inner.buffer(bytes.len());
            buf.copy_from_slice(&self.data[bytes.clone()]);
            let buf = inner.write(self.offset + bytes.start as u64, buf, false).await?;
            inner.recycle(buf);
            at = run.end;
        }
        Ok(())
    }

    /// The first run of live blocks at or after `from`.
    fn live_run(&self, from: usize) -> Option<Range<usize>> {
        let live = self.live.borrow();
        let start = from + live[from..].iter().position(|&live| live)?;
        let length = live[start..].iter().position(|&live| !live);
        Some(start..length.map_or(live.len(), |length| start + length))
    }

    /// Lands some of the sectors: a random subset, a prefix or a suffix.
    pub(super) async fn tear<S: BlockStore>(&self, inner: &S, rng: &mut Rng) -> Result<()> {
        let sectors = self.data.len() / SECTOR_BYTES;
        let split = 1 + rng.below(sectors as u64 - 1) as usize;
        let mut lands: Vec<bool> = match rng.below(3) {
            0 => (0..sectors).map(|sector| sector < split).collect(),
            1 => (0..sectors).map(|sector| sector >= split).collect(),
            _ => (0..sectors).map(|_| rng.chance(0.5)).collect(),
        };
        // A torn write keeps at least one sector and loses at least one.
        let kept = rng.below(sectors as u64) as usize;
        lands[kept] = true;
        if lands.iter().all(|&lands| lands) {
            lands[(kept + 1) % sectors] = false;
        }
        let mut buf = inner.read(self.offset, inner.buffer(self.data.len())).await?;
        let live = self.live.borrow().clone();
        for (sector, _) in lands.iter().enumerate().filter(|&(_, &lands)| lands) {
            let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            if live[bytes.start / BLOCK_BYTES as usize] {
                buf[bytes.clone()].copy_from_slice(&self.data[bytes]);
            }
        }
        let buf = inner.write(self.offset, buf, false).await?;
        inner.recycle(buf);
        Ok(())
    }
}
