//! A store in a file or on a block device: direct I/O, a lock, real syncs.
use super::cached::Cached;
use super::ending::{Ending, store_bytes};
use super::opening::{io, open_alone};
use super::partitions::reread_partition_table;
use super::spare::{Spare, is_no_space, says_no_space};
use super::{BLOCK_BYTES, BlockStore, BufferPool, IoBuf, assert_in_store};
use rustix::fs::FallocateFlags;
use std::cell::Cell;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::live::{LiveFile, ParentOnly, ZeroedSpace};
use tantalum_runtime::{Live, join_all};

/// Bytes of zeros per write, when a range is prepared or must be zeroed by writing.
const ZEROS_BYTES: u64 = 1 << 20;

/// Writes of zeros in flight. One at a time reaches a third of the rate of four on a cloud's volume.
const ZEROS_IN_FLIGHT: u64 = 4;

/// Maximum bytes zeroed per system call. Such a call cannot be interrupted, and a device may be slow at it.
const ZEROING_BYTES: u64 = 1 << 30;

/// Options for opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStoreOptions {
    /// Bypass the page cache if the file system supports it (tmpfs and some others do not).
    pub direct: bool,
    /// Read through the page cache although writes are direct, if the file system keeps the two consistent. Content
    /// that was read once stays in the system's memory, also for the next process.
    pub cached_reads: bool,
    /// Open for reading only: writes and syncs are refused as [`ErrorKind::ReadOnly`]. Many readers
    /// may share the file, but not with a writer.
    pub read_only: bool,
    /// Create the file without allocating its space. Creation of a large file is then instant, but a full file system
    /// shows only at a later write. Zeroed ranges and [deallocated](BlockStore::give_room_back) ranges return their
    /// space; a file that is not sparse keeps it.
    pub sparse: bool,
    /// The end of the store, a multiple of 512 bytes, if the file is that long. Without it the store covers the whole
    /// blocks of the file.
    pub end_bytes: Option<u64>,
    /// The permissions of a file that is created, without those that the umask removes. An existing file keeps its own.
    pub mode: u32,
}

/// Permissions with which only the owner can read and write a file.
pub const PRIVATE_MODE: u32 = 0o600;

impl Default for FileStoreOptions {
    fn default() -> Self {
        FileStoreOptions {
            direct: true,
            cached_reads: false,
            read_only: false,
            sparse: false,
            end_bytes: None,
            mode: PRIVATE_MODE,
        }
    }
}

/// A store in a file or on a block device. Clones are handles to the same open file, which stays locked until the
/// last one is dropped. A forked child has neither the file nor the lock.
#[derive(Clone)]
pub struct FileStore(Rc<Inner>);

struct Inner {
    // Must be dropped before the descriptors are closed.
    _parent_only: [ParentOnly; 2],
    file: LiveFile,
    // For reads, if they go through the page cache.
    cached: Option<Cached>,
    ending: Ending,
    // For operations that are not I/O: finding holes, allocating.
    control: File,
    path: PathBuf,
    bytes: Cell<u64>,
    // The options in effect: not `direct` if the file system refuses direct I/O.
    options: FileStoreOptions,
    zeroed_space: ZeroedSpace,
    /// Always false for a block device, and for a file that was opened read-only or not as sparse.
    gives_room_back: bool,
    pool: BufferPool,
    spare: Spare,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.spare.give_back(&self.control);
    }
}

impl FileStore {
    /// Opens the file or device at `path`. Read-only opens also work on a read-only or full file system.
    ///
    /// # Errors
    /// `Locked` if another process holds it; `InvalidInput` if the kernel uses it (mounted or as swap) and the open
    /// is not read-only; `Io` if it cannot be opened.
    pub fn open(live: &Live, path: &Path, options: FileStoreOptions) -> Result<Self> {
        let (file, options) = open_alone(path, false, options)?;
        Self::from_file(live, file, path, options)
    }

    /// Creates a file of `bytes` at `path`, or uses a block device of at least that size. An existing file is reused:
    /// its length becomes `bytes`, and its content is unspecified.
    ///
    /// # Errors
    /// `OutOfSpace` if there is not enough space (nothing is left behind); `ReadOnly` if the options are read-only;
    /// otherwise as for [`open`](Self::open).
    pub fn create(live: &Live, path: &Path, bytes: u64, options: FileStoreOptions) -> Result<Self> {
        if options.read_only {
            return Err(read_only(path, "making"));
        }
        // If existence cannot be determined, assume that the file exists, so that it is not removed.
        let existed = path.try_exists().unwrap_or(true);
        let (file, options) = open_alone(path, true, options)?;
        let metadata = file.metadata().map_err(|error| io(path, "looking at", error))?;
        if metadata.file_type().is_file()
            && let Err(error) = allocate(&file, path, bytes, options.sparse)
        {
            if !existed {
                // The first error is the one to report.
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        Self::from_file(live, file, path, options)
    }

    fn from_file(live: &Live, file: File, path: &Path, options: FileStoreOptions) -> Result<Self> {
        let mut control = file.try_clone().map_err(|error| io(path, "opening", error))?;
        let end = control.seek(SeekFrom::End(0)).map_err(|error| io(path, "measuring", error))?;
        let metadata = control.metadata().map_err(|error| io(path, "looking at", error))?;
        // A block device always owns its space.
        let is_file = metadata.file_type().is_file();
        let gives_room_back = is_file && options.sparse && !options.read_only;
        let zeroed_space = match is_file && !options.sparse {
            true => ZeroedSpace::Kept,
            false => ZeroedSpace::GivenBack,
        };
        let parent_only = [ParentOnly::new(file.as_fd())?, ParentOnly::new(control.as_fd())?];
        let bytes = store_bytes(end, options.end_bytes);
        let ending = Ending::of(live, &control, path, bytes, options)?;
        let cached = Cached::for_reads(live, &control, path, options)?;
        Ok(FileStore(Rc::new(Inner {
            _parent_only: parent_only,
            file: LiveFile::new(live, file),
            cached,
            control,
            path: path.to_path_buf(),
            ending,
            bytes: Cell::new(bytes),
            options,
            zeroed_space,
            gives_room_back,
            pool: BufferPool::default(),
            spare: Spare::new(live),
        })))
    }

    /// Extends the file to `bytes`, and allocates the space unless the file is sparse. For a block device, checks
    /// that it has that many bytes. Existing content stays, even if the file is longer.
    ///
    /// # Errors
    /// `OutOfSpace` if there is not enough space (the file is unchanged); `ReadOnly`; `Io`.
    pub fn grow(&self, bytes: u64) -> Result<()> {
        self.check_writable("growing")?;
        let Inner { control, path, options, .. } = &*self.0;
        let metadata = control.metadata().map_err(|error| io(path, "looking at", error))?;
        let is_file = metadata.file_type().is_file();
        if bytes <= self.bytes() && (options.sparse || !is_file) {
            return Ok(());
        }
        if !is_file {
            let context =
                format!("{} has {} bytes, and {bytes} are needed", path.display(), self.bytes());
            return Err(Error::new(ErrorKind::OutOfSpace, context));
        }
        allocate(control, path, bytes.max(metadata.len()), options.sparse)?;
        self.0.bytes.set(bytes.max(self.bytes()) / BLOCK_BYTES * BLOCK_BYTES);
        Ok(())
    }

    /// Makes the kernel reread the partition table of a block device, so that partitions appear and disappear
    /// accordingly. Does nothing if the target cannot have partitions.
    ///
    /// # Errors
    /// `Io` if a partition is in use.
    pub fn reread_partitions(&self) -> Result<()> {
        let metadata = self.0.control.metadata();
        if !metadata.is_ok_and(|metadata| metadata.file_type().is_block_device()) {
            return Ok(());
        }
        match reread_partition_table(&self.0.control) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTTY) => Ok(()),
            Err(error) => Err(io(&self.0.path, "reading the partition table of", error.into())),
        }
    }

    /// Whether I/O bypasses the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.options.direct
    }

    /// Whether the whole range has been written before, as far as the file system knows.
    fn is_written(&self, offset: u64, bytes: u64) -> bool {
        let hole = rustix::fs::seek(&self.0.control, rustix::fs::SeekFrom::Hole(offset));
        hole.is_ok_and(|hole| hole >= offset + bytes)
    }

    /// Writes zeros in pieces, several at a time.
    async fn write_zeros(&self, offset: u64, bytes: u64) -> Result<()> {
        let next = Cell::new(offset);
        let lanes = ZEROS_IN_FLIGHT.min(bytes.div_ceil(ZEROS_BYTES));
        join_all((0..lanes).map(|_| self.write_next_zeros(&next, offset + bytes)).collect())
            .await
            .map(drop)
    }

    /// Writes zeros from `next` on, a piece at a time, up to `end`.
    async fn write_next_zeros(&self, next: &Cell<u64>, end: u64) -> Result<()> {
        let mut buf = self.buffer(ZEROS_BYTES as usize);
        buf.fill(0);
        while next.get() < end {
            let at = next.get();
            let len = ZEROS_BYTES.min(end - at);
            next.set(at + len);
            buf.set_len(len as usize);
            buf = self.write(at, buf, false).await?;
        }
        self.recycle(buf);
        Ok(())
    }

    /// Refuses changes if the store was opened read-only.
    fn check_writable(&self, what: &str) -> Result<()> {
        if self.0.options.read_only { Err(read_only(&self.0.path, what)) } else { Ok(()) }
    }

    /// Whether a failed write should be retried, because space was freed for it.
    fn makes_room(&self, error: &Error) -> bool {
        self.0.spare.makes_room(&self.0.control, error)
    }

    /// Adds the path to the `error` of an operation if its context lacks it, and changes its kind to `OutOfSpace` if
    /// there was no space.
    fn failed(&self, error: Error) -> Error {
        let error = match is_no_space(&error) {
            true => error.with_kind(ErrorKind::OutOfSpace),
            false => error,
        };
        let path = &self.0.path;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match error.context().contains(&format!("/{name}")) {
            true => error,
            false => error.wrap(path.display().to_string()),
        }
    }
}

impl BlockStore for FileStore {
    fn bytes(&self) -> u64 {
        self.0.bytes.get()
    }

    fn modified_ns(&self) -> Option<u64> {
        let metadata = self.0.control.metadata().ok().filter(|metadata| metadata.is_file())?;
        u64::try_from(
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        )
        .ok()
    }

    fn buffer(&self, bytes: usize) -> IoBuf {
        self.0.pool.take(bytes)
    }

    fn recycle(&self, buf: IoBuf) {
        self.0.pool.give_back(buf);
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        assert_in_store(self.bytes(), offset, buf.len() as u64);
        let Inner { file, cached, ending, .. } = &*self.0;
        let (mut result, mut buf) = match cached {
            Some(cached) => cached.file.read_at(offset, buf).await,
            None => ending.read_at(file, offset, buf).await,
        };
        if result.is_err() && cached.is_some() {
            // The page cache reads more than was requested, and fails if any of that cannot be read.
            (result, buf) = ending.read_at(file, offset, buf).await;
        }
        result.map_err(|error| self.failed(error))?;
        Ok(buf)
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        assert_in_store(self.bytes(), offset, buf.len() as u64);
        self.check_writable("writing")?;
        let Inner { file, ending, .. } = &*self.0;
        let (mut result, mut buf) = ending.write_at(file, offset, buf, durable).await;
        if result.as_ref().is_err_and(|error| self.makes_room(error)) {
            (result, buf) = ending.write_at(file, offset, buf, durable).await;
        }
        result.map_err(|error| self.failed(error))?;
        Ok(buf)
    }

    async fn sync(&self) -> Result<()> {
        self.check_writable("syncing")?;
        self.0.file.sync_data().await.map_err(|error| self.failed(error))
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        assert_in_store(self.bytes(), offset, bytes);
        self.check_writable("zeroing")?;
        let mut at = offset;
        while at < offset + bytes {
            let len = ZEROING_BYTES.min(offset + bytes - at);
            let mut zeroed = self.0.file.zero(at, len, self.0.zeroed_space).await;
            if zeroed.as_ref().is_err_and(|error| self.makes_room(error)) {
                zeroed = self.0.file.zero(at, len, self.0.zeroed_space).await;
            }
            if !zeroed.map_err(|error| self.failed(error))? {
                return self.write_zeros(at, offset + bytes - at).await;
            }
            at += len;
        }
        Ok(())
    }

    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()> {
        if self.0.options.sparse || self.is_written(offset, bytes) {
            return Ok(());
        }
        self.write_zeros(offset, bytes).await
    }

    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        assert_in_store(self.bytes(), offset, bytes);
        if !self.0.gives_room_back {
            return Ok(false);
        }
        // An error only means that the file keeps its allocated space.
        let given = self.0.file.zero(offset, bytes, ZeroedSpace::GivenBack).await;
        Ok(given.unwrap_or(false))
    }

    fn next_room(&self, offset: u64) -> Option<u64> {
        match rustix::fs::seek(&self.0.control, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => Some(data.max(offset)),
            Err(rustix::io::Errno::NXIO) => None,
            // The file system does not report holes.
            Err(_) => Some(offset),
        }
    }

    fn keep_spare(&self, bytes: u64) {
        if self.0.options.sparse && !self.0.options.read_only {
            self.0.spare.keep(&self.0.control, &self.0.path, bytes);
        }
    }

    fn check_room(&self) -> Result<()> {
        self.0.spare.check(&self.0.control, &self.0.path)
    }
}

fn read_only(path: &Path, what: &str) -> Error {
    let context = format!("{what} {}: it is open read-only", path.display());
    Error::new(ErrorKind::ReadOnly, context)
}

const NOSYS: i32 = rustix::io::Errno::NOSYS.raw_os_error();

/// Sets the file's length to `bytes` and allocates them unless `sparse`. On error the length is
/// unchanged.
fn allocate(file: &File, path: &Path, bytes: u64, sparse: bool) -> Result<()> {
    let failed = |error: std::io::Error| {
        if says_no_space(error.kind()) {
            let context = format!("no room for {bytes} bytes at {}", path.display());
            return Error::with_source(ErrorKind::OutOfSpace, context, error);
        }
        io(path, "allocating", error)
    };
    let old_bytes = file.metadata().map_err(|error| io(path, "looking at", error))?.len();
    if sparse {
        return file.set_len(bytes).map_err(failed);
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Without allocation a full disk shows only at a later write.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(error) => {
            // Some file systems keep the space that they allocated before they ran out.
            let _ = file.set_len(old_bytes);
            return Err(failed(error.into()));
        }
    }
    match file.set_len(bytes) {
        // A file system with a single file, such as nbdfuse's, cannot change the length of the file.
        Err(error) if error.raw_os_error() == Some(NOSYS) && old_bytes >= bytes => Ok(()),
        set => set.map_err(failed),
    }
}

#[cfg(test)]
mod tests;
