//! The channel to a device on a thread of its own, and the tasks that serve it there.
use super::{Figures, Link};
use crate::shared::{Open, Shared};
use crate::volume::Volume;
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Limits, PageBuf, PageDevice, Result};
use tantalum_local::{Answer, Request, Service};
use tantalum_runtime::Runtime;
use tantalum_runtime::live::remote::{self, RemoteReceiver, RemoteSender, ReplySender};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::Semaphore;
use tantalum_volume::Stat;

/// Requests that one volume handles at a time.
pub const WORKERS: usize = 32;

/// Requests that may wait for a worker before `send` blocks.
const CHANNEL_CAPACITY: usize = 64;

/// The end of the channel from which handles are made.
pub struct Connector(RemoteSender<Message>);

/// The end of the channel that [`serve`] serves.
pub struct Requests(RemoteReceiver<Message>);

/// A channel between callers and the thread of a device.
pub fn channel() -> (Connector, Requests) {
    let (sender, receiver) = remote::channel("a client's request", CHANNEL_CAPACITY);
    (Connector(sender), Requests(receiver))
}

impl Connector {
    /// The first handle to the device with these `limits`. `keeper` is dropped after the last handle has closed the channel.
    /// If it contains a guard that joins the device's thread, the device is closed by the time dropping the last handle
    /// returns.
    pub fn connect(self, limits: Limits, keeper: impl Any + Send + Sync) -> Volume {
        Shared::new(Open::new(Link::Channel(self.0), keeper), limits).into()
    }

    pub(crate) fn link(self) -> Link {
        Link::Channel(self.0)
    }
}

/// A message in the channel.
pub(crate) enum Message {
    /// A request for the device.
    Ask(Request, ReplySender<Result<Answer>>),
    /// Asks for the device's counters.
    Metrics(ReplySender<Readings>),
    /// Asks for the device's figures.
    Stat(ReplySender<Result<Stat>>),
}

/// Serves `requests` until the last handle is dropped, then aborts the transactions that are still open. Runs on the executor of
/// the device.
pub async fn serve<R, D>(runtime: &R, device: Rc<D>, requests: Requests)
where
    R: Runtime,
    D: PageDevice<Page = PageBuf>,
{
    serve_with_figures(runtime, device, requests, Figures::none()).await;
}

/// As [`serve`], for a device that reports `figures`.
pub(crate) async fn serve_with_figures<R, D>(
    runtime: &R,
    device: Rc<D>,
    requests: Requests,
    figures: Figures<D>,
) where
    R: Runtime,
    D: PageDevice<Page = PageBuf>,
{
    let workers = Rc::new(Workers {
        service: Service::new(device),
        figures,
        requests: Cell::new(Some(requests.0)),
        turn: Semaphore::new("its turn to wait for a client's request", 1),
    });
    let working: Vec<_> =
        (0..WORKERS).map(|_| runtime.spawn("client worker", Rc::clone(&workers).work())).collect();
    for worker in working {
        worker.await;
    }
    workers.service.abort_open().await;
}

struct Workers<D> {
    service: Service<D>,
    figures: Figures<D>,
    /// `None` while a worker waits for the next request; only the worker that holds `turn` waits.
    requests: Cell<Option<RemoteReceiver<Message>>>,
    turn: Semaphore,
}

impl<D: PageDevice<Page = PageBuf>> Workers<D> {
    // The worker that receives a request also handles it, so that requests are not passed between
    // tasks; the next worker then waits for the next request.
    async fn work(self: Rc<Self>) {
        while let Some(message) = self.next().await {
            match message {
                Message::Ask(request, reply) => reply.send(self.service.handle(request).await),
                Message::Metrics(reply) => {
                    let mut out = Readings::default();
                    (self.figures.metrics)(self.service.device(), &mut out);
                    reply.send(out);
                }
                Message::Stat(reply) => {
                    reply.send(self.figures.of(self.service.device()).await);
                }
            }
        }
    }

    async fn next(&self) -> Option<Message> {
        let _turn = self.turn.acquire(1).await;
        let mut requests = self.requests.take()?;
        let request = requests.recv().await;
        self.requests.set(Some(requests));
        request
    }
}
