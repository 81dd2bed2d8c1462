//! A blocking handle to a device that lives on another thread, for front ends that are called
//! synchronously (SQLite, FUSE, C).
//!
//! ```text
//! caller's thread                        the volume's thread
//! Client::read ── Request, ReplySender ──▶ worker: device.read
//!       waits ◀────────── Reply ──────────┘
//! ```
//!
//! A call is one round trip; [`Client::write_transaction`] is a whole transaction
//! in one. Requests of several threads are served concurrently, at most
//! [`WORKERS`] at a time; what more comes waits in the channel, and once that is full in `send`.
//!
//! Or the device's executor is lent to the callers' threads ([`Client::confined`]): no switch of
//! threads. That is quicker where there is mostly one, as with SQLite. Of several, each runs the
//! executor while it has something to do, and none waits for another one's I/O.
//!
//! A `Client` must not be called on the volume's own thread: it would wait for itself. After a fork
//! the child's calls are refused as `Closed`, and dropping its copy does nothing.
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{
    Error, ErrorKind, FastSet, Limits, PageBuf, PageDevice, PageNo, PageRange, Payload, Result,
    TxId,
};
use tantalum_runtime::live::remote::{self, RemoteReceiver, RemoteSender, ReplySender};
use tantalum_runtime::live::{Confined, Process};
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::{LifeCycle, Runtime};

use crate::origin::Origin;

/// Requests that one volume works on at a time.
pub const WORKERS: usize = 32;

/// Requests that may wait for a worker before `send` blocks.
const CHANNEL_CAPACITY: usize = 64;

/// A blocking handle to a device. Clones name the same device; when the last one is dropped,
/// [`serve_client`] ends.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

/// How requests reach the device.
enum Link {
    /// Its thread takes them from a channel.
    Channel(RemoteSender<Message>),
    /// The caller runs the device's executor.
    Confined(Box<dyn Drive>),
}

/// Handles a request on the caller's thread; dropping it closes the device.
trait Drive: Send + Sync {
    fn drive(&self, request: Request) -> Result<Answer>;
}

struct Shared {
    /// There until it is dropped.
    open: Option<Open>,
    limits: Limits,
    /// Only this process may use the device: a forked child has a copy of everything in here, and
    /// no part in the volume.
    process: Process,
    /// Where its file was when it was opened.
    origin: Option<Origin>,
}

// Fields drop in this order: the channel closes first, so that what `keeper` waits for can end.
struct Open {
    link: Link,
    _keeper: Box<dyn Any + Send + Sync>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The parent's to close. Threads that it would wait for are not here, locks may be held
            // by them for ever.
            std::mem::forget(self.open.take());
        }
    }
}

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
    /// client closed the channel: a guard in there that joins the device's thread makes sure that
    /// the volume is closed when dropping the last client returns.
    pub fn connect(self, limits: Limits, keeper: impl Any + Send + Sync) -> Client {
        Client::new(Link::Channel(self.0), limits, Box::new(keeper))
    }
}

type Message = (Request, ReplySender<Result<Answer>>);

enum Request {
    Read { first: PageNo, pages: Vec<PageBuf>, tx: Option<TxId> },
    Write { first: PageNo, pages: Vec<PageBuf>, tx: Option<TxId> },
    WriteScattered(Vec<(PageNo, PageBuf)>),
    Flush,
    Trim(PageRange),
    Share(Vec<(PageNo, PageNo)>),
    Begin,
    Commit(TxId),
    Abort(TxId),
}

/// What a request that was granted brings.
#[derive(Default)]
struct Answer {
    /// What was read, of a read.
    pages: Vec<PageBuf>,
    /// What was opened, of `Begin`.
    tx: TxId,
}

impl Client {
    fn new(link: Link, limits: Limits, keeper: Box<dyn Any + Send + Sync>) -> Client {
        let open = Some(Open { link, _keeper: keeper });
        Client(Arc::new(Shared { open, limits, process: Process::current(), origin: None }))
    }

    /// Remembers where the volume's file is. Nobody else has the client yet.
    pub(crate) fn opened_at(mut self, origin: Option<Origin>) -> Client {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.origin = origin;
        }
        self
    }

    /// Whether the volume's file is no longer the one that its name stands for: it was deleted or
    /// moved, or another one was put in its place. `false` for a device without a file.
    pub fn has_moved(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::has_moved)
    }

    /// Whether the volume's file was deleted, or replaced: nobody can open it again. `false` for a
    /// device without a file. Half a microsecond.
    pub fn is_deleted(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::is_deleted)
    }

    /// The process that opened it, the only one that may use it.
    pub fn process(&self) -> Process {
        self.0.process
    }

    /// What the device offers.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Reads `pages` pages from `first`.
    pub fn read(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.read_as(first, pages, None)
    }

    /// Reads `pages` pages from `first` as transaction `tx` sees them.
    pub fn read_tx(&self, tx: TxId, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.read_as(first, pages, Some(tx))
    }

    /// Writes `pages` from `first` on, all or nothing.
    pub fn write(&self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        self.call(Request::Write { first, pages, tx: None }).map(drop)
    }

    /// Writes `pages` from `first` on in transaction `tx`.
    pub fn write_tx(&self, tx: TxId, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        self.call(Request::Write { first, pages, tx: Some(tx) }).map(drop)
    }

    /// Writes `pages`, in any order but each page once, in one transaction of its own: visible
    /// and durable when this returns, all or nothing. Nothing to write is no round trip.
    ///
    /// More pages than `limits().transaction_pages_max` are refused as
    /// [`ErrorKind::TooLarge`].
    pub fn write_transaction(&self, mut pages: Vec<(PageNo, PageBuf)>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        // Neighbours are written side by side.
        pages.sort_unstable_by_key(|(page, _)| *page);
        self.call(Request::WriteScattered(pages)).map(drop)
    }

    /// Makes everything that completed before durable.
    pub fn flush(&self) -> Result<()> {
        self.call(Request::Flush).map(drop)
    }

    /// Gives the range up; it reads as zeros.
    pub fn trim(&self, range: PageRange) -> Result<()> {
        self.call(Request::Trim(range)).map(drop)
    }

    /// Remaps: each left page takes the right page's content; all pairs or none.
    pub fn share(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        self.call(Request::Share(pairs)).map(drop)
    }

    /// Opens a transaction. One that is still open when the last client is dropped is aborted.
    pub fn begin(&self) -> Result<TxId> {
        Ok(self.call(Request::Begin)?.tx)
    }

    /// Makes all that the transaction wrote visible and durable, all or nothing.
    pub fn commit(&self, tx: TxId) -> Result<()> {
        self.call(Request::Commit(tx)).map(drop)
    }

    /// Drops all that the transaction wrote.
    pub fn abort(&self, tx: TxId) -> Result<()> {
        self.call(Request::Abort(tx)).map(drop)
    }

    fn read_as(&self, first: PageNo, pages: usize, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        // Checked before memory is asked for: `pages` may come from anywhere.
        self.limits().check_range(PageRange::new(first, pages as u64))?;
        let pages = vec![PageBuf::zero(); pages];
        Ok(self.call(Request::Read { first, pages, tx })?.pages)
    }

    fn call(&self, request: Request) -> Result<Answer> {
        let open =
            self.0.open.as_ref().filter(|_| self.0.process.is_current()).ok_or_else(|| {
                Error::new(
                    ErrorKind::Closed,
                    "the volume was opened before this process was forked",
                )
            })?;
        match &open.link {
            Link::Channel(sender) => {
                let (reply, answer) = remote::reply();
                sender.send((request, reply)).map_err(|_| gone())?;
                answer.wait().ok_or_else(gone)?
            }
            Link::Confined(device) => device.drive(request),
        }
    }
}

/// Closes in a destructor. Nobody is left to be told of a failure, and what was acknowledged is
/// durable all the same. Nor may a panic go on from a destructor, which may run because of one.
pub(crate) fn close_quietly(close: impl FnOnce() -> Result<()>) {
    match catch_unwind(AssertUnwindSafe(close)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!("closing the volume failed: {error}"),
        Err(panic) => {
            // Its message was printed. Dropping what was thrown could panic again.
            std::mem::forget(panic);
            tracing::error!("closing the volume failed: a bug made it panic");
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the volume's thread has gone")
}

/// Serves clients from `requests` until the last one is dropped, then aborts what transactions
/// they left open. Runs on the executor of the device.
pub async fn serve_client<R, D>(runtime: &R, device: Rc<D>, requests: Requests)
where
    R: Runtime,
    D: PageDevice<Page = PageBuf>,
{
    let service = Rc::new(Service {
        device,
        requests: Cell::new(Some(requests.0)),
        turn: Semaphore::new("its turn to wait for a client's request", 1),
        open: RefCell::new(FastSet::default()),
    });
    let workers: Vec<_> =
        (0..WORKERS).map(|_| runtime.spawn("client worker", Rc::clone(&service).work())).collect();
    for worker in workers {
        worker.await;
    }
    service.abort_open().await;
}

/// A device that lives in a [`Confined`] executor, whose callers lend it their threads. It is closed when
/// the last client has gone.
pub struct Lent<D>(Rc<Service<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Lent<D> {
    /// Makes `device` ready to be lent.
    pub fn new(device: Rc<D>) -> Self {
        Lent(Rc::new(Service {
            device,
            requests: Cell::new(None),
            turn: Semaphore::new("its turn to wait for a client's request", 1),
            open: RefCell::new(FastSet::default()),
        }))
    }
}

struct Borrowed<D: LifeCycle + PageDevice<Page = PageBuf>>(Confined<Lent<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Drive for Borrowed<D> {
    fn drive(&self, request: Request) -> Result<Answer> {
        self.0.call(|_, lent| {
            let service = Rc::clone(&lent.0);
            async move { service.handle(request).await }
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
                    service.device.close().await
                }
            })?
        });
    }
}

impl Client {
    /// The first client of a device that is lent to its callers.
    pub fn confined<D: LifeCycle + PageDevice<Page = PageBuf>>(
        executor: Confined<Lent<D>>,
        limits: Limits,
    ) -> Client {
        let link = Link::Confined(Box::new(Borrowed(executor)));
        Client::new(link, limits, Box::new(()))
    }
}

struct Service<D> {
    device: Rc<D>,
    /// `None` while a worker waits for the next request; `turn` lets only one in.
    requests: Cell<Option<RemoteReceiver<Message>>>,
    turn: Semaphore,
    open: RefCell<FastSet<TxId>>,
}

impl<D: PageDevice<Page = PageBuf>> Service<D> {
    /// Aborts what transactions the clients left open.
    async fn abort_open(&self) {
        let left: Vec<TxId> = self.open.borrow_mut().drain().collect();
        for tx in left {
            // Nobody is left to be told; a device that cannot abort drops it when it closes.
            let _ = self.device.abort(tx).await;
        }
    }

    // The worker that receives a request also handles it, so that no request is handed on
    // between tasks; the next worker takes over the waiting.
    async fn work(self: Rc<Self>) {
        while let Some((request, reply)) = self.next().await {
            reply.send(self.handle(request).await);
        }
    }

    async fn next(&self) -> Option<Message> {
        let _turn = self.turn.acquire(1).await;
        let mut requests = self.requests.take()?;
        let request = requests.recv().await;
        self.requests.set(Some(requests));
        request
    }

    async fn handle(&self, request: Request) -> Result<Answer> {
        let device = &*self.device;
        let mut answer = Answer::default();
        match request {
            Request::Read { first, mut pages, tx } => {
                device.read(first, &mut pages, tx).await?;
                answer.pages = pages;
            }
            Request::Write { first, pages, tx } => device.write(first, &pages, tx).await?,
            Request::WriteScattered(pages) => device.write_scattered(pages, || ()).await?,
            Request::Flush => device.flush().await?,
            Request::Trim(range) => device.trim(range).await?,
            Request::Share(pairs) => device.share(&pairs).await?,
            Request::Begin => {
                answer.tx = device.begin().await?;
                self.open.borrow_mut().insert(answer.tx);
            }
            Request::Commit(tx) => {
                let committed = device.commit(tx).await;
                // However it ended, so did the transaction.
                self.open.borrow_mut().remove(&tx);
                committed?;
            }
            Request::Abort(tx) => {
                self.open.borrow_mut().remove(&tx);
                device.abort(tx).await?;
            }
        }
        Ok(answer)
    }
}
