//! File controls: operations other than reads, writes and locks, by which SQLite, and programs
//! through it, control and query an open database.
use super::asking::journal_mode_in_force;
use super::methods::{Answer, FileState, Handle, OpenFile, answer};
use super::over_base::temporary_name;
use super::vfs::{Vfs, WAL_REFUSED};
use crate::file::{DatabaseFile, Failure};
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3, sqlite3_file};
use std::ffi::{CStr, c_char, c_int, c_void};

pub(super) unsafe extern "C" fn x_file_control(
    file: *mut sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    if operation == sqlite::SQLITE_FCNTL_PRAGMA {
        // SAFETY: an open file of ours; three strings, the last of which may be null.
        return unsafe { pragma(file, argument.cast()) };
    }
    // SAFETY: an open file of ours, and the argument that SQLite passes with the operation.
    unsafe {
        answer(file, sqlite::SQLITE_IOERR, |vfs, handle, state| match handle {
            Handle::Database(database) => control(vfs, database, state, operation, argument),
            Handle::Journal(_) => Ok(sqlite::SQLITE_NOTFOUND),
        })
    }
}

/// # Safety
/// `argument` is the pointer that SQLite passes with `operation`.
unsafe fn control(
    vfs: &Vfs,
    database: &mut DatabaseFile,
    state: &mut FileState,
    operation: c_int,
    argument: *mut c_void,
) -> Answer {
    let number = argument.cast::<c_int>();
    let done = |done: Result<(), Failure>| done.map(|()| sqlite::SQLITE_OK);
    match operation {
        sqlite::SQLITE_FCNTL_SYNC => return done(database.sync(!argument.is_null())),
        sqlite::SQLITE_FCNTL_COMMIT_PHASETWO => return done(database.commit_phase_two()),
        sqlite::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE if vfs.batch_atomic => database.begin_batch(),
        sqlite::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE if vfs.batch_atomic => database.end_batch(),
        sqlite::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE if vfs.batch_atomic => database.rollback_batch(),
        // A volume has all its space already, so the steps by which the database grows do not
        // matter.
        sqlite::SQLITE_FCNTL_CHUNK_SIZE | sqlite::SQLITE_FCNTL_SIZE_HINT => {}
        sqlite::SQLITE_FCNTL_PDB => state.connection = argument.cast::<*mut sqlite3>(),
        // SAFETY: these operations pass a place for a number; a negative number is a query.
        sqlite::SQLITE_FCNTL_PERSIST_WAL => unsafe { mode(&mut state.persist_wal, number) },
        sqlite::SQLITE_FCNTL_POWERSAFE_OVERWRITE => unsafe {
            mode(&mut state.powersafe_overwrite, number);
        },
        // SAFETY: these operations pass a place for a number.
        sqlite::SQLITE_FCNTL_LOCKSTATE => unsafe { *number = database.level() as c_int },
        sqlite::SQLITE_FCNTL_LAST_ERRNO => unsafe { *number = state.last_errno },
        sqlite::SQLITE_FCNTL_HAS_MOVED => unsafe {
            // Queried in each transaction that writes.
            *number = c_int::from(database.database().is_deleted());
        },
        // SAFETY: these operations pass a place for a string that SQLite frees.
        sqlite::SQLITE_FCNTL_VFSNAME => unsafe {
            *argument.cast::<*mut c_char>() = vfs.api.text(&vfs.name);
        },
        sqlite::SQLITE_FCNTL_TEMPFILENAME => unsafe {
            return Ok(temporary_name(vfs, argument));
        },
        _ => return Ok(sqlite::SQLITE_NOTFOUND),
    }
    Ok(sqlite::SQLITE_OK)
}

/// Sets `mode` to the number, or stores it there if the number is negative.
///
/// # Safety
/// `number` points to a number.
unsafe fn mode(mode: &mut bool, number: *mut c_int) {
    // SAFETY: as the caller promises.
    unsafe {
        match *number {
            ..0 => *number = c_int::from(*mode),
            set => *mode = set != 0,
        }
    }
}

/// `strings` has a place for the answer, the pragma's name, and its argument or null.
///
/// # Safety
/// `file` is an open file of ours, and `strings` is the pointer that SQLite passes with
/// `SQLITE_FCNTL_PRAGMA`.
unsafe fn pragma(file: *mut sqlite3_file, strings: *mut *mut c_char) -> c_int {
    let answer_with = |text: &str| {
        // SAFETY: the first of the three is the place for the answer, which SQLite frees; the
        // VFS is leaked.
        unsafe {
            *strings = (*(*file.cast::<OpenFile>()).vfs).api.text(text);
            if (*strings).is_null() { sqlite::SQLITE_NOMEM } else { sqlite::SQLITE_OK }
        }
    };
    // SAFETY: three pointers; the second is a C string, the third one or null.
    let (name, argument) = unsafe {
        let argument = *strings.add(2);
        let text =
            |text: *const c_char| CStr::from_ptr(text).to_string_lossy().to_ascii_lowercase();
        (text(*strings.add(1)), (!argument.is_null()).then(|| text(argument)))
    };
    let (mut last_error, mut asks_for_wal, mut misled) = (None, false, false);
    let note = |vfs: &Vfs, _: &mut Handle, state: &mut FileState| {
        match (name.as_str(), argument.as_deref()) {
            ("tantalum_error", None) => last_error = Some(vfs.last_error()),
            ("journal_mode", Some("wal")) if !state.asking => {
                asks_for_wal = true;
                vfs.report(sqlite::SQLITE_WARNING, WAL_REFUSED);
            }
            // After a request for WAL, SQLite reports WAL although it uses a journal.
            ("journal_mode", None) if !state.asking => misled = state.asked_for_wal,
            _ => {}
        }
        Ok(sqlite::SQLITE_NOTFOUND)
    };
    // SAFETY: an open file of ours.
    let code = unsafe { answer(file, sqlite::SQLITE_IOERR, note) };
    if let Some(text) = last_error {
        return answer_with(&text);
    }
    // Answered here, because in locking_mode=EXCLUSIVE SQLite would try WAL without shared memory.
    // SAFETY: an open file of ours, which nobody has borrowed now.
    if (asks_for_wal || misled)
        && let Some(mode) = unsafe { journal_mode_in_force(file) }
    {
        return answer_with(&mode);
    }
    code
}
