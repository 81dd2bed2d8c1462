//! Zones whose power may be cut, and which may be damaged.
use std::iter;
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};
use tantalum_media::block_store::LostBlocks;
use tantalum_media::wrappers::UntilCut;
use tantalum_media::{
    AppendHeader, Body, ScannedAppend, Spare, ZoneLayer, ZoneMedia, ZoneOperation,
};

use super::damage::Damage;

/// Zones whose power may be cut.
pub type Powered<M> = DamagedZones<UntilCut<M>>;

/// Zones that are damaged while the power is off and as they are read, and which lose appends.
pub struct DamagedZones<M: ZoneMedia> {
    inner: M,
    damage: Damage<M::Page>,
    /// Makes the medium lose the next append, if it is a file.
    lose_next: Box<dyn Fn(LostBlocks)>,
    /// Damages the stored bytes of a slot, if the medium is a file: one bit of it, or all.
    strike: Box<dyn Fn(SlotNo, Option<u32>)>,
}

impl<M: ZoneMedia> DamagedZones<UntilCut<M>> {
    /// Wraps `inner`, whose power is off once `is_cut` returns true.
    pub fn new(inner: M, is_cut: impl Fn() -> bool + 'static) -> Self {
        DamagedZones {
            inner: UntilCut::new(inner, is_cut),
            damage: Damage::never(),
            lose_next: Box::new(|_| {}),
            strike: Box::new(|_, _| {}),
        }
    }
}

impl<M: ZoneMedia> DamagedZones<M> {
    /// Adds the damage of `damage`. If the medium is a file, `lose_next` makes it lose the next append,
    /// and `strike` damages the stored bytes of a slot: one bit of it, or all.
    pub(super) fn damaged(
        self,
        damage: Damage<M::Page>,
        lose_next: impl Fn(LostBlocks) + 'static,
        strike: impl Fn(SlotNo, Option<u32>) + 'static,
    ) -> Self {
        DamagedZones { damage, lose_next: Box::new(lose_next), strike: Box::new(strike), ..self }
    }

    /// These slots are being read, and may decay now. Returns whether stored bytes decayed.
    fn sense(&self, slots: impl Iterator<Item = SlotNo>) -> bool {
        let damaged = self.damage.sense(self.inner.reads_spares(), slots);
        damaged.iter().for_each(|(slot, bit)| (self.strike)(*slot, *bit));
        !damaged.is_empty()
    }

    /// A scan of `zone` has found these appends, with their headers. Returns whether to scan again
    /// because bytes decayed.
    fn sense_scan(&self, zone: ZoneNo, found: &[ScannedAppend]) -> bool {
        let geometry = self.inner.geometry();
        self.sense(found.iter().flat_map(|append| {
            let first = append.first_offset - geometry.append_overhead_slots;
            let end = append.first_offset + append.spares.len() as u32;
            (first..end).map(move |offset| geometry.slot(zone, offset))
        }))
    }

    /// The result of a scan of `zone` that found `found`, after the damage.
    fn spoiled(&self, zone: ZoneNo, mut found: Vec<ScannedAppend>) -> Vec<ScannedAppend> {
        if self.inner.reads_spares() {
            self.damage.spoil_scan(&self.inner.geometry(), zone, &mut found);
        }
        found
    }
}

impl<M: ZoneMedia> ZoneLayer for DamagedZones<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    async fn around<T>(
        &self,
        operation: ZoneOperation<'_>,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match operation {
            ZoneOperation::Read(slots) => _ = self.sense(slots.iter().copied()),
            ZoneOperation::ReadMeta(first, _) => _ = self.sense(iter::once(first)),
            ZoneOperation::Peek(zone) => {
                let first = self.inner.geometry().slot(zone, 0);
                self.sense(iter::once(first));
            }
            ZoneOperation::Reset(zone) => self.damage.reset_begins(zone),
            _ => {}
        }
        let synced = matches!(operation, ZoneOperation::Sync).then(|| self.damage.sync_begins());
        let done = run.await?;
        match operation {
            ZoneOperation::Reset(zone) => self.damage.reset_done(zone),
            ZoneOperation::WriteAnchor(_) => self.damage.anchored(),
            _ => {}
        }
        synced.into_iter().for_each(|begun| self.damage.synced(begun));
        Ok(done)
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        let begun = self.damage.append_begins(zone, header, spares, bodies);
        begun.lost.into_iter().for_each(|part| (self.lose_next)(part));
        let append = self.inner.append(zone, header, spares, bodies, durable);
        let first = append.await?;
        self.damage.append_returned(begun, first, durable);
        Ok(first)
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.around(ZoneOperation::Read(slots), self.inner.read(slots, out)).await?;
        if self.inner.reads_spares() { self.damage.spoil(slots, out, &mut []) } else { Ok(()) }
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        let read = self.inner.read_with_spares(slots, out, spares);
        self.around(ZoneOperation::Read(slots), read).await?;
        if self.inner.reads_spares() { self.damage.spoil(slots, out, spares) } else { Ok(()) }
    }

    /// One slot after the other: slots after a damaged one are not read.
    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        for (slot, page) in (first.0..).map(SlotNo).zip(out) {
            let one = std::slice::from_mut(page);
            let read = self.inner.read_meta_run(slot, one);
            self.around(ZoneOperation::ReadMeta(slot, 1), read).await?;
            if self.inner.reads_spares() {
                *page = self.damage.spoil_own(slot, page.clone())?;
            }
        }
        Ok(())
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let mut found = self.inner.scan(zone, from_offset, epoch).await?;
        if self.sense_scan(zone, &found) {
            found = self.inner.scan(zone, from_offset, epoch).await?;
        }
        Ok(self.spoiled(zone, found))
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        let mut found = self.inner.scan_spares(zone).await?;
        if self.sense_scan(zone, &found) {
            found = self.inner.scan_spares(zone).await?;
        }
        Ok(self.spoiled(zone, found))
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let header = self.around(ZoneOperation::Peek(zone), self.inner.peek(zone)).await?;
        let geometry = self.inner.geometry();
        let is_there = !self.inner.reads_spares() || self.damage.is_first_intact(&geometry, zone);
        Ok(header.filter(|_| is_there))
    }
}
