//! The VFS as SQLite calls it. All that is unsafe in this crate is in here.
//!
//! ```text
//! api         the few SQLite functions that a VFS needs: linked in, or from an extension's table
//! vfs         registration, and the callbacks of `sqlite3_vfs`
//! methods     the callbacks of an open file, `sqlite3_io_methods`
//! controls    file controls, one of the callbacks
//! asking      what only SQLite knows, asked from within a callback
//! stop        panics stop before C
//! over_base   what a VFS leaves to SQLite's default one
//! counting    a VFS that counts what ordinary databases write
//! extension   the loadable extension's entry points
//! ```
/// The table of an open file's callbacks: those of the module that writes it, by their usual names.
/// Memory mapping is given apart, as not every VFS has it.
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
