//! An open volume.
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tantalum_base::{ErrorKind, Limits, PAGE_BYTES, PageBuf, PageNo, PageRange, Result};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::client::Client;
use tantalum_volume::{CheckReport, VolumeConfig, check_volume, open_client, open_reader};

use crate::bytes;
use crate::create::Create;
use crate::transaction::Transaction;

/// Maximum number of retries of a partial write to a page that another process is writing.
const TRIES: u32 = 1000;

/// An open volume. Clones are handles to the same volume, for any number of threads. It is closed when the last handle and
/// the last of its transactions are dropped.
///
/// A `path` names a VOLUME.toml, or the folder that contains it. If another process serves the volume for local clients
/// (`tantalum serve --socket`), this process uses it through that server.
#[derive(Clone)]
pub struct Volume {
    client: Client,
    /// Locked exclusively during a partial write to a page, so that no other change of this process comes in between.
    parts: Arc<RwLock<()>>,
}

/// The path of the VOLUME.toml for `path`.
pub(crate) fn config_path(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|extension| extension == "toml") {
        true => path.to_owned(),
        false => path.join("VOLUME.toml"),
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
    /// damaged; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Volume> {
        open_client(&config_path(path.as_ref())).map(Volume::of)
    }

    /// Opens it read-only: nothing is written, and any number of processes may have it open like this at once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Volume> {
        open_reader(&config_path(path.as_ref())).map(Volume::of)
    }

    /// Reads the whole volume at `path`, which nobody may have open, and reports all problems with their places. Nothing is
    /// written.
    ///
    /// # Errors
    /// `Locked` if another process has it open; `Format` if it is no volume; `Io`.
    pub fn check(path: impl AsRef<Path>) -> Result<CheckReport> {
        let config = VolumeConfig::read(&config_path(path.as_ref()))?;
        let live = Live::new(LiveOptions::default())?;
        let handle = live.clone();
        live.run(async move { check_volume(&handle, &config, |_, _| ()).await })
    }

    fn of(client: Client) -> Volume {
        Volume { client, parts: Arc::default() }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The number of pages, and the limits of single operations.
    pub fn limits(&self) -> &Limits {
        self.client.limits()
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
        self.client.read(first, pages)
    }

    /// Writes `pages` starting at `first`, all or nothing. They are durable when this returns, unless the volume is [durable
    /// on flush](Create::durable_on_flush).
    ///
    /// # Errors
    /// `TooLarge` for more than `limits().atomic_write_pages_max` pages; `Conflict` if an open transaction has written one
    /// of the pages; `OutOfRange`, `OutOfSpace`, `ReadOnly`, `Latched`.
    pub fn write(&self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.write(first, pages)
    }

    /// Writes pages that need not be contiguous, each once, all or nothing. They are durable when this returns.
    ///
    /// # Errors
    /// As [`write`](Self::write), with `limits().transaction_pages_max`.
    pub fn write_scattered(&self, pages: Vec<(PageNo, PageBuf)>) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.write_transaction(pages)
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
        let _alone = self.parts.write().unwrap_or_else(PoisonError::into_inner);
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
        self.client.flush()
    }

    /// Discards pages: they read as zeros afterwards.
    ///
    /// # Errors
    /// As [`write`](Self::write), for any number of pages.
    pub fn trim(&self, range: PageRange) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.trim(range)
    }

    /// Gives each left page the content of the right one by a change of the mapping; all pairs or none.
    ///
    /// # Errors
    /// `Unsupported` on a tiered volume; `TooLarge` for more than `limits().share_pairs_max` pairs; as
    /// [`write`](Self::write).
    pub fn share(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.share(pairs)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// `TooManyTransactions` beyond `limits().transactions_max`; `ReadOnly`.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(self.clone())
    }
}
