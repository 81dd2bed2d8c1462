//! A medium on which nothing may be written.
use crate::zone::{AppendHeader, Body, ScannedAppend, Spare, ZoneGeometry, ZoneMedia};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, SlotNo, ZoneNo};

/// Passes reads on; whatever would change the medium, or ask it to write something down, is refused
/// as [`ErrorKind::ReadOnly`], and counted.
pub struct ReadOnly<M> {
    inner: Rc<M>,
    refused: Cell<u64>,
}

impl<M> ReadOnly<M> {
    /// Lets `inner` be read.
    pub fn new(inner: Rc<M>) -> Self {
        ReadOnly { inner, refused: Cell::new(0) }
    }

    /// Operations refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    fn refuse<T>(&self, what: &str) -> Result<T> {
        self.refused.set(self.refused.get() + 1);
        Err(Error::new(ErrorKind::ReadOnly, format!("{what}: the medium is read-only")))
    }
}

impl<M: ZoneMedia> ZoneMedia for ReadOnly<M> {
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
        _header: &AppendHeader,
        _spares: &[Spare],
        _bodies: &[Body<M::Page>],
        _durable: bool,
    ) -> Result<SlotNo> {
        self.refuse(&format!("an append to zone {zone}"))
    }

    async fn read(&self, slots: &[SlotNo], out: &mut [M::Page]) -> Result<()> {
        self.inner.read(slots, out).await
    }

    async fn read_with_spares(
        &self,
        slots: &[SlotNo],
        out: &mut [M::Page],
        spares: &mut [Option<Spare>],
    ) -> Result<()> {
        self.inner.read_with_spares(slots, out, spares).await
    }

    async fn read_meta(&self, slot: SlotNo) -> Result<PageBuf> {
        self.inner.read_meta(slot).await
    }

    async fn scan(
        &self,
        zone: ZoneNo,
        from_offset: u32,
        epoch: Option<u64>,
    ) -> Result<Vec<ScannedAppend>> {
        self.inner.scan(zone, from_offset, epoch).await
    }

    async fn scan_spares(&self, zone: ZoneNo) -> Result<Vec<ScannedAppend>> {
        self.inner.scan_spares(zone).await
    }

    async fn peek(&self, zone: ZoneNo) -> Result<Option<AppendHeader>> {
        self.inner.peek(zone).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.refuse(&format!("a reset of zone {zone}"))
    }

    async fn sync(&self) -> Result<()> {
        self.refuse("a sync")
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.refuse("writing the mapping down")
    }
}
