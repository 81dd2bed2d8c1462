//! A VFS that counts SQLite's writes and syncs on ordinary files, for comparisons: a shim over the
//! default VFS that passes everything on.
//!
//! An open file is one allocation of SQLite's: our `OpenFile`, then the default VFS's own.
use super::api::Api;
use super::over_base::{self, OverBase, app_of, over_base};
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3_file, sqlite3_io_methods, sqlite3_vfs};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tantalum_base::Result;

/// Counters over all files of one counting VFS: databases, journals, WALs. Clones share the
/// counters, which may be read from any thread.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    writes: AtomicU64,
    bytes_written: AtomicU64,
    file_syncs: AtomicU64,
    directory_syncs: AtomicU64,
}

/// The values of [`Counters`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes that succeeded.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes_written: u64,
    /// Files synced.
    pub file_syncs: u64,
    /// Directories synced after a file in them was deleted. The default VFS also syncs the
    /// directory of a new journal within the journal's first sync, which is not counted here.
    pub directory_syncs: u64,
}

impl Counts {
    /// Syncs of files and directories.
    pub fn syncs(&self) -> u64 {
        self.file_syncs + self.directory_syncs
    }

    /// The difference from `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            writes: self.writes - earlier.writes,
            bytes_written: self.bytes_written - earlier.bytes_written,
            file_syncs: self.file_syncs - earlier.file_syncs,
            directory_syncs: self.directory_syncs - earlier.directory_syncs,
        }
    }
}

impl Counters {
    /// The current values of the counters.
    pub fn snapshot(&self) -> Counts {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Counts {
            writes: load(&self.0.writes),
            bytes_written: load(&self.0.bytes_written),
            file_syncs: load(&self.0.file_syncs),
            directory_syncs: load(&self.0.directory_syncs),
        }
    }
}

/// Registers a counting VFS called `name` with the SQLite library linked into this program, and
/// returns its counters. It stays registered until the process ends.
///
/// A name that is taken is refused as [`InvalidInput`](tantalum_base::ErrorKind::InvalidInput).
pub fn register(name: &str) -> Result<Counters> {
    let counters = Counters::default();
    over_base::register(Api::started()?, name, |name, base| sqlite3_vfs {
        xOpen: Some(x_open),
        xDelete: Some(x_delete),
        xAccess: Some(over_base::x_access::<Vfs>),
        // SAFETY: all callbacks here treat the VFS as its actual type.
        ..unsafe {
            let vfs = Vfs { base, counters: counters.clone() };
            over_base(name, vfs, |base| base + OWN_BYTES as c_int)
        }
    })?;
    Ok(counters)
}

struct Vfs {
    base: *mut sqlite3_vfs,
    counters: Counters,
}

// SAFETY: `base` is set once, to SQLite's default VFS.
unsafe impl OverBase for Vfs {
    fn base(&self) -> *mut sqlite3_vfs {
        self.base
    }
}

/// The beginning of SQLite's allocation for an open file; the default VFS's file follows.
#[repr(C)]
struct OpenFile {
    base: sqlite3_file,
    counters: *const Cells,
}

/// Bytes before the default VFS's file, which is aligned as SQLite aligns its allocations.
const OWN_BYTES: usize = size_of::<OpenFile>().next_multiple_of(8);

/// The default VFS's file.
///
/// # Safety
/// `file` is one of this VFS's, of `OWN_BYTES` and the default VFS's `szOsFile` bytes.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: in the same allocation.
    unsafe { file.byte_add(OWN_BYTES) }
}

/// The counters of an open file.
///
/// # Safety
/// `file` was opened by this VFS.
unsafe fn cells<'a>(file: *mut sqlite3_file) -> &'a Cells {
    // SAFETY: the counters live as long as the registered VFS, which is forever.
    unsafe { &*(*file.cast::<OpenFile>()).counters }
}

fn add(cell: &AtomicU64, amount: u64) {
    cell.fetch_add(amount, Ordering::Relaxed);
}

unsafe extern "C" fn x_open(
    table: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes its own table and a file of `szOsFile` bytes to fill in; the default
    // VFS gets its own part of that, and the other arguments unchanged.
    unsafe {
        let vfs = app_of::<Vfs>(table);
        (*file).pMethods = std::ptr::null();
        let Some(open) = (*vfs.base).xOpen else { return sqlite::SQLITE_CANTOPEN };
        let code = open(vfs.base, name, inner(file), flags, out_flags);
        let methods = (*inner(file)).pMethods;
        // If the default VFS set methods, SQLite must close the file, even after an error.
        if !methods.is_null() {
            let has_shared_memory = (*methods).iVersion >= 2 && (*methods).xShmMap.is_some();
            file.cast::<OpenFile>().write(OpenFile {
                base: sqlite3_file {
                    pMethods: if has_shared_memory { &METHODS_SHM } else { &METHODS },
                },
                counters: Arc::as_ptr(&vfs.counters.0),
            });
        }
        code
    }
}

unsafe extern "C" fn x_delete(table: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes its own table and a name.
    unsafe {
        let vfs = app_of::<Vfs>(table);
        let code = over_base::x_delete::<Vfs>(table, name, sync);
        if code == sqlite::SQLITE_OK && sync != 0 {
            add(&vfs.counters.0.directory_syncs, 1);
        }
        code
    }
}

/// A callback of an open file that passes its arguments to the default VFS's file, if that has
/// methods of the callback's version.
macro_rules! pass_on {
    ($name:ident, $method:ident, ($($arg:ident: $type:ty),*) -> $out:ty, $otherwise:expr) => {
        pass_on!(1, $name, $method, ($($arg: $type),*) -> $out, $otherwise);
    };
    ($version:literal, $name:ident, $method:ident, ($($arg:ident: $type:ty),*) -> $out:ty, $otherwise:expr) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file, $($arg: $type),*) -> $out {
            // SAFETY: an open file of ours; the other arguments are passed on unchanged. Methods of
            // an older version may end before this one.
            unsafe {
                let inner = inner(file);
                let methods = (*inner).pMethods;
                let has_it = (*methods).iVersion >= $version;
                match if has_it { (*methods).$method } else { None } {
                    Some(method) => method(inner, $($arg),*),
                    None => $otherwise,
                }
            }
        }
    };
}

pass_on!(x_close, xClose, () -> c_int, sqlite::SQLITE_OK);
pass_on!(x_read, xRead, (out: *mut c_void, bytes: c_int, offset: i64) -> c_int, sqlite::SQLITE_IOERR_READ);
pass_on!(write_on, xWrite, (data: *const c_void, bytes: c_int, offset: i64) -> c_int, sqlite::SQLITE_IOERR_WRITE);
pass_on!(x_truncate, xTruncate, (size: i64) -> c_int, sqlite::SQLITE_IOERR_TRUNCATE);
pass_on!(sync_on, xSync, (flags: c_int) -> c_int, sqlite::SQLITE_IOERR_FSYNC);
pass_on!(x_file_size, xFileSize, (out: *mut i64) -> c_int, sqlite::SQLITE_IOERR_FSTAT);
pass_on!(x_lock, xLock, (level: c_int) -> c_int, sqlite::SQLITE_IOERR_LOCK);
pass_on!(x_unlock, xUnlock, (level: c_int) -> c_int, sqlite::SQLITE_IOERR_UNLOCK);
pass_on!(x_check_reserved_lock, xCheckReservedLock, (out: *mut c_int) -> c_int, sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK);
pass_on!(x_file_control, xFileControl, (operation: c_int, argument: *mut c_void) -> c_int, sqlite::SQLITE_NOTFOUND);
pass_on!(x_sector_size, xSectorSize, () -> c_int, 4096);
pass_on!(x_device_characteristics, xDeviceCharacteristics, () -> c_int, 0);
pass_on!(2, x_shm_map, xShmMap, (region: c_int, bytes: c_int, extend: c_int, out: *mut *mut c_void) -> c_int, sqlite::SQLITE_IOERR_SHMMAP);
pass_on!(2, x_shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int) -> c_int, sqlite::SQLITE_IOERR_SHMLOCK);
pass_on!(2, x_shm_barrier, xShmBarrier, () -> (), ());
pass_on!(2, x_shm_unmap, xShmUnmap, (delete: c_int) -> c_int, sqlite::SQLITE_OK);

unsafe extern "C" fn x_write(
    file: *mut sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file of ours; the other arguments are passed on unchanged.
    unsafe {
        let code = write_on(file, data, bytes, offset);
        if code == sqlite::SQLITE_OK {
            add(&cells(file).writes, 1);
            add(&cells(file).bytes_written, bytes as u64);
        }
        code
    }
}

unsafe extern "C" fn x_sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: an open file of ours; the other arguments are passed on unchanged.
    unsafe {
        let code = sync_on(file, flags);
        if code == sqlite::SQLITE_OK {
            add(&cells(file).file_syncs, 1);
        }
        code
    }
}

/// For files without shared memory. Memory mapping (version 3) is not passed on, because writes
/// through a map could not be counted.
static METHODS: sqlite3_io_methods = io_methods!(1, None, None);

/// For files with shared memory, which WAL needs.
static METHODS_SHM: sqlite3_io_methods = io_methods!(2, None, None);
