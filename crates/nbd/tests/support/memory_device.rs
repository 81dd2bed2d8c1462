//! A page device in memory, for tests and for the bench.
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use tantalum_base::{
    Durability, Error, ErrorKind, Extent, Limits, PageBuf, PageDevice, PageNo, PageRange, Payload,
    Result, TxId,
};
use tantalum_runtime::sync::WaitQueue;

type Pause = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>>;

/// Pages in memory.
pub struct MemoryDevice {
    pub limits: Limits,
    pages: RefCell<Vec<PageBuf>>,
    // The pages that were written and not trimmed since.
    mapped: RefCell<Vec<bool>>,
    /// Awaited before and after each access, so that requests interleave.
    pub pause: Option<Pause>,
    /// Every access fails with this error from now on.
    pub failure: Cell<Option<ErrorKind>>,
    /// Every access to this page fails.
    pub failing_page: Cell<Option<PageNo>>,
    /// A page held by a transaction: changes of it are refused as `Conflict`.
    pub held: Cell<Option<PageNo>>,
    /// Number of changes refused for that reason.
    pub refused: Cell<u64>,
    released: WaitQueue,
    pub flushes: Cell<u64>,
    pub trims: Cell<u64>,
    pub writes: Cell<u64>,
    /// Accesses that have not ended.
    pub in_flight: Cell<u64>,
    pub in_flight_max: Cell<u64>,
}

impl MemoryDevice {
    pub fn new(pages: u64, atomic_write_pages_max: u32, durability: Durability) -> Self {
        MemoryDevice {
            limits: Limits {
                page_bytes: 4096,
                pages,
                atomic_write_pages_max,
                transaction_pages_max: 0,
                transactions_max: 0,
                share_pairs_max: 0,
                durability,
            },
            pages: RefCell::new(vec![PageBuf::zero(); pages as usize]),
            mapped: RefCell::new(vec![false; pages as usize]),
            pause: None,
            failure: Cell::new(None),
            failing_page: Cell::new(None),
            held: Cell::new(None),
            refused: Cell::new(0),
            released: WaitQueue::new("a page that the test holds"),
            flushes: Cell::new(0),
            trims: Cell::new(0),
            writes: Cell::new(0),
            in_flight: Cell::new(0),
            in_flight_max: Cell::new(0),
        }
    }

    async fn access<T>(
        &self,
        range: PageRange,
        access: impl FnOnce(&mut [PageBuf]) -> T,
    ) -> Result<T> {
        self.limits.check_range(range)?;
        self.in_flight.set(self.in_flight.get() + 1);
        self.in_flight_max.set(self.in_flight_max.get().max(self.in_flight.get()));
        if let Some(pause) = &self.pause {
            pause().await;
        }
        let failing = self.failing_page.get().is_some_and(|page| range.contains(page));
        let failure = self.failure.get().or(failing.then_some(ErrorKind::Io));
        let result = match failure {
            Some(kind) => Err(Error::new(kind, "as the test asked")),
            None => {
                let mut pages = self.pages.borrow_mut();
                Ok(access(&mut pages[range.first.index()..range.end().index()]))
            }
        };
        if let Some(pause) = &self.pause {
            pause().await;
        }
        self.in_flight.set(self.in_flight.get() - 1);
        result
    }

    /// Releases the held page.
    pub fn release(&self) {
        self.held.set(None);
        self.released.wake_all();
    }

    fn check_released(&self, range: PageRange) -> Result<()> {
        if self.held.get().is_some_and(|page| range.contains(page)) {
            self.refused.set(self.refused.get() + 1);
            return Err(Error::new(ErrorKind::Conflict, "the test holds it"));
        }
        Ok(())
    }

    fn map(&self, range: PageRange, mapped: bool) {
        self.mapped.borrow_mut()[range.first.index()..range.end().index()].fill(mapped);
    }

    fn no<T>(&self) -> Result<T> {
        Err(Error::new(ErrorKind::Unsupported, "only pages here"))
    }
}

impl PageDevice for MemoryDevice {
    type Page = PageBuf;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [PageBuf], _tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.access(range, |pages| out.clone_from_slice(pages)).await
    }

    async fn write(&self, first: PageNo, new: &[PageBuf], _tx: Option<TxId>) -> Result<()> {
        if new.len() > self.limits.atomic_write_pages_max as usize {
            return Err(Error::new(ErrorKind::TooLarge, "over atomic_write_pages_max"));
        }
        self.writes.set(self.writes.get() + 1);
        let range = PageRange::new(first, new.len() as u64);
        self.check_released(range)?;
        let put = |pages: &mut [PageBuf]| {
            pages.clone_from_slice(new);
            self.map(range, true);
        };
        self.access(range, put).await
    }

    async fn flush(&self) -> Result<()> {
        self.flushes.set(self.flushes.get() + 1);
        self.access(PageRange::new(PageNo(0), 0), |_| ()).await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.trims.set(self.trims.get() + 1);
        self.check_released(range)?;
        let clear = |pages: &mut [PageBuf]| {
            pages.fill(PageBuf::zero());
            self.map(range, false);
        };
        self.access(range, clear).await
    }

    /// Reports at most three pages at a time, even if more are alike. A page that begins with zeros seems to be zeros.
    fn extent(&self, range: PageRange) -> Extent {
        let (mapped, pages) = (self.mapped.borrow(), self.pages.borrow());
        let stored = |page: PageNo| match mapped[page.index()] {
            false => Extent::hole(1),
            true if pages[page.index()][..512] == [0; 512] => Extent::seeming_zero(1),
            true => Extent::data(1),
        };
        let first = stored(range.first);
        let alike = range.iter().take(3).take_while(|page| stored(*page) == first).count();
        Extent { pages: alike as u64, ..first }
    }

    async fn share(&self, _pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.no()
    }

    async fn until_released(&self, range: PageRange) {
        let free = || !self.held.get().is_some_and(|page| range.contains(page));
        self.released.until(|| free().then_some(())).await;
    }
}
