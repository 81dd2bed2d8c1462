//! A wrapper that stops everything when its medium loses power, and under which contents decay.
use std::future::Future;
use std::pin::pin;
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};
use tantalum_media::{
    AppendHeader, Body, PowerCut, ScannedAppend, Spare, ZoneMedia, forward_zone_media,
};

use super::damage::Damage;
use super::decay::Decay;
use super::life::LostPart;

/// Zones under which the power may go: then not even the poll in which that happens goes on, so
/// that no code runs, and changes memory that survives, after its time.
pub struct Powered<M: ZoneMedia> {
    inner: M,
    is_cut: Box<dyn Fn() -> bool>,
    decay: Decay<M::Page>,
    damage: Damage<M::Page>,
    /// Tells the medium, where that is a file, to lose the next append.
    lose_next: Box<dyn Fn(LostPart)>,
}

impl<M: ZoneMedia> Powered<M> {
    /// Wraps `inner`, whose power is gone once `is_cut` says so.
    pub fn new(inner: M, is_cut: impl Fn() -> bool + 'static) -> Self {
        Powered {
            inner,
            is_cut: Box::new(is_cut),
            decay: Decay::never(),
            damage: Damage::never(),
            lose_next: Box::new(|_| {}),
        }
    }

    /// Its contents decay as `decay` says.
    pub(super) fn decaying(self, decay: Decay<M::Page>) -> Self {
        Powered { decay, ..self }
    }

    /// It is damaged as `damage` says; `lose_next` tells the medium, where that is a file, to lose the
    /// next append.
    pub(super) fn damaged(
        self,
        damage: Damage<M::Page>,
        lose_next: impl Fn(LostPart) + 'static,
    ) -> Self {
        Powered { damage, lose_next: Box::new(lose_next), ..self }
    }

    /// What a scan of `zone` that found `found` is told.
    fn decayed(&self, zone: ZoneNo, mut found: Vec<ScannedAppend>) -> Vec<ScannedAppend> {
        let geometry = self.geometry();
        let slots = found.iter().flat_map(|append| {
            let offsets = append.first_offset..append.first_offset + append.spares.len() as u32;
            offsets.map(|offset| geometry.slot(zone, offset))
        });
        self.decay.sense(&geometry, slots);
        self.decay.spoil_scan(M::READS_SPARES, &geometry, zone, &mut found);
        if M::READS_SPARES {
            self.damage.spoil_scan(&geometry, zone, &mut found);
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
        self.decay.append_starts(header, spares);
        let begun = self.damage.append_begins(zone, header, spares, bodies);
        begun.lost.into_iter().for_each(|part| (self.lose_next)(part));
        let append = self.inner.append(zone, header, spares, bodies, durable);
        let first = self.watch(append).await?;
        self.decay.append_done(first, header, spares, bodies, durable);
        self.damage.append_returned(begun, first, durable);
        Ok(first)
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.decay.sense(&self.geometry(), slots.iter().copied());
        self.watch(self.inner.read(slots, out)).await?;
        if M::READS_SPARES {
            self.damage.spoil(slots, out, &mut [])?;
        }
        self.decay.spoil(M::READS_SPARES, slots, out)
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.decay.sense(&self.geometry(), slots.iter().copied());
        self.watch(self.inner.read_with_spares(slots, out, spares)).await?;
        if M::READS_SPARES {
            self.damage.spoil(slots, out, spares)?;
        }
        self.decay.spoil(M::READS_SPARES, slots, out)
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.decay.sense(&self.geometry(), std::iter::once(slot));
        let mut page = self.watch(self.inner.read_meta(slot)).await?;
        if M::READS_SPARES {
            page = self.damage.spoil_own(slot, page)?;
        }
        self.decay.spoil_own(M::READS_SPARES, slot, page)
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        let found = self.watch(self.inner.scan(zone, from_offset, epoch)).await?;
        Ok(self.decayed(zone, found))
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        let found = self.watch(self.inner.scan_spares(zone)).await?;
        Ok(self.decayed(zone, found))
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        let header = self.watch(self.inner.peek(zone)).await?;
        let geometry = self.geometry();
        let is_there = !M::READS_SPARES
            || (self.decay.is_first_intact(&geometry, zone)
                && self.damage.is_first_intact(&geometry, zone));
        Ok(header.filter(|_| is_there))
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.decay.reset_starts(&self.geometry(), zone);
        self.damage.reset_begins(zone);
        self.watch(self.inner.reset(zone)).await?;
        self.damage.reset_done(zone);
        self.decay.reset_done(&self.geometry(), zone);
        Ok(())
    }

    async fn sync(&self) -> Result<()> {
        let started = self.decay.sync_starts();
        let begun = self.damage.sync_begins();
        self.watch(self.inner.sync()).await?;
        self.damage.synced(begun);
        self.decay.sync_done(started);
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
