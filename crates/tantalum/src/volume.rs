//! An open volume.
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tantalum_base::{ErrorKind, Limits, PAGE_BYTES, PageBuf, PageNo, PageRange, Result};
use tantalum_local::Request;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{CheckReport, Stat, check_volume};

use crate::bytes;
use crate::create::Create;
use crate::opening;
use crate::options::OpenOptions;
use crate::shared::Shared;
use crate::transaction::Transaction;

/// Maximum number of retries of a partial write to a page that another process is writing.
const TRIES: u32 = 1000;

/// An open volume. Clones are handles to the same volume, for any number of threads. It is closed when the last handle and
/// the last of its transactions are dropped.
///
/// A `path` names a VOLUME.toml, the folder that contains it, or the socket of a server. If another process serves the volume
/// for local clients (`tantalum serve --socket`), this process uses it through that server.
#[derive(Clone)]
pub struct Volume(pub(crate) Arc<Shared>);

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl From<Shared> for Volume {
    fn from(shared: Shared) -> Volume {
        Volume(Arc::new(shared))
    }
}

impl Volume {
    /// A builder of a new volume at `path`, which must not exist yet.
    pub fn create(path: impl AsRef<Path>) -> Create {
        Create::at(path.as_ref())
    }

    /// Opens the volume at `path` for reading and writing.
    ///
    /// # Errors
    /// `Locked` if another process has it open and does not serve it; `Format` if it is no volume; `Corrupt` if it is
    /// damaged; `Io`, also if it is served and this process may not connect.
    pub fn open(path: impl AsRef<Path>) -> Result<Volume> {
        Volume::open_with(path, OpenOptions::default())
    }

    /// Opens it read-only: nothing is written, and any number of processes may have it open like this at once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Volume> {
        Volume::open_with(path, OpenOptions::READ_ONLY)
    }

    /// Opens it with `options`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Volume> {
        opening::open(path.as_ref(), options).map(Volume::from)
    }

    /// Reads the whole volume at `path`, and reports all problems with their places. Nothing is written. No other process may
    /// have the volume open for writing.
    ///
    /// # Errors
    /// `Locked` if another process has it open for writing; `Format` if it is no volume; `Io`.
    pub fn check(path: impl AsRef<Path>) -> Result<CheckReport> {
        let config = opening::read_config(path.as_ref())?;
        let live = Live::new(LiveOptions::default())?;
        let handle = live.clone();
        live.run(async move { check_volume(&handle, &config, |_, _| ()).await })
    }

    /// The number of pages, and the limits of single operations.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Whether the volume was opened, or is served, read-only.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only.load(Ordering::Acquire)
    }

    /// Its figures, as `tantalum stat` shows them: its properties, its use of space, and its wear. If a server has the volume
    /// open, it reports them.
    ///
    /// # Errors
    /// `Unsupported` if its server does not report them: it serves read-only, it has gone, or the volume was opened by the
    /// socket.
    pub fn stat(&self) -> Result<Stat> {
        self.0.stat()
    }

    /// Its capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.limits().pages * PAGE_BYTES as u64
    }

    /// Reads `pages` pages starting at `first`. A page that was never written reads as zeros.
    ///
    /// # Errors
    /// `OutOfRange`; `Checksum` or `Uncorrectable` if a page cannot be read. Wrong bytes are never returned.
    pub fn read(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.0.read(first, pages, None)
    }

    /// Writes `pages` starting at `first`, all or nothing. They are durable when this returns, unless the volume is [durable
    /// on flush](Create::durable_on_flush).
    ///
    /// # Errors
    /// `TooLarge` for more than `limits().atomic_write_pages_max` pages; `Conflict` if an open transaction has written one
    /// of the pages; `OutOfRange`, `OutOfSpace`, `ReadOnly`, `Latched`.
    pub fn write(&self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        self.0.change(Request::Write { first, pages, tx: None })
    }

    /// Writes pages that need not be contiguous, each once, all or nothing. They are durable when this returns. An empty list
    /// causes no round trip.
    ///
    /// # Errors
    /// As [`write`](Self::write), with `limits().transaction_pages_max`.
    pub fn write_scattered(&self, mut pages: Vec<(PageNo, PageBuf)>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        // Sorted, adjacent pages are written together.
        pages.sort_unstable_by_key(|(page, _)| *page);
        self.0.change(Request::WriteScattered(pages))
    }

    /// Fills `out` with the bytes at `offset`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        bytes::read(offset, out, |first, pages| self.read(first, pages))
    }

    /// Writes `bytes` at `offset`, all or nothing. They are durable when this returns. Other bytes in the same pages do not
    /// change, even if other threads or processes write them at the same time.
    ///
    /// # Errors
    /// As [`write`](Self::write), with `limits().transaction_pages_max`.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        // Checked first: in a forked child, a thread that does not exist there may hold the lock forever.
        self.0.check_process()?;
        let _alone = self.0.parts.write().unwrap_or_else(PoisonError::into_inner);
        let mut tries = 0;
        loop {
            let mut transaction = self.begin()?;
            match transaction.write_at(offset, bytes).and_then(|()| transaction.commit()) {
                // Another process is writing the page too.
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => {
                    tries += 1;
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    /// Makes all completed changes durable.
    ///
    /// # Errors
    /// `Latched` if that failed: the volume must be closed and opened again.
    pub fn flush(&self) -> Result<()> {
        self.0.call(Request::Flush).map(drop)
    }

    /// Discards pages: they read as zeros afterwards. All or nothing; but a server discards more than 8192 pages in steps.
    ///
    /// # Errors
    /// As [`write`](Self::write), for any number of pages.
    pub fn trim(&self, range: PageRange) -> Result<()> {
        self.0.change(Request::Trim(range))
    }

    /// Gives each left page the content of the right one by a change of the mapping; all pairs or none.
    ///
    /// # Errors
    /// `Unsupported` on a tiered volume; `TooLarge` for more than `limits().share_pairs_max` pairs; as
    /// [`write`](Self::write).
    pub fn share(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        self.0.change(Request::Share(pairs))
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// `TooManyTransactions` beyond `limits().transactions_max`; `ReadOnly`.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(self.clone())
    }
}
