//! A wrapper that stops everything when its medium loses power, and under which that is damaged.
use std::future::Future;
use std::pin::pin;
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};
use tantalum_media::{
    AppendHeader, Body, PowerCut, ScannedAppend, Spare, ZoneMedia, forward_zone_media,
};

use super::damage::Damage;
use super::life::LostPart;

/// Zones under which the power may go: then not even the poll in which that happens goes on, so
/// that no code runs, and changes memory that survives, after its time.
pub struct Powered<M: ZoneMedia> {
    inner: M,
    is_cut: Box<dyn Fn() -> bool>,
    damage: Damage<M::Page>,
    /// Tells the medium, where that is a file, to lose the next append.
    lose_next: Box<dyn Fn(LostPart)>,
    /// Damages what is stored of a slot, where the medium is a file: one bit of it, or all.
    strike: Box<dyn Fn(SlotNo, Option<u32>)>,
}

impl<M: ZoneMedia> Powered<M> {
    /// Wraps `inner`, whose power is gone once `is_cut` says so.
    pub fn new(inner: M, is_cut: impl Fn() -> bool + 'static) -> Self {
        Powered {
            inner,
            is_cut: Box::new(is_cut),
            damage: Damage::never(),
            lose_next: Box::new(|_| {}),
            strike: Box::new(|_, _| {}),
        }
    }

    /// It is damaged as `damage` says; where it is a file `lose_next` tells it to lose the next append,
    /// and `strike` damages what is stored of a slot: one bit of it, or all.
    pub(super) fn damaged(
        self,
        damage: Damage<M::Page>,
        lose_next: impl Fn(LostPart) + 'static,
        strike: impl Fn(SlotNo, Option<u32>) + 'static,
    ) -> Self {
        Powered { damage, lose_next: Box::new(lose_next), strike: Box::new(strike), ..self }
    }

    /// These slots are being read, which may decay at that. Tells whether bytes did that are stored.
    fn sense(&self, slots: impl Iterator<Item = SlotNo>) -> bool {
        let damaged = self.damage.sense(M::READS_SPARES, slots);
        damaged.iter().for_each(|(slot, bit)| (self.strike)(*slot, *bit));
        !damaged.is_empty()
    }

    /// A scan of `zone` has found these appends, headers and all. Tells whether to scan again, as bytes
    /// decayed.
    fn sense_scan(&self, zone: ZoneNo, found: &[ScannedAppend]) -> bool {
        let geometry = self.geometry();
        self.sense(found.iter().flat_map(|append| {
            let first = append.first_offset - geometry.append_overhead_slots;
            let end = append.first_offset + append.spares.len() as u32;
            (first..end).map(move |offset| geometry.slot(zone, offset))
        }))
    }

    /// What a scan of `zone` that found `found` is told.
    fn spoiled(&self, zone: ZoneNo, mut found: Vec<ScannedAppend>) -> Vec<ScannedAppend> {
        if M::READS_SPARES {
            self.damage.spoil_scan(&self.geometry(), zone, &mut found);
        }
        found
    }

    async fn watch<T>(&self, operation: impl Future<Output = T>) -> T {
        let mut operation = pin!(operation);
        std::future::poll_fn(|context| {
            // The power may have gone elsewhere, at a store to NVRAM.
            if (self.is_cut)() {
                PowerCut::unwind();
            }
            let poll = operation.as_mut().poll(context);
            if (self.is_cut)() {
                PowerCut::unwind();
            }
            poll
        })
        .await
    }
}

impl<M: ZoneMedia> ZoneMedia for Powered<M> {
    type Page = M::Page;

    forward_zone_media!((inner) READS_SPARES = M, geometry, retired, anchors, read_anchors);

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
        let first = self.watch(append).await?;
        self.damage.append_returned(begun, first, durable);
        Ok(first)
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.sense(slots.iter().copied());
        self.watch(self.inner.read(slots, out)).await?;
        if M::READS_SPARES {
            self.damage.spoil(slots, out, &mut [])?;
        }
        Ok(())
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.sense(slots.iter().copied());
        self.watch(self.inner.read_with_spares(slots, out, spares)).await?;
        if M::READS_SPARES {
            self.damage.spoil(slots, out, spares)?;
        }
        Ok(())
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.sense(std::iter::once(slot));
        let page = self.watch(self.inner.read_meta(slot)).await?;
        if M::READS_SPARES { self.damage.spoil_own(slot, page) } else { Ok(page) }
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let mut found = self.watch(self.inner.scan(zone, from_offset, epoch)).await?;
        if self.sense_scan(zone, &found) {
            found = self.watch(self.inner.scan(zone, from_offset, epoch)).await?;
        }
        Ok(self.spoiled(zone, found))
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        let mut found = self.watch(self.inner.scan_spares(zone)).await?;
        if self.sense_scan(zone, &found) {
            found = self.watch(self.inner.scan_spares(zone)).await?;
        }
        Ok(self.spoiled(zone, found))
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let geometry = self.geometry();
        self.sense(std::iter::once(geometry.slot(zone, 0)));
        let header = self.watch(self.inner.peek(zone)).await?;
        let is_there = !M::READS_SPARES || self.damage.is_first_intact(&geometry, zone);
        Ok(header.filter(|_| is_there))
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.damage.reset_begins(zone);
        self.watch(self.inner.reset(zone)).await?;
        self.damage.reset_done(zone);
        Ok(())
    }

    async fn sync(&self) -> Result<()> {
        let begun = self.damage.sync_begins();
        self.watch(self.inner.sync()).await?;
        self.damage.synced(begun);
        Ok(())
    }

    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()> {
        self.watch(self.inner.write_anchor(number, content)).await?;
        self.damage.anchored();
        Ok(())
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.watch(self.inner.persist_mapping()).await
    }
}
