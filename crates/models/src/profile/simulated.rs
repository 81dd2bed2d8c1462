//! A simulated device of any kind, behind its link if it has one. It is a device itself.
//!
//! The kind of a named device is known only at run time. So a call goes through a table, and its future is allocated. In return, code
//! for any device, such as replay and the papers' hosts, is compiled once and not once per kind, and the kinds are compiled only here.
use std::pin::Pin;
use std::rc::Rc;
use tantalum_base::{Extent, Limits, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

use crate::Nand;
use crate::host_queue::HostQueue;

/// A device made from its name.
pub struct Simulated<P: Payload> {
    /// The device.
    pub device: Rc<SimulatedDevice<P>>,
    /// The same device without its link; `None` if it is not flash and does not age.
    pub ages: Option<Rc<SimulatedDevice<P>>>,
    /// The array below it, if it is flash.
    pub array: Option<Nand<P>>,
}

/// A device of any kind. Starting it does nothing: its maker has started it.
pub struct SimulatedDevice<P>(Rc<dyn AnyDevice<P>>);

impl<P: Payload> SimulatedDevice<P> {
    /// Wraps `device`, which has been started, or is started by others.
    pub fn new(device: Rc<impl LifeCycle<Page = P>>) -> Rc<Self> {
        Rc::new(SimulatedDevice(device))
    }
}

/// A device whose inner device, past its link if it has one, can be reached.
pub(super) trait PastLink<P: Payload> {
    /// The device that does the work.
    fn past_link(self: &Rc<Self>) -> Rc<SimulatedDevice<P>>;
}

impl<R: Runtime, D: LifeCycle> PastLink<D::Page> for HostQueue<R, D> {
    fn past_link(self: &Rc<Self>) -> Rc<SimulatedDevice<D::Page>> {
        SimulatedDevice::new(Rc::clone(self.device()))
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// [`LifeCycle`] as a table of functions.
trait AnyDevice<P> {
    fn close(&self) -> Answer<'_, ()>;
    fn check<'a>(&'a self, progress: &'a mut dyn FnMut(u64, u64)) -> Answer<'a, Vec<Finding>>;
    fn counters(&self) -> DeviceCounters;
    fn metrics(&self, out: &mut Readings);
    fn validate(&self);
    fn limits(&self) -> &Limits;
    fn read<'a>(&'a self, first: PageNo, out: &'a mut [P], tx: Option<TxId>) -> Answer<'a, ()>;
    fn write<'a>(&'a self, first: PageNo, pages: &'a [P], tx: Option<TxId>) -> Answer<'a, ()>;
    fn write_scattered(&self, pages: Vec<(PageNo, P)>, ended: Box<dyn FnOnce()>) -> Answer<'_, ()>;
    fn flush(&self) -> Answer<'_, ()>;
    fn trim(&self, range: PageRange) -> Answer<'_, ()>;
    fn extent(&self, range: PageRange) -> Extent;
    fn share<'a>(&'a self, pairs: &'a [(PageNo, PageNo)]) -> Answer<'a, ()>;
    fn begin(&self) -> Answer<'_, TxId>;
    fn commit(&self, tx: TxId) -> Answer<'_, ()>;
    fn abort(&self, tx: TxId) -> Answer<'_, ()>;
    fn until_released(&self, range: PageRange) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

impl<D: LifeCycle> AnyDevice<D::Page> for D {
    fn close(&self) -> Answer<'_, ()> {
        Box::pin(LifeCycle::close(self))
    }

    fn check<'a>(&'a self, progress: &'a mut dyn FnMut(u64, u64)) -> Answer<'a, Vec<Finding>> {
        Box::pin(LifeCycle::check(self, progress))
    }

    fn counters(&self) -> DeviceCounters {
        LifeCycle::counters(self)
    }

    fn metrics(&self, out: &mut Readings) {
        LifeCycle::metrics(self, out);
    }

    fn validate(&self) {
        LifeCycle::validate(self);
    }

    fn limits(&self) -> &Limits {
        PageDevice::limits(self)
    }

    fn read<'a>(
        &'a self,
        first: PageNo,
        out: &'a mut [D::Page],
        tx: Option<TxId>,
    ) -> Answer<'a, ()> {
        Box::pin(PageDevice::read(self, first, out, tx))
    }

    fn write<'a>(
        &'a self,
        first: PageNo,
        pages: &'a [D::Page],
        tx: Option<TxId>,
    ) -> Answer<'a, ()> {
        Box::pin(PageDevice::write(self, first, pages, tx))
    }

    fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: Box<dyn FnOnce()>,
    ) -> Answer<'_, ()> {
        Box::pin(PageDevice::write_scattered(self, pages, ended))
    }

    fn flush(&self) -> Answer<'_, ()> {
        Box::pin(PageDevice::flush(self))
    }

    fn trim(&self, range: PageRange) -> Answer<'_, ()> {
        Box::pin(PageDevice::trim(self, range))
    }

    fn extent(&self, range: PageRange) -> Extent {
        PageDevice::extent(self, range)
    }

    fn share<'a>(&'a self, pairs: &'a [(PageNo, PageNo)]) -> Answer<'a, ()> {
        Box::pin(PageDevice::share(self, pairs))
    }

    fn begin(&self) -> Answer<'_, TxId> {
        Box::pin(PageDevice::begin(self))
    }

    fn commit(&self, tx: TxId) -> Answer<'_, ()> {
        Box::pin(PageDevice::commit(self, tx))
    }

    fn abort(&self, tx: TxId) -> Answer<'_, ()> {
        Box::pin(PageDevice::abort(self, tx))
    }

    fn until_released(&self, range: PageRange) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(PageDevice::until_released(self, range))
    }
}

impl<P: Payload> LifeCycle for SimulatedDevice<P> {
    fn start(self: &Rc<Self>, _: &impl Runtime) {}

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }

    async fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.0.check(&mut progress).await
    }

    fn counters(&self) -> DeviceCounters {
        self.0.counters()
    }

    fn metrics(&self, out: &mut Readings) {
        self.0.metrics(out);
    }

    fn validate(&self) {
        self.0.validate();
    }
}

impl<P: Payload> PageDevice for SimulatedDevice<P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        self.0.limits()
    }

    async fn read(&self, first: PageNo, out: &mut [P], tx: Option<TxId>) -> Result<()> {
        self.0.read(first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[P], tx: Option<TxId>) -> Result<()> {
        self.0.write(first, pages, tx).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, P)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.0.write_scattered(pages, Box::new(ended)).await
    }

    async fn flush(&self) -> Result<()> {
        self.0.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.0.trim(range).await
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.0.extent(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.0.share(pairs).await
    }

    async fn begin(&self) -> Result<TxId> {
        self.0.begin().await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.0.commit(tx).await
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.0.abort(tx).await
    }

    async fn until_released(&self, range: PageRange) {
        self.0.until_released(range).await;
    }
}
