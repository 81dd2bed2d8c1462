//! An engine under its load, in either kind of runtime: the common part of both measurements.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageDevice, Result};
use tantalum_runtime::Runtime;

use super::cell::Host;
use super::clients::{Clients, Ran};
use super::counted::Counted;
use super::load::Load;
use super::sizes::Sizes;
use super::store::{Codecs, Content, Start, Store};
use super::table::Metric;

/// Number of updates of documents in a commit while they are loaded.
const LOADED_AT_ONCE: u32 = 32;

/// Number of operations of a round of an endless load. A round itself is finite, as hot records are scattered over those that it may
/// insert, too: these must exist soon.
const ROUND: u64 = 4_096;

/// An engine on a device, while the power is on.
pub(super) struct Serving<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    runtime: R,
    counted: Rc<Counted<D>>,
    store: Store<R, Counted<D>, K>,
    clients: Clients,
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Serving<R, D, K> {
    /// Makes an engine on a new device, with the initial content of the load.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn make(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        engine: (Host, Load, &Sizes),
        clients: &Clients,
    ) -> Result<Self> {
        let counted = Rc::new(Counted::new(Rc::clone(device)));
        let on = (runtime, &counted);
        let store = Store::start(on, codecs, engine, Start::New, LOADED_AT_ONCE).await?;
        clients.load(runtime, &store).await?;
        store.close().await?;
        drop(store);
        Self::open((runtime, device), codecs, engine, clients).await
    }

    /// Opens the engine on a device.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn open(
        (runtime, device): (&R, &Rc<D>),
        codecs: &Codecs<K>,
        engine: (Host, Load, &Sizes),
        clients: &Clients,
    ) -> Result<Self> {
        let counted = Rc::new(Counted::new(Rc::clone(device)));
        let on = (runtime, &counted);
        let store = Store::start(on, codecs, engine, Start::Again, 1).await?;
        Ok(Serving { runtime: runtime.clone(), counted, store, clients: clients.clone() })
    }

    /// Reads all content and changes of the load.
    ///
    /// # Errors
    /// `Corrupt` if something differs from the acknowledged state.
    pub(super) async fn check(&self) -> Result<()> {
        self.clients.check(&self.store).await
    }

    /// Number of pages written to the device since the engine was opened.
    pub(super) fn written_pages(&self) -> u64 {
        self.counted.written()
    }

    /// Runs at least this many operations, which age the device.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn age(&self, operations: u64, seed: u64) -> Result<()> {
        self.clients.age((&self.runtime, &self.store), operations, seed).await
    }

    /// Runs this many operations.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn serve(&self, operations: u64, seed: u64) -> Result<Served> {
        let (written, compactions) = (self.written_pages(), self.store.compactions());
        let ran = self.clients.run((&self.runtime, &self.store), operations, seed).await?;
        let of = |after: u64| after - compactions.unwrap_or_default();
        let compactions = self.store.compactions().map(of);
        Ok(Served { ran, written_pages: self.written_pages() - written, compactions })
    }

    /// Begins an endless load, and stops in the middle of it after this long.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn leave_after(&self, seed: u64, left_ns: u64) -> Result<()> {
        let (clients, runtime) = (self.clients.clone(), self.runtime.clone());
        let store = self.store.clone();
        let failure = Rc::new(RefCell::new(None));
        let failed = Rc::clone(&failure);
        self.runtime.spawn("load", async move {
            let mut round = 0;
            while failed.borrow().is_none() {
                let seed = seed ^ round << 24;
                *failed.borrow_mut() = clients.run((&runtime, &store), ROUND, seed).await.err();
                round += 1;
            }
        });
        self.runtime.sleep(left_ns).await;
        failure.take().map_or(Ok(()), Err)
    }

    /// Closes the engine in good order.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) async fn close(self) -> Result<()> {
        self.store.close().await
    }
}

/// The result of a load.
#[derive(Clone, Debug)]
pub(super) struct Served {
    ran: Ran,
    written_pages: u64,
    compactions: Option<u64>,
}

impl Served {
    /// Adds another load after it.
    pub(super) fn and(mut self, more: &Served) -> Served {
        self.ran.elapsed_ns += more.ran.elapsed_ns;
        self.ran.changes += more.ran.changes;
        self.written_pages += more.written_pages;
        for ((_, all), (_, more)) in self.ran.kinds.iter_mut().zip(&more.ran.kinds) {
            all.add(more).expect("histograms of one kind have the same bounds");
        }
        let compactions = self.compactions.zip(more.compactions);
        self.compactions = compactions.map(|(all, more)| all + more);
        self
    }

    pub(super) fn elapsed_ns(&self) -> u64 {
        self.ran.elapsed_ns
    }

    /// The same as numbers.
    pub(super) fn service(&self) -> Service {
        let kinds = self.ran.kinds.iter().filter(|(_, latencies)| !latencies.is_empty());
        let p99_ms = kinds
            .clone()
            .map(|(metric, latencies)| (*metric, latencies.value_at_quantile(0.99) as f64 / 1e6));
        let operations: u64 = kinds.clone().map(|(_, latencies)| latencies.len()).sum();
        Service {
            throughput: operations as f64 * 1e9 / self.ran.elapsed_ns.max(1) as f64,
            p99_ms: p99_ms.collect(),
            changes: self.ran.changes,
            written_bytes: self.written_pages as f64 * PAGE_BYTES as f64,
            compactions: self.compactions,
        }
    }
}

/// The results for clients, and the writes to the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Service {
    /// Operations per second.
    pub(super) throughput: f64,
    /// 99th percentiles of the latency of each kind of operation that occurred.
    pub(super) p99_ms: Vec<(Metric, f64)>,
    /// Number of operations that changed something.
    pub(super) changes: u64,
    /// Bytes written to the device.
    pub(super) written_bytes: f64,
    /// Number of compactions of documents that ended meanwhile.
    pub(super) compactions: Option<u64>,
}
