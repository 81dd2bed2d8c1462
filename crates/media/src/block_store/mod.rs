//! A flat extent of bytes that can be made durable: a file, a block device, memory.
//!
//! ```text
//! BlockStore        the contract
//! ├ memory          chunks in RAM; handles share one content, so it outlives a "reopen"
//! ├ file            a file or a block device: direct I/O, real syncs; its partitions (partitions)
//! │ ├ opening       opens it and locks out other users
//! │ ├ ending        the last sectors of a file that ends within a block
//! │ ├ spare         space reserved past the end, used when the file system is full
//! │ └ in_use        other users: file systems, swap, devices built on it
//! refusals          reasons why it is not opened
//! ├ counting        wrapper: counts operations; other threads may read the counters
//! ├ salvage         wrapper: returns zeros for unreadable blocks
//! ├ crash           wrapper: holds unsynced writes back, and drops, reorders or tears them
//! ├ flaky           wrapper: fails operations for a while
//! ├ until_cut       wrapper: stops everything at a power cut
//! └ layer           base of wrappers: a StoreLayer forwards every call that it does not override
//! place             identity of the file behind a path, independent of its name
//! buffer_pool       I/O buffers, reused instead of allocated per operation
//! ```
use tantalum_base::Result;

mod buffer_pool;
mod cached;
pub mod counting;
pub mod crash;
mod ending;
pub mod file;
mod flaky;
mod in_use;
mod layer;
pub mod memory;
mod opening;
mod partitions;
mod place;
pub mod refusals;
pub mod salvage;
mod spare;
mod until_cut;

pub use buffer_pool::BufferPool;
pub use counting::{Counting, StoreCounters, StoreCounts};
pub use crash::{CrashOptions, CrashStore, CutStyle, IoFaultKind, LostBlocks};
pub use file::{FileStore, FileStoreOptions, PRIVATE_MODE};
pub use flaky::Flaky;
pub use in_use::place_beneath_loops;
pub use layer::{EitherStore, StoreLayer};
pub use memory::MemoryStore;
pub use opening::{holder, no_store};
pub use place::{Place, is_there};
pub use salvage::Salvage;
/// A buffer for direct I/O. The store owns it while an operation runs.
pub use tantalum_runtime::IoBuf;
pub use until_cut::UntilCut;

/// Offsets and lengths are multiples of this many bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// A store may end within a block, but its length is always a multiple of this.
pub const SECTOR_BYTES: u64 = 512;

/// A flat store. Offsets and lengths are multiples of 4096 bytes. If the store ends within a block, an operation that
/// reaches the end is shorter by the missing part of the last block, and its length is a multiple of 512 bytes.
#[allow(async_fn_in_trait, reason = "stores live on one thread; their futures need not be Send")]
pub trait BlockStore: 'static {
    /// Length in bytes.
    fn bytes(&self) -> u64;

    /// Time of the last write by any process, in nanoseconds since 1970; `None` if unknown, as for devices.
    fn modified_ns(&self) -> Option<u64> {
        None
    }

    /// A buffer of `bytes` bytes that is fit for direct I/O on this store. Buffers are reused if possible, so the
    /// content is unspecified.
    fn buffer(&self, bytes: usize) -> IoBuf;

    /// Returns a buffer for [`buffer`](Self::buffer) to reuse.
    fn recycle(&self, buf: IoBuf);

    /// Fills the buffer from `offset`.
    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf>;

    /// Writes the buffer at `offset`. With `durable`, the write survives a power cut once this returns.
    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf>;

    /// Makes every write and zeroing that had returned before this call durable.
    async fn sync(&self) -> Result<()>;

    /// Makes the range read as zeros; durable after the next [`sync`](Self::sync). Each part of the range is either
    /// zero or unchanged after a power cut before that sync, and also after an error.
    async fn zero(&self, offset: u64, bytes: u64) -> Result<()>;

    /// Makes later writes to a never-written range cheap. A file writes zeros over the range, because the first write
    /// to an extent that is only allocated costs the file system a journal commit. Afterwards the content of the
    /// range is unspecified. No other operation on the range may be in flight.
    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()>;

    /// Deallocates the range, that is, returns its space to the owner (such as the file system). Returns whether it
    /// did. The range then reads as zeros until it is written again; after a power cut, parts may read as before.
    /// Most stores own their space permanently and return false.
    ///
    /// # Errors
    /// A range that cannot be deallocated, or not now, is no error.
    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        let _ = (offset, bytes);
        Ok(false)
    }

    /// The first byte at or after `offset` that may have space; `None` if there is none up to the end. A store that
    /// owns its space permanently returns `offset`.
    fn next_room(&self, offset: u64) -> Option<u64> {
        Some(offset)
    }

    /// If writes may run out of space, reserves `bytes`, so that writes that are already accepted do not fail. From
    /// then on [`check_room`](Self::check_room) fails instead.
    fn keep_spare(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Must be called before accepting anything new that will be written.
    ///
    /// # Errors
    /// `OutOfSpace` if there is no space now. Space may become available at any time.
    fn check_room(&self) -> Result<()> {
        Ok(())
    }
}

/// Panics unless the operation is aligned and lies in the store. A violation is a bug of the caller, not an I/O
/// fault.
fn assert_in_store(store_bytes: u64, offset: u64, bytes: u64) {
    let end = offset.checked_add(bytes);
    let reaches_end = end == Some(store_bytes) && bytes.is_multiple_of(SECTOR_BYTES);
    assert!(
        offset.is_multiple_of(BLOCK_BYTES) && (bytes.is_multiple_of(BLOCK_BYTES) || reaches_end),
        "unaligned operation: {bytes} bytes at byte {offset}"
    );
    assert!(
        end.is_some_and(|end| end <= store_bytes),
        "{bytes} bytes at byte {offset} reach past the end of the store ({store_bytes} bytes)"
    );
}
