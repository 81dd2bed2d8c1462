//! For front ends, which give a volume to other programs or stores: SQLite's VFS, the C interface, tests that bring a device of
//! their own. Programs that keep their data in a volume do not need this module.
//!
//! ```text
//! FrontEnd           a front end's calls to an open volume: locks among processes, its file, its transactions
//! open_to_read       opens a volume for a program that only reads
//! channel, serve     a volume on a device that the program opened itself, on a thread of its own
//! Lent, on_callers   the same on the threads of its callers
//! counters_of        the counters of another program that has a volume open
//! ```
use crate::counters;
use crate::link::{self, Link};
use crate::opening;
use crate::shared::{Open, Shared, lock};
use crate::transaction::Transaction;
use crate::volume::Volume;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use tantalum_base::{Limits, PageBuf, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_local::{Call, Connection, Raise};
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::LifeCycle;
use tantalum_runtime::live::{Confined, Process};
use tantalum_volume::Origin;

pub use counters::{ToldCounters, counters_of};
pub use link::{Connector, Lent, Requests, WORKERS, channel, serve};
pub use tantalum_local::Level;
pub use tantalum_local::changes::Changed;

/// The first handle to a device that runs on its callers' threads.
pub fn on_callers<D: LifeCycle + PageDevice<Page = PageBuf>>(
    executor: Confined<Lent<D>>,
    limits: Limits,
) -> Volume {
    Shared::new(Open::new(link::confined(executor), ()), limits).into()
}

/// Opens the volume at `path` for a program that only reads. If this process opens the volume itself, it does so read-only. If a
/// server has it open, the handle may also write, because that costs nothing there.
///
/// # Errors
/// As [`Volume::open`].
pub fn open_to_read(path: &Path) -> Result<Volume> {
    opening::open_to_read(path).map(Volume::from)
}

/// Gives up the handle of a transaction that stays open, and returns its number, for [`FrontEnd::transaction`].
pub fn leave_open(transaction: Transaction) -> u64 {
    let number = transaction.number();
    transaction.leave_open();
    number
}

/// A front end's calls to an open volume, except for those that read and write pages.
pub trait FrontEnd {
    /// Whether the connection to the volume's server is lost. Every call fails from then on; the volume may be opened again
    /// with a new handle.
    fn has_gone(&self) -> bool;

    /// Whether the path of the volume no longer names its file: the file was deleted, moved or replaced. `false` for a device
    /// without a file.
    fn has_moved(&self) -> bool;

    /// Whether the volume's file was deleted or replaced, so that nobody can open it again. `false` for a device without a
    /// file. Takes half a microsecond.
    fn is_deleted(&self) -> bool;

    /// The process that opened the volume. No other process may use this handle.
    fn process(&self) -> Process;

    /// Reads `pages` concurrently, as `transaction` sees them; without one, as all callers see them. They are in ascending order
    /// and need not be contiguous. An empty list causes no round trip.
    ///
    /// # Errors
    /// As [`Volume::read`]; if one page cannot be read, no page is returned.
    fn read_each(
        &self,
        pages: Vec<PageNo>,
        transaction: Option<&Transaction>,
    ) -> Result<Vec<PageBuf>>;

    /// A handle to the open transaction with this [`number`](Transaction::number), which another handle may have begun. It does
    /// not know which pages were written before: write only whole pages with it.
    fn transaction(&self, number: u64) -> Transaction;

    /// A new number for a lock holder.
    fn next_holder(&self) -> u64;

    /// Raises the lock of `holder` on the whole volume. The lock covers all users, in this process and others. Returns the
    /// level reached, which is below `wanted` if another holder conflicts. The device itself does not enforce these locks.
    ///
    /// Before `holder` may read (`Shared`), `refresh` gets the pages that other processes may have changed since the last
    /// time. If a page of `view` is among them, it also gets the content of all pages of `view`. `refresh` is not called if
    /// no page can have changed. One thread at a time runs it. If it fails, this call fails, and `holder` holds nothing.
    ///
    /// # Errors
    /// `Closed` if the server has gone; those of the device and of `refresh`.
    fn raise(
        &self,
        holder: u64,
        wanted: Level,
        view: PageRange,
        refresh: impl FnOnce(&Changed, Vec<PageBuf>) -> Result<()>,
    ) -> Result<Level>;

    /// Lowers the lock of `holder` to `wanted`, which is `Shared` or `None`.
    fn lower(&self, holder: u64, wanted: Level);

    /// Whether any holder intends to write: its lock is above `Shared`.
    ///
    /// # Errors
    /// `Closed` if the server has gone.
    fn is_reserved(&self) -> Result<bool>;

    /// Reports that the front end buffers `pages` pages of transactions in progress, so that `tantalum stat` and `top` show
    /// progress. Costs next to nothing.
    fn tell_progress(&self, pages: usize);

    /// Closes the device, which was opened read-only, and opens it with `to_write`. If that fails, it is opened read-only
    /// again with `to_read`. This process keeps its locks. The caller must detect changes that others made to the volume in
    /// between. Concurrent calls wait.
    ///
    /// # Errors
    /// Those of `to_write`, and `Locked` if a server has opened the volume by then. If `to_read` fails as well, the volume
    /// is closed.
    fn reopen(
        &self,
        to_write: impl FnOnce() -> Result<Volume>,
        to_read: impl FnOnce() -> Result<Volume>,
    ) -> Result<()>;

    /// Counts of reads from and writes to the store since this process opened the volume; `None` if it is served by another
    /// process. They remain available after the volume is closed, and then include the writes of closing.
    fn store_counters(&self) -> Option<StoreCounters>;
}

impl FrontEnd for Volume {
    fn has_gone(&self) -> bool {
        if !self.0.process.is_current() {
            return false;
        }
        match &*self.0.open.read().unwrap_or_else(PoisonError::into_inner) {
            Some(Open { link: Link::Socket(server), .. }) => server.has_gone(),
            open => open.is_none(),
        }
    }

    fn has_moved(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::has_moved)
    }

    fn is_deleted(&self) -> bool {
        self.0.origin.as_ref().is_some_and(Origin::is_deleted)
    }

    fn process(&self) -> Process {
        self.0.process
    }

    fn read_each(
        &self,
        pages: Vec<PageNo>,
        transaction: Option<&Transaction>,
    ) -> Result<Vec<PageBuf>> {
        self.0.read_each(pages, transaction.map(|transaction| TxId(transaction.number())))
    }

    fn transaction(&self, number: u64) -> Transaction {
        Transaction::open(self.clone(), TxId(number))
    }

    fn next_holder(&self) -> u64 {
        self.0.next_holder.fetch_add(1, Ordering::Relaxed)
    }

    fn raise(
        &self,
        holder: u64,
        wanted: Level,
        view: PageRange,
        refresh: impl FnOnce(&Changed, Vec<PageBuf>) -> Result<()>,
    ) -> Result<Level> {
        self.0.with_link(|link| match link {
            Link::Socket(server) => self.0.raise_served(server, holder, wanted, view, refresh),
            _ => Ok(lock(&self.0.locks).raise(holder, wanted)),
        })
    }

    fn lower(&self, holder: u64, wanted: Level) {
        // If the process or the server has gone, the lock is gone too.
        let _ = self.0.with_link(|link| {
            match link {
                Link::Socket(server) => server.tell(&Call::Lower { holder, wanted }),
                _ => lock(&self.0.locks).lower(holder, wanted),
            }
            Ok(())
        });
    }

    fn is_reserved(&self) -> Result<bool> {
        self.0.with_link(|link| match link {
            Link::Socket(server) => Ok(server.call(&Call::IsReserved)?.level > Level::Shared),
            _ => Ok(lock(&self.0.locks).is_reserved()),
        })
    }

    fn tell_progress(&self, pages: usize) {
        self.0.counters.keep(pages as u64);
        self.0.tick();
    }

    fn reopen(
        &self,
        to_write: impl FnOnce() -> Result<Volume>,
        to_read: impl FnOnce() -> Result<Volume>,
    ) -> Result<()> {
        self.0.reopen(to_write, to_read)
    }

    fn store_counters(&self) -> Option<StoreCounters> {
        self.0.with_open(|open| Ok(open.store_counters.clone())).ok().flatten()
    }
}

impl Shared {
    /// Raises the lock of `holder` at the server of the volume.
    fn raise_served(
        &self,
        server: &Connection,
        holder: u64,
        wanted: Level,
        view: PageRange,
        refresh: impl FnOnce(&Changed, Vec<PageBuf>) -> Result<()>,
    ) -> Result<Level> {
        if wanted != Level::Shared {
            // The holder already has a shared lock, so no other process has changed anything since.
            let none = PageRange::new(PageNo(0), 0);
            let raise = Raise { holder, wanted, seen: 0, view: none };
            return Ok(server.call(&Call::Raise(raise))?.level);
        }
        let mut seen = lock(&self.seen_change);
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
}
