//! A durable, transactional volume of pages, for programs in Rust.
//!
//! ```
//! # fn main() -> tantalum::Result<()> {
//! # let folder = tempfile::tempdir().map_err(|error| tantalum::Error::io("a folder", error))?;
//! # let path = folder.path().join("accounts");
//! use tantalum::{PageBuf, PageNo, Volume};
//!
//! let volume = Volume::create(&path).capacity_bytes(16 << 20).open()?;
//! let mut transaction = volume.begin()?;
//! transaction.write(PageNo(7), vec![PageBuf::copy_from(&[1; 4096])])?;
//! transaction.write_at(100_000, b"anywhere, and of any length")?;
//! transaction.commit()?; // Both are durable, or neither is. Dropped without a commit, it leaves nothing.
//!
//! let mut text = [0; 8];
//! volume.read_at(100_000, &mut text)?;
//! assert_eq!(&text, b"anywhere");
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! create       creates a volume
//! options      options for opening a volume
//! opening      opens a volume in this process, or connects to the process that serves it
//! volume       an open volume: pages, bytes, and all other operations of a device
//! transaction  changes that take effect together or not at all
//! bytes        reads and writes at byte offsets, as pages
//! front_end    for SQLite's VFS, the C interface and others that give a volume to other programs
//! shared       the state that all handles share
//! host         a volume in this process, on the callers' threads or on one of its own
//! link         the ways to reach an open device: a channel, the caller's own thread (lent), a server
//! reopening    reopens a read-only volume for writing
//! counters     counters of a program that opened a volume itself, for `tantalum stat` and `top`
//! ```
//!
//! The durability promises are in `docs/durability.md`; `docs/rust.md` describes the whole interface.
mod bytes;
mod counters;
mod create;
pub mod front_end;
mod host;
mod link;
mod opening;
mod options;
mod reopening;
mod shared;
mod transaction;
mod volume;

pub use create::Create;
pub use options::{OpenOptions, Placement};
pub use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result,
};
pub use tantalum_runtime::{DevicePart, Finding};
pub use tantalum_volume::{CheckReport, Stat};
pub use transaction::Transaction;
pub use volume::Volume;
