//! A loadable extension for the tests: databases on the tests' reference device, stored in a log
//! file beside the `.toml` that names them. Entry point `sqlite3_filedisk_init`.
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use tantalum_base::Error;
use tantalum_sqlite::Options;

#[path = "../tests/common/disk.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod disk;

/// # Safety
/// Called by SQLite only.
#[expect(unsafe_code, reason = "an entry point that SQLite looks up by name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_filedisk_init(
    _database: *mut c_void,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    let open = |path: &Path| {
        disk::Disk::in_file(&path.with_extension("log"), 1 << 16)
            .map(|disk| disk.client())
            .map_err(|error| Error::io("opening the log", error))
    };
    // SAFETY: SQLite passed both.
    unsafe {
        tantalum_sqlite::register_loadable(message, routines, "filedisk", open, Options::default())
    }
}
