//! The parts of a VFS that SQLite's default VFS serves.
use super::api::Api;
use libsqlite3_sys as sqlite;
use sqlite::sqlite3_vfs;
use std::ffi::{CString, c_char, c_int, c_void};
use tantalum_base::{Error, ErrorKind, Result};

/// The data behind the table of a VFS that is built over the default one.
///
/// # Safety
/// `base` always returns the same VFS, which is complete and lives as long as the process.
pub(super) unsafe trait OverBase: 'static {
    /// The default VFS.
    fn base(&self) -> *mut sqlite3_vfs;
}

/// Registers the VFS called `name`. `table` makes its table from the name for SQLite and the default
/// VFS. The VFS stays registered until the process ends.
///
/// A name that is taken is refused as [`ErrorKind::InvalidInput`].
pub(super) fn register(
    api: Api,
    name: &str,
    table: impl FnOnce(CString, *mut sqlite3_vfs) -> sqlite3_vfs,
) -> Result<()> {
    let refuse = |why: &str| Error::new(ErrorKind::InvalidInput, format!("VFS {name:?}: {why}"));
    let c_name = CString::new(name).map_err(|_| refuse("not a name"))?;
    if !api.find(Some(&c_name)).is_null() {
        return Err(refuse("the name is taken"));
    }
    let base = api.find(None);
    if base.is_null() {
        return Err(refuse("SQLite has no default VFS"));
    }
    // Leaked: SQLite may use a VFS, and threads may be inside it, until the process ends.
    let table = Box::leak(Box::new(table(c_name, base)));
    // SAFETY: complete and leaked.
    match unsafe { api.register(table) } {
        sqlite::SQLITE_OK => Ok(()),
        code => Err(refuse(&format!("SQLite refused it ({code})"))),
    }
}

/// A table that passes everything to `app`'s base, without `xOpen`, `xDelete` and `xAccess`.
/// `file_bytes` computes the allocation for an open file from the base's `szOsFile`. `app` is leaked:
/// SQLite may use a VFS until the process ends.
///
/// # Safety
/// The table is only used with callbacks that treat `app` as a `V`.
pub(super) unsafe fn over_base<V: OverBase>(
    name: CString,
    app: V,
    file_bytes: impl FnOnce(c_int) -> c_int,
) -> sqlite3_vfs {
    // SAFETY: alive, as `OverBase` promises.
    let (base_file_bytes, path_bytes_max) =
        unsafe { ((*app.base()).szOsFile, (*app.base()).mxPathname) };
    sqlite3_vfs {
        iVersion: 2,
        szOsFile: file_bytes(base_file_bytes),
        mxPathname: path_bytes_max,
        pNext: std::ptr::null_mut(),
        zName: name.into_raw(),
        pAppData: Box::into_raw(Box::new(app)).cast(),
        xOpen: None,
        xDelete: None,
        xAccess: None,
        xFullPathname: Some(x_full_pathname::<V>),
        xDlOpen: Some(x_dl_open::<V>),
        xDlError: Some(x_dl_error::<V>),
        xDlSym: Some(x_dl_sym::<V>),
        xDlClose: Some(x_dl_close::<V>),
        xRandomness: Some(x_randomness::<V>),
        xSleep: Some(x_sleep::<V>),
        xCurrentTime: Some(x_current_time::<V>),
        xGetLastError: Some(x_get_last_error::<V>),
        xCurrentTimeInt64: Some(x_current_time_int64::<V>),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

/// The data behind SQLite's table.
///
/// # Safety
/// `table` was made by [`over_base`] with a `V`.
pub(super) unsafe fn app_of<'a, V: OverBase>(table: *mut sqlite3_vfs) -> &'a V {
    // SAFETY: `pAppData` is a leaked `V`.
    unsafe { &*(*table).pAppData.cast::<V>() }
}

/// Stores a name for a temporary file, as the default VFS generates them, in `out`, a place for a
/// string that SQLite frees. The name comes from a temporary file that is opened for this purpose.
///
/// # Safety
/// `out` is the pointer that SQLite passes with `SQLITE_FCNTL_TEMPFILENAME`.
pub(super) unsafe fn temporary_name<V: OverBase>(vfs: &V, out: *mut c_void) -> c_int {
    let base = vfs.base();
    let flags = sqlite::SQLITE_OPEN_READWRITE
        | sqlite::SQLITE_OPEN_CREATE
        | sqlite::SQLITE_OPEN_EXCLUSIVE
        | sqlite::SQLITE_OPEN_DELETEONCLOSE
        | sqlite::SQLITE_OPEN_TEMP_DB;
    // SAFETY: `szOsFile` bytes, aligned, for the default VFS's file; it has methods if it is open,
    // and is closed then.
    unsafe {
        let words = ((*base).szOsFile as usize).div_ceil(size_of::<u64>());
        let mut memory = vec![0u64; words];
        let file = memory.as_mut_ptr().cast::<sqlite::sqlite3_file>();
        let Some(open) = (*base).xOpen else { return sqlite::SQLITE_NOTFOUND };
        let opened = open(base, std::ptr::null(), file, flags, std::ptr::null_mut());
        let Some(methods) = (*file).pMethods.as_ref() else { return opened };
        let told = match methods.xFileControl {
            Some(control) if opened == sqlite::SQLITE_OK => {
                control(file, sqlite::SQLITE_FCNTL_TEMPFILENAME, out)
            }
            _ => sqlite::SQLITE_NOTFOUND,
        };
        if let Some(close) = methods.xClose {
            close(file);
        }
        told
    }
}

/// A callback that passes its arguments to the default VFS.
macro_rules! pass_on {
    ($name:ident, $method:ident, ($($arg:ident: $type:ty),*) -> $out:ty, $otherwise:expr) => {
        pub(super) unsafe extern "C" fn $name<V: OverBase>(
            table: *mut sqlite3_vfs,
            $($arg: $type),*
        ) -> $out {
            // SAFETY: SQLite passes its own table; the other arguments are passed on unchanged.
            unsafe {
                let base = app_of::<V>(table).base();
                match (*base).$method {
                    Some(method) => method(base, $($arg),*),
                    None => $otherwise,
                }
            }
        }
    };
}

type Symbol = Option<unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char)>;

pass_on!(x_delete, xDelete, (name: *const c_char, sync: c_int) -> c_int, sqlite::SQLITE_IOERR_DELETE);
pass_on!(x_access, xAccess, (name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, sqlite::SQLITE_IOERR_ACCESS);
pass_on!(x_full_pathname, xFullPathname, (name: *const c_char, bytes: c_int, out: *mut c_char) -> c_int, sqlite::SQLITE_CANTOPEN);
pass_on!(x_dl_open, xDlOpen, (name: *const c_char) -> *mut c_void, std::ptr::null_mut());
pass_on!(x_dl_error, xDlError, (bytes: c_int, out: *mut c_char) -> (), ());
pass_on!(x_dl_sym, xDlSym, (library: *mut c_void, symbol: *const c_char) -> Symbol, None);
pass_on!(x_dl_close, xDlClose, (library: *mut c_void) -> (), ());
pass_on!(x_randomness, xRandomness, (bytes: c_int, out: *mut c_char) -> c_int, 0);
pass_on!(x_sleep, xSleep, (microseconds: c_int) -> c_int, 0);
pass_on!(x_current_time, xCurrentTime, (out: *mut f64) -> c_int, sqlite::SQLITE_ERROR);
pass_on!(x_get_last_error, xGetLastError, (bytes: c_int, out: *mut c_char) -> c_int, 0);
pass_on!(x_current_time_int64, xCurrentTimeInt64, (out: *mut i64) -> c_int, sqlite::SQLITE_ERROR);
