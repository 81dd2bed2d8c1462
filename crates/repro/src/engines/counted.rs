//! Counts the pages that an engine writes to its device.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, Result, TxId};

/// A device that counts the pages of writes, including those in transactions. Shared pages are not
/// written.
pub(super) struct Counted<D> {
    device: Rc<D>,
    written: Cell<u64>,
}

impl<D> Counted<D> {
    pub(super) fn new(device: Rc<D>) -> Self {
        Counted { device, written: Cell::new(0) }
    }

    /// Number of pages so far.
    pub(super) fn written(&self) -> u64 {
        self.written.get()
    }

    fn count(&self, pages: usize) {
        self.written.set(self.written.get() + pages as u64);
    }
}

impl<D: PageDevice> DeviceLayer for Counted<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        self.count(pages.len());
        self.device.write(first, pages, tx).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.count(pages.len());
        self.device.write_scattered(pages, ended).await
    }
}
