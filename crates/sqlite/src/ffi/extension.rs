//! The loadable extension: `.load ./libtantalum_sqlite`, then
//! `.open 'file:/path/VOLUME.toml?vfs=tantalum'`.
use super::api::Api;
use super::over_base::app_of;
use super::stop::caught;
use super::vfs::{Vfs, register_with};
use crate::opener::{Options, VolumeOpener};
use libsqlite3_sys as sqlite;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;
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

/// Reports to SQLite the reason for which the extension does not load.
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

/// The library that has the SQL function `tantalum_error()`.
static LIBRARY: OnceLock<Api> = OnceLock::new();

/// Gives the connection that loads the extension the SQL function `tantalum_error()`. It returns the last error of the VFS,
/// even if an opening failed, so that there is no connection to that volume.
///
/// # Safety
/// `database` is the connection that SQLite passed to the entry point. The VFS of this name is registered.
unsafe fn add_error_function(api: Api, database: *mut sqlite::sqlite3) {
    // SQLite calls the function without its table of functions. A second library in this process does not get it.
    if !LIBRARY.get_or_init(|| api).is_of_library(&api) {
        return;
    }
    let name = std::ffi::CString::new(NAME).unwrap_or_default();
    let vfs = api.find(Some(&name)).cast();
    // SAFETY: as the caller promises; a registered VFS lives as long as the process. If SQLite has no memory for the
    // function, the extension works without it.
    let _ = unsafe { api.add_function(database, c"tantalum_error", vfs, last_error) };
}

/// The SQL function `tantalum_error()`.
unsafe extern "C" fn last_error(
    context: *mut sqlite::sqlite3_context,
    _count: c_int,
    _arguments: *mut *mut sqlite::sqlite3_value,
) {
    // SAFETY: SQLite calls it with its context, on a connection that loaded the extension.
    let _ = caught(|| unsafe {
        let Some(api) = LIBRARY.get() else { return };
        let vfs = app_of::<Vfs>(api.data_of(context).cast());
        vfs.api.answer(context, &vfs.last_error());
    });
}

/// The entry point that SQLite tries first.
///
/// # Safety
/// Called by SQLite only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    database: *mut sqlite::sqlite3,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: SQLite passed both.
    unsafe {
        match (Options::from_environment(), Api::of_loader(routines)) {
            (Ok(options), api) => {
                let code = register_loadable(message, routines, NAME, ByConfiguration, options);
                if let (sqlite::SQLITE_OK_LOAD_PERMANENTLY, Some(api)) = (code, api) {
                    add_error_function(api, database);
                }
                code
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
