//! SQLite on a Tantalum volume: a SQLite VFS where each commit is one device transaction.
//!
//! No rollback journal and no write-ahead log is written anywhere. What SQLite writes to the
//! database is kept in memory until its commit point, and then goes to the volume as one
//! transaction in one round trip. What outgrows its memory goes there before, invisible until it commits.
//!
//! ```text
//! opener      VolumeOpener: from a path to a Client; Options; TraceSink
//! ffi         the VFS as SQLite calls it: registration, callbacks, the loadable extension
//! file        one connection's open database: reads, buffered writes, the commit point
//! journal     the rollback journal, in memory
//! lock_waits  waits for locks, taken off SQLite's sleeps
//! write_set   the pages of the running transaction
//! staged      what outgrows it, on the volume
//! database    one open volume: its size, its locks, its commits
//! memory      what all databases of a process may keep in memory together
//! page_cache  committed pages in memory, and what a scan reads ahead
//! tree_scan   which pages a scan of an index comes to next
//! header      the page in front of the database
//! codes       the house's errors as SQLite's
//! ```
//!
//! Why commits are atomic whatever the journal mode: `docs/sqlite.md` and the module [`file`]
//! (in the source).
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
pub use opener::{Options, TraceSink, VolumeOpener};
