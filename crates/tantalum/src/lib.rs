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
//! volume       an open volume: pages, bytes, and all other operations of a device
//! transaction  changes that take effect together or not at all
//! bytes        reads and writes at byte offsets, as pages
//! ```
//!
//! The durability promises are in `docs/durability.md`; `docs/rust.md` describes the whole interface.
mod bytes;
mod create;
mod transaction;
mod volume;

pub use create::Create;
pub use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result,
};
pub use tantalum_volume::CheckReport;
pub use transaction::Transaction;
pub use volume::Volume;
