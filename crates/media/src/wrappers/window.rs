//! A range of a medium's zones as a medium of its own, so that two owners can share one array.
use super::ZoneLayer;
use crate::zone::{
    AnchorCopies, AppendHeader, Body, InspectedZone, ScannedAppend, Spare, ZoneGeometry, ZoneMedia,
};
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, SlotNo, ZoneNo};

/// Zones `first..end` of a medium, numbered from 0.
pub struct ZoneWindow<M> {
    inner: Rc<M>,
    zones: Range<u32>,
    first_slot: u32,
}

impl<M: ZoneMedia> ZoneWindow<M> {
    /// The window on these zones of `inner`.
    ///
    /// # Errors
    /// `InvalidInput` if the range is empty or the medium does not have all of them.
    pub fn new(inner: Rc<M>, zones: Range<u32>) -> Result<Self> {
        let geometry = inner.geometry();
        if zones.is_empty() || zones.end > geometry.zones {
            let context = format!(
                "zones {zones:?} are not a valid range of a medium with {} zones",
                geometry.zones
            );
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let first_slot = zones.start * geometry.slots_per_zone;
        Ok(ZoneWindow { inner, zones, first_slot })
    }

    fn zone(&self, zone: ZoneNo) -> ZoneNo {
        assert!(zone.0 < self.zones.len() as u32, "{zone:?} lies outside of the window");
        ZoneNo(self.zones.start + zone.0)
    }

    fn slot(&self, slot: SlotNo) -> SlotNo {
        SlotNo(self.first_slot + slot.0)
    }
}

impl<M: ZoneMedia> ZoneLayer for ZoneWindow<M> {
    type Inner = M;

    fn inner(&self) -> &M {
        &self.inner
    }

    /// No anchors: they belong to the whole medium, which may have other windows.
    fn anchors(&self) -> u32 {
        0
    }

    async fn write_anchor(&self, _number: u64, _content: &[u8]) -> Result<()> {
        panic!("a window of zones has no anchors")
    }

    async fn read_anchors(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        Ok(Vec::new())
    }

    fn geometry(&self) -> ZoneGeometry {
        ZoneGeometry { zones: self.zones.len() as u32, ..self.inner.geometry() }
    }

    fn retired(&self) -> Vec<ZoneNo> {
        let retired = self.inner.retired().into_iter();
        let inside = retired.filter(|zone| self.zones.contains(&zone.0));
        inside.map(|zone| ZoneNo(zone.0 - self.zones.start)).collect()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        let slot = self.inner.append(self.zone(zone), header, spares, bodies, durable).await?;
        Ok(SlotNo(slot.0 - self.first_slot))
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        if self.first_slot == 0 {
            return self.inner.read(slots, out).await;
        }
        let slots: Vec<SlotNo> = slots.iter().map(|slot| self.slot(*slot)).collect();
        self.inner.read(&slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        if self.first_slot == 0 {
            return self.inner.read_with_spares(slots, out, spares).await;
        }
        let slots: Vec<SlotNo> = slots.iter().map(|slot| self.slot(*slot)).collect();
        self.inner.read_with_spares(&slots, out, spares).await
    }

    async fn read_meta_run(&self, first: SlotNo, out: &mut [PageBuf]) -> Result<()> {
        self.inner.read_meta_run(self.slot(first), out).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.inner.scan(self.zone(zone), from_offset, epoch).await
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.inner.scan_spares(self.zone(zone)).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.inner.peek(self.zone(zone)).await
    }

    async fn inspect(&self, zone: ZoneNo, epoch: u64) -> Result<Option<InspectedZone>> {
        self.inner.inspect(self.zone(zone), epoch).await
    }

    async fn inspect_anchors(&self) -> Result<Option<AnchorCopies>> {
        Ok(None)
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.inner.reset(self.zone(zone)).await
    }

    async fn give_room_back(&self, zone: ZoneNo) -> Result<bool> {
        self.inner.give_room_back(self.zone(zone)).await
    }

    fn zones_with_room(&self) -> Vec<bool> {
        let (from, count) = (self.zones.start as usize, self.zones.len());
        self.inner.zones_with_room().into_iter().skip(from).take(count).collect()
    }
}
