//! What a program gives the VFS: how to open a volume, and options.
use std::path::Path;
use std::sync::{Arc, Mutex};
use tantalum_base::size::Size;
use tantalum_base::{PAGE_BYTES, PageNo, Result, ResultExt};
use tantalum_volume::client::Client;

/// Opens the volume that a database name stands for. Implemented by closures
/// `Fn(&Path) -> Result<Client>`.
pub trait VolumeOpener: Send + Sync + 'static {
    /// Opens the volume at `path`, which is absolute. Called once for all connections of this
    /// process to that path; when the last of them closes, the client is dropped. A volume that was
    /// put in the place of an open one, and a process forked from this one, open it for themselves.
    fn open(&self, path: &Path) -> Result<Client>;

    /// Opens the volume at `path` to be read only: where a database is opened by `mode=ro` or `immutable=1`, and where
    /// [`open`](Self::open) fails because the file may not be written. A client that says that it may write
    /// ([`Client::is_read_only`]) serves connections that write, too. `None` where the opener cannot do that.
    fn open_read_only(&self, path: &Path) -> Option<Result<Client>> {
        let _ = path;
        None
    }

    /// Whether `path` names a volume. What does not is an ordinary file and is passed on to
    /// SQLite's default VFS, so that `ATTACH 'other.db'` and `VACUUM INTO 'copy.db'` work.
    /// Names that end in `.toml` unless overridden.
    fn is_volume(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toml")
    }
}

impl<F: Fn(&Path) -> Result<Client> + Send + Sync + 'static> VolumeOpener for F {
    fn open(&self, path: &Path) -> Result<Client> {
        self(path)
    }
}

/// Told what reaches the volume, in order, so that it can be recorded and replayed. Pages are the
/// volume's. What is rolled back never reaches the volume and is not told.
pub trait TraceSink: Send {
    /// `pages` pages from `first` were read.
    fn read(&mut self, first: PageNo, pages: u64);

    /// `pages` pages from `first` were written by the transaction that the next `commit` ends.
    fn write(&mut self, first: PageNo, pages: u64);

    /// What was written since the last `commit` became durable, as one transaction.
    fn commit(&mut self);
}

const CACHE_VARIABLE: &str = "TANTALUM_SQLITE_CACHE";

/// The most that is kept by default, but for what a transaction writes.
const CACHE_BYTES_MAX: u64 = 192 << 20;

/// The most that running transactions keep by default.
const UNCOMMITTED_BYTES_MAX: u64 = 512 << 20;

/// The most that is kept of both while a transaction is larger than that, by default.
const BULK_BYTES_MAX: u64 = 4 << 30;

/// Pages that a transaction keeps however small the cache is.
pub(crate) const MEMORY_PAGES_MIN: usize = 1024;

/// How the VFS behaves.
pub struct Options {
    /// Whether SQLite is told that the device writes batches atomically. A library compiled with
    /// `SQLITE_ENABLE_BATCH_ATOMIC_WRITE` then commits without a journal. On by default; off is
    /// for tests and comparisons, and changes no promise.
    pub batch_atomic: bool,
    /// Pages of 4 KiB of running transactions, of all connections of the process, that are kept in memory until they
    /// commit. What they write more goes to the volume before that, and is seen by nobody else until then; each may keep
    /// 1,024, or so many as this says if that is less. While they are there, less is kept of what was read. By default a
    /// quarter of the memory that the process may have, at most 512 MiB.
    pub memory_pages: usize,
    /// Pages of 4 KiB that are kept in memory for all databases and connections of the process, as they are read or
    /// written; 0 for none. By default a tenth of the memory that the process may have, at most 192 MiB.
    pub cache_pages: u32,
    /// Pages of 4 KiB of both kinds that are kept in memory until a transaction ends that changes more than
    /// [`memory_pages`](Self::memory_pages); half of them are its own. Never fewer than those two say, and at most half of what
    /// the machine has free when it begins to need them. By default half of the memory that the process may have, at most 4 GiB.
    pub bulk_pages: usize,
    /// Told of every page that is read from or written to a volume.
    pub trace: Option<Box<dyn TraceSink>>,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = memory_bytes();
        let (cache_bytes, bulk_bytes) = (memory_bytes / 10, memory_bytes / 2);
        let uncommitted_bytes = (memory_bytes / 4).min(UNCOMMITTED_BYTES_MAX);
        Options { batch_atomic: true, memory_pages: 0, cache_pages: 0, bulk_pages: 0, trace: None }
            .with_memory(cache_bytes.min(CACHE_BYTES_MAX), uncommitted_bytes)
            .with_bulk(bulk_bytes.min(BULK_BYTES_MAX))
    }
}

impl Options {
    /// The default, but for what the environment says: `TANTALUM_SQLITE_CACHE`, a size such as `64MiB`, is
    /// [`cache_pages`](Self::cache_pages), and at most what transactions keep of that, however large they are.
    ///
    /// # Errors
    /// `InvalidInput` where that is no size.
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

/// Pages in so many bytes, or in all the memory that there is.
fn pages_of(bytes: u64) -> u32 {
    u32::try_from(bytes.min(memory_bytes()) / PAGE_BYTES as u64).unwrap_or(u32::MAX)
}

/// Pages that the machine has free, or would have by dropping what it caches. All, where it does not say.
pub(crate) fn free_pages() -> usize {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.map_or(usize::MAX, |kibibytes| kibibytes / (PAGE_BYTES / 1024))
}

/// The memory that this process may have: the machine's, or the limit of its control group.
fn memory_bytes() -> u64 {
    let memory = rustix::system::sysinfo();
    let machine = (memory.totalram as u64).saturating_mul(u64::from(memory.mem_unit));
    machine.min(control_group_bytes().unwrap_or(u64::MAX))
}

/// The least limit of the control groups that the process is in; `None` where there is none.
fn control_group_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().flat_map(limits_of).min()
}

/// The limits of a line of `/proc/self/cgroup` and of the groups above it: `memory.max` of version 2,
/// `memory.limit_in_bytes` of version 1.
fn limits_of(line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (folder, file) = match parts.next() {
        Some("") => ("/sys/fs/cgroup", "memory.max"),
        Some(controllers) if controllers.split(',').any(|it| it == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = parts.next().unwrap_or_default().trim_start_matches('/');
    let limit = |group: &Path| {
        let limit = Path::new(folder).join(group).join(file);
        std::fs::read_to_string(limit).ok()?.trim().parse().ok()
    };
    Path::new(group).ancestors().filter_map(limit).collect()
}

/// The sink that all databases of a VFS tell.
pub(crate) type SharedTrace = Arc<Mutex<Box<dyn TraceSink>>>;
