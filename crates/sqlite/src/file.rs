//! One connection's open database file, as SQLite reads, writes and locks it.
//!
//! # The commit point
//! All of SQLite's writes stay in a [`WriteSet`], and writes that outgrow it go to a transaction of the device ([`Staged`]).
//! Other connections see the last committed state of the volume. SQLite's pager ends a transaction in one of these ways:
//!
//! - *Commit*: pages written (by a library with batches between `BEGIN_ATOMIC_WRITE` and `COMMIT_ATOMIC_WRITE`, otherwise after a
//!   journal), `FCNTL_SYNC`, possibly xSync; journal deleted, truncated or zeroed, file truncated, `FCNTL_COMMIT_PHASETWO`, lock
//!   lowered. `COMMIT_PHASETWO` is the commit point: it comes in each journal mode and synchronous setting, exactly once per
//!   commit, never in a rollback, after the last write, before other connections can read, and SQLite honours its error. xSync
//!   does not qualify, because a rollback syncs too. Nor does `COMMIT_ATOMIC_WRITE`: if another database of the same COMMIT
//!   fails after it, SQLite rolls back, and has no journal left to do so.
//! - *Rollback with a journal*: old pages written back, file truncated, `FCNTL_SYNC`, xSync, lock lowered. All pages that are
//!   still buffered when the lock falls to SHARED are dropped, which is the rollback; nothing reaches the volume.
//! - *Rollback without one* (after a batch, or with `journal_mode=OFF`): the lock lowered.
//! - *Multi-file commit*: `FCNTL_SYNC` names a super-journal. SQLite ignores errors of `COMMIT_PHASETWO` here, so this sync is
//!   the commit point. If another file fails after it, the rollback's sync commits the old pages again.
//!
//! With `locking_mode=EXCLUSIVE` no lock is lowered. Then a write that follows a sync shows that a rollback with a journal is over,
//! because in a commit no write follows. After a rollback without a journal SQLite does not trust its cache: before anything else
//! it reads the 16 bytes at [`FILE_VERSION_AT`], which it never does while it writes. In both cases the buffered pages are dropped.
//!
//! A failed batch may be retried with a journal, so it leaves everything that was written before it. Any other failed write or
//! commit drops all writes of the transaction: SQLite never continues a transaction after that, and rolls back to the committed
//! state. The content that it writes to do so is on the volume already, and is dropped too: on a full volume there may be no room
//! for it.
use crate::codes::{Code, code_of};
use crate::database::{Database, end_page, page_of};
use crate::memory::Share;
use crate::staged::Staged;
use crate::write_set::WriteSet;
use libsqlite3_sys as sqlite;
use std::ffi::c_int;
use std::sync::Arc;
use tantalum::front_end::Level;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, ResultExt};

/// A failure, with a code for SQLite and an error as text.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code for SQLite.
    pub(crate) code: Code,
    /// The error, with its text.
    pub(crate) error: Error,
}

type Done<T = ()> = std::result::Result<T, Failure>;

/// An open database file.
pub(crate) struct DatabaseFile {
    database: Arc<Database>,
    id: u64,
    level: Level,
    set: WriteSet,
    /// Pages for which the set had no room.
    staged: Option<Staged>,
    read_only: bool,
    /// The memory of the set.
    share: Share,
    /// The set when the running batch began: pages that spilled from SQLite's cache.
    before_batch: Option<WriteSet>,
    /// A write or commit failed, and the transaction was dropped; SQLite has yet to roll it back.
    failed: bool,
    /// The last operation was a sync: either a commit is about to be concluded, or a rollback is over.
    synced: bool,
    /// The running multi-file transaction is on the volume already.
    committed_early: bool,
}

/// The offset from which SQLite reads to check whether its cache is still valid, and the number of bytes.
const FILE_VERSION_AT: u64 = 24;
const FILE_VERSION_BYTES: usize = 16;

impl DatabaseFile {
    /// One more connection to `database`.
    pub(crate) fn new(database: Arc<Database>, read_only: bool, share: Share) -> Self {
        let id = database.next_id();
        let read_only = read_only || database.is_read_only();
        DatabaseFile {
            database,
            id,
            level: Level::None,
            set: WriteSet::default(),
            staged: None,
            read_only,
            share,
            before_batch: None,
            failed: false,
            synced: false,
            committed_early: false,
        }
    }

    /// The database it is a connection to.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Whether it refuses writes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Size in bytes, as this connection's transaction sees it.
    pub(crate) fn size(&self) -> u64 {
        self.set.size_bytes.unwrap_or_else(|| self.database.size_bytes())
    }

    /// Fills `out` from `offset`, with zeros behind the end; returns whether all of it was there.
    pub(crate) fn read(&mut self, offset: u64, out: &mut [u8]) -> Done<bool> {
        if offset == FILE_VERSION_AT && out.len() == FILE_VERSION_BYTES {
            self.forget();
        }
        let there = self.size().saturating_sub(offset).min(out.len() as u64) as usize;
        let (out, past_end) = out.split_at_mut(there);
        past_end.fill(0);
        if !out.is_empty() {
            self.fill(offset, out)
                .context(|| format!("reading {there} bytes at {offset}"))
                .map_err(|error| Failure {
                    code: code_of(&error, sqlite::SQLITE_IOERR_READ),
                    error,
                })?;
        }
        Ok(past_end.is_empty())
    }

    // Reads all pages that the running transaction did not write in one device read.
    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let first = page_of(offset);
        let last = page_of(offset + out.len() as u64 - 1);
        let missing = |page: &PageNo| !self.set.pages.contains_key(page);
        let mut numbers = (first.0..=last.0).map(PageNo);
        let mut content: &[PageBuf] = &[];
        let read;
        let mut read_first = first;
        if let Some(from) = numbers.clone().find(missing)
            && let Some(to) = numbers.rfind(missing)
        {
            read = self.read_under(from, (to.0 - from.0 + 1) as usize)?;
            content = &read;
            read_first = from;
        }
        let mut rest = out;
        let mut skip = (offset % PAGE_BYTES as u64) as usize;
        for number in first.0..=last.0 {
            let page = match self.set.pages.get(&PageNo(number)) {
                Some(page) => page,
                None => &content[(number - read_first.0) as usize],
            };
            let length = rest.len().min(PAGE_BYTES - skip);
            let (part, after) = rest.split_at_mut(length);
            part.copy_from_slice(&page[skip..skip + length]);
            rest = after;
            skip = 0;
        }
        Ok(())
    }

    /// The content below the set: staged or committed.
    fn read_under(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.database.read(self.staged.as_ref(), first, pages)
    }

    /// Writes `data` at `offset` into the running transaction.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Done {
        if self.read_only {
            let error = Error::new(ErrorKind::Unsupported, "the database was opened to read only");
            return Err(Failure { code: Code(sqlite::SQLITE_READONLY), error });
        }
        if self.synced && !self.committed_early {
            // The last sync belonged to a rollback.
            self.drop_written();
        }
        self.synced = false;
        if self.failed {
            // The rollback writes content that the volume has already.
            return Ok(());
        }
        let written = self.put(offset, data);
        let written = written.context(|| format!("writing {} bytes at {offset}", data.len()));
        self.or_drop(written, sqlite::SQLITE_IOERR_WRITE)
    }

    fn put(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset + data.len() as u64;
        if end > self.database.capacity_bytes() {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                format!("the volume is full: it has {} bytes", self.database.capacity_bytes()),
            ));
        }
        let mut rest = data;
        let mut at = offset;
        while !rest.is_empty() {
            let skip = (at % PAGE_BYTES as u64) as usize;
            let (part, after) = rest.split_at(rest.len().min(PAGE_BYTES - skip));
            match <&[u8; PAGE_BYTES]>::try_from(part) {
                Ok(whole) => self.set.put(page_of(at), whole),
                Err(_) => self.put_part(page_of(at), skip, part)?,
            }
            at += part.len() as u64;
            rest = after;
        }
        self.check_count()?;
        if end > self.size() {
            self.set.size_bytes = Some(end);
        }
        // A batch may be dropped separately, so its pages stay in the set: SQLite has all of them in memory as well.
        self.share.set(self.set.pages.len());
        if self.before_batch.is_none() && self.share.must_shrink() {
            self.database.stage(&mut self.set, &mut self.staged)?;
            self.share.set(self.set.pages.len());
        }
        self.database.tell_progress(self.set.pages.len());
        Ok(())
    }

    /// Refuses more pages than the volume commits at once. Pages whose old content was written back, for example by a rollback to
    /// a savepoint, do not count.
    fn check_count(&mut self) -> Result<()> {
        let pages_max = self.database.transaction_pages_max();
        if self.changed_pages(pages_max) > pages_max {
            self.forget_unchanged()?;
        }
        if self.changed_pages(pages_max) > pages_max {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the transaction changes more than {pages_max} pages of {PAGE_BYTES} bytes, \
                     the limit of the volume; commit in smaller parts"
                ),
            ));
        }
        Ok(())
    }

    /// The number of pages that the transaction changes. Pages that are both staged and in the set are counted twice, except if
    /// that would exceed `pages_max`.
    fn changed_pages(&self, pages_max: usize) -> usize {
        let in_memory = self.set.pages.len();
        let Some(staged) = &self.staged else { return in_memory };
        let all = staged.pages.len() + in_memory;
        if all <= pages_max {
            return all;
        }
        all - self.set.pages.keys().filter(|page| staged.pages.contains(page)).count()
    }

    fn forget_unchanged(&mut self) -> Result<()> {
        if self.before_batch.is_none() {
            self.take_staged_back()?;
        }
        let end = end_page(self.database.size_bytes());
        for (first, pages) in self.set.runs(end) {
            for (page, under) in (first.0..).zip(self.read_under(first, pages)?) {
                self.set.forget_equal(PageNo(page), &under);
            }
        }
        Ok(())
    }

    /// Moves the staged pages back to memory, at most as many as the volume commits at once, so that unchanged pages can be
    /// dropped.
    fn take_staged_back(&mut self) -> Result<()> {
        let Some(staged) = self.staged.take() else { return Ok(()) };
        let result = staged.pages.iter().try_for_each(|page| {
            if !self.set.pages.contains_key(page) {
                let content = self.database.read(Some(&staged), *page, 1)?;
                self.set.pages.extend(content.into_iter().map(|content| (*page, content)));
            }
            Ok(())
        });
        self.database.abort(staged);
        result
    }

    fn put_part(&mut self, page: PageNo, skip: usize, part: &[u8]) -> Result<()> {
        if !self.set.pages.contains_key(&page) {
            let is_staged = self.staged.as_ref().is_some_and(|staged| staged.pages.contains(&page));
            let base = if is_staged || page < end_page(self.database.size_bytes()) {
                self.read_under(page, 1)?.pop()
            } else {
                None
            };
            self.set.pages.insert(page, base.unwrap_or_else(PageBuf::zero));
        }
        self.set.touch(page);
        if let Some(content) = self.set.pages.get_mut(&page) {
            content.make_mut()[skip..skip + part.len()].copy_from_slice(part);
        }
        Ok(())
    }

    /// Sets the size; content behind it is dropped.
    pub(crate) fn truncate(&mut self, size_bytes: u64) -> Done {
        self.set.truncate(end_page(size_bytes));
        self.set.size_bytes = Some(size_bytes);
        Ok(())
    }

    /// Handles the pager's sync of the file, in a commit or a rollback. `multi_file`: the commit includes several databases.
    pub(crate) fn sync(&mut self, multi_file: bool) -> Done {
        if multi_file || self.committed_early {
            self.commit()?;
            self.committed_early = multi_file;
        }
        self.synced = true;
        Ok(())
    }

    /// Handles the commit point: commits the transaction.
    pub(crate) fn commit_phase_two(&mut self) -> Done {
        self.committed_early = false;
        self.synced = false;
        self.commit()
    }

    /// Begins a batch, which may be dropped separately.
    pub(crate) fn begin_batch(&mut self) {
        self.before_batch = Some(self.set.clone());
    }

    /// Ends a batch, which is complete. It becomes durable later, with the commit.
    pub(crate) fn end_batch(&mut self) {
        self.before_batch = None;
    }

    /// Drops a batch.
    pub(crate) fn rollback_batch(&mut self) {
        if let Some(before) = self.before_batch.take() {
            self.set = before;
            self.failed = false;
        }
    }

    fn forget(&mut self) {
        self.drop_written();
        self.before_batch = None;
        self.synced = false;
        self.committed_early = false;
    }

    fn drop_written(&mut self) {
        if !self.set.is_empty() {
            self.database.tell_progress(0);
        }
        self.set.clear();
        self.share.set(0);
        self.failed = false;
        if let Some(staged) = self.staged.take() {
            self.database.abort(staged);
        }
    }

    fn commit(&mut self) -> Done {
        if self.failed {
            let error = Error::new(ErrorKind::Closed, "an earlier write of the transaction failed");
            return Err(Failure { code: Code(sqlite::SQLITE_IOERR_FSYNC), error });
        }
        if self.set.is_empty() && self.staged.is_none() {
            return Ok(());
        }
        // The pages now belong to the database, which caches them as committed pages.
        self.share.set(0);
        let committed = self.database.commit(&mut self.set, self.staged.take());
        self.database.tell_progress(0);
        self.or_drop(committed.context(|| "committing"), sqlite::SQLITE_IOERR_FSYNC)
    }

    fn or_drop(&mut self, result: Result<()>, otherwise: c_int) -> Done {
        result.map_err(|error| {
            if self.before_batch.is_some() {
                // Writes from before the batch are still needed.
                self.set.clear();
            } else {
                self.drop_written();
            }
            self.failed = true;
            Failure { code: code_of(&error, otherwise), error }
        })
    }

    /// Raises the lock; false if another connection holds a conflicting one.
    pub(crate) fn lock(&mut self, wanted: Level) -> Done<bool> {
        if self.level < wanted {
            let raised = self.database.raise(self.id, wanted).context(|| "locking");
            self.level = raised.map_err(|error| Failure {
                code: code_of(&error, sqlite::SQLITE_IOERR_LOCK),
                error,
            })?;
            if self.level >= Level::Reserved {
                self.database.begin_lending();
            }
        }
        Ok(self.level >= wanted)
    }

    /// Lowers the lock, and drops uncommitted writes.
    pub(crate) fn unlock(&mut self, wanted: Level) {
        if self.level > wanted {
            if self.level >= Level::Reserved && wanted < Level::Reserved {
                self.database.end_lending();
            }
            self.forget();
            self.database.lower(self.id, wanted);
            self.level = wanted;
        }
    }

    /// Whether any connection intends to write.
    pub(crate) fn reserved(&self) -> Done<bool> {
        self.database
            .is_reserved()
            .map_err(|error| Failure { code: Code(sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK), error })
    }

    /// The lock held.
    pub(crate) fn level(&self) -> Level {
        self.level
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        self.unlock(Level::None);
    }
}
