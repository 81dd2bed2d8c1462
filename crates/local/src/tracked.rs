//! A device that records which of its pages changed, by any client, once recording is switched on.
//!
//! A change is recorded when it completes, before it is acknowledged. A client that asks later treats the pages as
//! changed, even if it has read them in the meantime. Failed changes are recorded as well: if the device stopped
//! accepting writes because of one, its pages may have changed nevertheless.
use crate::changes::{Changes, Touched};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Deref;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

/// A device and its recorded changes. The device's other methods are reached by dereferencing.
pub struct Tracked<D> {
    device: Rc<D>,
    changes: Rc<Changes>,
    /// The writes of open transactions.
    open: RefCell<BTreeMap<TxId, Touched>>,
}

impl<D> Tracked<D> {
    /// Tracks `device`, once recording is switched on.
    pub fn new(device: D) -> Self {
        Tracked { device: Rc::new(device), changes: Rc::default(), open: RefCell::default() }
    }

    /// The recorded changes.
    pub fn changes(&self) -> &Rc<Changes> {
        &self.changes
    }

    /// Performs `change`, and records the pages of `touched`.
    async fn change<T>(
        &self,
        touched: impl FnOnce() -> Touched,
        change: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if !self.changes.is_watched() {
            return change.await;
        }
        let touched = touched();
        let given_up = GivenUp(&self.changes);
        let done = change.await;
        std::mem::forget(given_up);
        self.changes.done(touched);
        done
    }

    fn take(&self, tx: TxId) -> Touched {
        self.open.borrow_mut().remove(&tx).unwrap_or_default()
    }
}

/// Reports a change whose future was dropped: it may still take effect later.
struct GivenUp<'a>(&'a Changes);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.given_up();
    }
}

impl<D> Deref for Tracked<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}

impl<D: PageDevice> DeviceLayer for Tracked<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        let write = self.device.write(first, pages, tx);
        let Some(tx) = tx else {
            return self.change(|| Touched::range(range), write).await;
        };
        if self.changes.is_watched() {
            self.open.borrow_mut().entry(tx).or_default().add(range);
        }
        write.await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        if !self.changes.is_watched() {
            return self.device.write_scattered(pages, ended).await;
        }
        let touched = Touched::pages(pages.iter().map(|(page, _)| *page));
        self.change(|| touched, self.device.write_scattered(pages, ended)).await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.change(|| Touched::range(range), self.device.trim(range)).await
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let touched = || Touched::pages(pairs.iter().map(|(left, _)| *left));
        self.change(touched, self.device.share(pairs)).await
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let touched = || Touched::range(PageRange::new(to, pages));
        self.change(touched, self.device.clone_range(to, from, pages)).await
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let mut touched = Touched::pages(pairs.iter().map(|(left, _)| *left));
        zeros.iter().for_each(|range| touched.add(*range));
        self.change(|| touched, self.device.take_over(pairs, zeros, ended)).await
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.change(|| self.take(tx), self.device.commit(tx)).await
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.take(tx);
        self.device.abort(tx).await
    }
}

impl<D: LifeCycle> LifeCycle for Tracked<D> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        self.device.start(runtime);
    }

    async fn close(&self) -> Result<()> {
        self.device.close().await
    }

    fn wait_no_longer(&self) {
        self.device.wait_no_longer();
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.device.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }

    fn metrics(&self, out: &mut Readings) {
        self.device.metrics(out);
    }

    fn validate(&self) {
        self.device.validate();
    }
}
