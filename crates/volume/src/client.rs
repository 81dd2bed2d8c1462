//! A blocking handle to a device that lives on another thread, for front ends that are called
//! synchronously (SQLite, FUSE, C).
//!
//! ```text
//! caller's thread                        the volume's thread
//! Client::read ── Request, ReplySender ──▶ worker: device.read
//!       waits ◀────────── Reply ──────────┘
//! ```
//!
//! A call is one round trip; [`Client::write_transaction`] does a whole transaction in one. Requests of several threads are
//! served concurrently, at most [`WORKERS`] at a time. Further requests wait in the channel; once the channel is full, `send`
//! blocks.
//!
//! Alternatively the callers' threads run the device's executor ([`Client::confined`]), which avoids thread switches. This is
//! faster if there is usually one caller, as with SQLite. If there are several, each runs the executor while it has work to
//! do, and none waits for another one's I/O.
//!
//! Or another process has the device open and serves it over a socket ([`Connection`]). The parts common to all three are in
//! `tantalum_local`: the requests, and SQLite's locks, which cover all users of the volume.
//!
//! Do not call a `Client` on the volume's own thread: it would wait for itself. After a fork the child's calls fail with
//! `Closed`, and dropping its copy does nothing.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, PageNo, PageRange, Result, TxId};
pub use tantalum_local::changes::Changed;
use tantalum_local::{Answer, Call, Connection, Level, Locks, Raise, Request};
use tantalum_runtime::live::Process;
use tantalum_runtime::live::remote::{self, RemoteSender};
use tantalum_runtime::metrics::Readings;

use crate::counters::{Counters, Told};
use crate::origin::Origin;
use lent::Drive;
use serving::Message;

mod lent;
mod reopening;
mod serving;

pub use lent::Lent;
pub(crate) use serving::serve_client_telling;
pub use serving::{Connector, Requests, WORKERS, channel, serve_client};

/// A blocking handle to a device. Clones name the same device; when the last one is dropped,
/// [`serve_client`] ends.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

/// How requests reach the device.
enum Link {
    /// The device's thread receives requests from a channel.
    Channel(RemoteSender<Message>),
    /// The caller runs the device's executor.
    Confined(Box<dyn Drive>),
    /// Another process has the device open.
    Socket(Connection),
}

struct Shared {
    /// Present until the client is dropped. [`Client::reopen`] replaces it while nobody uses it.
    open: RwLock<Option<Open>>,
    limits: Limits,
    /// Only this process may use the device: a forked child has a copy of everything in here, but must not use the volume.
    process: Process,
    /// The location of its file when it was opened.
    origin: Option<Origin>,
    /// Every change is refused.
    read_only: AtomicBool,
    next_holder: AtomicU64,
    /// Counters of this process's requests, written to a file while this process has the volume open itself.
    counters: Arc<Counters>,
    /// The locks held in this process, if no other process uses the volume.
    locks: Mutex<Locks<u64>>,
    /// The latest change that this client has seen or made, if other processes also make changes.
    seen_change: Mutex<u64>,
}

// Fields drop in this order: the channel closes first, so that the thread that `keeper` waits for can end.
struct Open {
    link: Link,
    _keeper: Box<dyn Any + Send + Sync>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // Only the parent may close the volume. The threads that closing would wait for do not exist in the child, and may
            // have held locks that nobody releases here.
            let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(open.take());
            return;
        }
        // The volume is still locked here, so no other process has a counters file.
        drop(self.counters.stop());
    }
}

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
            counters: Arc::default(),
            locks: Mutex::default(),
            seen_change: Mutex::new(seen_change),
        }))
    }

    /// The client of a volume that another process serves.
    pub(crate) fn served(connection: Connection) -> Client {
        let limits = connection.welcome().limits.clone();
        Client::new(Link::Socket(connection), limits, Box::new(()))
    }

    /// Starts to write the counters of this process to their file.
    pub(crate) fn telling(self, told: Option<Told>) -> Client {
        self.0.counters.start(told);
        self
    }

    /// Records the location of the volume's file and whether the volume is read-only. The client must not be shared yet.
    pub(crate) fn opened_at(mut self, origin: Option<Origin>, read_only: bool) -> Client {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.origin = origin;
            shared.read_only = AtomicBool::new(read_only);
        }
        self
    }

    /// Whether the volume was opened, or is served, read-only.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only.load(Ordering::Acquire)
    }

    /// Whether the connection to the volume's server is lost. Every call fails from then on; the volume may be opened again
    /// with a new client.
    pub fn has_gone(&self) -> bool {
        if !self.0.process.is_current() {
            return false;
        }
        match &*self.0.open.read().unwrap_or_else(PoisonError::into_inner) {
            Some(Open { link: Link::Socket(server), .. }) => server.has_gone(),
            open => open.is_none(),
        }
    }

    /// Whether the path of the volume no longer names its file: the file was deleted, moved or replaced. `false` for a device
    /// without a file.
    pub fn has_moved(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::has_moved)
    }

    /// Whether the volume's file was deleted or replaced, so that nobody can open it again. `false` for a device without a
    /// file. Takes half a microsecond.
    pub fn is_deleted(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::is_deleted)
    }

    /// The process that opened the volume. No other process may use this client.
    pub fn process(&self) -> Process {
        self.0.process
    }

    /// The device's limits.
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

    /// Reads `pages` concurrently, as `tx` sees them. They are in ascending order and need not be contiguous. An empty list
    /// causes no round trip.
    ///
    /// # Errors
    /// As [`read`](Self::read); if one page cannot be read, no page is returned.
    pub fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        for page in &pages {
            self.limits().check_range(PageRange::new(*page, 1))?;
        }
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let count = pages.len();
        let read = self.with_link(|link| match link {
            Link::Channel(sender) => {
                let send = |run: &[PageNo]| {
                    let (reply, answer) = remote::reply();
                    let request = Request::Read { first: run[0], pages: run.len(), tx };
                    sender.send(Message::Ask(request, reply)).map_err(|_| gone())?;
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
        })?;
        self.0.counters.read(count);
        self.tick();
        Ok(read)
    }

    /// Writes `pages` starting at `first`, all or nothing.
    pub fn write(&self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        self.call(Request::Write { first, pages, tx: None }).map(drop)
    }

    /// Writes `pages` starting at `first` in transaction `tx`.
    pub fn write_tx(&self, tx: TxId, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        self.call(Request::Write { first, pages, tx: Some(tx) }).map(drop)
    }

    /// Writes `pages` in one transaction of its own, all or nothing. They may be in any order, but each page only once. The
    /// writes are visible and durable when this returns. An empty list causes no round trip.
    ///
    /// More pages than `limits().transaction_pages_max` are refused as [`ErrorKind::TooLarge`].
    pub fn write_transaction(&self, mut pages: Vec<(PageNo, PageBuf)>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        // So that adjacent pages are written together.
        pages.sort_unstable_by_key(|(page, _)| *page);
        self.call(Request::WriteScattered(pages)).map(drop)
    }

    /// Makes all completed writes durable.
    pub fn flush(&self) -> Result<()> {
        self.call(Request::Flush).map(drop)
    }

    /// Discards the range; it reads as zeros afterwards.
    pub fn trim(&self, range: PageRange) -> Result<()> {
        self.call(Request::Trim(range)).map(drop)
    }

    /// Remaps pages: each left page gets the right page's content. All pairs or none.
    pub fn share(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        self.call(Request::Share(pairs)).map(drop)
    }

    /// Opens a transaction. One that is still open when the last client is dropped is aborted.
    pub fn begin(&self) -> Result<TxId> {
        Ok(self.call(Request::Begin)?.tx)
    }

    /// Makes all writes of the transaction visible and durable, all or nothing.
    pub fn commit(&self, tx: TxId) -> Result<()> {
        self.call(Request::Commit(tx)).map(drop)
    }

    /// Discards all writes of the transaction.
    pub fn abort(&self, tx: TxId) -> Result<()> {
        self.call(Request::Abort(tx)).map(drop)
    }

    fn read_as(&self, first: PageNo, pages: usize, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        // Checked before memory is allocated: `pages` may come from an untrusted caller.
        self.limits().check_range(PageRange::new(first, pages as u64))?;
        Ok(self.call(Request::Read { first, pages, tx })?.pages)
    }

    /// A new number for a lock holder.
    pub fn next_holder(&self) -> u64 {
        self.0.next_holder.fetch_add(1, Ordering::Relaxed)
    }

    /// Raises the lock of `holder` on the whole volume. The lock covers all users, in this process and others. Returns the
    /// level reached, which is below `wanted` if another holder conflicts. The device itself knows nothing of these locks.
    ///
    /// Before `holder` may read (`Shared`), `refresh` gets the pages that other processes may have changed since the last
    /// time. If a page of `view` is among them, it also gets the content of all pages of `view`. `refresh` is not called if
    /// no page can have changed. One thread at a time runs it. If it fails, this call fails, and `holder` holds nothing.
    ///
    /// # Errors
    /// `Closed` if the server has gone; those of the device and of `refresh`.
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
            // The holder already has a shared lock: nobody else has changed anything since.
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
        // If the process or the server has gone, the lock is gone too.
        let _ = self.with_link(|link| {
            match link {
                Link::Socket(server) => server.tell(&Call::Lower { holder, wanted }),
                _ => lock(&self.0.locks).lower(holder, wanted),
            }
            Ok(())
        });
    }

    /// Whether any holder intends to write: its lock is above `Shared`.
    ///
    /// # Errors
    /// `Closed` if the server has gone.
    pub fn is_reserved(&self) -> Result<bool> {
        self.with_link(|link| match link {
            Link::Socket(server) => Ok(server.call(&Call::IsReserved)?.level > Level::Shared),
            _ => Ok(lock(&self.0.locks).is_reserved()),
        })
    }

    /// Calls `body` with the link to the device, which cannot be replaced during the call.
    fn with_link<T>(&self, body: impl FnOnce(&Link) -> Result<T>) -> Result<T> {
        let closed = |context: &'static str| Error::new(ErrorKind::Closed, context);
        // Checked first: in a forked child, a thread that does not exist there may hold the lock forever.
        if !self.0.process.is_current() {
            return Err(closed("the volume was opened before this process was forked"));
        }
        let open = self.0.open.read().unwrap_or_else(PoisonError::into_inner);
        let open = open.as_ref();
        body(&open.ok_or_else(|| closed("the volume could not be opened again"))?.link)
    }

    /// A front end reports that it buffers `pages` pages of transactions in progress, so that `tantalum stat` and `top` show
    /// progress. Costs next to nothing.
    pub fn tell_progress(&self, pages: usize) {
        self.0.counters.keep(pages as u64);
        self.tick();
    }

    fn call(&self, request: Request) -> Result<Answer> {
        let answer = self.with_link(|link| {
            let counted = self.0.counters.begin(&request);
            let answer = self.call_over(link, request);
            self.0.counters.end(counted, &answer);
            answer
        });
        self.tick();
        answer
    }

    /// Writes the counters to their file if they are due. A forked child does not write them.
    fn tick(&self) {
        if !self.0.process.is_current() {
            return;
        }
        self.0.counters.tick(|out| {
            // If the device cannot report its counters, for example after a panic, they are left out.
            let told = self.with_link(|link| match link {
                Link::Channel(sender) => {
                    let (reply, told) = remote::reply();
                    sender.send(Message::Tell(reply)).map_err(|_| gone())?;
                    told.wait().ok_or_else(gone)
                }
                Link::Confined(device) => device.metrics(),
                Link::Socket(_) => Ok(Readings::default()),
            });
            if let Ok(told) = told {
                out.extend(told);
            }
        });
    }

    fn call_over(&self, link: &Link, request: Request) -> Result<Answer> {
        match link {
            Link::Channel(sender) => {
                let (reply, answer) = remote::reply();
                sender.send(Message::Ask(request, reply)).map_err(|_| gone())?;
                answer.wait().ok_or_else(gone)?
            }
            Link::Confined(device) => device.drive(request, &self.0.counters),
            Link::Socket(server) => {
                let changes = request.changes();
                let answer = server.ask(request)?;
                if changes {
                    let mut seen = lock(&self.0.seen_change);
                    // Exactly one change was made since: this one. Changes of others are reported with the next lock.
                    if answer.last_change == *seen + 1 {
                        *seen = answer.last_change;
                    }
                }
                Ok(answer)
            }
        }
    }
}

/// State behind a mutex is changed in one step, so it is consistent even after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Closes in a destructor. A failure can be reported to nobody, and acknowledged writes are durable all the same. A panic must
/// not leave a destructor, which may already run because of a panic.
pub(crate) fn close_quietly(close: impl FnOnce() -> Result<()>) {
    match catch_unwind(AssertUnwindSafe(close)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!("closing the volume failed: {error}"),
        Err(panic) => {
            // The panic's message was printed. Dropping its payload could panic again.
            std::mem::forget(panic);
            tracing::error!("closing the volume failed: a bug made it panic");
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the volume's thread has gone")
}
