//! A simple device with transactions, whose calls take random times.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange,
    Payload, Result, Rng, TxId,
};
use tantalum_runtime::{Runtime, Virtual};

pub(super) struct Device {
    limits: Limits,
    runtime: Virtual,
    rng: RefCell<Rng>,
    pub(super) pages: RefCell<BTreeMap<PageNo, PageBuf>>,
    pub(super) open: RefCell<BTreeMap<TxId, BTreeMap<PageNo, PageBuf>>>,
    begun: Cell<u64>,
    pub(super) in_flight: Cell<usize>,
    /// All trims that were begun.
    pub(super) trims: RefCell<Vec<PageRange>>,
    /// The time that a trim takes besides.
    pub(super) trim_ns: Cell<u64>,
}

impl Device {
    pub(super) fn new(runtime: Virtual, seed: u64) -> Device {
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: 10_000,
            atomic_write_pages_max: 64,
            transaction_pages_max: 5_000,
            transactions_max: 3,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        Device {
            limits,
            runtime,
            rng: RefCell::new(Rng::split(seed, "device")),
            pages: RefCell::default(),
            open: RefCell::default(),
            begun: Cell::new(0),
            in_flight: Cell::new(0),
            trims: RefCell::default(),
            trim_ns: Cell::new(0),
        }
    }

    async fn pause(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
        let pause_ns = self.rng.borrow_mut().below(10_000);
        self.runtime.sleep(pause_ns).await;
        self.in_flight.set(self.in_flight.get() - 1);
    }

    fn is_held(&self, page: PageNo) -> bool {
        self.open.borrow().values().any(|written| written.contains_key(&page))
    }
}

fn unknown() -> Error {
    Error::new(ErrorKind::UnknownTransaction, "not open")
}

impl PageDevice for Device {
    type Page = PageBuf;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [PageBuf], tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        self.pause().await;
        let (open, pages) = (self.open.borrow(), self.pages.borrow());
        for (page, out) in (first.0..).map(PageNo).zip(out) {
            let own = tx.and_then(|tx| open.get(&tx)?.get(&page));
            *out = own.or(pages.get(&page)).cloned().unwrap_or_else(PageBuf::zero);
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[PageBuf], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_range(range)?;
        self.pause().await;
        let writes = range.iter().zip(pages.iter().cloned());
        match tx {
            Some(tx) => self.open.borrow_mut().get_mut(&tx).ok_or_else(unknown)?.extend(writes),
            None if range.iter().any(|page| self.is_held(page)) => {
                return Err(Error::new(ErrorKind::Conflict, "an open transaction has it"));
            }
            None => self.pages.borrow_mut().extend(writes),
        }
        Ok(())
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, PageBuf)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.pause().await;
        self.pages.borrow_mut().extend(pages);
        ended();
        self.pause().await;
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.pause().await;
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.trims.borrow_mut().push(range);
        self.pause().await;
        self.runtime.sleep(self.trim_ns.get()).await;
        self.pages.borrow_mut().retain(|page, _| !range.contains(*page));
        Ok(())
    }

    async fn begin(&self) -> Result<TxId> {
        if self.open.borrow().len() as u32 >= self.limits.transactions_max {
            return Err(Error::new(ErrorKind::TooManyTransactions, "three are open"));
        }
        self.begun.set(self.begun.get() + 1);
        let tx = TxId(self.begun.get());
        self.open.borrow_mut().insert(tx, BTreeMap::new());
        Ok(tx)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        self.pause().await;
        let written = self.open.borrow_mut().remove(&tx).ok_or_else(unknown)?;
        self.pages.borrow_mut().extend(written);
        Ok(())
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.open.borrow_mut().remove(&tx).map(drop).ok_or_else(unknown)
    }
}
