//! One open volume with its database, shared by the connections of this process, and possibly by other processes.
mod lending;

use crate::codes::lock;
use crate::header;
use crate::memory::Memory;
use crate::opener::SharedTrace;
use crate::page_cache::PageCache;
use crate::staged::Staged;
use crate::write_set::WriteSet;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tantalum::front_end::{Changed, FrontEnd, Level};
use tantalum::{Transaction, Volume};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Result, ResultExt};

/// The volume's page 0 is the header; the database's bytes start here.
const FIRST_DATABASE_PAGE: u64 = 1;

/// The header and the database's first page, which together contain the database's size.
const FRONT: PageRange = PageRange::new(PageNo(0), 2);

/// When the database grows, the size in the header is rounded up to a multiple of this.
const GROWTH_BYTES: u64 = 256 << 10;

/// Minimum number of pages behind the database's end that are trimmed together.
const TRIM_PAGES_MIN: u64 = 64;

/// A scan of consecutive pages counts as established when it reads at least this many at once.
const SEQUENTIAL_MIN: usize = 4;

/// An open database.
pub(crate) struct Database {
    client: Volume,
    trace: Option<SharedTrace>,
    state: Mutex<Extent>,
    cache: Mutex<PageCache>,
    /// A panic may have left inconsistent state: every call is refused.
    latched: AtomicBool,
    access: Mutex<Access>,
    lending: lending::Lending,
}

/// The access for which the volume was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Write,
    /// Read-only, because no connection has requested more yet.
    Read,
    /// Read-only, because the volume must not be written.
    ReadAlone,
}

struct Extent {
    /// The committed size.
    size_bytes: u64,
    /// The size recorded in the header on the volume; never below `size_bytes`.
    recorded_bytes: u64,
    /// The pages between the database's end and this one may hold old content of a longer database.
    trim_end: PageNo,
}

/// The volume page that holds the database's byte `offset`.
pub(crate) fn page_of(offset: u64) -> PageNo {
    PageNo(FIRST_DATABASE_PAGE + offset / PAGE_BYTES as u64)
}

/// The first volume page past a database of `size_bytes`.
pub(crate) fn end_page(size_bytes: u64) -> PageNo {
    PageNo(FIRST_DATABASE_PAGE + size_bytes.div_ceil(PAGE_BYTES as u64))
}

impl Database {
    /// Opens the database on the volume `client`, which was opened for `access`.
    pub(crate) fn open(
        client: Volume,
        trace: Option<SharedTrace>,
        access: Access,
        memory: &Arc<Memory>,
    ) -> Result<Database> {
        let limits = client.limits();
        if limits.page_bytes as usize != PAGE_BYTES || limits.pages <= FIRST_DATABASE_PAGE {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the volume has {} pages of {} bytes, which is too small for a database",
                    limits.pages, limits.page_bytes
                ),
            ));
        }
        if limits.transactions_max == 0 || limits.transaction_pages_max < 2 {
            return Err(Error::new(ErrorKind::Unsupported, "the volume offers no transactions"));
        }
        let front = client.read(FRONT.first, FRONT.pages as usize);
        let front = front.context(|| "reading the database's header")?;
        let (size_bytes, recorded_bytes) = header::sizes_told_by(&front)?;
        let mut cache = PageCache::new(memory);
        cache.put(PageNo(FIRST_DATABASE_PAGE), front[1].clone());
        Ok(Database {
            client,
            trace,
            state: Mutex::new(Extent {
                size_bytes,
                recorded_bytes,
                trim_end: end_page(size_bytes),
            }),
            cache: Mutex::new(cache),
            latched: AtomicBool::new(false),
            access: Mutex::new(access),
            lending: Default::default(),
        })
    }

    /// Refuses to continue after a panic, and in a process forked from the one that opened the database: its locks may be
    /// held forever there, by threads that do not exist.
    pub(crate) fn check_usable(&self) -> Result<()> {
        if !self.is_of_this_process() {
            let context = "the database was opened before this process was forked; open it again";
            return Err(Error::new(ErrorKind::Closed, context));
        }
        if self.latched.load(Ordering::Acquire) {
            let context = "a bug made an earlier call panic, or another process changed the database while it was opened \
                           to write; close all connections to it";
            return Err(Error::new(ErrorKind::Latched, context));
        }
        Ok(())
    }

    /// Whether this process opened it.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.client.process().is_current()
    }

    /// Refuses every call from now on.
    pub(crate) fn latch(&self) {
        self.latched.store(true, Ordering::Release);
    }

    /// Whether the volume's path no longer names its file.
    pub(crate) fn has_moved(&self) -> bool {
        self.client.has_moved()
    }

    /// Whether the volume's file was deleted, so that new commits would be lost.
    pub(crate) fn is_deleted(&self) -> bool {
        self.client.is_deleted()
    }

    /// Whether it was opened read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access() != Access::Write
    }

    /// The access for which the volume is open.
    pub(crate) fn access(&self) -> Access {
        *lock(&self.access)
    }

    /// Reopens the volume with `to_write`, because a connection needs to write; if that fails, reopens it with `to_read`.
    pub(crate) fn open_to_write(
        &self,
        to_write: impl FnOnce() -> Result<Volume>,
        to_read: impl FnOnce() -> Result<Volume>,
    ) -> Result<()> {
        let front = || self.client.read(FRONT.first, FRONT.pages as usize);
        let before = front()?;
        let opened = self.client.reopen(to_write, to_read);
        if front()? != before {
            // For a moment the volume was not locked, and another process changed it. Connections that read here have stale
            // pages, and may be in a transaction.
            self.latch();
        }
        opened?;
        *lock(&self.access) = Access::Write;
        Ok(())
    }

    /// Records that the volume must not be written.
    pub(crate) fn set_read_alone(&self) {
        *lock(&self.access) = Access::ReadAlone;
    }

    /// Whether the process that serves the volume has gone.
    pub(crate) fn has_gone(&self) -> bool {
        self.client.has_gone()
    }

    /// Reports that a transaction of this process buffers this many pages, and makes progress.
    pub(crate) fn tell_progress(&self, pages: usize) {
        self.client.tell_progress(pages);
    }

    /// A number for a new connection.
    pub(crate) fn next_id(&self) -> u64 {
        self.client.next_holder()
    }

    /// Raises the lock of connection `id`, and returns the level reached. Before the connection may read, the state in this
    /// process is refreshed to the latest commit of any process.
    pub(crate) fn raise(&self, id: u64, wanted: Level) -> Result<Level> {
        self.client.raise(id, wanted, FRONT, |changed, front| self.refresh(changed, &front))
    }

    /// Lowers the lock of connection `id`.
    pub(crate) fn lower(&self, id: u64, wanted: Level) {
        self.client.lower(id, wanted);
    }

    /// Whether any connection intends to write.
    pub(crate) fn is_reserved(&self) -> Result<bool> {
        self.client.is_reserved()
    }

    /// Drops the cached pages in `changed`, which other processes changed. `front` has the content of the pages [`FRONT`]
    /// if they were among them.
    fn refresh(&self, changed: &Changed, front: &[PageBuf]) -> Result<()> {
        {
            let mut cache = lock(&self.cache);
            cache.change();
            match changed {
                Changed::Pages(ranges) => {
                    ranges.iter().for_each(|range| cache.forget_range(*range))
                }
                Changed::Everything => cache.forget_range(PageRange::new(PageNo(0), u64::MAX)),
            }
            if let Some(first) = front.get(FIRST_DATABASE_PAGE as usize) {
                cache.put(PageNo(FIRST_DATABASE_PAGE), first.clone());
            }
        }
        if !front.is_empty() {
            let (size_bytes, recorded_bytes) = header::sizes_told_by(front)?;
            let mut state = lock(&self.state);
            state.trim_end = state.trim_end.max(end_page(size_bytes));
            state.size_bytes = size_bytes;
            state.recorded_bytes = recorded_bytes;
        }
        Ok(())
    }

    /// The committed size in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        lock(&self.state).size_bytes
    }

    /// Capacity of the volume in bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        (self.client.limits().pages - FIRST_DATABASE_PAGE).saturating_mul(PAGE_BYTES as u64)
    }

    /// Database pages of 4 KiB that a transaction may change; one more is reserved for the header.
    pub(crate) fn transaction_pages_max(&self) -> usize {
        self.client.limits().transaction_pages_max as usize - 1
    }

    /// The content of `pages` volume pages from `first`: the committed content, replaced by `staged` content.
    pub(crate) fn read(
        &self,
        staged: Option<&Staged>,
        first: PageNo,
        pages: usize,
    ) -> Result<Vec<PageBuf>> {
        let tx = staged.map(|staged| &staged.transaction);
        let mut cache = lock(&self.cache);
        if !cache.is_of(tx.map(Transaction::number)) {
            drop(cache);
            return self.read_volume(tx, first, pages);
        }
        let numbers = (first.0..first.0 + pages as u64).map(PageNo);
        if let Some(content) = numbers.map(|page| cache.get(page)).collect() {
            return Ok(content);
        }
        let end = self.end().max(staged.map_or(PageNo(0), Staged::end));
        let at_once = match pages {
            1 => cache.read_at_once(first, end.0.saturating_sub(first.0)) as usize,
            _ => pages,
        };
        let moment = cache.moment();
        if pages == 1 && at_once < SEQUENTIAL_MIN {
            let beside = cache.read_beside(first, end);
            drop(cache);
            if beside.len() > at_once
                && let Some(content) = self.read_each(tx, moment, first, beside)
            {
                return Ok(vec![content]);
            }
        } else {
            drop(cache);
        }
        let mut content = self.read_volume(tx, first, at_once)?;
        let mut cache = lock(&self.cache);
        for (page, content) in (first.0..).map(PageNo).zip(&content) {
            cache.put_read(moment, page, content.clone());
        }
        content.truncate(pages);
        Ok(content)
    }

    /// Reads `pages`, which a scan will probably need, concurrently. Returns the content of `wanted`, which is one of them.
    /// `None` if one of them cannot be read: the caller may still be able to read the wanted page alone.
    fn read_each(
        &self,
        tx: Option<&Transaction>,
        moment: u64,
        wanted: PageNo,
        pages: Vec<PageNo>,
    ) -> Option<PageBuf> {
        let content = self.client.read_each(pages.clone(), tx).ok()?;
        if let Some(trace) = &self.trace {
            let mut trace = lock(trace);
            pages.iter().for_each(|page| trace.read(*page, 1));
        }
        let mut cache = lock(&self.cache);
        for (page, content) in pages.iter().zip(&content) {
            cache.put_read(moment, *page, content.clone());
        }
        let at = pages.binary_search(&wanted).ok()?;
        content.into_iter().nth(at)
    }

    fn read_volume(
        &self,
        tx: Option<&Transaction>,
        first: PageNo,
        pages: usize,
    ) -> Result<Vec<PageBuf>> {
        let content = match tx {
            Some(tx) => tx.read(first, pages)?,
            None => self.client.read(first, pages)?,
        };
        if let Some(trace) = &self.trace {
            lock(trace).read(first, pages as u64);
        }
        Ok(content)
    }

    /// The first page behind the committed database.
    fn end(&self) -> PageNo {
        end_page(self.size_bytes())
    }

    /// Moves half of the pages of `set` to `staged`, which is begun if necessary. Their content goes to the cache, like that
    /// of other pages.
    pub(crate) fn stage(&self, set: &mut WriteSet, staged: &mut Option<Staged>) -> Result<()> {
        let staged = match staged {
            Some(staged) => staged,
            None => staged.insert(Staged::new(self.client.begin()?)),
        };
        let pages = set.take_cold(PageNo(FIRST_DATABASE_PAGE + 1));
        staged.pages.extend(pages.iter().map(|(page, _)| *page));
        write_runs(&mut staged.transaction, &pages)?;
        let mut cache = lock(&self.cache);
        cache.hold(staged.transaction.number(), pages.iter().map(|(page, _)| *page));
        pages.into_iter().for_each(|(page, content)| cache.put(page, content));
        Ok(())
    }

    /// Aborts the transaction of `staged`. If that fails, the volume drops it when it is closed.
    pub(crate) fn abort(&self, staged: Staged) {
        drop(staged.transaction);
        lock(&self.cache).release(staged.pages);
    }

    /// Commits `set` and `staged` as one device transaction, and empties `set`. After an error the transaction has had no
    /// effect, unless the volume went away during the commit: then it may have taken effect completely. The caller must
    /// hold the database exclusively.
    pub(crate) fn commit(&self, set: &mut WriteSet, staged: Option<Staged>) -> Result<()> {
        if let Err(error) = self.end_loans() {
            set.clear();
            staged.into_iter().for_each(|staged| self.abort(staged));
            return Err(error);
        }
        let mut state = lock(&self.state);
        let size_bytes = set.size_bytes.unwrap_or(state.size_bytes);
        let mut pages: Vec<(PageNo, PageBuf)> = Vec::with_capacity(set.pages.len() + 1);
        let mut recorded_bytes = state.recorded_bytes;
        if size_bytes > recorded_bytes {
            recorded_bytes = size_bytes.next_multiple_of(GROWTH_BYTES).min(self.capacity_bytes());
            pages.push((PageNo(0), header::encode(recorded_bytes)));
        }
        pages.extend(std::mem::take(&mut set.pages));
        set.clear();
        let staged_end = staged.as_ref().map_or(PageNo(0), Staged::end);
        let (transaction, staged) = staged.map(|it| (it.transaction, it.pages)).unzip();
        let staged = staged.unwrap_or_default();
        let written = self.trace.as_ref().map(|_| written(&pages, &staged));
        let committed = match transaction {
            Some(transaction) => commit_staged(transaction, &pages),
            None => self.client.write_scattered(pages.clone()),
        };
        self.keep(&committed, pages, &staged);
        committed?;
        // The commit included pages that were staged and then truncated away.
        let ends = [end_page(state.size_bytes), end_page(size_bytes), staged_end];
        state.trim_end = ends.into_iter().fold(state.trim_end, PageNo::max);
        state.size_bytes = size_bytes;
        state.recorded_bytes = recorded_bytes;
        if let (Some(trace), Some(written)) = (&self.trace, written)
            && !written.is_empty()
        {
            trace_commit(trace, &written);
        }
        if state.trim_end.0 - end_page(size_bytes).0 >= TRIM_PAGES_MIN {
            self.trim(&mut state);
        }
        Ok(())
    }

    /// Keeps the committed pages in the cache, or drops them after a failed commit. The volume may have gone away during
    /// the commit, so that it may hold either state.
    fn keep(
        &self,
        committed: &Result<()>,
        pages: Vec<(PageNo, PageBuf)>,
        staged: &BTreeSet<PageNo>,
    ) {
        let mut cache = lock(&self.cache);
        match committed {
            Ok(()) => {
                cache.release([]);
                pages.into_iter().for_each(|(page, content)| cache.put(page, content));
            }
            Err(_) => {
                let own = pages.iter().map(|(page, _)| *page);
                cache.release(staged.iter().copied().chain(own));
            }
        }
    }

    /// Trims the pages behind the database's end that a longer database left. The commit that shortened it is durable, so a
    /// failure only costs space.
    fn trim(&self, state: &mut Extent) {
        let end = end_page(state.size_bytes);
        if state.trim_end > end {
            let range = PageRange::new(end, state.trim_end.0 - end.0);
            let trimmed = self.client.trim(range).is_ok();
            let mut cache = lock(&self.cache);
            cache.change();
            cache.forget_range(range);
            if trimmed {
                state.trim_end = end;
            }
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.check_usable().is_err() || self.is_read_only() {
            return;
        }
        {
            let state = lock(&self.state);
            if state.trim_end <= end_page(state.size_bytes) {
                return;
            }
        }
        // Other processes may use the volume. A lock provides the current end of the database, and prevents changes of it.
        let id = self.next_id();
        let alone = |level| self.raise(id, level).is_ok_and(|reached| reached == level);
        if alone(Level::Shared) && alone(Level::Exclusive) {
            self.trim(&mut lock(&self.state));
        }
        self.lower(id, Level::None);
    }
}

/// Writes `pages`, which are in ascending order, in `transaction`.
fn write_runs(transaction: &mut Transaction, pages: &[(PageNo, PageBuf)]) -> Result<()> {
    let mut runs = pages.chunk_by(|(page, _), (next, _)| page.0 + 1 == next.0);
    runs.try_for_each(|run| {
        let content = run.iter().map(|(_, content)| content.clone()).collect();
        transaction.write(run[0].0, content)
    })
}

/// Commits the staged pages, together with `pages`.
fn commit_staged(mut transaction: Transaction, pages: &[(PageNo, PageBuf)]) -> Result<()> {
    write_runs(&mut transaction, pages)?;
    transaction.commit()
}

/// All pages written by a transaction, in ascending order.
fn written(pages: &[(PageNo, PageBuf)], staged: &BTreeSet<PageNo>) -> Vec<PageNo> {
    let own = pages.iter().map(|(page, _)| *page);
    let all: BTreeSet<PageNo> = own.chain(staged.iter().copied()).collect();
    all.into_iter().collect()
}

fn trace_commit(trace: &SharedTrace, written: &[PageNo]) {
    let mut trace = lock(trace);
    for run in written.chunk_by(|page, next| page.0 + 1 == next.0) {
        trace.write(run[0], run.len() as u64);
    }
    trace.commit();
}
