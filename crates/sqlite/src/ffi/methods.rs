//! The callbacks of an open file.
use super::controls::x_file_control;
use super::stop::{caught, set_errno};
use super::vfs::Vfs;
use crate::codes::{Code, code_of, errno_of, lock};
use crate::file::{DatabaseFile, Failure};
use crate::journal::Journal;
use crate::lock_waits;
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3, sqlite3_file, sqlite3_io_methods};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};
use tantalum::front_end::Level;
use tantalum_base::{Error, ErrorKind};

/// SQLite's allocation for an open file, `szOsFile` bytes; it begins with the fields that SQLite
/// requires.
#[repr(C)]
pub(super) struct OpenFile {
    pub(super) base: sqlite3_file,
    pub(super) vfs: *const Vfs,
    pub(super) handle: *mut Handle,
    pub(super) state: FileState,
}

/// State that file controls query or change, beside the file itself.
pub(super) struct FileState {
    /// The place where SQLite stores the connection that uses the file; null until SQLite has
    /// passed it.
    pub(super) connection: *mut *mut sqlite3,
    /// The operating system's error number of the last failure.
    pub(super) last_errno: c_int,
    /// `SQLITE_FCNTL_PERSIST_WAL`, which has no effect without a WAL.
    pub(super) persist_wal: bool,
    /// `SQLITE_FCNTL_POWERSAFE_OVERWRITE`.
    pub(super) powersafe_overwrite: bool,
    /// SQLite treated the file as one in WAL mode.
    pub(super) asked_for_wal: bool,
    /// A query to SQLite for the journal mode in force is running.
    pub(super) asking: bool,
    /// A callback panicked.
    pub(super) stopped: bool,
}

impl Default for FileState {
    fn default() -> Self {
        FileState {
            connection: std::ptr::null_mut(),
            last_errno: 0,
            persist_wal: false,
            powersafe_overwrite: true,
            asked_for_wal: false,
            asking: false,
            stopped: false,
        }
    }
}

/// An open file of ours.
pub(super) enum Handle {
    Database(Box<DatabaseFile>),
    Journal(Arc<Mutex<Journal>>),
}

impl Handle {
    fn check_usable(&self) -> tantalum_base::Result<()> {
        match self {
            Handle::Database(database) => database.database().check_usable(),
            Handle::Journal(_) => Ok(()),
        }
    }

    /// Whether this process opened it; a journal is always in the process's own memory.
    pub(super) fn is_of_this_process(&self) -> bool {
        match self {
            Handle::Database(database) => database.database().is_of_this_process(),
            Handle::Journal(_) => true,
        }
    }
}

// Version 1: no shared memory, without which there is no WAL, and no memory mapping. The callbacks
// of later versions work nevertheless, in case a VFS above this one calls them regardless of the
// version.
pub(super) static METHODS: sqlite3_io_methods = io_methods!(1, Some(x_fetch), Some(x_unfetch));

/// The result of a callback.
pub(super) type Answer = Result<c_int, Failure>;

/// Runs the body of a callback on an open file. A failure is reported and becomes a code. After a
/// panic, and in a forked child, the result is `code` and nothing is done: neither to this file
/// nor, after a panic, to the whole database.
///
/// # Safety
/// `file` was opened by this VFS and is not in use by another thread (SQLite serialises the
/// calls of a connection).
pub(super) unsafe fn answer(
    file: *mut sqlite3_file,
    code: c_int,
    body: impl FnOnce(&Vfs, &mut Handle, &mut FileState) -> Answer,
) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: written by `x_open`, with a leaked VFS and a boxed handle.
    let (vfs, handle, state) = unsafe { (&*(*file).vfs, &mut *(*file).handle, &mut (*file).state) };
    let refusal = |error| Failure { code: Code(code), error };
    let answered = caught(|| {
        if state.stopped {
            let error = Error::new(ErrorKind::Latched, "a bug made an earlier call panic");
            return Err(refusal(error));
        }
        handle.check_usable().map_err(refusal)?;
        body(vfs, handle, state)
    });
    match answered {
        Some(Ok(code)) => code,
        Some(Err(failure)) => {
            state.last_errno = errno_of(&failure.error);
            vfs.report(failure.code.0, &failure.error.to_string());
            set_errno(state.last_errno);
            failure.code.0
        }
        None => {
            state.stopped = true;
            if let Handle::Database(database) = handle {
                database.database().latch();
            }
            vfs.report(code, "a bug made a call panic; close all connections to the database");
            set_errno(0);
            code
        }
    }
}

fn ok(done: Result<(), Failure>) -> Answer {
    done.map(|()| sqlite::SQLITE_OK)
}

/// A failure of the journal.
fn of_journal<T>(done: tantalum_base::Result<T>, otherwise: c_int) -> Result<T, Failure> {
    done.map_err(|error| Failure { code: code_of(&error, otherwise), error })
}

unsafe extern "C" fn x_close(file: *mut sqlite3_file) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: open until now, and not used again after this.
    let closed = caught(|| unsafe {
        (*file).base.pMethods = std::ptr::null();
        (*(*file).vfs).close(Box::from_raw((*file).handle));
    });
    closed.map_or(sqlite::SQLITE_IOERR_CLOSE, |()| sqlite::SQLITE_OK)
}

unsafe extern "C" fn x_read(
    file: *mut sqlite3_file,
    out: *mut c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file of ours, and `bytes` initialised bytes at `out`.
    unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast(), bytes as usize);
        answer(file, sqlite::SQLITE_IOERR_READ, |_, handle, _| {
            let whole = match handle {
                Handle::Database(database) => database.read(offset as u64, out)?,
                Handle::Journal(journal) => {
                    of_journal(lock(journal).read(offset as u64, out), sqlite::SQLITE_IOERR_READ)?
                }
            };
            Ok(if whole { sqlite::SQLITE_OK } else { sqlite::SQLITE_IOERR_SHORT_READ })
        })
    }
}

unsafe extern "C" fn x_write(
    file: *mut sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file of ours, and `bytes` bytes at `data`.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_WRITE, |_, handle, state| match handle {
            Handle::Database(database) => {
                state.asked_for_wal |= take_wal_out(data, bytes, offset);
                let data = std::slice::from_raw_parts(data.cast(), bytes as usize);
                ok(database.write(offset as u64, data))
            }
            Handle::Journal(journal) => {
                let data = std::slice::from_raw_parts(data.cast(), bytes as usize);
                let written = lock(journal).write(offset as u64, data);
                ok(of_journal(written, sqlite::SQLITE_IOERR_WRITE))
            }
        })
    }
}

/// If `data` is a first page that requests WAL (bytes 18 and 19 are 2), changes it to request a
/// journal. Such a page comes from a copy of a WAL database, or from `PRAGMA journal_mode=WAL` in
/// `locking_mode=EXCLUSIVE`, when SQLite assumes that it needs no shared memory. The request must
/// also be removed from SQLite's cached page, or this connection would look for a WAL from then on.
/// The buffer that SQLite passes to xWrite is that page; SQLite's own `cksumvfs` writes to it in
/// the same way.
///
/// # Safety
/// `bytes` bytes at `data` that nobody else uses, in memory that may be written.
unsafe fn take_wal_out(data: *const c_void, bytes: c_int, offset: i64) -> bool {
    const FORMATS: std::ops::Range<usize> = 18..20;
    if offset != 0 || bytes < 100 {
        return false;
    }
    // SAFETY: the bytes are there, as the caller promises.
    let formats = unsafe {
        let first = data.cast_mut().cast::<u8>().add(FORMATS.start);
        std::slice::from_raw_parts_mut(first, FORMATS.len())
    };
    let asks = formats.contains(&2);
    if asks {
        formats.fill(1);
    }
    asks
}

unsafe extern "C" fn x_truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: an open file of ours.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_TRUNCATE, |_, handle, _| match handle {
            Handle::Database(database) => ok(database.truncate(size as u64)),
            Handle::Journal(journal) => {
                let cut = lock(journal).truncate(size as u64);
                ok(of_journal(cut, sqlite::SQLITE_IOERR_TRUNCATE))
            }
        })
    }
}

// The commit point is reported through `x_file_control`; see `crate::file`.
unsafe extern "C" fn x_sync(_: *mut sqlite3_file, _: c_int) -> c_int {
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_file_size(file: *mut sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: an open file of ours, and a place for the result.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_FSTAT, |_, handle, _| {
            *out = match handle {
                Handle::Database(database) => database.size(),
                Handle::Journal(journal) => lock(journal).size(),
            } as i64;
            Ok(sqlite::SQLITE_OK)
        })
    }
}

fn level_of(level: c_int) -> Level {
    match level {
        sqlite::SQLITE_LOCK_NONE => Level::None,
        sqlite::SQLITE_LOCK_SHARED => Level::Shared,
        sqlite::SQLITE_LOCK_RESERVED => Level::Reserved,
        sqlite::SQLITE_LOCK_PENDING => Level::Pending,
        _ => Level::Exclusive,
    }
}

unsafe extern "C" fn x_lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_LOCK, |_, handle, _| {
            let locked = match handle {
                Handle::Database(database) => {
                    let wanted = level_of(level);
                    lock_waits::timed(wanted, || database.lock(wanted))?
                }
                Handle::Journal(_) => true,
            };
            Ok(if locked { sqlite::SQLITE_OK } else { sqlite::SQLITE_BUSY })
        })
    }
}

unsafe extern "C" fn x_unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_UNLOCK, |_, handle, _| {
            if let Handle::Database(database) = handle {
                database.unlock(level_of(level));
                if database.level() == Level::None {
                    lock_waits::ended();
                }
            }
            Ok(sqlite::SQLITE_OK)
        })
    }
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file of ours, and a place for the result.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK, |_, handle, _| {
            *out = match handle {
                Handle::Database(database) => c_int::from(database.reserved()?),
                Handle::Journal(_) => 0,
            };
            Ok(sqlite::SQLITE_OK)
        })
    }
}

unsafe extern "C" fn x_sector_size(_: *mut sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn x_device_characteristics(file: *mut sqlite3_file) -> c_int {
    let always = sqlite::SQLITE_IOCAP_SAFE_APPEND | sqlite::SQLITE_IOCAP_SEQUENTIAL;
    // SAFETY: an open file of ours.
    unsafe {
        answer(file, always, |vfs, handle, state| {
            let mut told = always;
            if state.powersafe_overwrite {
                told |= sqlite::SQLITE_IOCAP_POWERSAFE_OVERWRITE;
            }
            if vfs.batch_atomic && matches!(handle, Handle::Database(_)) {
                told |= sqlite::SQLITE_IOCAP_BATCH_ATOMIC;
            }
            Ok(told)
        })
    }
}

unsafe extern "C" fn x_shm_map(
    _: *mut sqlite3_file,
    _: c_int,
    _: c_int,
    _: c_int,
    out: *mut *mut c_void,
) -> c_int {
    if !out.is_null() {
        // SAFETY: a place for the result.
        unsafe { *out = std::ptr::null_mut() };
    }
    sqlite::SQLITE_IOERR_SHMMAP
}

unsafe extern "C" fn x_shm_lock(_: *mut sqlite3_file, _: c_int, _: c_int, _: c_int) -> c_int {
    sqlite::SQLITE_IOERR_SHMLOCK
}

unsafe extern "C" fn x_shm_barrier(_: *mut sqlite3_file) {}

unsafe extern "C" fn x_shm_unmap(_: *mut sqlite3_file, _: c_int) -> c_int {
    sqlite::SQLITE_OK
}

/// Maps nothing, so that SQLite reads instead.
unsafe extern "C" fn x_fetch(
    _: *mut sqlite3_file,
    _: i64,
    _: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: a place for the result.
    unsafe { *out = std::ptr::null_mut() };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_unfetch(_: *mut sqlite3_file, _: i64, _: *mut c_void) -> c_int {
    sqlite::SQLITE_OK
}
