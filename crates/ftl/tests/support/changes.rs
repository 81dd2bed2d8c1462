//! What is changed on a medium, noted.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Result, SlotNo, ZoneNo};
use tantalum_media::{AppendHeader, Body, Spare, ZoneMedia, forward_zone_media};

/// Passes everything on and notes what changes the medium.
pub struct Changes<M> {
    inner: M,
    noted: Rc<RefCell<Vec<String>>>,
}

impl<M: ZoneMedia> Changes<M> {
    /// Notes what is changed on `inner`; the notes.
    pub fn new(inner: M) -> (Self, Rc<RefCell<Vec<String>>>) {
        let noted = Rc::new(RefCell::new(Vec::new()));
        (Changes { inner, noted: Rc::clone(&noted) }, noted)
    }

    fn note(&self, change: String) {
        self.noted.borrow_mut().push(change);
    }
}

impl<M: ZoneMedia> ZoneMedia for Changes<M> {
    type Page = M::Page;

    forward_zone_media!(
        (inner) READS_SPARES = M, geometry, retired, read, read_with_spares, read_meta, peek, scan,
        scan_spares, sync, anchors, read_anchors
    );

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<M::Page>],
        durable: bool,
    ) -> Result<SlotNo> {
        self.note(format!("append of {} pages to {zone:?}", spares.len()));
        self.inner.append(zone, header, spares, bodies, durable).await
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.note(format!("reset of {zone:?}"));
        self.inner.reset(zone).await
    }

    async fn write_anchor(&self, number: u64, content: &[u8]) -> Result<()> {
        self.note(format!("anchor {number}"));
        self.inner.write_anchor(number, content).await
    }

    async fn persist_mapping(&self) -> Result<()> {
        self.note("the medium's own mapping".to_owned());
        self.inner.persist_mapping().await
    }
}
