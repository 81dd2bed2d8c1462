//! One write that is not durable yet.
use crate::block_store::{BLOCK_BYTES, BlockStore};
use crate::cut::Fate;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use tantalum_base::{Result, Rng};

/// A medium writes a sector of this size whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Bytes of a torn write that are read, changed and written at a time, because a zeroing can be long.
const TEAR_BYTES: usize = 1 << 20;

/// The progress of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    InFlight,
    Returned,
    Durable,
}

/// The content that a write stores.
pub(super) enum Content {
    Bytes(Vec<u8>),
    Zeros,
}

pub(super) struct PendingWrite {
    /// Position in issue order.
    pub(super) number: u64,
    pub(super) stage: Cell<Stage>,
    /// The fate of this write, if the planned cut decides it.
    pub(super) fate: Cell<Option<Fate>>,
    offset: u64,
    bytes: u64,
    content: Content,
    // Per block: whether this write still has to land there. A later durable write clears the flag.
    live: RefCell<Vec<bool>>,
}

impl PendingWrite {
    /// `offset` is a multiple of a block. So is `bytes`, unless the store ends within a block.
    pub(super) fn new(number: u64, offset: u64, bytes: u64, content: Content) -> Self {
        PendingWrite {
            number,
            stage: Cell::new(Stage::InFlight),
            fate: Cell::new(None),
            offset,
            bytes,
            content,
            live: RefCell::new(vec![true; bytes.div_ceil(BLOCK_BYTES) as usize]),
        }
    }

    /// Drops the blocks for which `is_lost` returns true, given the index of the block in the write.
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
        offset < self.offset + self.bytes && self.offset < offset + bytes as u64
    }

    /// The part of this write that lies in `offset..offset + bytes`.
    fn common(&self, offset: u64, bytes: usize) -> Range<usize> {
        let end = self.offset + self.bytes;
        let first = offset.clamp(self.offset, end) - self.offset;
        let last = (offset + bytes as u64).clamp(self.offset, end) - self.offset;
        first as usize..last as usize
    }

    /// Clears the blocks in this range, because a later write to it is durable.
    pub(super) fn supersede(&self, offset: u64, bytes: usize) {
        let common = self.common(offset, bytes);
        let block = BLOCK_BYTES as usize;
        self.live.borrow_mut()[common.start / block..common.end.div_ceil(block)].fill(false);
    }

    /// Copies this write over the bytes that were read at `offset`.
    pub(super) fn overlay(&self, offset: u64, buf: &mut [u8]) {
        let common = self.common(offset, buf.len());
        for at in common.clone().step_by(BLOCK_BYTES as usize) {
            let block = at..common.end.min(at + BLOCK_BYTES as usize);
            if self.live.borrow()[at / BLOCK_BYTES as usize] {
                let to = (self.offset + at as u64 - offset) as usize;
                let out = &mut buf[to..to + block.len()];
                self.put(block, out);
            }
        }
    }

    /// Copies the bytes of this write in the range to `out`.
    fn put(&self, bytes: Range<usize>, out: &mut [u8]) {
        match &self.content {
            Content::Bytes(data) => out.copy_from_slice(&data[bytes]),
            Content::Zeros => out.fill(0),
        }
    }

    /// Writes all live blocks to `inner`.
    pub(super) async fn land<S: BlockStore>(&self, inner: &S) -> Result<()> {
        let block = BLOCK_BYTES as usize;
        let mut at = 0;
        while let Some(run) = self.live_run(at) {
            at = run.end;
            let bytes = run.start * block..(run.end * block).min(self.bytes as usize);
            let offset = self.offset + bytes.start as u64;
            let Content::Bytes(data) = &self.content else {
                inner.zero(offset, bytes.len() as u64).await?;
                continue;
            };
            let mut buf = inner.buffer(bytes.len());
            buf.copy_from_slice(&data[bytes]);
            inner.recycle(inner.write(offset, buf, false).await?);
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
        let sectors = self.bytes as usize / SECTOR_BYTES;
        if sectors < 2 {
            // A single sector cannot tear.
            return Ok(());
        }
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
        for (at, lands) in lands.chunks(TEAR_BYTES / SECTOR_BYTES).enumerate() {
            self.land_sectors(inner, at * TEAR_BYTES, lands).await?;
        }
        Ok(())
    }

    /// Lands the sectors that are true in `lands`, starting at byte `first` of this write.
    async fn land_sectors<S: BlockStore>(
        &self,
        inner: &S,
        first: usize,
        lands: &[bool],
    ) -> Result<()> {
        let offset = self.offset + first as u64;
        let mut buf = inner.read(offset, inner.buffer(lands.len() * SECTOR_BYTES)).await?;
        let is_live = |block: usize| self.live.borrow()[block];
        for (sector, out) in buf.chunks_mut(SECTOR_BYTES).enumerate() {
            let byte = first + sector * SECTOR_BYTES;
            if lands[sector] && is_live(byte / BLOCK_BYTES as usize) {
                self.put(byte..byte + SECTOR_BYTES, out);
            }
        }
        inner.recycle(inner.write(offset, buf, false).await?);
        Ok(())
    }
}
