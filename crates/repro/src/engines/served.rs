//! An engine under its load, in either life of a runtime: what both measure of it.
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageDevice, Result};
use tantalum_hosts::workload::ycsb::{Kind, Ycsb, YcsbOptions, YcsbReport};
use tantalum_runtime::Runtime;

use super::cell::Host;
use super::counted::Counted;
use super::sizes::{CLIENTS, Sizes};
use super::store::{Codecs, Content, Start, Store};

/// Updates of documents that are committed at once while they are loaded.
const LOADED_AT_ONCE: u32 = 32;

/// Operations that no load comes to the end of.
const ENDLESS: u64 = 1 << 40;

/// An engine on a device, while there is power.
pub(super) struct Serving<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    runtime: R,
    counted: Rc<Counted<D>>,
    store: Store<R, Counted<D>, K>,
    ycsb: Rc<Ycsb>,
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Serving<R, D, K> {
    /// Makes an engine on a new device, with all records.
    ///
    /// # Errors
    /// The engine's.
    pub(super) async fn make(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        engine: (Host, &Sizes),
        ycsb: &Rc<Ycsb>,
    ) -> Result<Self> {
        let counted = Rc::new(Counted::new(Rc::clone(device)));
        let on = (runtime, &counted);
        let store = Store::start(on, codecs, engine, Start::New, LOADED_AT_ONCE).await?;
        ycsb.load_by(runtime, &store, CLIENTS).await?;
        store.close().await?;
        drop(store);
        Self::open((runtime, device), codecs, engine, ycsb).await
    }

    /// Opens the engine that is on a device.
    ///
    /// # Errors
    /// The engine's.
    pub(super) async fn open(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        engine: (Host, &Sizes),
        ycsb: &Rc<Ycsb>,
    ) -> Result<Self> {
        let counted = Rc::new(Counted::new(Rc::clone(device)));
        let on = (runtime, &counted);
        let store = Store::start(on, codecs, engine, Start::Again, 1).await?;
        Ok(Serving { runtime: runtime.clone(), counted, store, ycsb: Rc::clone(ycsb) })
    }

    /// Reads every record.
    ///
    /// # Errors
    /// `Corrupt` where one is not as it was acknowledged.
    pub(super) async fn check(&self) -> Result<()> {
        self.ycsb.check(&self.store).await
    }

    /// Pages that the device was given to write since the engine was opened.
    pub(super) fn written_pages(&self) -> u64 {
        self.counted.written()
    }

    /// Runs a load.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn serve(&self, load: YcsbOptions) -> Result<Served> {
        let before = self.written_pages();
        let report = self.ycsb.run(&self.runtime, &self.store, load).await?;
        Ok(Served::new(&report, self.written_pages() - before))
    }

    /// Begins a load that never ends, and leaves it where it is after so long.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn leave_after(&self, load: YcsbOptions, left_ns: u64) -> Result<()> {
        let (ycsb, runtime) = (Rc::clone(&self.ycsb), self.runtime.clone());
        let store = self.store.clone();
        let failure = Rc::new(RefCell::new(None));
        let failed = Rc::clone(&failure);
        self.runtime.spawn("load", async move {
            let load = YcsbOptions { operations: ENDLESS, ..load };
            *failed.borrow_mut() = ycsb.run(&runtime, &store, load).await.err();
        });
        self.runtime.sleep(left_ns).await;
        failure.take().map_or(Ok(()), Err)
    }

    /// Ends the engine in good order.
    ///
    /// # Errors
    /// The engine's.
    pub(super) async fn close(self) -> Result<()> {
        self.store.close().await
    }
}

/// What a load came to.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) elapsed_ns: u64,
    written_pages: u64,
    reads: Histogram<u64>,
    updates: Histogram<u64>,
}

impl Served {
    fn new(report: &YcsbReport, written_pages: u64) -> Served {
        let of = |kind| report.latencies(kind).clone();
        let (reads, updates) = (of(Kind::Read), of(Kind::Update));
        Served { elapsed_ns: report.elapsed_ns(), written_pages, reads, updates }
    }

    /// With another load after it.
    pub(super) fn and(mut self, more: &Served) -> Served {
        self.elapsed_ns += more.elapsed_ns;
        self.written_pages += more.written_pages;
        // Both have the same bounds.
        for (all, more) in [(&mut self.reads, &more.reads), (&mut self.updates, &more.updates)] {
            all.add(more).expect("histograms of one kind");
        }
        self
    }

    pub(super) fn updates(&self) -> f64 {
        self.updates.len() as f64
    }

    pub(super) fn service(&self) -> Service {
        let p99_ms = |latencies: &Histogram<u64>| latencies.value_at_quantile(0.99) as f64 / 1e6;
        let operations = (self.reads.len() + self.updates.len()) as f64;
        Service {
            throughput: operations * 1e9 / self.elapsed_ns.max(1) as f64,
            read_p99_ms: p99_ms(&self.reads),
            update_p99_ms: p99_ms(&self.updates),
            written_bytes: self.written_pages as f64 * PAGE_BYTES as f64 / self.updates(),
        }
    }
}

/// The same as numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Service {
    /// Operations a second.
    pub(super) throughput: f64,
    /// 99th percentiles of what a read and an update take.
    pub(super) read_p99_ms: f64,
    pub(super) update_p99_ms: f64,
    /// What the device was given to write for each update.
    pub(super) written_bytes: f64,
}
