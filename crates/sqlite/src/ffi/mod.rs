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
