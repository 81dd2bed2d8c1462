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
    /// Its thread takes them from a channel.
    Channel(RemoteSender<Message>),
    /// The caller runs the device's executor.
    Confined(Box<dyn Drive>),
    /// Another process has it.
    Socket(Connection),
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
    /// What this process did with it, told while it has it open itself.
    counters: Arc<Counters>,
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
            return;
        }
        // While the volume is still locked: nobody else has a file there.
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

    /// Tells what this process does with the volume from now on.
    pub(crate) fn telling(self, told: Option<Told>) -> Client {
        self.0.counters.start(told);
        self
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

    /// A front end keeps `pages` pages of transactions in progress, and has a moment: `tantalum stat` and `top` are to see
    /// that it goes on. Costs next to nothing.
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

    /// Writes the counters down if it is time. They are not a forked child's to write.
    fn tick(&self) {
        if !self.0.process.is_current() {
            return;
        }
        self.0.counters.tick(|out| {
            // Without the device's where it cannot tell: after a panic for one.
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
