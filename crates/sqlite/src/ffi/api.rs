//! The few functions of SQLite that a VFS calls.
use libsqlite3_sys as sqlite;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use tantalum_base::{Error, ErrorKind, Result};

type VfsFind = unsafe extern "C" fn(*const c_char) -> *mut sqlite::sqlite3_vfs;
type VfsRegister = unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, c_int) -> c_int;
type Log = unsafe extern "C" fn(c_int, *const c_char, ...);
type Mprintf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;
type Prepare = unsafe extern "C" fn(
    *mut sqlite::sqlite3,
    *const c_char,
    c_int,
    *mut *mut sqlite::sqlite3_stmt,
    *mut *const c_char,
) -> c_int;
type Step = unsafe extern "C" fn(*mut sqlite::sqlite3_stmt) -> c_int;
type ColumnText = unsafe extern "C" fn(*mut sqlite::sqlite3_stmt, c_int) -> *const c_uchar;
type Finalize = unsafe extern "C" fn(*mut sqlite::sqlite3_stmt) -> c_int;
type UriBoolean = unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> c_int;
type FileControl =
    unsafe extern "C" fn(*mut sqlite::sqlite3, *const c_char, c_int, *mut c_void) -> c_int;

/// Functions of the SQLite library that this VFS is registered with.
#[derive(Clone, Copy)]
pub(super) struct Api {
    vfs_find: VfsFind,
    vfs_register: VfsRegister,
    log: Log,
    mprintf: Mprintf,
    prepare: Prepare,
    step: Step,
    column_text: ColumnText,
    finalize: Finalize,
    file_control: FileControl,
    uri_boolean: UriBoolean,
}

// Places in `struct sqlite3_api_routines` of `sqlite3ext.h`, which only ever grows at its end.
const COLUMN_TEXT: usize = 36;
const FINALIZE: usize = 57;
const MPRINTF: usize = 69;
const STEP: usize = 94;
const PREPARE: usize = 116;
const FILE_CONTROL: usize = 127;
const VFS_FIND: usize = 141;
const VFS_REGISTER: usize = 142;
const LOG: usize = 167;
const URI_BOOLEAN: usize = 187;

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
            prepare: sqlite::sqlite3_prepare_v2,
            step: sqlite::sqlite3_step,
            column_text: sqlite::sqlite3_column_text,
            finalize: sqlite::sqlite3_finalize,
            file_control: sqlite::sqlite3_file_control,
            uri_boolean: sqlite::sqlite3_uri_boolean,
        })
    }

    /// Those of the library that loads an extension.
    ///
    /// # Safety
    /// `routines` is null or what SQLite (3.7.15 or later) gave the entry point of an extension.
    pub(super) unsafe fn of_loader(routines: *const c_void) -> Option<Api> {
        let table = routines.cast::<*const c_void>();
        // SAFETY: the table has more than URI_BOOLEAN entries since 3.7.15, each a function pointer.
        let entry = |at: usize| unsafe { *table.add(at) };
        let wanted = [
            COLUMN_TEXT,
            FINALIZE,
            MPRINTF,
            STEP,
            PREPARE,
            FILE_CONTROL,
            VFS_FIND,
            VFS_REGISTER,
            LOG,
            URI_BOOLEAN,
        ];
        if table.is_null() || wanted.iter().any(|at| entry(*at).is_null()) {
            return None;
        }
        // SAFETY: not null, and of these types by the table's declaration.
        unsafe {
            use std::mem::transmute;
            Some(Api {
                vfs_find: transmute::<*const c_void, VfsFind>(entry(VFS_FIND)),
                vfs_register: transmute::<*const c_void, VfsRegister>(entry(VFS_REGISTER)),
                log: transmute::<*const c_void, Log>(entry(LOG)),
                mprintf: transmute::<*const c_void, Mprintf>(entry(MPRINTF)),
                prepare: transmute::<*const c_void, Prepare>(entry(PREPARE)),
                step: transmute::<*const c_void, Step>(entry(STEP)),
                column_text: transmute::<*const c_void, ColumnText>(entry(COLUMN_TEXT)),
                finalize: transmute::<*const c_void, Finalize>(entry(FINALIZE)),
                file_control: transmute::<*const c_void, FileControl>(entry(FILE_CONTROL)),
                uri_boolean: transmute::<*const c_void, UriBoolean>(entry(URI_BOOLEAN)),
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

    /// Column `column` of each row that `sql` gives, as text; what comes after an error is missing.
    ///
    /// # Safety
    /// `connection` is open and this thread may use it.
    pub(super) unsafe fn column(
        &self,
        connection: *mut sqlite::sqlite3,
        sql: &CStr,
        column: c_int,
    ) -> Vec<CString> {
        let mut statement = std::ptr::null_mut();
        let mut rows = Vec::new();
        // SAFETY: as the caller promises; a statement that could not be made is null, which is
        // nothing to finalize; a text is null or valid until the next step.
        unsafe {
            let out = &raw mut statement;
            let made = (self.prepare)(connection, sql.as_ptr(), -1, out, std::ptr::null_mut());
            while made == sqlite::SQLITE_OK && (self.step)(statement) == sqlite::SQLITE_ROW {
                let text = (self.column_text)(statement, column);
                if !text.is_null() {
                    rows.push(CStr::from_ptr(text.cast()).to_owned());
                }
            }
            (self.finalize)(statement);
        }
        rows
    }

    /// The file that database `name` of `connection` is in; null where there is none.
    ///
    /// # Safety
    /// `connection` is open and this thread may use it.
    pub(super) unsafe fn file_of(
        &self,
        connection: *mut sqlite::sqlite3,
        name: &CStr,
    ) -> *mut sqlite::sqlite3_file {
        let mut file: *mut sqlite::sqlite3_file = std::ptr::null_mut();
        // SAFETY: as the caller promises; this operation gives a place for a pointer.
        unsafe {
            let out = (&raw mut file).cast();
            (self.file_control)(connection, name.as_ptr(), sqlite::SQLITE_FCNTL_FILE_POINTER, out);
        }
        file
    }

    /// What `key` is in the URI that a file is opened by; `otherwise` where it is not there.
    ///
    /// # Safety
    /// `name` is what SQLite gave to xOpen for a database, with `SQLITE_OPEN_URI`.
    pub(super) unsafe fn uri_boolean(
        &self,
        name: *const c_char,
        key: &CStr,
        otherwise: bool,
    ) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.uri_boolean)(name, key.as_ptr(), c_int::from(otherwise)) != 0 }
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
