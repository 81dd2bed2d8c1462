//! Maps this project's errors to SQLite's result codes.
use libsqlite3_sys as sqlite;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};
use tantalum_base::{Error, ErrorKind};

/// A SQLite result code other than `SQLITE_OK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) c_int);

/// The SQLite code for `error`; `otherwise` if nothing more precise fits.
pub(crate) fn code_of(error: &Error, otherwise: c_int) -> Code {
    Code(match error.kind() {
        ErrorKind::OutOfSpace | ErrorKind::TooLarge => sqlite::SQLITE_FULL,
        ErrorKind::ReadOnly => sqlite::SQLITE_READONLY,
        // A transaction of another program that does not use SQLite's locks has locked a page. SQLite may wait for its
        // end.
        ErrorKind::Conflict => sqlite::SQLITE_BUSY,
        ErrorKind::Checksum | ErrorKind::Corrupt | ErrorKind::Uncorrectable => {
            sqlite::SQLITE_IOERR_DATA
        }
        _ => otherwise,
    })
}

/// The operating system's error number behind `error`; 0 if there is none.
pub(crate) fn errno_of(error: &Error) -> c_int {
    let Some(cause) = error.cause() else { return 0 };
    match (cause.downcast_ref::<std::io::Error>(), cause.downcast_ref::<Error>()) {
        (Some(error), _) => error.raw_os_error().unwrap_or(0),
        (_, Some(error)) => errno_of(error),
        _ => 0,
    }
}

/// Locks a mutex. State behind a mutex is changed in one step, so it is consistent even after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_another_transaction_holds_is_busy_and_no_error_of_the_disk() {
        let code = |kind| code_of(&Error::new(kind, "a page"), sqlite::SQLITE_IOERR_WRITE).0;
        assert_eq!(code(ErrorKind::Conflict), sqlite::SQLITE_BUSY);
        assert_eq!(code(ErrorKind::OutOfSpace), sqlite::SQLITE_FULL);
        assert_eq!(code(ErrorKind::Io), sqlite::SQLITE_IOERR_WRITE);
    }
}
