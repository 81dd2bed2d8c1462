//! Panics stop here, before they unwind into C; and the C library's error number.
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a callback; `None` where it panicked. The caller sees to it that nobody uses
/// what a panic may have left half done.
pub(super) fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    // Dropping what was thrown could panic again.
    catch_unwind(AssertUnwindSafe(body)).map_err(std::mem::forget).ok()
}

/// Sets this thread's `errno`: SQLite's default VFS tells it to `sqlite3_system_errno`.
pub(super) fn set_errno(number: c_int) {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: always a place for this thread's number.
    unsafe { *__errno_location() = number };
}
