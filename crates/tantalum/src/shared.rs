//! The state that all handles to an open volume share.
//!
//! A handle must not be used on the volume's own thread: it would wait for itself. After a fork the child's calls fail with
//! `Closed`, and dropping its copy does nothing.
use crate::counters::Counters;
use crate::link::Link;
use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, PageNo, PageRange, Result, TxId};
use tantalum_local::{Answer, Connection, Locks, Request};
use tantalum_media::block_store::StoreCounters;
use tantalum_runtime::live::Process;
use tantalum_volume::{Origin, Stat, asking};

/// The state of an open volume.
pub(crate) struct Shared {
    /// Present until the last handle is dropped. [`reopen`](crate::front_end::FrontEnd::reopen) replaces it while it is not in
    /// use.
    pub open: RwLock<Option<Open>>,
    pub limits: Limits,
    /// Only this process may use the device: a forked child has a copy of everything in here, but must not use the volume.
    pub process: Process,
    /// The configuration, if the volume was opened by it.
    pub config: Option<PathBuf>,
    /// The identity and path of its file when it was opened.
    pub origin: Option<Origin>,
    /// Every change is refused.
    pub read_only: AtomicBool,
    pub next_holder: AtomicU64,
    /// Counters of this process's requests, written to a file while this process has the volume open itself.
    pub counters: Arc<Counters>,
    /// The locks held in this process, if no other process uses the volume.
    pub locks: Mutex<Locks<u64>>,
    /// The latest change that this process has seen or made, if other processes also make changes.
    pub seen_change: Mutex<u64>,
    /// Locked exclusively during a partial write to a page, so that no other change of this process comes in between.
    pub parts: RwLock<()>,
}

// Fields drop in this order: the channel closes first, so that the thread that `keeper` waits for can end.
pub(crate) struct Open {
    pub link: Link,
    /// Counts of the store's operations, if this process opened the volume itself.
    pub store_counters: Option<StoreCounters>,
    _keeper: Box<dyn Any + Send + Sync>,
}

impl Open {
    /// A device reached over `link`; `keeper` is dropped after it.
    pub(crate) fn new(link: Link, keeper: impl Any + Send + Sync) -> Open {
        Open { link, store_counters: None, _keeper: Box::new(keeper) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // Only the parent may close the volume. The threads that closing would wait for do not exist in the child, and may
            // have held locks that are never released here.
            let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(open.take());
            return;
        }
        // The volume is still locked here, so no other process has a counters file.
        drop(self.counters.stop());
    }
}

impl Shared {
    /// The state of a device with these `limits`.
    pub(crate) fn new(open: Open, limits: Limits) -> Shared {
        Shared {
            open: RwLock::new(Some(open)),
            limits,
            process: Process::current(),
            config: None,
            origin: None,
            read_only: AtomicBool::new(false),
            next_holder: AtomicU64::new(1),
            counters: Arc::default(),
            locks: Mutex::default(),
            seen_change: Mutex::new(0),
            parts: RwLock::default(),
        }
    }

    /// The state of a volume that another process serves.
    pub(crate) fn served(connection: Connection) -> Shared {
        let limits = connection.welcome().limits.clone();
        let last_change = connection.welcome().last_change;
        let mut shared = Shared::new(Open::new(Link::Socket(connection), ()), limits);
        shared.seen_change = Mutex::new(last_change);
        shared
    }
}

impl Shared {
    /// Refuses to continue in a process forked from the one that opened the volume.
    pub(crate) fn check_process(&self) -> Result<()> {
        match self.process.is_current() {
            true => Ok(()),
            false => Err(closed("the volume was opened before this process was forked")),
        }
    }

    /// Calls `body` with the open device, which cannot be replaced during the call.
    pub(crate) fn with_open<T>(&self, body: impl FnOnce(&Open) -> Result<T>) -> Result<T> {
        // Checked first: in a forked child, a thread that does not exist there may hold the lock forever.
        self.check_process()?;
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        body(open.as_ref().ok_or_else(|| closed("the volume could not be opened again"))?)
    }

    /// Calls `body` with the link to the device, which cannot be replaced during the call.
    pub(crate) fn with_link<T>(&self, body: impl FnOnce(&Link) -> Result<T>) -> Result<T> {
        self.with_open(|open| body(&open.link))
    }

    /// Makes one request.
    pub(crate) fn call(&self, request: Request) -> Result<Answer> {
        let answer = self.with_link(|link| {
            let counted = self.counters.begin(&request);
            let changes = request.changes();
            let answer = link.ask(request, &self.counters);
            if let (Link::Socket(_), true, Ok(answer)) = (link, changes, &answer) {
                self.see_own(answer);
            }
            self.counters.end(counted, &answer);
            answer
        });
        self.tick();
        answer
    }

    /// Records that this process has seen its own change, which a server answered.
    fn see_own(&self, answer: &Answer) {
        let mut seen = lock(&self.seen_change);
        // If exactly one change was made since, it is this one. Otherwise the changes of others are reported with the next lock.
        if answer.last_change == *seen + 1 {
            *seen = answer.last_change;
        }
    }

    /// Makes a request that changes whole pages. It waits while another thread writes a part of a page.
    pub(crate) fn change(&self, request: Request) -> Result<()> {
        // Checked first, as in `with_open`.
        self.check_process()?;
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.call(request).map(drop)
    }

    /// Reads `pages` pages starting at `first`, as transaction `tx` sees them.
    pub(crate) fn read(
        &self,
        first: PageNo,
        pages: usize,
        tx: Option<TxId>,
    ) -> Result<Vec<PageBuf>> {
        // Checked before memory is allocated: `pages` may come from an untrusted caller.
        self.limits.check_range(PageRange::new(first, pages as u64))?;
        Ok(self.call(Request::Read { first, pages, tx })?.pages)
    }

    /// Reads `pages`, in ascending order, concurrently, as transaction `tx` sees them.
    pub(crate) fn read_each(&self, pages: Vec<PageNo>, tx: Option<TxId>) -> Result<Vec<PageBuf>> {
        for page in &pages {
            self.limits.check_range(PageRange::new(*page, 1))?;
        }
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let count = pages.len();
        let read = self.with_link(|link| link.read_each(pages, tx))?;
        self.counters.read(count);
        self.tick();
        Ok(read)
    }

    /// The volume's figures, from its server if another process has it open.
    pub(crate) fn stat(&self) -> Result<Stat> {
        if let Some(stat) = self.with_link(Link::stat)? {
            return Ok(stat);
        }
        let told = self.config.as_deref().map(asking::ask_stat).transpose()?;
        told.flatten().ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                "the server of the volume does not report its figures",
            )
        })
    }

    /// Writes the counters to their file if they are due. A forked child does not write them.
    pub(crate) fn tick(&self) {
        if !self.process.is_current() {
            return;
        }
        self.counters.tick(|out| {
            // If the device cannot report its counters, for example after a panic, they are left out.
            if let Ok(told) = self.with_link(Link::metrics) {
                out.extend(told);
            }
        });
    }
}

fn closed(context: &'static str) -> Error {
    Error::new(ErrorKind::Closed, context)
}

/// State behind a mutex is changed in one step, so it is consistent even after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
