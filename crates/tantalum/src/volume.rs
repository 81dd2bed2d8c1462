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

/// Times that a write of a part of a page begins anew where another process is about to write that page.
const TRIES: u32 = 1000;

/// An open volume. Clones are the same one, for as many threads as one likes; it is closed when the last of them and of its
/// transactions is dropped.
///
/// A `path` is that of a VOLUME.toml, or of the folder in which it stands. Where another process serves the volume for local
/// clients (`tantalum serve --socket`), this one uses it through that server.
#[derive(Clone)]
pub struct Volume {
    client: Client,
    /// Held alone while a part of a page is changed, so that no other change of this process comes in between.
    parts: Arc<RwLock<()>>,
}

/// The VOLUME.toml that `path` stands for.
pub(crate) fn config_path(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|extension| extension == "toml") {
        true => path.to_owned(),
        false => path.join("VOLUME.toml"),
    }
}

impl Volume {
    /// A volume to be made at `path`, which does not exist yet.
    pub fn create(path: impl AsRef<Path>) -> Create {
        Create::at(path.as_ref())
    }

    /// Opens the volume at `path` to read and write.
    ///
    /// # Errors
    /// `Locked` where another process has it open and does not serve it; `Format` where it is none; `Corrupt` where it is
    /// damaged; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Volume> {
        open_client(&config_path(path.as_ref())).map(Volume::of)
    }

    /// Opens it to read only: nothing is written, and any number of processes may do so at once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Volume> {
        open_reader(&config_path(path.as_ref())).map(Volume::of)
    }

    /// Reads all of the volume at `path`, which nobody has open, and says what is wrong, where. Nothing is written.
    ///
    /// # Errors
    /// `Locked` where somebody has it open; `Format` where it is no volume; `Io`.
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

    /// Its size, and what it takes at once.
    pub fn limits(&self) -> &Limits {
        self.client.limits()
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.limits().pages * PAGE_BYTES as u64
    }

    /// Reads `pages` pages from `first` on. One that was never written is zeros.
    ///
    /// # Errors
    /// `OutOfRange`; `Checksum` or `Uncorrectable` where a page cannot be read: never a wrong byte.
    pub fn read(&self, first: PageNo, pages: usize) -> Result<Vec<PageBuf>> {
        self.client.read(first, pages)
    }

    /// Writes `pages` from `first` on, all or nothing; durable when it returns, unless the volume is
    /// [durable on flush](Create::durable_on_flush).
    ///
    /// # Errors
    /// `TooLarge` for more than `limits().atomic_write_pages_max`; `Conflict` where an open transaction has written one of
    /// the pages; `OutOfRange`, `OutOfSpace`, `ReadOnly`, `Latched`.
    pub fn write(&self, first: PageNo, pages: Vec<PageBuf>) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.write(first, pages)
    }

    /// Writes pages that lie anywhere, each once, all or nothing; durable when it returns.
    ///
    /// # Errors
    /// As [`write`](Self::write), with `limits().transaction_pages_max`.
    pub fn write_scattered(&self, pages: Vec<(PageNo, PageBuf)>) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.write_transaction(pages)
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        bytes::read(offset, out, |first, pages| self.read(first, pages))
    }

    /// Writes `bytes` from `offset` on, all or nothing; durable when it returns. Bytes beside them in the same pages stay
    /// as they are, whoever writes there at the same time.
    ///
    /// # Errors
    /// As [`write`](Self::write), with `limits().transaction_pages_max`.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _alone = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        let mut tries = 0;
        loop {
            let mut transaction = self.begin()?;
            match transaction.write_at(offset, bytes).and_then(|()| transaction.commit()) {
                // Of another process, which is at it as well.
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => {
                    tries += 1;
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    /// Makes durable all that completed before.
    ///
    /// # Errors
    /// `Latched` where that failed: the volume has to be opened again.
    pub fn flush(&self) -> Result<()> {
        self.client.flush()
    }

    /// Gives pages up: they read as zeros.
    ///
    /// # Errors
    /// As [`write`](Self::write), for any number of pages.
    pub fn trim(&self, range: PageRange) -> Result<()> {
        let _shared = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        self.client.trim(range)
    }

    /// Gives each left page the content of the right one by a change of the mapping, all or none.
    ///
    /// # Errors
    /// `Unsupported` on a tiered volume; `TooLarge` for more than `limits().share_pairs_max`; as [`write`](Self::write).
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
