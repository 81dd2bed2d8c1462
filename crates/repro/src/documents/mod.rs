//! Couchbase as the papers ran it: a document store with a file of its own, under YCSB by one client.
//!
//! ```text
//! mod         documents are loaded, accessed and compacted
//! batches     a commit for so many operations
//! journalled  the file system between the store and the device
//! ```
mod batches;
mod journalled;

use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, Result};
use tantalum_buffer::Buffered;
use tantalum_hosts::docstore::{Block, DocStore, DocStoreOptions, Mode, ValueStamp};
use tantalum_hosts::records::Remembered;
use tantalum_hosts::workload::ycsb::{RecordOptions, Ycsb, YcsbOptions};
use tantalum_models::DeviceSpec;
use tantalum_policy::{PolicySpec, Workload};
use tantalum_replay::device_replay::Device;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

use super::journal::Journal;
use batches::Batches;
use journalled::Journalled;

type Mounted = Buffered<Journalled<Device>>;
type Codec = Remembered<Block<ValueStamp>>;
type Store = Rc<DocStore<Virtual, Mounted, ValueStamp, Codec>>;

/// Pages that the store has in memory. Chosen: at that size the nodes above the leaves stay, of which there are some hundred, beside
/// the six or so pages that an operation adds. By the first paper's table 5 a read costs 0.126 ms (2/6,208 - 1/5,101 s), which is
/// one or two reads of its drive, and it names no cache.
const BUFFER_PAGES: u32 = 2_048;

/// Part of the documents that is loaded at a time; the cost of loading does not matter.
const LOADED_AT_A_TIME: u64 = 16;

/// The device, and the documents.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The device, as text.
    pub device: String,
    /// The file system's journal, and its pages.
    pub journal: (Journal, u64),
    /// How the store commits.
    pub mode: Mode,
    /// The documents.
    pub records: RecordOptions,
    /// Seed of all random choices.
    pub seed: u64,
}

/// A store with its documents.
pub(crate) struct Documents {
    runtime: Virtual,
    mounted: Rc<Mounted>,
    codec: Rc<Codec>,
    ycsb: Rc<Ycsb>,
    setup: Setup,
}

/// The result of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Operations per second.
    pub throughput: f64,
    /// Pages written to the device per operation, including those of the journal.
    pub written_pages: f64,
}

/// The result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compacted {
    /// Its time in seconds.
    pub seconds: f64,
    /// Bytes written to the device, including those of the journal.
    pub written_bytes: u64,
}

impl Documents {
    /// Loads all documents on a new device, and compacts the file.
    pub(crate) async fn load(runtime: &Virtual, setup: Setup) -> Result<Documents> {
        let spec = DeviceSpec::parse(&setup.device)?;
        let device: Rc<Device> = spec.build(runtime, setup.seed).await?.device;
        let file = Rc::new(Journalled::new(device, setup.journal));
        let pages_end = spec.pages();
        let workload = Workload { pages_end, future: &[] };
        let lru = PolicySpec::parse("lru")?.build(BUFFER_PAGES, workload)?;
        let mounted = Rc::new(Buffered::new(file, Some(lru)));
        let (codec, ycsb) = (Rc::new(Codec::default()), Ycsb::new::<ValueStamp>(setup.records)?);
        let records = setup.records.records;
        let documents = Documents { runtime: runtime.clone(), mounted, codec, ycsb, setup };
        let options = documents.options((records / LOADED_AT_A_TIME).max(1) as u32);
        let store =
            DocStore::create(runtime, &documents.mounted, &documents.codec, options).await?;
        documents.ycsb.load(&store).await?;
        store.commit().await?;
        store.compact().await?;
        store.close().await?;
        Ok(documents)
    }

    fn options(&self, batch_updates: u32) -> DocStoreOptions {
        DocStoreOptions { batch_updates, compact_at: None, ..DocStoreOptions::new(self.setup.mode) }
    }

    async fn open(&self, options: DocStoreOptions) -> Result<Store> {
        DocStore::open(&self.runtime, &self.mounted, &self.codec, options).await
    }

    /// Number of pages written to the device below.
    fn written(&self) -> u64 {
        self.mounted.device().device().counters().pages_written
    }

    /// Runs the load in order to age the device until `pages` pages were written, with a commit after every
    /// `batch_updates`.
    pub(crate) async fn age(
        &self,
        load: YcsbOptions,
        batch_updates: u32,
        pages: u64,
    ) -> Result<()> {
        let options = DocStoreOptions { compact_at: Some(0.6), ..self.options(batch_updates) };
        let (store, end) = (self.open(options).await?, self.written() + pages);
        let mut seed = load.seed;
        while self.written() < end {
            seed = seed.wrapping_add(1 << 32);
            self.ycsb.run(&self.runtime, &store, YcsbOptions { seed, ..load }).await?;
        }
        store.close().await
    }

    /// Runs operations with a commit after every `batch_operations` of them, on a compacted file.
    pub(crate) async fn measure(
        &self,
        load: YcsbOptions,
        batch_operations: u32,
    ) -> Result<Outcome> {
        let store = self.open(self.options(u32::MAX)).await?;
        store.compact().await?;
        let before = self.written();
        let batches = Batches::new(&store, batch_operations);
        let report = self.ycsb.run(&self.runtime, &batches, load).await?;
        let written_pages = (self.written() - before) as f64 / report.operations() as f64;
        store.close().await?;
        Ok(Outcome { throughput: report.throughput(), written_pages })
    }

    /// Compacts the file. With `reads` every document is read, even if it is remapped.
    pub(crate) async fn compact(&self, reads: bool) -> Result<Compacted> {
        let store =
            self.open(DocStoreOptions { compaction_reads: reads, ..self.options(1) }).await?;
        let (before, start_ns) = (self.written(), self.runtime.now_ns());
        store.compact().await?;
        let seconds = (self.runtime.now_ns() - start_ns) as f64 / 1e9;
        let written_bytes = (self.written() - before) * PAGE_BYTES as u64;
        Ok(Compacted { seconds, written_bytes })
    }
}
