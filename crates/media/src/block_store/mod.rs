//! A flat extent of bytes that can be made durable: a file, a block device, memory.
//!
//! ```text
//! BlockStore        the contract
//! ├ memory          chunks in RAM; handles share one content, so it outlives a "reopen"
//! ├ file            a file or a block device: direct I/O, really synced; its partitions (partitions)
//! │ ├ opening       opened, and locked, by nobody else
//! │ ├ ending        the last sectors of one that ends within a block
//! │ ├ spare         room behind its end, for when its file system is full
//! │ └ in_use        who else uses it: file systems, swap, devices over it
//! refusals          why it is not opened
//! ├ counting        wrapper: counts what is written, for other threads to read
//! ├ salvage         wrapper: gives zeros for blocks that cannot be read
//! ├ crash           wrapper: keeps unsynced writes apart, and drops, reorders or tears them
//! ├ flaky           wrapper: fails operations for a while
//! ├ until_cut       wrapper: stops everything at a power cut
//! └ layer           how wrappers are made: a StoreLayer forwards whatever it does not change
//! place             what a path leads to, by whichever of its names
//! buffer_pool       I/O buffers, reused instead of allocated per operation
//! ```
use tantalum_base::Result;

mod buffer_pool;
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
pub use file::{FileStore, FileStoreOptions};
pub use flaky::Flaky;
pub use layer::{EitherStore, StoreLayer};
pub use memory::MemoryStore;
pub use opening::holder;
pub use place::{Place, is_there};
pub use salvage::Salvage;
/// A buffer for direct I/O, owned by the store while an operation runs.
pub use tantalum_runtime::IoBuf;
pub use until_cut::UntilCut;

/// Offsets and lengths are multiples of this many bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// What a store that ends within a block ends with a multiple of.
pub const SECTOR_BYTES: u64 = 512;

/// A flat store. Offsets and lengths are multiples of 4096 bytes; where the store ends within a block, what reaches its end is
/// shorter by what the last block lacks, and is whole sectors of 512 bytes.
#[allow(async_fn_in_trait, reason = "stores live on one thread; their futures need not be Send")]
pub trait BlockStore: 'static {
    /// Length in bytes.
    fn bytes(&self) -> u64;

    /// When it was written last, by anybody, in nanoseconds since 1970; `None` where that is not known, as of devices.
    fn modified_ns(&self) -> Option<u64> {
        None
    }

    /// A buffer of `bytes` bytes fit for this store's direct I/O. Recycled where possible, so its
    /// content is unspecified.
    fn buffer(&self, bytes: usize) -> IoBuf;

    /// Returns a buffer for [`buffer`](Self::buffer) to reuse.
    fn recycle(&self, buf: IoBuf);

    /// Fills the buffer from `offset`.
    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf>;

    /// Writes the buffer at `offset`; with `durable` it survives a power cut once this returns.
    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf>;

    /// Makes every write and zeroing that had returned before this call durable.
    async fn sync(&self) -> Result<()>;

    /// Makes the range read as zeros; durable after the next [`sync`](Self::sync). Until then a power cut, and
    /// for good an error, leaves each part of it either so or as it was.
    async fn zero(&self, offset: u64, bytes: u64) -> Result<()>;

    /// Makes later writes to a never-written range cheap: a file writes zeros over it, because the
    /// first write to an extent that is only allocated costs its file system a journal commit. The
    /// range's content is unspecified afterwards; no other operation on it may be in flight.
    async fn prepare(&self, offset: u64, bytes: u64) -> Result<()>;

    /// Gives the room of the range back to whoever the store has it of; whether it did. It then reads as zeros, or
    /// after a power cut in part as before, until it is written again. Most stores have all their room for good.
    ///
    /// # Errors
    /// None because it cannot be given back, or not now.
    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        let _ = (offset, bytes);
        Ok(false)
    }

    /// The first byte from `offset` on that may have room; `None` where none has any up to the end. A store that
    /// has all its room for good answers `offset`.
    fn next_room(&self, offset: u64) -> Option<u64> {
        Some(offset)
    }

    /// Where writes may find no room, keeps `bytes` aside, for those that were accepted by then: they do not fail. From
    /// then on [`check_room`](Self::check_room) does.
    fn keep_spare(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Asked before something new is accepted that will be written.
    ///
    /// # Errors
    /// `OutOfSpace` where there is no room, now; it may be there again at any time.
    fn check_room(&self) -> Result<()> {
        Ok(())
    }
}

/// Panics unless the operation is aligned and lies in the store: a caller's mistake, not a fault.
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
