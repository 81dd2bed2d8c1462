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
//! Or it is another process's, which serves it over a socket ([`Connection`]). What the three have in common stands in
//! `tantalum_local`: the requests, and SQLite's locks, which are among all who use the volume.
//!
//! A `Client` must not be called on the volume's own thread: it would wait for itself. After a fork
//! the child's calls are refused as `Closed`, and dropping its copy does nothing.
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tantalum_base::{
    Error, ErrorKind, Limits, PageBuf, PageDevice, PageNo, PageRange, Result, TxId,
};
pub use tantalum_local::changes::Changed;
use tantalum_local::{Answer, Call, Connection, Level, Locks, Raise, Request, Service};
use tantalum_runtime::live::remote::{self, RemoteReceiver, RemoteSender, ReplySender};
use tantalum_runtime::live::{Confined, Process};
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::{LifeCycle, Runtime};

use crate::origin::Origin;

mod reopening;

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
    /// Another process has it.
    Socket(Connection),
}

/// Handles requests on the caller's thread; dropping it closes the device.
trait Drive: Send + Sync {
    fn drive(&self, request: Request) -> Result<Answer>;

    /// Reads pages in order, at the same time.
    fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>>;
}

struct Shared {
    /// There until it is dropped. Another one takes its place in [`Client::reopen`], while nobody uses it.
    open: RwLock<Option<Open>>,
    limits: Limits,
    /// Only this process may use the device: a forked child has a copy of everything in here, and
    /// no part in the volume.
    process: Process,
    /// Where its file was when it was opened.
    origin: Option<Origin>,
    /// Every change is refused.
    read_only: AtomicBool,
    next_holder: AtomicU64,
    /// Who of this process holds what, where no other process has a part in it.
    locks: Mutex<Locks<u64>>,
    /// The last change that its users were told of, or made, where other processes make some too.
    seen_change: Mutex<u64>,
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
            let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(open.take());
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

impl Client {
    fn new(link: Link, limits: Limits, keeper: Box<dyn Any + Send + Sync>) -> Client {
        let seen_change = match &link {
            Link::Socket(connection) => connection.welcome().last_change,
            _ => 0,
        };
        Client(Arc::new(Shared {
            open: RwLock::new(Some(Open { link, _keeper: keeper })),
            limits,
            process: Process::current(),
            origin: None,
            read_only: AtomicBool::new(false),
            next_holder: AtomicU64::new(1),
            locks: Mutex::default(),
            seen_change: Mutex::new(seen_change),
        }))
    }

    /// The client of a volume that another process serves.
    pub(crate) fn served(connection: Connection) -> Client {
        let limits = connection.welcome().limits.clone();
        Client::new(Link::Socket(connection), limits, Box::new(()))
    }

    /// Remembers where the volume's file is, and whether it takes no changes. Nobody else has the client yet.
    pub(crate) fn opened_at(mut self, origin: Option<Origin>, read_only: bool) -> Client {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.origin = origin;
            shared.read_only = AtomicBool::new(read_only);
        }
        self
    }

    /// Whether it was opened, or is served, to be read only.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only.load(Ordering::Acquire)
    }

    /// Whether the server of the volume has gone: nothing can be had from this client any more, and it may be opened
    /// anew.
    pub fn has_gone(&self) -> bool {
        if !self.0.process.is_current() {
            return false;
        }
        match &*self.0.open.read().unwrap_or_else(PoisonError::into_inner) {
            Some(Open { link: Link::Socket(server), .. }) => server.has_gone(),
            open => open.is_none(),
        }
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

    /// Reads `pages`, which are in order and may lie anywhere, at the same time, as `tx` sees them. No pages are no round
    /// trip.
    ///
    /// # Errors
    /// As [`read`](Self::read); nothing is read if one of them cannot be.
    pub fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        for page in &pages {
            self.limits().check_range(PageRange::new(*page, 1))?;
        }
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        self.with_link(|link| match link {
            Link::Channel(sender) => {
                let send = |run: &[PageNo]| {
                    let (reply, answer) = remote::reply();
                    let request = Request::Read { first: run[0], pages: run.len(), tx };
                    sender.send((request, reply)).map_err(|_| gone())?;
                    Ok(answer)
                };
                let runs = pages.chunk_by(|page, next| page.0 + 1 == next.0);
                let answers = runs.map(send).collect::<Result<Vec<_>>>()?;
                let mut read = Vec::with_capacity(pages.len());
                for answer in answers {
                    read.extend(answer.wait().ok_or_else(gone)??.pages);
                }
                Ok(read)
            }
            Link::Confined(device) => device.read_each(pages, tx),
            Link::Socket(server) => server.read_each(&pages, tx),
        })
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
        Ok(self.call(Request::Read { first, pages, tx })?.pages)
    }

    /// A number for one who is going to hold locks.
    pub fn next_holder(&self) -> u64 {
        self.0.next_holder.fetch_add(1, Ordering::Relaxed)
    }

    /// Raises the lock of `holder` on the whole volume, among all who use it, in this process and others. Gives the level that
    /// it is at then; below `wanted` where another one is in the way. The volume itself knows nothing of these locks.
    ///
    /// Before it may read (`Shared`), `refresh` is told which pages other processes may have changed since the
    /// last time, and has the pages of `view` if they are among them. It is not called where none can have. One of all
    /// threads is in there at a time. If it fails, so does this, and `holder` holds nothing.
    ///
    /// # Errors
    /// `Closed` where the server has gone; the device's, and those of `refresh`.
    pub fn raise(
        &self,
        holder: u64,
        wanted: Level,
        view: PageRange,
        refresh: impl FnOnce(&Changed, Vec<PageBuf>) -> Result<()>,
    ) -> Result<Level> {
        self.with_link(|link| match link {
            Link::Socket(server) => self.raise_served(server, holder, wanted, view, refresh),
            _ => Ok(lock(&self.0.locks).raise(holder, wanted)),
        })
    }

    fn raise_served(
        &self,
        server: &Connection,
        holder: u64,
        wanted: Level,
        view: PageRange,
        refresh: impl FnOnce(&Changed, Vec<PageBuf>) -> Result<()>,
    ) -> Result<Level> {
        if wanted != Level::Shared {
            // It holds that already: nobody else has changed anything since.
            let none = PageRange::new(PageNo(0), 0);
            let raise = Raise { holder, wanted, seen: 0, view: none };
            return Ok(server.call(&Call::Raise(raise))?.level);
        }
        let mut seen = lock(&self.0.seen_change);
        let answer = server.call(&Call::Raise(Raise { holder, wanted, seen: *seen, view }))?;
        if answer.level >= Level::Shared {
            if answer.changed != Changed::default() {
                refresh(&answer.changed, answer.pages)
                    .inspect_err(|_| server.tell(&Call::Lower { holder, wanted: Level::None }))?;
            }
            *seen = answer.last_change;
        }
        Ok(answer.level)
    }

    /// Lowers the lock of `holder` to `wanted`, which is `Shared` or `None`.
    pub fn lower(&self, holder: u64, wanted: Level) {
        // Where its process or its server has gone, the lock has gone with it.
        let _ = self.with_link(|link| {
            match link {
                Link::Socket(server) => server.tell(&Call::Lower { holder, wanted }),
                _ => lock(&self.0.locks).lower(holder, wanted),
            }
            Ok(())
        });
    }

    /// Whether anybody means to write: its lock is above `Shared`.
    ///
    /// # Errors
    /// `Closed` where the server has gone.
    pub fn is_reserved(&self) -> Result<bool> {
        self.with_link(|link| match link {
            Link::Socket(server) => Ok(server.call(&Call::IsReserved)?.level > Level::Shared),
            _ => Ok(lock(&self.0.locks).is_reserved()),
        })
    }

    /// Uses the way to the device, which stays the same meanwhile.
    fn with_link<T>(&self, body: impl FnOnce(&Link) -> Result<T>) -> Result<T> {
        let closed = |context: &'static str| Error::new(ErrorKind::Closed, context);
        // First: in a forked child the lock may be held for ever by a thread that is not there.
        if !self.0.process.is_current() {
            return Err(closed("the volume was opened before this process was forked"));
        }
        let open = self.0.open.read().unwrap_or_else(PoisonError::into_inner);
        let open = open.as_ref();
        body(&open.ok_or_else(|| closed("the volume could not be opened again"))?.link)
    }

    fn call(&self, request: Request) -> Result<Answer> {
        self.with_link(|link| self.call_over(link, request))
    }

    fn call_over(&self, link: &Link, request: Request) -> Result<Answer> {
        match link {
            Link::Channel(sender) => {
                let (reply, answer) = remote::reply();
                sender.send((request, reply)).map_err(|_| gone())?;
                answer.wait().ok_or_else(gone)?
            }
            Link::Confined(device) => device.drive(request),
            Link::Socket(server) => {
                let changes = request.changes();
                let answer = server.ask(request)?;
                if changes {
                    let mut seen = lock(&self.0.seen_change);
                    // The one change since was this. Of others it hears with its next lock.
                    if answer.last_change == *seen + 1 {
                        *seen = answer.last_change;
                    }
                }
                Ok(answer)
            }
        }
    }
}

/// State behind a mutex is changed in one go, so a panic elsewhere leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
    let workers = Rc::new(Workers {
        service: Service::new(device),
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

/// A device that lives in a [`Confined`] executor, whose callers lend it their threads. It is closed when
/// the last client has gone.
pub struct Lent<D>(Rc<Service<D>>);

impl<D: LifeCycle + PageDevice<Page = PageBuf>> Lent<D> {
    /// Makes `device` ready to be lent.
    pub fn new(device: Rc<D>) -> Self {
        Lent(Rc::new(Service::new(device)))
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
    /// The first client of a device that is lent to its callers.
    pub fn confined<D: LifeCycle + PageDevice<Page = PageBuf>>(
        executor: Confined<Lent<D>>,
        limits: Limits,
    ) -> Client {
        let link = Link::Confined(Box::new(Borrowed(executor)));
        Client::new(link, limits, Box::new(()))
    }
}

struct Workers<D> {
    service: Service<D>,
    /// `None` while a worker waits for the next request; `turn` lets only one in.
    requests: Cell<Option<RemoteReceiver<Message>>>,
    turn: Semaphore,
}

impl<D: PageDevice<Page = PageBuf>> Workers<D> {
    // The worker that receives a request also handles it, so that no request is handed on
    // between tasks; the next worker takes over the waiting.
    async fn work(self: Rc<Self>) {
        while let Some((request, reply)) = self.next().await {
            reply.send(self.service.handle(request).await);
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
