//! The callbacks of an open file.
use super::vfs::{Vfs, WAL_REFUSED};
use crate::file::{DatabaseFile, Failure};
use crate::journal::Journal;
use crate::locks::Level;
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3_file, sqlite3_io_methods};
use std::ffi::{CStr, c_char, c_int, c_void};

/// What SQLite allocates for an open file, `szOsFile` bytes; it begins as SQLite wants it.
#[repr(C)]
pub(super) struct OpenFile {
    pub(super) base: sqlite3_file,
    pub(super) vfs: *const Vfs,
    pub(super) handle: *mut Handle,
}

/// An open file of ours.
pub(super) enum Handle {
    Database(DatabaseFile),
    Journal(Journal),
}

// Version 1: no shared memory, without which there is no WAL.
pub(super) static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(x_close),
    xRead: Some(x_read),
    xWrite: Some(x_write),
    xTruncate: Some(x_truncate),
    xSync: Some(x_sync),
    xFileSize: Some(x_file_size),
    xLock: Some(x_lock),
    xUnlock: Some(x_unlock),
    xCheckReservedLock: Some(x_check_reserved_lock),
    xFileControl: Some(x_file_control),
    xSectorSize: Some(x_sector_size),
    xDeviceCharacteristics: Some(x_device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `file` was opened by this VFS and is not in use by another thread (SQLite serialises the
/// calls of a connection).
unsafe fn open_file<'a>(file: *mut sqlite3_file) -> (&'a Vfs, &'a mut Handle) {
    let file = file.cast::<OpenFile>();
    // SAFETY: written by `x_open`, with a leaked VFS and a boxed handle.
    unsafe { (&*(*file).vfs, &mut *(*file).handle) }
}

fn told(vfs: &Vfs, done: Result<(), Failure>) -> c_int {
    match done {
        Ok(()) => sqlite::SQLITE_OK,
        Err(failure) => {
            vfs.report(failure.code.0, &failure.error.to_string());
            failure.code.0
        }
    }
}

unsafe extern "C" fn x_close(file: *mut sqlite3_file) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: open until now, and not used again after this.
    unsafe {
        (*file).base.pMethods = std::ptr::null();
        (*(*file).vfs).close(*Box::from_raw((*file).handle));
    }
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_read(
    file: *mut sqlite3_file,
    out: *mut c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file of ours, and `bytes` initialised bytes at `out`.
    let ((vfs, handle), out) =
        unsafe { (open_file(file), std::slice::from_raw_parts_mut(out.cast(), bytes as usize)) };
    let whole = match handle {
        Handle::Database(database) => database.read(offset as u64, out),
        Handle::Journal(journal) => Ok(journal.read(offset as u64, out)),
    };
    match whole {
        Ok(false) => sqlite::SQLITE_IOERR_SHORT_READ,
        whole => told(vfs, whole.map(|_| ())),
    }
}

unsafe extern "C" fn x_write(
    file: *mut sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file of ours, and `bytes` bytes at `data`.
    let ((vfs, handle), data) =
        unsafe { (open_file(file), std::slice::from_raw_parts(data.cast(), bytes as usize)) };
    match handle {
        Handle::Database(database) => told(vfs, database.write(offset as u64, data)),
        Handle::Journal(journal) => {
            journal.write(offset as u64, data);
            sqlite::SQLITE_OK
        }
    }
}

unsafe extern "C" fn x_truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: an open file of ours.
    match unsafe { open_file(file) } {
        (vfs, Handle::Database(database)) => told(vfs, database.truncate(size as u64)),
        (_, Handle::Journal(journal)) => {
            journal.truncate(size as u64);
            sqlite::SQLITE_OK
        }
    }
}

// The commit point is told through `x_file_control`; see `crate::file`.
unsafe extern "C" fn x_sync(_: *mut sqlite3_file, _: c_int) -> c_int {
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_file_size(file: *mut sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: an open file of ours, and a place for the answer.
    unsafe {
        *out = match open_file(file).1 {
            Handle::Database(database) => database.size(),
            Handle::Journal(journal) => journal.size(),
        } as i64;
    }
    sqlite::SQLITE_OK
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
    match unsafe { open_file(file) }.1 {
        Handle::Database(database) => match database.lock(level_of(level)) {
            true => sqlite::SQLITE_OK,
            false => sqlite::SQLITE_BUSY,
        },
        Handle::Journal(_) => sqlite::SQLITE_OK,
    }
}

unsafe extern "C" fn x_unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    if let (_, Handle::Database(database)) = unsafe { open_file(file) } {
        database.unlock(level_of(level));
    }
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file of ours, and a place for the answer.
    unsafe {
        *out = match open_file(file).1 {
            Handle::Database(database) => c_int::from(database.reserved()),
            Handle::Journal(_) => 0,
        };
    }
    sqlite::SQLITE_OK
}

unsafe extern "C" fn x_sector_size(_: *mut sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn x_device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open file of ours.
    let (vfs, handle) = unsafe { open_file(file) };
    let always = sqlite::SQLITE_IOCAP_POWERSAFE_OVERWRITE
        | sqlite::SQLITE_IOCAP_SAFE_APPEND
        | sqlite::SQLITE_IOCAP_SEQUENTIAL;
    match handle {
        Handle::Database(_) if vfs.batch_atomic => always | sqlite::SQLITE_IOCAP_BATCH_ATOMIC,
        _ => always,
    }
}

unsafe extern "C" fn x_file_control(
    file: *mut sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: an open file of ours.
    let (vfs, Handle::Database(database)) = (unsafe { open_file(file) }) else {
        return sqlite::SQLITE_NOTFOUND;
    };
    match operation {
        sqlite::SQLITE_FCNTL_SYNC => told(vfs, database.sync(!argument.is_null())),
        sqlite::SQLITE_FCNTL_COMMIT_PHASETWO => told(vfs, database.commit_phase_two()),
        sqlite::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE if vfs.batch_atomic => sqlite::SQLITE_OK,
        sqlite::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE => told(vfs, database.commit_batch()),
        sqlite::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE => {
            database.rollback_batch();
            sqlite::SQLITE_OK
        }
        sqlite::SQLITE_FCNTL_LOCKSTATE => {
            // SAFETY: this operation gives a place for a number.
            unsafe { *argument.cast::<c_int>() = database.level() as c_int };
            sqlite::SQLITE_OK
        }
        sqlite::SQLITE_FCNTL_VFSNAME => {
            // SAFETY: this operation gives a place for a string that SQLite frees.
            unsafe { *argument.cast::<*mut c_char>() = vfs.api.text(&vfs.name) };
            sqlite::SQLITE_OK
        }
        // SAFETY: this operation gives three strings, the last of them perhaps null.
        sqlite::SQLITE_FCNTL_PRAGMA => unsafe { pragma(vfs, database, argument.cast()) },
        _ => sqlite::SQLITE_NOTFOUND,
    }
}

/// `strings` is a place for an answer, the pragma's name, and its argument or null.
///
/// # Safety
/// As SQLite gives them to `SQLITE_FCNTL_PRAGMA`.
unsafe fn pragma(vfs: &Vfs, database: &mut DatabaseFile, strings: *mut *mut c_char) -> c_int {
    // SAFETY: three pointers; the second is a C string, the third one or null.
    let (name, argument) = unsafe {
        let argument = *strings.add(2);
        let text = |text: *const c_char| CStr::from_ptr(text).to_string_lossy();
        (text(*strings.add(1)), (!argument.is_null()).then(|| text(argument)))
    };
    let answer = match (name.to_ascii_lowercase().as_str(), argument) {
        ("tantalum_error", None) => vfs.last_error(),
        // Answered here, because in locking_mode=EXCLUSIVE SQLite would try WAL without shared
        // memory, and mark the database before it finds that it cannot.
        ("journal_mode", Some(mode)) if mode.eq_ignore_ascii_case("wal") => {
            vfs.report(sqlite::SQLITE_WARNING, WAL_REFUSED);
            database.journal_mode.into()
        }
        ("journal_mode", Some(mode)) => {
            let known = ["delete", "truncate", "persist", "memory", "off"];
            if let Some(mode) = known.into_iter().find(|known| mode.eq_ignore_ascii_case(known)) {
                database.journal_mode = mode;
            }
            return sqlite::SQLITE_NOTFOUND;
        }
        _ => return sqlite::SQLITE_NOTFOUND,
    };
    // SAFETY: the first of the three is the place for the answer.
    unsafe { *strings = vfs.api.text(&answer) };
    sqlite::SQLITE_OK
}
