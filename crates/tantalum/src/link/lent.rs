//! A device whose executor runs on the threads of its callers.
use super::{Figures, Link, close_quietly};
use crate::counters::Counters;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{PageBuf, PageDevice, PageNo, Result, TxId};
use tantalum_local::{Answer, Request, Service};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::live::Confined;
use tantalum_runtime::metrics::Readings;
use tantalum_volume::Stat;

/// Handles requests on the caller's thread; dropping it closes the device.
pub(crate) trait Drive: Send + Sync {
    /// Handles one request. If it takes long, `counters` are written meanwhile.
    fn drive(&self, request: Request, counters: &Arc<Counters>) -> Result<Answer>;

    /// The device's counters.
    fn metrics(&self) -> Result<Readings>;

    /// The device's figures.
    fn stat(&self) -> Result<Stat>;

    /// Reads pages in ascending order, concurrently.
    fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>>;
}

/// A device in a [`Confined`] executor that runs on its callers' threads. It is closed when the last handle is dropped.
pub struct Lent<D>(Rc<Inside<D>>);

struct Inside<D> {
    service: Service<D>,
    figures: Figures<D>,
}

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Lent<D> {
    /// Prepares `device` to run on its callers' threads.
    pub fn new(device: Rc<D>) -> Self {
        let figures = Figures { metrics: D::metrics, ..Figures::none() };
        Lent::with_figures(device, figures)
    }

    /// As [`new`](Self::new), for a device that reports `figures`.
    pub(crate) fn with_figures(device: Rc<D>, figures: Figures<D>) -> Self {
        Lent(Rc::new(Inside { service: Service::new(device), figures }))
    }
}

struct Borrowed<D: LifeCycle + PageDevice<Page = PageBuf>>(Confined<Lent<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Drive for Borrowed<D> {
    fn drive(&self, request: Request, counters: &Arc<Counters>) -> Result<Answer> {
        self.0.call(|_, lent| {
            let (inside, counters) = (Rc::clone(&lent.0), Arc::clone(counters));
            async move {
                let Inside { service, figures } = &*inside;
                let mut handled = pin!(service.handle(request));
                poll_fn(|context| {
                    counters.tick_within(|out| (figures.metrics)(service.device(), out));
                    handled.as_mut().poll(context)
                })
                .await
            }
        })?
    }

    fn metrics(&self) -> Result<Readings> {
        self.0.call(|_, lent| {
            let inside = Rc::clone(&lent.0);
            async move {
                let mut out = Readings::default();
                (inside.figures.metrics)(inside.service.device(), &mut out);
                out
            }
        })
    }

    fn stat(&self) -> Result<Stat> {
        self.0.call(|_, lent| {
            let inside = Rc::clone(&lent.0);
            async move { inside.figures.of(inside.service.device()).await }
        })?
    }

    fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        self.0.call(|_, lent| {
            let inside = Rc::clone(&lent.0);
            async move { inside.service.read_each(pages, tx).await }
        })?
    }
}

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Drop for Borrowed<D> {
    fn drop(&mut self) {
        close_quietly(|| {
            self.0.call(|_, lent| {
                let inside = Rc::clone(&lent.0);
                async move {
                    inside.service.abort_open().await;
                    inside.service.device().close().await
                }
            })?
        });
    }
}

/// The link to a device that runs on its callers' threads.
pub(crate) fn confined<D: LifeCycle + PageDevice<Page = PageBuf>>(
    executor: Confined<Lent<D>>,
) -> Link {
    Link::Confined(Box::new(Borrowed(executor)))
}
