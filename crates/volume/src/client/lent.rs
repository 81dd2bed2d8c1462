//! A device whose executor runs on the threads of its callers.
use super::{Client, Link, close_quietly};
use crate::counters::Counters;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Limits, PageBuf, PageDevice, PageNo, Result, TxId};
use tantalum_local::{Answer, Request, Service};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::live::Confined;
use tantalum_runtime::metrics::Readings;

/// Handles requests on the caller's thread; dropping it closes the device.
pub(super) trait Drive: Send + Sync {
    /// Handles one request. If it takes long, `counters` are written meanwhile.
    fn drive(&self, request: Request, counters: &Arc<Counters>) -> Result<Answer>;

    /// The device's counters.
    fn metrics(&self) -> Result<Readings>;

    /// Reads pages in ascending order, concurrently.
    fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>>;
}

/// A device in a [`Confined`] executor that runs on its callers' threads. It is closed when the last
/// client is dropped.
pub struct Lent<D>(Rc<Service<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Lent<D> {
    /// Prepares `device` to run on its callers' threads.
    pub fn new(device: Rc<D>) -> Self {
        Lent(Rc::new(Service::new(device)))
    }
}

struct Borrowed<D: LifeCycle + PageDevice<Page = PageBuf>>(Confined<Lent<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Drive for Borrowed<D> {
    fn drive(&self, request: Request, counters: &Arc<Counters>) -> Result<Answer> {
        self.0.call(|_, lent| {
            let (service, counters) = (Rc::clone(&lent.0), Arc::clone(counters));
            async move {
                let mut handled = pin!(service.handle(request));
                poll_fn(|context| {
                    counters.tick_within(|out| service.device().metrics(out));
                    handled.as_mut().poll(context)
                })
                .await
            }
        })?
    }

    fn metrics(&self) -> Result<Readings> {
        self.0.call(|_, lent| {
            let service = Rc::clone(&lent.0);
            async move {
                let mut out = Readings::default();
                service.device().metrics(&mut out);
                out
            }
        })
    }

    fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        self.0.call(|_, lent| {
            let service = Rc::clone(&lent.0);
            async move { service.read_each(pages, tx).await }
        })?
    }
}

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Drop for Borrowed<D> {
    fn drop(&mut self) {
        close_quietly(|| {
            self.0.call(|_, lent| {
                let service = Rc::clone(&lent.0);
                async move {
                    service.abort_open().await;
                    service.device().close().await
                }
            })?
        });
    }
}

impl Client {
    /// The first client of a device that runs on its callers' threads.
    pub fn confined<D: LifeCycle + PageDevice<Page = PageBuf>>(
        executor: Confined<Lent<D>>,
        limits: Limits,
    ) -> Client {
        let link = Link::Confined(Box::new(Borrowed(executor)));
        Client::new(link, limits, Box::new(()))
    }
}
