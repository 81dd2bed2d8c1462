//! How long a device is busy: a wrapper that looks at the clock before and after each command.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{DeviceLayer, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_runtime::Runtime;

/// What a metered device has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metered {
    /// Pages read, and the time that the reads of them took, all together.
    pub reads: u64,
    /// See `reads`.
    pub read_ns: u64,
    /// Pages written, and the time that the writes of them took.
    pub writes: u64,
    /// See `writes`.
    pub write_ns: u64,
    /// Time in which one command at least was under way. What a device does on its own account
    /// after its answer is not in it.
    pub busy_ns: u64,
}

/// A device whose commands are timed.
pub struct Meter<R, D> {
    runtime: R,
    device: Rc<D>,
    counted: RefCell<Metered>,
    in_flight: Cell<u32>,
    busy_since_ns: Cell<u64>,
}

impl<R: Runtime, D: PageDevice> Meter<R, D> {
    /// A meter on `device`, from now on.
    pub fn new(runtime: R, device: Rc<D>) -> Self {
        let counted = RefCell::default();
        Meter { runtime, device, counted, in_flight: Cell::new(0), busy_since_ns: Cell::new(0) }
    }

    /// The counters, as of the last command that ended.
    pub fn counted(&self) -> Metered {
        *self.counted.borrow()
    }

    /// Carries out a command; how long it took.
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
}

impl<R: Runtime, D: PageDevice> DeviceLayer for Meter<R, D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        let pages = out.len() as u64;
        let (result, took_ns) = self.timed(self.device.read(first, out, tx)).await;
        let counted = &mut *self.counted.borrow_mut();
        counted.reads += pages;
        counted.read_ns += took_ns;
        result
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let (result, took_ns) = self.timed(self.device.write(first, pages, tx)).await;
        let counted = &mut *self.counted.borrow_mut();
        counted.writes += pages.len() as u64;
        counted.write_ns += took_ns;
        result
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let count = pages.len() as u64;
        let (result, took_ns) = self.timed(self.device.write_scattered(pages, ended)).await;
        let counted = &mut *self.counted.borrow_mut();
        counted.writes += count;
        counted.write_ns += took_ns;
        result
    }

    async fn flush(&self) -> Result<()> {
        self.timed(self.device.flush()).await.0
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.timed(self.device.trim(range)).await.0
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.timed(self.device.share(pairs)).await.0
    }

    async fn take_over(
        &self,
        pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.timed(self.device.take_over(pairs, zeros, ended)).await.0
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        self.timed(self.device.clone_range(to, from, pages)).await.0
    }

    async fn begin(&self) -> Result<TxId> {
        self.timed(self.device.begin()).await.0
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.timed(self.device.commit(tx)).await.0
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.timed(self.device.abort(tx)).await.0
    }
}
