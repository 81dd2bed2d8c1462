//! SQLite on a Tantalum volume: a SQLite VFS in which each commit is one device transaction.
//!
//! No rollback journal and no write-ahead log is written anywhere. SQLite's writes to the database are
//! kept in memory until its commit point, and then go to the volume as one transaction in one round trip.
//! Writes that outgrow that memory go to the volume earlier, invisible until the commit.
//!
//! ```text
//! opener      VolumeOpener: from a path to an open volume; Options; TraceSink
//! ffi         the VFS as SQLite calls it: registration, callbacks, the loadable extension
//! file        one connection's open database: reads, buffered writes, the commit point
//! journal     the rollback journal, in memory
//! lock_waits  waits for locks, subtracted from SQLite's sleeps
//! write_set   the pages of the running transaction
//! staged      pages that outgrow it, on the volume
//! database    one open volume: its size, its locks, its commits
//! memory      the limit on memory for all databases of a process together
//! page_cache  committed pages in memory, and read-ahead for scans
//! tree_scan   predicts the next pages of a scan of an index
//! header      the page in front of the database
//! codes       maps this project's errors to SQLite's
//! ```
//!
//! `docs/sqlite.md` and the module [`file`] (in the source) explain why commits are atomic in every
//! journal mode.
mod codes;
mod database;
#[expect(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]
mod ffi;
mod file;
mod header;
mod journal;
mod lock_waits;
mod memory;
mod opener;
mod page_cache;
mod staged;
mod tree_scan;
mod write_set;

pub use ffi::{counting, register, register_loadable};
pub use header::pages_of_database;
pub use opener::{Options, TraceSink, VolumeOpener};
