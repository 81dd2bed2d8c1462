//! The functions of SQLite that a VFS calls.
use libsqlite3_sys as sqlite;
use sqlite::{sqlite3, sqlite3_context, sqlite3_file, sqlite3_stmt, sqlite3_value, sqlite3_vfs};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use tantalum_base::{Error, ErrorKind, Result};

/// An implementation of an SQL function.
pub(super) type SqlFunction =
    unsafe extern "C" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value);

/// Each function with its type and its index in `struct sqlite3_api_routines` of `sqlite3ext.h`, which
/// only ever grows at its end.
macro_rules! api {
    ($($name:ident = $linked:ident, $place:literal: unsafe extern "C" fn($($type:tt)*) $(-> $out:ty)?;)*) => {
        /// Functions of the SQLite library that this VFS is registered with.
        #[derive(Clone, Copy)]
        pub(super) struct Api {
            $($name: unsafe extern "C" fn($($type)*) $(-> $out)?,)*
        }

        impl Api {
            const PLACES: &[usize] = &[$($place),*];

            fn linked() -> Api {
                Api { $($name: sqlite::$linked,)* }
            }

            /// # Safety
            /// `entry` returns the functions at these indexes.
            unsafe fn of_table(entry: impl Fn(usize) -> *const c_void) -> Api {
                // SAFETY: of these types by the table's declaration.
                unsafe {
                    Api {
                        $($name: std::mem::transmute::<
                            *const c_void,
                            unsafe extern "C" fn($($type)*) $(-> $out)?,
                        >(entry($place)),)*
                    }
                }
            }
        }
    };
}

api! {
    column_text = sqlite3_column_text, 36: unsafe extern "C" fn(*mut sqlite3_stmt, c_int) -> *const c_uchar;
    create_function = sqlite3_create_function_v2, 162: unsafe extern "C" fn(
        *mut sqlite3,
        *const c_char,
        c_int,
        c_int,
        *mut c_void,
        Option<SqlFunction>,
        Option<SqlFunction>,
        Option<unsafe extern "C" fn(*mut sqlite3_context)>,
        Option<unsafe extern "C" fn(*mut c_void)>
    ) -> c_int;
    finalize = sqlite3_finalize, 57: unsafe extern "C" fn(*mut sqlite3_stmt) -> c_int;
    mprintf = sqlite3_mprintf, 69: unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;
    result_text = sqlite3_result_text, 85: unsafe extern "C" fn(
        *mut sqlite3_context,
        *const c_char,
        c_int,
        Option<unsafe extern "C" fn(*mut c_void)>
    );
    step = sqlite3_step, 94: unsafe extern "C" fn(*mut sqlite3_stmt) -> c_int;
    prepare = sqlite3_prepare_v2, 116: unsafe extern "C" fn(
        *mut sqlite3,
        *const c_char,
        c_int,
        *mut *mut sqlite3_stmt,
        *mut *const c_char
    ) -> c_int;
    file_control = sqlite3_file_control, 127: unsafe extern "C" fn(
        *mut sqlite3,
        *const c_char,
        c_int,
        *mut c_void
    ) -> c_int;
    vfs_find = sqlite3_vfs_find, 141: unsafe extern "C" fn(*const c_char) -> *mut sqlite3_vfs;
    vfs_register = sqlite3_vfs_register, 142: unsafe extern "C" fn(*mut sqlite3_vfs, c_int) -> c_int;
    log = sqlite3_log, 167: unsafe extern "C" fn(c_int, *const c_char, ...);
    user_data = sqlite3_user_data, 101: unsafe extern "C" fn(*mut sqlite3_context) -> *mut c_void;
    uri_boolean = sqlite3_uri_boolean, 187: unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> c_int;
    uri_parameter = sqlite3_uri_parameter, 189: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;
}

impl Api {
    /// The functions of the library linked into this program, after initializing it.
    pub(super) fn started() -> Result<Api> {
        // SAFETY: has no conditions; initialising again does nothing.
        let code = unsafe { sqlite::sqlite3_initialize() };
        if code != sqlite::SQLITE_OK {
            let context = format!("SQLite did not start ({code})");
            return Err(Error::new(ErrorKind::Unsupported, context));
        }
        Ok(Api::linked())
    }

    /// The functions of the library that loads an extension.
    ///
    /// # Safety
    /// `routines` is null or the pointer that SQLite (3.7.15 or later) passed to the entry point of an
    /// extension.
    pub(super) unsafe fn of_loader(routines: *const c_void) -> Option<Api> {
        let table = routines.cast::<*const c_void>();
        // SAFETY: since 3.7.15 the table has more entries than these, each a function pointer.
        let entry = |at: usize| unsafe { *table.add(at) };
        if table.is_null() || Api::PLACES.iter().any(|at| entry(*at).is_null()) {
            return None;
        }
        // SAFETY: none of them is null.
        Some(unsafe { Api::of_table(entry) })
    }

    /// The VFS with this name, or the default one; null if there is none.
    pub(super) fn find(&self, name: Option<&CStr>) -> *mut sqlite3_vfs {
        // SAFETY: null or a C string that outlives the call.
        unsafe { (self.vfs_find)(name.map_or(std::ptr::null(), CStr::as_ptr)) }
    }

    /// Registers `vfs`, not as the default.
    ///
    /// # Safety
    /// `vfs` is complete and lives as long as the process.
    pub(super) unsafe fn register(&self, vfs: *mut sqlite3_vfs) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { (self.vfs_register)(vfs, 0) }
    }

    /// Writes to SQLite's error log.
    pub(super) fn log(&self, code: c_int, text: &str) {
        let text = c_text(text);
        // SAFETY: the format takes one C string, and gets it.
        unsafe { (self.log)(code, c"%s".as_ptr(), text.as_ptr()) }
    }

    /// Column `column` of each row that `sql` returns, as text; rows after an error are missing.
    ///
    /// # Safety
    /// `connection` is open and this thread may use it.
    pub(super) unsafe fn column(
        &self,
        connection: *mut sqlite3,
        sql: &CStr,
        column: c_int,
    ) -> Vec<CString> {
        let mut statement = std::ptr::null_mut();
        let mut rows = Vec::new();
        // SAFETY: as the caller promises; if a statement cannot be prepared it is null, which is
        // harmless to finalize; a text is null or valid until the next step.
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

    /// The file of database `name` of `connection`; null if there is none.
    ///
    /// # Safety
    /// `connection` is open and this thread may use it.
    pub(super) unsafe fn file_of(
        &self,
        connection: *mut sqlite3,
        name: &CStr,
    ) -> *mut sqlite3_file {
        let mut file: *mut sqlite3_file = std::ptr::null_mut();
        // SAFETY: as the caller promises; this operation expects a place for a pointer.
        unsafe {
            let out = (&raw mut file).cast();
            (self.file_control)(connection, name.as_ptr(), sqlite::SQLITE_FCNTL_FILE_POINTER, out);
        }
        file
    }

    /// The value of `key` in the URI by which a file is opened; `otherwise` if the URI does not have it.
    ///
    /// # Safety
    /// `name` is the pointer that SQLite passed to xOpen for a database, with `SQLITE_OPEN_URI`.
    pub(super) unsafe fn uri_boolean(
        &self,
        name: *const c_char,
        key: &CStr,
        otherwise: bool,
    ) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.uri_boolean)(name, key.as_ptr(), c_int::from(otherwise)) != 0 }
    }

    /// Whether the file name `name` has a parameter `key`.
    ///
    /// # Safety
    /// As for [`Api::uri_boolean`].
    pub(super) unsafe fn has_uri_parameter(&self, name: *const c_char, key: &CStr) -> bool {
        // SAFETY: as the caller promises.
        unsafe { !(self.uri_parameter)(name, key.as_ptr()).is_null() }
    }

    /// Gives `connection` an SQL function without arguments.
    ///
    /// # Safety
    /// `connection` is open and this thread may use it. `function` takes `data`, which lives as long as the process.
    pub(super) unsafe fn add_function(
        &self,
        connection: *mut sqlite3,
        name: &CStr,
        data: *mut c_void,
        function: SqlFunction,
    ) -> c_int {
        let (name, encoding) = (name.as_ptr(), sqlite::SQLITE_UTF8);
        let function = Some(function);
        // SAFETY: as the caller promises; the name is copied.
        unsafe {
            (self.create_function)(connection, name, 0, encoding, data, function, None, None, None)
        }
    }

    /// Whether these are the functions of the same library.
    pub(super) fn is_of_library(&self, other: &Api) -> bool {
        self.user_data as usize == other.user_data as usize
    }

    /// The data of the SQL function that is called.
    ///
    /// # Safety
    /// `context` is the pointer that SQLite passed to the function.
    pub(super) unsafe fn data_of(&self, context: *mut sqlite3_context) -> *mut c_void {
        // SAFETY: as the caller promises.
        unsafe { (self.user_data)(context) }
    }

    /// Answers the call of an SQL function with `text`.
    ///
    /// # Safety
    /// As for [`Api::data_of`].
    pub(super) unsafe fn answer(&self, context: *mut sqlite3_context, text: &str) {
        let text = c_text(text);
        // SAFETY: as the caller promises; SQLite copies the text.
        unsafe {
            (self.result_text)(context, text.as_ptr(), -1, sqlite::SQLITE_TRANSIENT());
        }
    }

    /// A copy of `text` that SQLite frees; null if memory is exhausted.
    pub(super) fn text(&self, text: &str) -> *mut c_char {
        let text = c_text(text);
        // SAFETY: the format takes one C string, and gets it.
        unsafe { (self.mprintf)(c"%s".as_ptr(), text.as_ptr()) }
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}
