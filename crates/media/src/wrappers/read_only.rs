//! A medium on which nothing may be written.
use crate::forward_zone_media;
use crate::zone::{AppendHeader, Body, Spare, ZoneMedia};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result, SlotNo, ZoneNo};

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

    forward_zone_media!((inner) READS_SPARES = M, geometry, retired, read, read_with_spares, read_meta,
        scan, scan_spares, peek, anchors, read_anchors);

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

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.refuse(&format!("a reset of zone {zone}"))
    }

    async fn sync(&self) -> Result<()> {
        self.refuse("a sync")
    }

    async fn write_anchor(&self, number: u64, _content: &[u8]) -> Result<()> {
        self.refuse(&format!("anchor {number}"))
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.refuse("writing the mapping down")
    }
}
