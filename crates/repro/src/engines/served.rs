//! An engine under its load, in either life of a runtime: what both measure of it.
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

/// Updates of documents that are committed at once while they are loaded.
const LOADED_AT_ONCE: u32 = 32;

/// Operations of a round of a load that never ends. A round is not endless itself: among what it may insert there must be records soon.
const ROUND: u64 = 4_096;

/// An engine on a device, while there is power.
pub(super) struct Serving<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> {
    runtime: R,
    counted: Rc<Counted<D>>,
    store: Store<R, Counted<D>, K>,
    clients: Clients,
}

impl<R: Runtime, D: PageDevice, K: Content<Page = D::Page>> Serving<R, D, K> {
    /// Makes an engine on a new device, with all that the load begins with.
    ///
    /// # Errors
    /// The engine's.
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

    /// Opens the engine that is on a device.
    ///
    /// # Errors
    /// The engine's.
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

    /// Reads all that the load put in and changed.
    ///
    /// # Errors
    /// `Corrupt` where something is not as it was acknowledged.
    pub(super) async fn check(&self) -> Result<()> {
        self.clients.check(&self.store).await
    }

    /// Pages that the device was given to write since the engine was opened.
    pub(super) fn written_pages(&self) -> u64 {
        self.counted.written()
    }

    /// Runs so many operations, or more, by which the device ages.
    ///
    /// # Errors
    /// Those of engine and load.
    pub(super) async fn age(&self, operations: u64, seed: u64) -> Result<()> {
        self.clients.age((&self.runtime, &self.store), operations, seed).await
    }

    /// Runs so many operations.
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

    /// Begins a load that never ends, and leaves it where it is after so long.
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
    ran: Ran,
    written_pages: u64,
    compactions: Option<u64>,
}

impl Served {
    /// With another load after it.
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

/// What clients see, and what the device is given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Service {
    /// Operations a second.
    pub(super) throughput: f64,
    /// 99th percentiles of what each kind of operation takes that there was.
    pub(super) p99_ms: Vec<(Metric, f64)>,
    /// Operations that changed something.
    pub(super) changes: u64,
    /// What the device was given to write.
    pub(super) written_bytes: f64,
    /// Compactions that ended meanwhile, of documents.
    pub(super) compactions: Option<u64>,
}
