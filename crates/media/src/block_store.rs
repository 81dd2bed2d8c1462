//! A flat extent of bytes that can be made durable: a file, a block device, memory.
use tantalum_base::Result;

/// A buffer for direct I/O, owned by the store while an operation runs.
pub use tantalum_runtime::IoBuf;

/// A flat store. Offsets and lengths are multiples of 4096 bytes.
#[allow(async_fn_in_trait, reason = "stores live on one thread; their futures need not be Send")]
pub trait BlockStore: 'static {
    /// Length in bytes.
    fn bytes(&self) -> u64;

    /// A buffer of `bytes` bytes fit for this store's direct I/O (recycled where possible).
    fn buffer(&self, bytes: usize) -> IoBuf;

    /// Fills the buffer from `offset`.
    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf>;

    /// Writes the buffer at `offset`; with `durable` it survives a power cut once this returns.
    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf>;

    /// Makes every write that had returned before this call durable.
    async fn sync(&self) -> Result<()>;
}
