//! Queries SQLite itself from within a callback.
use super::methods::OpenFile;
use super::stop::caught;
use sqlite::sqlite3_file;
use std::ffi::CString;

use libsqlite3_sys as sqlite;

/// The journal mode in force for the database in `file`; `None` if SQLite did not pass the
/// connection that uses the file. The requested mode is no substitute: in the middle of a
/// transaction SQLite does not change the mode.
///
/// During this call SQLite calls back into the file.
///
/// # Safety
/// `file` is an open file of ours, in a file control that SQLite calls for its user (a pragma), so
/// that its connection may be used; nothing of the file is borrowed.
pub(super) unsafe fn journal_mode_in_force(file: *mut sqlite3_file) -> Option<String> {
    let own = file.cast::<OpenFile>();
    // SAFETY: as the caller promises; SQLite keeps the connection's place as long as the file.
    unsafe {
        if (*own).state.connection.is_null() {
            return None;
        }
        let connection = *(*own).state.connection;
        let api = &(*(*own).vfs).api;
        (*own).state.asking = true;
        let mode = caught(|| {
            let names = api.column(connection, c"PRAGMA database_list", 1);
            let name = names.into_iter().find(|name| api.file_of(connection, name) == file)?;
            let quoted = name.to_string_lossy().replace('"', "\"\"");
            let sql = CString::new(format!("PRAGMA \"{quoted}\".journal_mode")).ok()?;
            let mode = api.column(connection, &sql, 0).into_iter().next()?;
            Some(mode.to_string_lossy().into_owned())
        });
        (*own).state.asking = false;
        // If SQLite reports WAL, it uses a journal as in mode DELETE, because the file has no WAL.
        mode.flatten().map(|mode| if mode == "wal" { "delete".into() } else { mode })
    }
}
