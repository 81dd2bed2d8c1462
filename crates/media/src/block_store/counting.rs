//! A wrapper that counts operations; any thread may read the counters.
use super::{BlockStore, IoBuf, StoreLayer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tantalum_base::Result;

/// Counters of a [`Counting`] store. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct StoreCounters(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    durable_writes: AtomicU64,
    syncs: AtomicU64,
    zeroings: AtomicU64,
    bytes_zeroed: AtomicU64,
}

/// A snapshot of [`StoreCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Reads that succeeded.
    pub reads: u64,
    /// Bytes read by them.
    pub bytes_read: u64,
    /// Writes that succeeded, including durable ones.
    pub writes: u64,
    /// Bytes written by them.
    pub bytes_written: u64,
    /// Writes that were durable when they returned.
    pub durable_writes: u64,
    /// Syncs of the whole store.
    pub syncs: u64,
    /// Zeroing operations.
    pub zeroings: u64,
    /// Bytes zeroed by them.
    pub bytes_zeroed: u64,
}

impl StoreCounts {
    /// Operations that waited until the medium made something durable.
    pub fn durable_operations(&self) -> u64 {
        self.durable_writes + self.syncs
    }

    /// The counts since the `earlier` snapshot.
    pub fn since(&self, earlier: &StoreCounts) -> StoreCounts {
        StoreCounts {
            reads: self.reads - earlier.reads,
            bytes_read: self.bytes_read - earlier.bytes_read,
            writes: self.writes - earlier.writes,
            bytes_written: self.bytes_written - earlier.bytes_written,
            durable_writes: self.durable_writes - earlier.durable_writes,
            syncs: self.syncs - earlier.syncs,
            zeroings: self.zeroings - earlier.zeroings,
            bytes_zeroed: self.bytes_zeroed - earlier.bytes_zeroed,
        }
    }
}

impl StoreCounters {
    /// The current counts. Exact once the operations of interest have returned.
    pub fn snapshot(&self) -> StoreCounts {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        StoreCounts {
            reads: load(&self.0.reads),
            bytes_read: load(&self.0.bytes_read),
            writes: load(&self.0.writes),
            bytes_written: load(&self.0.bytes_written),
            durable_writes: load(&self.0.durable_writes),
            syncs: load(&self.0.syncs),
            zeroings: load(&self.0.zeroings),
            bytes_zeroed: load(&self.0.bytes_zeroed),
        }
    }
}

fn add(cell: &AtomicU64, amount: u64) {
    cell.fetch_add(amount, Ordering::Relaxed);
}

/// Counts the operations that succeed on the inner store, except the writes of [`BlockStore::prepare`].
#[derive(Clone)]
pub struct Counting<S> {
    inner: S,
    counters: StoreCounters,
}

impl<S: BlockStore> Counting<S> {
    /// Counts on `inner` into `counters`.
    pub fn new(inner: S, counters: StoreCounters) -> Self {
        Counting { inner, counters }
    }

    /// The counters, which outlive the store.
    pub fn counters(&self) -> &StoreCounters {
        &self.counters
    }
}

impl<S: BlockStore> StoreLayer for Counting<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn read(&self, offset: u64, buf: IoBuf) -> Result<IoBuf> {
        let buf = self.inner.read(offset, buf).await?;
        add(&self.counters.0.reads, 1);
        add(&self.counters.0.bytes_read, buf.len() as u64);
        Ok(buf)
    }

    async fn write(&self, offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf> {
        let buf = self.inner.write(offset, buf, durable).await?;
        add(&self.counters.0.writes, 1);
        add(&self.counters.0.bytes_written, buf.len() as u64);
        add(&self.counters.0.durable_writes, u64::from(durable));
        Ok(buf)
    }

    async fn sync(&self) -> Result<()> {
        self.inner.sync().await?;
        add(&self.counters.0.syncs, 1);
        Ok(())
    }

    async fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        self.inner.zero(offset, bytes).await?;
        add(&self.counters.0.zeroings, 1);
        add(&self.counters.0.bytes_zeroed, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, StoreCounters, StoreCounts};
    use crate::block_store::{BlockStore, MemoryStore};
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    #[test]
    fn what_is_written_is_counted() {
        let counters = StoreCounters::default();
        let store = Counting::new(MemoryStore::new(1 << 20), counters.clone());
        let done = Virtual::new(Schedule::Fifo).run(async move {
            store.write(0, store.buffer(8192), true).await.unwrap();
            let before = store.counters.snapshot();
            store.write(8192, store.buffer(4096), false).await.unwrap();
            store.sync().await.unwrap();
            store.zero(4096, 16384).await.unwrap();
            store.read(0, store.buffer(12288)).await.unwrap();
            let after = store.counters.snapshot().since(&before);
            assert_eq!(
                after,
                StoreCounts {
                    reads: 1,
                    bytes_read: 12288,
                    writes: 1,
                    bytes_written: 4096,
                    durable_writes: 0,
                    syncs: 1,
                    zeroings: 1,
                    bytes_zeroed: 16384,
                }
            );
        });
        done.unwrap();
        assert_eq!(counters.snapshot().durable_operations(), 2);
        assert_eq!(counters.snapshot().bytes_written, 12288);
    }
}
