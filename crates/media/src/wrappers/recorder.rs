//! What was done to a medium, for tests that compare decisions.
use crate::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneMedia};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tantalum_base::checksum::crc32c_append;
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};

/// One operation, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// `append`.
    Append {
        /// The zone.
        zone: ZoneNo,
        /// The header.
        header: AppendHeader,
        /// The spares.
        spares: Vec<Spare>,
        /// Whether it was to be durable.
        durable: bool,
    },
    /// `read`.
    Read(Vec<SlotNo>),
    /// `read_meta`.
    ReadMeta(SlotNo),
    /// `scan`, with offset and epoch.
    Scan(ZoneNo, u32, Option<u64>),
    /// `peek`.
    Peek(ZoneNo),
    /// `reset`.
    Reset(ZoneNo),
    /// `sync`.
    Sync,
    /// `scan_spares`.
    ScanSpares(ZoneNo),
    /// `persist_mapping`.
    PersistMapping,
    /// `write_anchor`.
    Anchor {
        /// Its number.
        number: u64,
    },
}

/// Passes everything on and keeps the last operations, and a hash of all.
pub struct Recorder<M> {
    inner: Rc<M>,
    ring: RefCell<VecDeque<Recorded>>,
    kept_max: usize,
    count: Cell<u64>,
    hash: Cell<u64>,
}

impl<M: ZoneMedia> Recorder<M> {
    /// Records what goes to `inner`, and keeps the last `kept_max` operations.
    pub fn new(inner: Rc<M>, kept_max: usize) -> Self {
        let ring = RefCell::new(VecDeque::new());
        Recorder { inner, ring, kept_max, count: Cell::new(0), hash: Cell::new(0) }
    }

    /// Operations so far.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Hash of all operations so far, in their order, with headers and spares.
    pub fn hash(&self) -> u64 {
        self.hash.get()
    }

    /// The last operations, oldest first; empties the ring.
    pub fn take(&self) -> Vec<Recorded> {
        self.ring.borrow_mut().drain(..).collect()
    }

    fn keep(&self, words: &[u64], operation: impl FnOnce() -> Recorded) {
        self.count.set(self.count.get() + 1);
        words.iter().for_each(|word| self.mix(*word));
        if self.kept_max > 0 {
            let mut ring = self.ring.borrow_mut();
            if ring.len() == self.kept_max {
                ring.pop_front();
            }
            ring.push_back(operation());
        }
    }

    // Two checksums over the same words, of which the upper also covers the lower.
    fn mix(&self, word: u64) {
        let hash = self.hash.get();
        let low = crc32c_append(hash as u32, &word.to_le_bytes());
        let high = crc32c_append((hash >> 32) as u32 ^ 0x5bd1_e995, &u64::from(low).to_be_bytes());
        self.hash.set(u64::from(high) << 32 | u64::from(low));
    }

    fn note_read(&self, slots: &[SlotNo]) {
        self.keep(&[2, slots.len() as u64], || Recorded::Read(slots.to_vec()));
        slots.iter().for_each(|slot| self.mix(u64::from(slot.0)));
    }

    fn mix_append(&self, header: &AppendHeader, spares: &[Spare]) {
        let AppendHeader { epoch, stream, durable, batch_first, batch_len } = *header;
        let header = [epoch, u64::from(stream), durable.0, batch_first.0, u64::from(batch_len)];
        header.iter().for_each(|word| self.mix(*word));
        for spare in spares {
            let Spare { kind, page, version, checksum } = *spare;
            let words = [kind as u64, page.0, version.0, u64::from(checksum)];
            words.iter().for_each(|word| self.mix(*word));
        }
    }
}

impl<M: ZoneMedia> ZoneMedia for Recorder<M> {
    type Page = M::Page;

    crate::forward_zone_media!((inner) READS_SPARES = M, geometry, retired, anchors, read_anchors);

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        self.keep(&[1, u64::from(zone.0), u64::from(durable), spares.len() as u64], || {
            Recorded::Append { zone, header: *header, spares: spares.to_vec(), durable }
        });
        self.mix_append(header, spares);
        self.inner.append(zone, header, spares, bodies, durable).await
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.note_read(slots);
        self.inner.read(slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.note_read(slots);
        self.inner.read_with_spares(slots, out, spares).await
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.keep(&[3, u64::from(slot.0)], || Recorded::ReadMeta(slot));
        self.inner.read_meta(slot).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let epoch_word = epoch.map_or(0, |epoch| epoch.wrapping_add(1));
        self.keep(&[4, u64::from(zone.0), u64::from(from_offset), epoch_word], || {
            Recorded::Scan(zone, from_offset, epoch)
        });
        self.inner.scan(zone, from_offset, epoch).await
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.keep(&[8, u64::from(zone.0)], || Recorded::ScanSpares(zone));
        self.inner.scan_spares(zone).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.keep(&[5, u64::from(zone.0)], || Recorded::Peek(zone));
        self.inner.peek(zone).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.keep(&[6, u64::from(zone.0)], || Recorded::Reset(zone));
        self.inner.reset(zone).await
    }

    async fn sync(&self) -> Result<()> {
        self.keep(&[7], || Recorded::Sync);
        self.inner.sync().await
    }

    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()> {
        self.keep(&[10, number], || Recorded::Anchor { number });
        self.inner.write_anchor(number, content).await
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.keep(&[9], || Recorded::PersistMapping);
        self.inner.persist_mapping().await
    }
}
