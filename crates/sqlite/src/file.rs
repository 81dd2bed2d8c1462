//! One connection's open database file, as SQLite reads, writes and locks it.
//!
//! # Where the commit point is
//! Everything that SQLite writes stays in a [`WriteSet`]; the volume always holds the last
//! committed state. SQLite's pager ends a transaction in one of these ways:
//!
//! - *Batch-atomic commit*: `BEGIN_ATOMIC_WRITE`, writes, `COMMIT_ATOMIC_WRITE`. The last is the
//!   commit point. A truncation that follows is kept in memory until a later commit: SQLite
//!   copes with a file that is longer than its header says.
//! - *Commit with a journal* (a library without batches, `synchronous=OFF`, or a transaction
//!   that spilled the page cache): journal written, pages written, `FCNTL_SYNC`, perhaps xSync,
//!   journal deleted, cut or zeroed, file truncated, `FCNTL_COMMIT_PHASETWO`, lock lowered.
//!   `COMMIT_PHASETWO` is the commit point: it comes in each journal mode and synchronous
//!   setting, exactly once a commit, never in a rollback, after the last write, before anybody
//!   else can read, and SQLite honours its error. xSync is none of that: a rollback syncs too.
//! - *Rollback with a journal*: old pages written back, file cut, `FCNTL_SYNC`, xSync, lock
//!   lowered. Whatever is still buffered when the lock falls to SHARED is dropped, which is the
//!   rollback; nothing reaches the volume.
//! - *Multi-file commit*: `FCNTL_SYNC` names a super-journal. SQLite ignores errors of
//!   `COMMIT_PHASETWO` here, so this sync is the commit point. Should another file fail after
//!   it, the rollback's sync commits the old pages again.
//!
//! A write or commit that fails drops the whole set: SQLite never goes on with a transaction
//! after that, and rolls back onto the committed state.
use crate::codes::{Code, code_of, lock};
use crate::database::{Database, end_page, page_of};
use crate::locks::Level;
use crate::write_set::WriteSet;
use libsqlite3_sys as sqlite;
use std::ffi::c_int;
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Payload, Result, ResultExt};

/// What goes wrong, told to SQLite as a code and to people as text.
#[derive(Debug)]
pub(crate) struct Failure {
    /// For SQLite.
    pub(crate) code: Code,
    /// For people.
    pub(crate) error: Error,
}

type Done<T = ()> = std::result::Result<T, Failure>;

/// An open database file.
pub(crate) struct DatabaseFile {
    database: Arc<Database>,
    id: u64,
    level: Level,
    set: WriteSet,
    read_only: bool,
    /// The running multi-file transaction is on the volume already.
    committed_early: bool,
    /// What `PRAGMA journal_mode` last asked for, to answer who asks for WAL.
    pub(crate) journal_mode: &'static str,
}

impl DatabaseFile {
    /// One more connection to `database`.
    pub(crate) fn new(database: Arc<Database>, read_only: bool) -> Self {
        let id = database.next_id();
        DatabaseFile {
            database,
            id,
            level: Level::None,
            set: WriteSet::default(),
            read_only,
            committed_early: false,
            journal_mode: "delete",
        }
    }

    /// Size in bytes, as this connection's transaction sees it.
    pub(crate) fn size(&self) -> u64 {
        self.set.size_bytes.unwrap_or_else(|| self.database.size_bytes())
    }

    /// Fills `out` from `offset`, with zeros past the end; whether all of it was there.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Done<bool> {
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

    // One device read for all that the running transaction did not write.
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
            read = self.database.read(from, (to.0 - from.0 + 1) as usize)?;
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

    /// Writes `data` at `offset` into the running transaction.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Done {
        if self.read_only {
            let error = Error::new(ErrorKind::Unsupported, "the database was opened to read only");
            return Err(Failure { code: Code(sqlite::SQLITE_READONLY), error });
        }
        let written = match without_wal(offset, data) {
            Some(data) => self.put(offset, &data),
            None => self.put(offset, data),
        };
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
        let pages_max = self.database.transaction_pages_max();
        if self.set.pages.len() > pages_max {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the transaction changes more than {pages_max} pages of {PAGE_BYTES} bytes, \
                     the most that the volume commits at once; commit in smaller parts"
                ),
            ));
        }
        if end > self.size() {
            self.set.size_bytes = Some(end);
        }
        Ok(())
    }

    fn put_part(&mut self, page: PageNo, skip: usize, part: &[u8]) -> Result<()> {
        if !self.set.pages.contains_key(&page) {
            let base = if page < end_page(self.database.size_bytes()) {
                self.database.read(page, 1)?.pop()
            } else {
                None
            };
            self.set.pages.insert(page, base.unwrap_or_else(PageBuf::zero));
        }
        if let Some(content) = self.set.pages.get_mut(&page) {
            content.make_mut()[skip..skip + part.len()].copy_from_slice(part);
        }
        Ok(())
    }

    /// Sets the size; what lies past it is gone.
    pub(crate) fn truncate(&mut self, size_bytes: u64) -> Done {
        self.set.truncate(end_page(size_bytes));
        self.set.size_bytes = Some(size_bytes);
        Ok(())
    }

    /// The pager reached the point where the file must be on disk, in a commit or a rollback;
    /// `multi_file` where it commits several databases.
    pub(crate) fn sync(&mut self, multi_file: bool) -> Done {
        if multi_file || self.committed_early {
            self.commit(sqlite::SQLITE_IOERR_FSYNC)?;
            self.committed_early = multi_file;
        }
        Ok(())
    }

    /// The commit point where a journal was used.
    pub(crate) fn commit_phase_two(&mut self) -> Done {
        self.committed_early = false;
        self.commit(sqlite::SQLITE_IOERR_FSYNC)
    }

    /// The commit point of a batch.
    pub(crate) fn commit_batch(&mut self) -> Done {
        self.commit(sqlite::SQLITE_IOERR_COMMIT_ATOMIC)
    }

    /// Drops a batch.
    pub(crate) fn rollback_batch(&mut self) {
        self.set.clear();
    }

    fn commit(&mut self, otherwise: c_int) -> Done {
        if self.set.is_empty() {
            return Ok(());
        }
        let committed = self.database.commit(&mut self.set).context(|| "committing");
        self.or_drop(committed, otherwise)
    }

    fn or_drop(&mut self, result: Result<()>, otherwise: c_int) -> Done {
        result.map_err(|error| {
            self.set.clear();
            Failure { code: code_of(&error, otherwise), error }
        })
    }

    /// Takes a lock; false where another connection is in the way.
    pub(crate) fn lock(&mut self, wanted: Level) -> bool {
        self.level = lock(&self.database.locks).raise(self.id, self.level, wanted);
        self.level >= wanted
    }

    /// Gives a lock back, and drops what was written and not committed.
    pub(crate) fn unlock(&mut self, wanted: Level) {
        if self.level > wanted {
            self.set.clear();
            self.committed_early = false;
            lock(&self.database.locks).lower(self.id, self.level, wanted);
            self.level = wanted;
        }
    }

    /// Whether any connection means to write.
    pub(crate) fn reserved(&self) -> bool {
        lock(&self.database.locks).reserved()
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

/// Where `data` is a first page that asks for WAL (bytes 18 and 19 are 2, as in a copy of a WAL
/// database): the same without it. The change counters at 24 and 92 move on, so that the writing
/// connection does not trust its cached page.
fn without_wal(offset: u64, data: &[u8]) -> Option<Vec<u8>> {
    if offset != 0 || data.len() < 100 || !data[18..20].contains(&2) {
        return None;
    }
    let mut data = data.to_vec();
    data[18..20].fill(1);
    for at in [24, 92] {
        let mut counter = [0; 4];
        counter.copy_from_slice(&data[at..at + 4]);
        let next = u32::from_be_bytes(counter).wrapping_add(1);
        data[at..at + 4].copy_from_slice(&next.to_be_bytes());
    }
    Some(data)
}
