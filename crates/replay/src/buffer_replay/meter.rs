//! The busy time of a store's device: a wrapper that reads the clock before and after each command.
use std::cell::{Cell, RefCell};
use tantalum_base::{PageNo, Result};
use tantalum_buffer::PageStore;
use tantalum_runtime::Runtime;

/// The counters of a metered store. Pages are the store's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metered {
    /// Number of pages read, and the total time of their reads.
    pub reads: u64,
    /// See `reads`.
    pub read_ns: u64,
    /// Number of pages written, and the total time of their writes.
    pub writes: u64,
    /// See `writes`.
    pub write_ns: u64,
    /// Time in which at least one command was in progress. It does not include the device's own work
    /// after its answer.
    pub busy_ns: u64,
}

/// A store whose commands are timed.
pub struct Meter<R, S> {
    runtime: R,
    store: S,
    counted: RefCell<Metered>,
    in_flight: Cell<u32>,
    busy_since_ns: Cell<u64>,
}

impl<R: Runtime, S: PageStore> Meter<R, S> {
    /// A meter on `store`, from now on.
    pub fn new(runtime: R, store: S) -> Self {
        let counted = RefCell::default();
        Meter { runtime, store, counted, in_flight: Cell::new(0), busy_since_ns: Cell::new(0) }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The counters, as of the last command that ended.
    pub fn counted(&self) -> Metered {
        *self.counted.borrow()
    }

    /// Carries out a command; also returns its time.
    async fn timed<T>(&self, command: impl Future<Output = Result<T>>) -> (Result<T>, u64) {
        let start_ns = self.runtime.now_ns();
        if self.in_flight.replace(self.in_flight.get() + 1) == 0 {
            self.busy_since_ns.set(start_ns);
        }
        let result = command.await;
        let end_ns = self.runtime.now_ns();
        self.in_flight.set(self.in_flight.get() - 1);
        if self.in_flight.get() == 0 {
            self.counted.borrow_mut().busy_ns += end_ns - self.busy_since_ns.get();
        }
        (result, end_ns - start_ns)
    }

    fn count_write(&self, pages: usize, took_ns: u64) {
        let counted = &mut *self.counted.borrow_mut();
        counted.writes += pages as u64;
        counted.write_ns += took_ns;
    }
}

impl<R: Runtime, S: PageStore> PageStore for Meter<R, S> {
    type Page = S::Page;

    fn blank(&self) -> S::Page {
        self.store.blank()
    }

    fn pages(&self) -> u64 {
        self.store.pages()
    }

    fn write_pages_max(&self) -> u32 {
        self.store.write_pages_max()
    }

    async fn read(&self, first: PageNo, out: &mut [S::Page]) -> Result<()> {
        let pages = out.len() as u64;
        let (result, took_ns) = self.timed(self.store.read(first, out)).await;
        let counted = &mut *self.counted.borrow_mut();
        counted.reads += pages;
        counted.read_ns += took_ns;
        result
    }

    async fn write(&self, first: PageNo, pages: &[S::Page]) -> Result<()> {
        let (result, took_ns) = self.timed(self.store.write(first, pages)).await;
        self.count_write(pages.len(), took_ns);
        result
    }

    async fn write_batch(&self, pages: Vec<(PageNo, S::Page)>) -> Result<()> {
        let count = pages.len();
        let (result, took_ns) = self.timed(self.store.write_batch(pages)).await;
        self.count_write(count, took_ns);
        result
    }

    async fn flush(&self) -> Result<()> {
        self.timed(self.store.flush()).await.0
    }
}
