//! A drive with files of a database that are opened with `O_DSYNC` (section 4.3.2), or with its log.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, Result, Stamp, TxId};
use tantalum_replay::device_replay::Device;

/// When a drive must make earlier writes durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Barrier {
    /// At each write, which then leaves nothing to flush: a database file.
    EachWrite,
    /// At each flush: a log.
    EachFlush,
}

/// A drive whose file system is mounted with or without write barriers. No file grows, so no metadata is journalled.
pub(super) struct Synced {
    device: Rc<Device>,
    barrier: Barrier,
    on: Cell<bool>,
}

impl Synced {
    /// A drive mounted without barriers.
    pub(super) fn new(device: Rc<Device>, barrier: Barrier) -> Synced {
        Synced { device, barrier, on: Cell::new(false) }
    }

    /// Mounts it again, with or without barriers.
    pub(super) fn set_barriers(&self, on: bool) {
        self.on.set(on);
    }

    async fn end_of(&self, barrier: Barrier) -> Result<()> {
        if self.on.get() && self.barrier == barrier { self.device.flush().await } else { Ok(()) }
    }
}

impl DeviceLayer for Synced {
    type Inner = Device;

    fn inner(&self) -> &Device {
        &self.device
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], tx: Option<TxId>) -> Result<()> {
        self.device.write(first, pages, tx).await?;
        self.end_of(Barrier::EachWrite).await
    }

    async fn flush(&self) -> Result<()> {
        self.end_of(Barrier::EachFlush).await
    }
}
