//! The VFS as SQLite calls it. All unsafe code of this crate is in this module.
//!
//! ```text
//! api         the few SQLite functions that a VFS needs: linked in, or from an extension's table
//! vfs         registration, and the callbacks of `sqlite3_vfs`
//! methods     the callbacks of an open file, `sqlite3_io_methods`
//! controls    file controls, one of the callbacks
//! asking      queries to SQLite from within a callback
//! stop        stops panics before they reach C
//! over_base   the parts of a VFS that SQLite's default VFS serves
//! counting    a VFS that counts the writes of ordinary databases
//! extension   the loadable extension's entry points
//! ```
/// The table of an open file's callbacks, with the usual names, of the module that uses this macro.
/// The callbacks of memory mapping are arguments, because not every VFS has them.
macro_rules! io_methods {
    ($version:literal, $fetch:expr, $unfetch:expr) => {
        sqlite3_io_methods {
            iVersion: $version,
            xClose: Some(x_close),
            xRead: Some(x_read),
            xWrite: Some(x_write),
            xTruncate: Some(x_truncate),
            xSync: Some(x_sync),
            xFileSize: Some(x_file_size),
            xLock: Some(x_lock),
            xUnlock: Some(x_unlock),
            xCheckReservedLock: Some(x_check_reserved_lock),
            xFileControl: Some(x_file_control),
            xSectorSize: Some(x_sector_size),
            xDeviceCharacteristics: Some(x_device_characteristics),
            xShmMap: Some(x_shm_map),
            xShmLock: Some(x_shm_lock),
            xShmBarrier: Some(x_shm_barrier),
            xShmUnmap: Some(x_shm_unmap),
            xFetch: $fetch,
            xUnfetch: $unfetch,
        }
    };
}

mod api;
mod asking;
mod controls;
pub mod counting;
mod extension;
mod methods;
mod over_base;
mod stop;
mod vfs;

pub use extension::register_loadable;
pub use vfs::register;
