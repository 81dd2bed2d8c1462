//! The parts of the VFS that a program supplies: the way to open a volume, and options.
use std::path::Path;
use std::sync::{Arc, Mutex};
use tantalum::Volume;
use tantalum_base::size::Size;
use tantalum_base::{PAGE_BYTES, PageNo, Result, ResultExt};
use tantalum_runtime::live::memory;

/// Opens the volume for a database name. Implemented by closures
/// `Fn(&Path) -> Result<Volume>`.
pub trait VolumeOpener: Send + Sync + 'static {
    /// Opens the volume at `path`, which is absolute. Called once for all connections of this process to that path; the handle
    /// is dropped when the last of them closes. It is called again if another volume has taken the place of an open one, and in
    /// a process forked from this one.
    fn open(&self, path: &Path) -> Result<Volume>;

    /// Opens the volume at `path` read-only: if a database is opened with `mode=ro` or `immutable=1`, or if [`open`](Self::open)
    /// fails because the file must not be written. If the returned volume can be written nevertheless
    /// ([`Volume::is_read_only`]), it also serves connections that write. `None` if the opener does not support this.
    fn open_read_only(&self, path: &Path) -> Option<Result<Volume>> {
        let _ = path;
        None
    }

    /// Whether `path` names a volume. Other paths are ordinary files, which SQLite's default VFS serves, so that `ATTACH
    /// 'other.db'` and `VACUUM INTO 'copy.db'` work. By default, names that end in `.toml` are volumes.
    fn is_volume(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toml")
    }
}

impl<F: Fn(&Path) -> Result<Volume> + Send + Sync + 'static> VolumeOpener for F {
    fn open(&self, path: &Path) -> Result<Volume> {
        self(path)
    }
}

/// Receives the operations that reach the volume, in order, so that they can be recorded and replayed. Page numbers are the
/// volume's. Rolled-back changes never reach the volume and are not reported.
pub trait TraceSink: Send {
    /// `pages` pages from `first` were read.
    fn read(&mut self, first: PageNo, pages: u64);

    /// `pages` pages from `first` were written by the transaction that the next `commit` ends.
    fn write(&mut self, first: PageNo, pages: u64);

    /// All writes since the last `commit` became durable, as one transaction.
    fn commit(&mut self);
}

const CACHE_VARIABLE: &str = "TANTALUM_SQLITE_CACHE";

/// Default limit on cached pages, not counting pages of transactions.
const CACHE_BYTES_MAX: u64 = 192 << 20;

/// Default limit on pages of running transactions.
const UNCOMMITTED_BYTES_MAX: u64 = 512 << 20;

/// Default limit on both together while a transaction exceeds the limit above.
const BULK_BYTES_MAX: u64 = 4 << 30;

/// Pages that a transaction may keep in memory even if the cache is small.
pub(crate) const MEMORY_PAGES_MIN: usize = 1024;

/// The options of the VFS.
pub struct Options {
    /// Whether to report to SQLite that the device writes batches atomically. A library compiled with
    /// `SQLITE_ENABLE_BATCH_ATOMIC_WRITE` then commits without a journal. On by default; off is for tests and comparisons, and
    /// changes no promise.
    pub batch_atomic: bool,
    /// Pages of 4 KiB of running transactions, of all connections of the process, that are kept in memory until they commit.
    /// Further pages go to the volume earlier, invisible to others until the commit. Each transaction may keep 1,024 pages, or
    /// this number if it is smaller. These pages reduce the room for cached pages. By default a quarter of the memory available
    /// to the process, at most 512 MiB.
    pub memory_pages: usize,
    /// Pages of 4 KiB that are cached for all databases and connections of the process, after reads and writes; 0 for none. By
    /// default a tenth of the memory available to the process, at most 192 MiB.
    pub cache_pages: u32,
    /// Limit on pages of 4 KiB of both kinds together, while a transaction changes more than
    /// [`memory_pages`](Self::memory_pages); half of them may belong to transactions. Never less than the two limits above, and
    /// at most half of the machine's free memory at that time. By default half of the memory available to the process, at most 4
    /// GiB.
    pub bulk_pages: usize,
    /// Receives every read from and every write to a volume.
    pub trace: Option<Box<dyn TraceSink>>,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = memory::limit_bytes();
        let (cache_bytes, bulk_bytes) = (memory_bytes / 10, memory_bytes / 2);
        let uncommitted_bytes = (memory_bytes / 4).min(UNCOMMITTED_BYTES_MAX);
        Options { batch_atomic: true, memory_pages: 0, cache_pages: 0, bulk_pages: 0, trace: None }
            .with_memory(cache_bytes.min(CACHE_BYTES_MAX), uncommitted_bytes)
            .with_bulk(bulk_bytes.min(BULK_BYTES_MAX))
    }
}

impl Options {
    /// The default options, changed by the environment: `TANTALUM_SQLITE_CACHE`, a size such as `64MiB`, sets
    /// [`cache_pages`](Self::cache_pages), and limits the memory of transactions to the same size, however large they are.
    ///
    /// # Errors
    /// `InvalidInput` if the value is not a size.
    pub fn from_environment() -> Result<Options> {
        let mut options = Options::default();
        if let Ok(text) = std::env::var(CACHE_VARIABLE) {
            let bytes = Size::parse_bytes(&text).context(|| CACHE_VARIABLE)?;
            options = options.with_memory(bytes, bytes).with_bulk(bytes);
        }
        Ok(options)
    }

    fn with_memory(mut self, cache_bytes: u64, uncommitted_bytes: u64) -> Options {
        self.cache_pages = pages_of(cache_bytes);
        self.memory_pages = MEMORY_PAGES_MIN.max(pages_of(uncommitted_bytes) as usize);
        self
    }

    fn with_bulk(mut self, bytes: u64) -> Options {
        self.bulk_pages = pages_of(bytes) as usize;
        self
    }
}

/// Number of pages in `bytes` bytes, at most as many as the memory has.
fn pages_of(bytes: u64) -> u32 {
    u32::try_from(bytes.min(memory::limit_bytes()) / PAGE_BYTES as u64).unwrap_or(u32::MAX)
}

/// Number of pages that the machine has free, or could free by dropping its caches; unlimited if it does not report that.
pub(crate) fn free_pages() -> usize {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.map_or(usize::MAX, |kibibytes| kibibytes / (PAGE_BYTES / 1024))
}

/// The sink shared by all databases of a VFS.
pub(crate) type SharedTrace = Arc<Mutex<Box<dyn TraceSink>>>;
