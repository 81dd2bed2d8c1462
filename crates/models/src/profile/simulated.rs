//! A simulated device of any kind, behind its link if it has one; itself a device.
//!
//! Which device a name stands for is known only when the program runs, and a call that is chosen then
//! would have to be allocated for each request: so it is an enum.
use std::rc::Rc;
use tantalum_base::{Extent, Limits, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

use super::{
    SimulatedCloud, SimulatedDisk, SimulatedHybrid, SimulatedShadow, SimulatedSsd, SimulatedTxSsd,
    SimulatedWal,
};
use crate::Nand;
use crate::personality::SimulatedPersonality;

/// A device that was made from its name.
pub struct Simulated<R: Runtime, P: Payload> {
    /// The device.
    pub device: Rc<SimulatedDevice<R, P>>,
    /// The array below it, if it is one of flash.
    pub array: Option<Nand<P>>,
}

/// A device of any kind.
pub enum SimulatedDevice<R: Runtime, P: Payload> {
    /// An SSD.
    Ssd(Rc<SimulatedSsd<R, P>>),
    /// A disk.
    Disk(Rc<SimulatedDisk<R, P>>),
    /// A TxSSD.
    TxSsd(Rc<SimulatedTxSsd<R, P>>),
    /// A redo log.
    Wal(Rc<SimulatedWal<R, P>>),
    /// Shadow pages.
    Shadow(Rc<SimulatedShadow<R, P>>),
    /// A translation layer behind its link.
    Hybrid(Rc<SimulatedHybrid<R, P>>),
    /// A translation layer, without a link.
    Personality(Rc<SimulatedPersonality<R, P>>),
    /// Storage that a cloud rents out.
    Cloud(Rc<SimulatedCloud<R, P>>),
}

/// The same call on whichever device it is.
macro_rules! on_each {
    ($self:ident, $device:ident => $call:expr) => {
        match $self {
            SimulatedDevice::Ssd($device) => $call,
            SimulatedDevice::Disk($device) => $call,
            SimulatedDevice::TxSsd($device) => $call,
            SimulatedDevice::Wal($device) => $call,
            SimulatedDevice::Shadow($device) => $call,
            SimulatedDevice::Hybrid($device) => $call,
            SimulatedDevice::Personality($device) => $call,
            SimulatedDevice::Cloud($device) => $call,
        }
    };
}

impl<R: Runtime, P: Payload> LifeCycle for SimulatedDevice<R, P> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        let device = &**self;
        on_each!(device, device => device.start(runtime))
    }

    async fn close(&self) -> Result<()> {
        on_each!(self, device => device.close().await)
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        on_each!(self, device => device.check(progress).await)
    }

    fn counters(&self) -> DeviceCounters {
        on_each!(self, device => device.counters())
    }

    fn metrics(&self, out: &mut Readings) {
        on_each!(self, device => device.metrics(out))
    }

    fn validate(&self) {
        on_each!(self, device => device.validate())
    }
}

impl<R: Runtime, P: Payload> PageDevice for SimulatedDevice<R, P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        on_each!(self, device => device.limits())
    }

    async fn read(&self, first: PageNo, out: &mut [P], tx: Option<TxId>) -> Result<()> {
        on_each!(self, device => device.read(first, out, tx).await)
    }

    async fn write(&self, first: PageNo, pages: &[P], tx: Option<TxId>) -> Result<()> {
        on_each!(self, device => device.write(first, pages, tx).await)
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, P)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        on_each!(self, device => device.write_scattered(pages, ended).await)
    }

    async fn flush(&self) -> Result<()> {
        on_each!(self, device => device.flush().await)
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        on_each!(self, device => device.trim(range).await)
    }

    fn extent(&self, range: PageRange) -> Extent {
        on_each!(self, device => device.extent(range))
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        on_each!(self, device => device.share(pairs).await)
    }

    async fn begin(&self) -> Result<TxId> {
        on_each!(self, device => device.begin().await)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.commit(tx).await)
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.abort(tx).await)
    }

    async fn until_released(&self, range: PageRange) {
        on_each!(self, device => device.until_released(range).await)
    }
}
