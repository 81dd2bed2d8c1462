//! The loadable extension: `.load ./libtantalum_sqlite`, then
//! `.open 'file:/path/VOLUME.toml?vfs=tantalum'`.
use super::api::Api;
use super::stop::caught;
use super::vfs::register_with;
use crate::opener::{Options, VolumeOpener};
use libsqlite3_sys as sqlite;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use tantalum::{Result, Volume, front_end};

/// The name of the VFS that the extension registers.
const NAME: &str = "tantalum";

/// Opens volumes by their VOLUME.toml; read-only for connections that only read, and if they must not be written.
struct ByConfiguration;

impl VolumeOpener for ByConfiguration {
    fn open(&self, path: &Path) -> Result<Volume> {
        Volume::open(path)
    }

    fn open_read_only(&self, path: &Path) -> Option<Result<Volume>> {
        Some(front_end::open_to_read(path))
    }
}

/// Registers a VFS with the SQLite library that is loading an extension; for entry points of extensions. Returns
/// the result of the entry point: the code that keeps the extension loaded, even if the VFS is registered already,
/// or `SQLITE_ERROR` with a message.
///
/// # Safety
/// `message` and `routines` are the pointers that SQLite (3.7.15 or later) passed to the entry point.
pub unsafe fn register_loadable(
    message: *mut *mut c_char,
    routines: *const c_void,
    name: &str,
    opener: impl VolumeOpener,
    options: Options,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(api) = (unsafe { Api::of_loader(routines) }) else {
        return sqlite::SQLITE_ERROR;
    };
    let registered = caught(|| match std::ffi::CString::new(name) {
        Ok(taken) if !api.find(Some(&taken)).is_null() => Ok(()),
        _ => register_with(api, name, opener, options).map_err(|error| error.to_string()),
    });
    match registered.unwrap_or_else(|| Err("a bug made loading panic".into())) {
        Ok(()) => sqlite::SQLITE_OK_LOAD_PERMANENTLY,
        // SAFETY: as the caller promises.
        Err(text) => unsafe { refuse(message, api, &text) },
    }
}

/// Reports to SQLite why the extension does not load.
///
/// # Safety
/// `message` is the pointer that SQLite passed to the entry point.
unsafe fn refuse(message: *mut *mut c_char, api: Api, text: &str) -> c_int {
    if !message.is_null() {
        // SAFETY: a place for a string that SQLite frees.
        unsafe { *message = api.text(text) };
    }
    sqlite::SQLITE_ERROR
}

/// The entry point that SQLite tries first.
///
/// # Safety
/// Called by SQLite only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    _database: *mut sqlite::sqlite3,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: SQLite passed both.
    unsafe {
        match (Options::from_environment(), Api::of_loader(routines)) {
            (Ok(options), _) => {
                register_loadable(message, routines, NAME, ByConfiguration, options)
            }
            (Err(error), Some(api)) => refuse(message, api, &error.to_string()),
            (Err(_), None) => sqlite::SQLITE_ERROR,
        }
    }
}

/// The entry point that SQLite derives from the file's name.
///
/// # Safety
/// Called by SQLite only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_tantalumsqlite_init(
    database: *mut sqlite::sqlite3,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: SQLite passed all three.
    unsafe { sqlite3_extension_init(database, message, routines) }
}
