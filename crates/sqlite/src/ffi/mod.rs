//! The VFS as SQLite calls it. All that is unsafe in this crate is in here.
//!
//! ```text
//! api         the few SQLite functions that a VFS needs: linked in, or from an extension's table
//! vfs         registration, and the callbacks of `sqlite3_vfs`
//! methods     the callbacks of an open file, `sqlite3_io_methods`
//! extension   the loadable extension's entry points
//! ```
mod api;
mod extension;
mod methods;
mod vfs;

pub use extension::register_loadable;
pub use vfs::register;
