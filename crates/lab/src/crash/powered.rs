//! A wrapper that stops everything when its medium loses power.
use std::future::Future;
use std::pin::pin;
use tantalum_base::{PageBuf, Result, SlotNo, ZoneNo};
use tantalum_media::{AppendHeader, Body, PowerCut, ScannedAppend, Spare, ZoneGeometry, ZoneMedia};

/// Zones under which the power may go: then not even the poll in which that happens goes on, so
/// that no code runs, and changes memory that survives, after its time.
pub struct Powered<M> {
    inner: M,
    is_cut: Box<dyn Fn() -> bool>,
}

impl<M: ZoneMedia> Powered<M> {
    /// Wraps `inner`, whose power is gone once `is_cut` says so.
    pub fn new(inner: M, is_cut: impl Fn() -> bool + 'static) -> Self {
        Powered { inner, is_cut: Box::new(is_cut) }
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

    const READS_SPARES: bool = M::READS_SPARES;

    fn geometry(&self) -> ZoneGeometry {
        self.inner.geometry()
    }

    fn retired(&self) -> Vec<ZoneNo> {
        self.inner.retired()
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        self.watch(self.inner.append(zone, header, spares, bodies, durable)).await
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.watch(self.inner.read(slots, out)).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.watch(self.inner.read_with_spares(slots, out, spares)).await
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.watch(self.inner.read_meta(slot)).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.watch(self.inner.scan(zone, from_offset, epoch)).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.watch(self.inner.peek(zone)).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.watch(self.inner.reset(zone)).await
    }

    async fn sync(&self) -> Result<()> {
        self.watch(self.inner.sync()).await
    }
}
