//! The channel to a device on a thread of its own, and the tasks that serve it there.
use super::{Client, Link};
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Limits, PageBuf, PageDevice, Result};
use tantalum_local::{Answer, Request, Service};
use tantalum_runtime::Runtime;
use tantalum_runtime::live::remote::{self, RemoteReceiver, RemoteSender, ReplySender};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::Semaphore;

/// Requests that one volume handles at a time.
pub const WORKERS: usize = 32;

/// Requests that may wait for a worker before `send` blocks.
const CHANNEL_CAPACITY: usize = 64;

/// The end of the channel from which [`Client`]s are made.
pub struct Connector(RemoteSender<Message>);

/// The end of the channel that [`serve_client`] serves.
pub struct Requests(RemoteReceiver<Message>);

/// A channel between clients and the thread of a device.
pub fn channel() -> (Connector, Requests) {
    let (sender, receiver) = remote::channel("a client's request", CHANNEL_CAPACITY);
    (Connector(sender), Requests(receiver))
}

impl Connector {
    /// The first client of the device with these `limits`. `keeper` is dropped after the last
    /// client has closed the channel. If it contains a guard that joins the device's thread, the
    /// volume is closed by the time dropping the last client returns.
    pub fn connect(self, limits: Limits, keeper: impl Any + Send + Sync) -> Client {
        Client::new(Link::Channel(self.0), limits, Box::new(keeper))
    }
}

/// A message in the channel.
pub(super) enum Message {
    /// A request for the device.
    Ask(Request, ReplySender<Result<Answer>>),
    /// Asks for the device's counters.
    Tell(ReplySender<Readings>),
}

/// Serves clients from `requests` until the last one is dropped, then aborts the transactions that
/// they left open. Runs on the executor of the device.
pub async fn serve_client<R, D>(runtime: &R, device: Rc<D>, requests: Requests)
where
    R: Runtime,
    D: PageDevice<Page = PageBuf>,
{
    serve_client_telling(runtime, device, requests, |_, _| ()).await;
}

/// As [`serve_client`]; `tell` reports the device's counters.
pub(crate) async fn serve_client_telling<R, D>(
    runtime: &R,
    device: Rc<D>,
    requests: Requests,
    tell: fn(&D, &mut Readings),
) where
    R: Runtime,
    D: PageDevice<Page = PageBuf>,
{
    let workers = Rc::new(Workers {
        service: Service::new(device),
        tell,
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
    tell: fn(&D, &mut Readings),
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
                Message::Tell(reply) => {
                    let mut out = Readings::default();
                    (self.tell)(self.service.device(), &mut out);
                    reply.send(out);
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
