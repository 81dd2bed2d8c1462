//! How pages move between the pool and their homes: the steps that an engine's [way](super::Way) consists of.
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Result};
use tantalum_buffer::PageStore;
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Semaphore;

use super::layout::Layout;
use super::options::PageOptions;
use super::statistics::HostStatistics;
use super::way::Way;
use crate::btree::Lsn;
use crate::fault_points::Fault;
use crate::records::{Codec, Draft, Place, RecordDevice};

/// Number of homes written at a time while a database is loaded.
const LOAD_PAGES: usize = 64;

/// A page with a home. Cloning is cheap.
pub trait Homed: Clone + 'static {
    /// The record as which the page is written.
    type Record: crate::records::Record;

    /// Placeholder content of a frame until the page is read.
    fn blank() -> Self;

    /// Its number in the database.
    fn number(&self) -> PageNo;

    /// The newest change that it contains.
    fn lsn(&self) -> Lsn;

    /// The record to write for it.
    fn record(&self) -> Rc<Self::Record>;

    /// The page of a record; `None` if it is the record of something else.
    fn from_record(record: &Rc<Self::Record>) -> Option<Self>;
}

/// Rules for writing a batch, set by the redo log or its replacement.
#[allow(async_fn_in_trait, reason = "engines live on one thread; their futures need not be Send")]
pub trait BatchRules: 'static {
    /// Returns once pages with changes up to `newest` may be written.
    async fn before(&self, newest: Lsn) -> Result<()>;

    /// Whether a page can have changes up to `lsn`, that is, whether they were ever committed.
    fn knows(&self, _lsn: Lsn) -> bool {
        true
    }

    /// Called when the page is durable at its home, with changes up to `lsn`.
    fn at_home(&self, _page: PageNo, _lsn: Lsn) {}
}

/// The homes of a database's pages, as the pool reads and writes them.
pub struct Homes<R, D: PageDevice, C, P, B, W> {
    runtime: R,
    records: RecordDevice<D, C>,
    options: PageOptions<W>,
    layout: Layout,
    rules: Rc<B>,
    /// There is one area, so one batch is written at a time.
    turn: Semaphore,
    metadata_due: Cell<f64>,
    statistics: Cell<HostStatistics>,
    /// The error after which no batch is written any more: an area may have the only whole copy of a page that is torn at home.
    failed: RefCell<Option<Error>>,
    pages: PhantomData<P>,
}

impl<R, D, C, P, B, W> Homes<R, D, C, P, B, W>
where
    R: Runtime,
    D: PageDevice,
    P: Homed,
    C: Codec<Page = D::Page, Record = P::Record>,
    B: BatchRules,
    W: Way,
{
    /// The homes of a database with `options` and this layout, on the device of `records`.
    pub(crate) fn new(
        runtime: &R,
        records: RecordDevice<D, C>,
        (options, layout): (PageOptions<W>, Layout),
        rules: &Rc<B>,
    ) -> Rc<Self> {
        Rc::new(Homes {
            runtime: runtime.clone(),
            records,
            options,
            layout,
            rules: Rc::clone(rules),
            turn: Semaphore::new("its turn to bring a batch home", 1),
            metadata_due: Cell::new(0.0),
            statistics: Cell::default(),
            failed: RefCell::default(),
            pages: PhantomData,
        })
    }

    /// The counters of device accesses so far.
    pub(crate) fn statistics(&self) -> HostStatistics {
        let pages_read = self.records.counts().pages_read;
        HostStatistics { pages_read, ..self.statistics.get() }
    }

    /// Reads the page at its home; `None` if it is torn, or is another page.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn try_read(&self, page: PageNo) -> Result<Option<P>> {
        let home = self.layout.home(page);
        let found = self.records.try_read(Place::of_pages(home.first, home.pages)).await?;
        let found = found.as_ref().and_then(P::from_record);
        Ok(found.filter(|found| found.number() == page))
    }

    /// Writes new pages to their homes, in ascending order, neighbours together, and makes them durable.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn load(&self, pages: impl Iterator<Item = P>) -> Result<()> {
        let mut pages = pages.peekable();
        while let Some(first) = pages.peek() {
            let mut draft = Draft::new(self.layout.home(first.number()).first);
            for page in pages.by_ref().take(LOAD_PAGES) {
                draft.align(page.record());
            }
            self.records.write(&draft).await?;
        }
        self.records.flush().await
    }

    /// After a crash: repairs the pages that can be repaired without the log.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn restore(self: &Rc<Self>) -> Result<RestoreReport> {
        self.options.form.restore(self).await
    }

    /// Reads the whole pages in the area.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn read_area(&self) -> Result<Vec<P>> {
        let mut copies = Vec::new();
        for slot in 0..self.layout.area_slots() {
            let area = self.layout.area(slot);
            let found = self.records.try_read(Place::of_pages(area.first, area.pages)).await?;
            let copy = found.as_ref().and_then(P::from_record);
            copies.extend(copy.filter(|copy| copy.number().0 < self.layout.database_pages()));
        }
        Ok(copies)
    }

    /// Waits for the batch in progress, and refuses further ones.
    pub(crate) async fn close(&self) {
        let _turn = self.turn.acquire(1).await;
        self.refuse();
    }

    /// Refuses further batches.
    pub(crate) fn refuse(&self) {
        let closed = || Error::new(ErrorKind::Closed, "the database is closed");
        self.failed.borrow_mut().get_or_insert_with(closed);
    }

    /// Checks that batches are accepted.
    fn check(&self) -> Result<()> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }

    /// Writes a batch to its homes.
    async fn bring(self: &Rc<Self>, batch: &[(PageNo, P)]) -> Result<()> {
        self.options.form.bring(self, batch).await?;
        self.count(|counts| counts.batches += 1);
        batch.iter().for_each(|(number, page)| self.rules.at_home(*number, page.lsn()));
        Ok(())
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn flush(&self) -> Result<()> {
        self.records.flush().await
    }

    /// Writes a batch to the area, in the order of the batch.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write_area(&self, batch: &[(PageNo, P)]) -> Result<()> {
        let mut draft = Draft::new(self.layout.area(0).first);
        for (_, page) in batch {
            draft.align(page.record());
        }
        self.records.write(&draft).await?;
        self.count(|counts| counts.area_pages += batch.len() as u64 * self.page_pages());
        Ok(())
    }

    /// Writes homes, all at once, as asynchronous I/O does; neighbours are not written together. Returns once all writes have
    /// ended, also if one failed: a write that outlived the batch could undo a later one.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write_homes(self: &Rc<Self>, batch: &[(PageNo, P)]) -> Result<()> {
        let write = |(_, page): &(PageNo, P)| {
            let (homes, page) = (Rc::clone(self), page.clone());
            async move {
                homes.write_home(&page).await?;
                homes.count(|counts| counts.home_pages += homes.page_pages());
                Ok(())
            }
        };
        let spawn = |page| self.runtime.spawn("write of a home", write(page));
        let writes: Vec<_> = batch.iter().map(spawn).collect();
        let mut written = Ok(());
        for write in writes {
            written = written.and(write.await);
        }
        written
    }

    /// Writes one page to its home.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write_home(&self, page: &P) -> Result<()> {
        let mut draft = Draft::new(self.layout.home(page.number()).first);
        draft.align(page.record());
        self.records.write(&draft).await
    }

    /// Shares the area's copies into the homes. A share is durable together with everything before it: the area needs no flush, and
    /// may be used again when this returns.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn share_homes(&self, batch: &[(PageNo, P)]) -> Result<()> {
        let mut pairs = Vec::new();
        for (slot, (page, _)) in batch.iter().enumerate() {
            let (home, area) = (self.layout.home(*page), self.layout.area(slot as u64));
            pairs.extend(home.iter().zip(area.iter()));
        }
        for part in pairs.chunks(self.whole_pages(self.records.limits().share_pairs_max)) {
            self.records.share(part).await?;
        }
        self.count(|counts| counts.shared_pages += pairs.len() as u64);
        Ok(())
    }

    /// Writes homes durably, in as few device transactions as possible.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write_in_transactions(&self, batch: &[(PageNo, P)]) -> Result<()> {
        let most = self.whole_pages(self.records.limits().transaction_pages_max);
        for part in batch.chunks(most / self.page_pages() as usize) {
            let homes = part.iter().map(|(_, page)| {
                let mut draft = Draft::new(self.layout.home(page.number()).first);
                draft.align(page.record());
                draft
            });
            self.records.write_scattered(homes.collect()).await?;
            let pages = part.len() as u64 * self.page_pages();
            self.count(|counts| counts.home_pages += pages);
        }
        Ok(())
    }

    /// Writes homes in one device transaction, which must hold them all, and the metadata that the file system writes for it.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn commit(&self, pages: &[(PageNo, P)]) -> Result<()> {
        self.write_metadata(pages.len()).await?;
        self.write_in_transactions(pages).await
    }

    /// The number of database pages that fit whole into `most` device pages.
    fn whole_pages(&self, most: u32) -> usize {
        let page_pages = self.options.device_pages_per_page;
        (most / page_pages * page_pages) as usize
    }

    fn page_pages(&self) -> u64 {
        u64::from(self.options.device_pages_per_page)
    }

    /// Writes the file system's own metadata for this many pages. It is never read.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn write_metadata(&self, pages: usize) -> Result<()> {
        let due = (pages as u64 * self.page_pages()) as f64 * self.options.metadata_per_page;
        let due = self.metadata_due.get() + due;
        self.metadata_due.set(due.fract());
        for _ in 0..due as u64 {
            let count = self.statistics.get().metadata_pages;
            let page = self.layout.metadata(count);
            let content = D::Page::from_bytes(&journal_page(page, count + 1));
            self.records.device().write(page, &[content], None).await?;
            self.count(|counts| counts.metadata_pages += 1);
        }
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut HostStatistics)) {
        let mut counts = self.statistics.get();
        change(&mut counts);
        self.statistics.set(counts);
    }
}

/// Journal page number `count`, at `page`, as bytes for a payload.
fn journal_page(page: PageNo, count: u64) -> [u8; tantalum_base::PAGE_BYTES] {
    let mut bytes = [0; tantalum_base::PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page.0 + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    bytes
}

/// The result of restoring from an area, in pages of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RestoreReport {
    /// Number of whole pages in the area.
    pub area_whole: u64,
    /// Number of torn homes that were written again from the area.
    pub restored: u64,
}

/// The store of a pool; clones share it.
pub(crate) struct HomeStore<R, D: PageDevice, C, P, B, W>(pub(crate) Rc<Homes<R, D, C, P, B, W>>);

impl<R, D, C, P, B, W> PageStore for HomeStore<R, D, C, P, B, W>
where
    R: Runtime,
    D: PageDevice,
    P: Homed,
    C: Codec<Page = D::Page, Record = P::Record>,
    B: BatchRules,
    W: Way,
{
    type Page = P;

    fn blank(&self) -> P {
        P::blank()
    }

    fn pages(&self) -> u64 {
        self.0.layout.database_pages()
    }

    fn write_pages_max(&self) -> u32 {
        self.0.options.batch_pages
    }

    async fn read(&self, first: PageNo, out: &mut [P]) -> Result<()> {
        for (page, out) in (first.0..).map(PageNo).zip(out) {
            let refuse = |why: &str| {
                let home = self.0.layout.home(page);
                let context =
                    format!("page {page} of the database {why} (pages {home} of the device)");
                Error::new(ErrorKind::Corrupt, context)
            };
            let found = self.0.try_read(page).await?;
            *out = found.ok_or_else(|| refuse("is torn or damaged"))?;
            if !self.0.rules.knows(out.lsn()) && !Fault::NewerPagesTaken.is_planted() {
                return Err(refuse("has a change that the log has lost"));
            }
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P]) -> Result<()> {
        let numbers = (first.0..).map(PageNo);
        self.write_batch(numbers.zip(pages.iter().cloned()).collect()).await
    }

    /// No page is written before its log. After a batch that failed no other is written until the database is opened again.
    async fn write_batch(&self, pages: Vec<(PageNo, P)>) -> Result<()> {
        let homes = &self.0;
        let newest = pages.iter().map(|(_, page)| page.lsn()).max().unwrap_or_default();
        if !Fault::PagesBeforeLog.is_planted() {
            homes.rules.before(newest).await?;
        }
        let turn = homes.turn.acquire(1).await;
        homes.check()?;
        let batch = {
            let homes = Rc::clone(homes);
            async move {
                let _turn = turn;
                let brought = homes.bring(&pages).await;
                if let Err(error) = &brought {
                    homes.failed.replace(Some(error.clone()));
                }
                brought
            }
        };
        // A separate task: the caller may be dropped, but a batch must not be left half done.
        homes.runtime.spawn("batch", batch).await
    }

    /// If a batch failed, its pages are not at home.
    async fn flush(&self) -> Result<()> {
        self.0.check()?;
        self.0.options.form.settle(&self.0).await
    }
}
