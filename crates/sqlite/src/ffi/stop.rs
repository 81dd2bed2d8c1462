//! Stops panics before they unwind into C; sets the C library's error number.
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a callback; `None` if it panicked. The caller must make sure that nobody uses
/// state that a panic may have left inconsistent.
pub(super) fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    // Dropping the panic's payload could panic again.
    catch_unwind(AssertUnwindSafe(body)).map_err(std::mem::forget).ok()
}

/// Sets this thread's `errno`, which SQLite's default VFS returns as `sqlite3_system_errno`.
pub(super) fn set_errno(number: c_int) {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: always a valid place for this thread's number.
    unsafe { *__errno_location() = number };
}
