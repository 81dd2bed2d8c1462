//! The few functions of SQLite that a VFS calls.
use libsqlite3_sys as sqlite;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use tantalum_base::{Error, ErrorKind, Result};

type VfsFind = unsafe extern "C" fn(*const c_char) -> *mut sqlite::sqlite3_vfs;
type VfsRegister = unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, c_int) -> c_int;
type Log = unsafe extern "C" fn(c_int, *const c_char, ...);
type Mprintf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;

/// Functions of the SQLite library that this VFS is registered with.
#[derive(Clone, Copy)]
pub(super) struct Api {
    vfs_find: VfsFind,
    vfs_register: VfsRegister,
    log: Log,
    mprintf: Mprintf,
}

// Places in `struct sqlite3_api_routines` of `sqlite3ext.h`, which only ever grows at its end.
const MPRINTF: usize = 69;
const VFS_FIND: usize = 141;
const VFS_REGISTER: usize = 142;
const LOG: usize = 167;

impl Api {
    /// Those of the library that is linked into this program, which is started.
    pub(super) fn started() -> Result<Api> {
        // SAFETY: has no conditions; initialising again does nothing.
        let code = unsafe { sqlite::sqlite3_initialize() };
        if code != sqlite::SQLITE_OK {
            let context = format!("SQLite did not start ({code})");
            return Err(Error::new(ErrorKind::Unsupported, context));
        }
        Ok(Api {
            vfs_find: sqlite::sqlite3_vfs_find,
            vfs_register: sqlite::sqlite3_vfs_register,
            log: sqlite::sqlite3_log,
            mprintf: sqlite::sqlite3_mprintf,
        })
    }

    /// Those of the library that loads an extension.
    ///
    /// # Safety
    /// `routines` is null or what SQLite (3.6.16 or later) gave the entry point of an extension.
    pub(super) unsafe fn of_loader(routines: *const c_void) -> Option<Api> {
        let table = routines.cast::<*const c_void>();
        // SAFETY: the table has more than LOG entries since 3.6.16, each a function pointer.
        let entry = |at: usize| unsafe { *table.add(at) };
        let wanted = [MPRINTF, VFS_FIND, VFS_REGISTER, LOG];
        if table.is_null() || wanted.iter().any(|at| entry(*at).is_null()) {
            return None;
        }
        // SAFETY: not null, and of these types by the table's declaration.
        unsafe {
            Some(Api {
                vfs_find: std::mem::transmute::<*const c_void, VfsFind>(entry(VFS_FIND)),
                vfs_register: std::mem::transmute::<*const c_void, VfsRegister>(entry(
                    VFS_REGISTER,
                )),
                log: std::mem::transmute::<*const c_void, Log>(entry(LOG)),
                mprintf: std::mem::transmute::<*const c_void, Mprintf>(entry(MPRINTF)),
            })
        }
    }

    /// The VFS of that name, or the default one; null where there is none.
    pub(super) fn find(&self, name: Option<&CStr>) -> *mut sqlite::sqlite3_vfs {
        // SAFETY: null or a C string that outlives the call.
        unsafe { (self.vfs_find)(name.map_or(std::ptr::null(), CStr::as_ptr)) }
    }

    /// Registers `vfs`, not as the default.
    ///
    /// # Safety
    /// `vfs` is complete and lives as long as the process.
    pub(super) unsafe fn register(&self, vfs: *mut sqlite::sqlite3_vfs) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { (self.vfs_register)(vfs, 0) }
    }

    /// Writes to SQLite's error log.
    pub(super) fn log(&self, code: c_int, text: &str) {
        let text = c_text(text);
        // SAFETY: the format takes one C string, and gets it.
        unsafe { (self.log)(code, c"%s".as_ptr(), text.as_ptr()) }
    }

    /// A copy of `text` that SQLite frees; null where memory is out.
    pub(super) fn text(&self, text: &str) -> *mut c_char {
        let text = c_text(text);
        // SAFETY: the format takes one C string, and gets it.
        unsafe { (self.mprintf)(c"%s".as_ptr(), text.as_ptr()) }
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}
