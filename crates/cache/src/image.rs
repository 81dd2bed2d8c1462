//! A plain image as a device: it contains only the pages, so that any other program can use it too.
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange,
    Payload, Result, ResultExt, TxId,
};
use tantalum_media::BlockStore;
use tantalum_runtime::{DeviceCounters, LifeCycle, Runtime};

/// Pages of the longest write, and of one read: 1 MiB.
const OPERATION_PAGES_MAX: u32 = 256;

/// A device of pages that are stored consecutively, page `n` at byte `n * 4096`; in simulations the
/// contents may be other than bytes. The last page may extend past the end of the store: that part
/// reads as zeros, and is not written.
///
/// It promises no more than the store: it is `Volatile`, so that content hit by a power cut before
/// the next flush may be old, new or torn. It has no transactions and keeps no checksums.
/// Overlapping commands must not be in flight together, even if the future of one was dropped.
pub struct Image<S, P = PageBuf> {
    store: S,
    limits: Limits,
    /// The end of the last page or of the store, whichever comes first.
    end_byte: u64,
    counters: Cell<DeviceCounters>,
    contents: PhantomData<P>,
}

impl<S: BlockStore, P: Payload> Image<S, P> {
    /// The first `pages` pages of `store`; the last one may be incomplete.
    ///
    /// # Errors
    /// `InvalidInput` if the store has fewer.
    pub fn new(store: S, pages: u64) -> Result<Self> {
        let held = store.bytes().div_ceil(PAGE_BYTES as u64);
        if held < pages {
            let context = format!("an image of {pages} pages does not fit in {held}");
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages,
            atomic_write_pages_max: OPERATION_PAGES_MAX,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::Volatile,
        };
        let end_byte = store.bytes().min(pages * PAGE_BYTES as u64);
        Ok(Image { store, limits, end_byte, counters: Cell::default(), contents: PhantomData })
    }

    /// The store underneath.
    pub fn store(&self) -> &S {
        &self.store
    }

    async fn read_run(&self, first: PageNo, out: &mut [P]) -> Result<()> {
        let buf = self.store.buffer(self.bytes_of(first, out.len()));
        let buf = self.store.read(byte_of(first), buf).await?;
        for (page, bytes) in out.iter_mut().zip(buf.chunks(PAGE_BYTES)) {
            *page = match bytes.len() {
                PAGE_BYTES => P::from_bytes(bytes),
                held => {
                    let mut whole = [0; PAGE_BYTES];
                    whole[..held].copy_from_slice(bytes);
                    P::from_bytes(&whole)
                }
            };
        }
        self.store.recycle(buf);
        Ok(())
    }

    /// Bytes that the store has for `pages` pages from `first` on.
    fn bytes_of(&self, first: PageNo, pages: usize) -> usize {
        (pages * PAGE_BYTES).min((self.end_byte - byte_of(first)) as usize)
    }

    fn count(&self, change: impl FnOnce(&mut DeviceCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

impl<S: BlockStore, P: Payload> PageDevice for Image<S, P> {
    type Page = P;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    /// # Errors
    /// Those of the store, with the pages that could not be read; some of `out` may have been
    /// filled.
    async fn read(&self, first: PageNo, out: &mut [P], tx: Option<TxId>) -> Result<()> {
        refuse_transaction(tx)?;
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        let mut at = first;
        for run in out.chunks_mut(OPERATION_PAGES_MAX as usize) {
            let pages = PageRange::new(at, run.len() as u64);
            self.read_run(at, run)
                .await
                .context(|| format!("reading pages {pages} of the home"))?;
            self.count(|counters| {
                counters.pages_read += pages.pages;
                counters.disk_reads += 1;
            });
            at = pages.end();
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[P], tx: Option<TxId>) -> Result<()> {
        refuse_transaction(tx)?;
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_write(range)?;
        if pages.is_empty() {
            return Ok(());
        }
        let mut buf = self.store.buffer(self.bytes_of(first, pages.len()));
        for (bytes, page) in buf.chunks_mut(PAGE_BYTES).zip(pages) {
            match bytes.len() {
                PAGE_BYTES => page.write_to(bytes),
                held => {
                    let mut whole = [0; PAGE_BYTES];
                    page.write_to(&mut whole);
                    // The caller ensures that the rest is zeros.
                    debug_assert!(whole[held..].iter().all(|byte| *byte == 0), "past the end");
                    bytes.copy_from_slice(&whole[..held]);
                }
            }
        }
        let written = self.store.write(byte_of(first), buf, false).await;
        self.store.recycle(written.context(|| format!("writing pages {range} to the home"))?);
        self.count(|counters| {
            counters.pages_written += range.pages;
            counters.disk_writes += 1;
        });
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.store.sync().await.context(|| "syncing the home")?;
        self.count(|counters| counters.flushes += 1);
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        if range.pages == 0 {
            return Ok(());
        }
        let bytes = self.bytes_of(range.first, range.pages as usize) as u64;
        let zeroed = self.store.zero(byte_of(range.first), bytes).await;
        zeroed.context(|| format!("zeroing pages {range} on the home"))
    }
}

impl<S: BlockStore, P: Payload> LifeCycle for Image<S, P> {
    fn start(self: &Rc<Self>, _runtime: &impl Runtime) {}

    async fn close(&self) -> Result<()> {
        self.flush().await
    }

    fn counters(&self) -> DeviceCounters {
        self.counters.get()
    }

    fn validate(&self) {}
}

fn byte_of(page: PageNo) -> u64 {
    page.0 * PAGE_BYTES as u64
}

fn refuse_transaction(tx: Option<TxId>) -> Result<()> {
    match tx {
        None => Ok(()),
        Some(tx) => {
            let context = format!("transaction {tx} is not open: an image has no transactions");
            Err(Error::new(ErrorKind::UnknownTransaction, context))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_media::block_store::{Counting, MemoryStore, StoreCounters};
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    fn page(fill: u8) -> PageBuf {
        PageBuf::copy_from(&[fill; PAGE_BYTES])
    }

    fn run<F: Future + 'static>(main: F) -> F::Output
    where
        F::Output: 'static,
    {
        Virtual::new(Schedule::Fifo).run(main).unwrap()
    }

    #[test]
    fn pages_lie_one_behind_the_other_and_nothing_else_is_there() {
        let memory = MemoryStore::with_image(&[9; 8 * PAGE_BYTES]);
        let image = Image::new(memory.clone(), 7).unwrap();
        run(async move {
            image.write(PageNo(1), &[page(1), page(2)], None).await.unwrap();
            image.trim(PageRange::new(PageNo(4), 2)).await.unwrap();
            image.trim(PageRange::new(PageNo(7), 0)).await.unwrap();
            let mut out = vec![page(0); 7];
            image.read(PageNo(0), &mut out, None).await.unwrap();
            assert_eq!(out, [9, 1, 2, 9, 0, 0, 9].map(page));
            image.close().await.unwrap();
            let counted = image.counters();
            assert_eq!((counted.pages_read, counted.pages_written, counted.flushes), (7, 2, 1));
        });
        let blocks: Vec<u8> = memory.image().chunks(PAGE_BYTES).map(|block| block[0]).collect();
        assert_eq!(blocks, [9, 1, 2, 9, 0, 0, 9, 9]);
    }

    #[test]
    fn of_a_last_page_that_is_not_whole_the_sectors_are_used_that_there_are() {
        let held = 3 * PAGE_BYTES + 512;
        let memory = MemoryStore::with_image(&vec![9; held]);
        assert!(Image::<_, PageBuf>::new(memory.clone(), 5).is_err());
        let image = Image::new(memory.clone(), 4).unwrap();
        let mut last = [0; PAGE_BYTES];
        last[..512].fill(9);
        let written = run(async move {
            let mut out = vec![page(1); 2];
            image.read(PageNo(2), &mut out, None).await.unwrap();
            assert_eq!(out, [page(9), PageBuf::copy_from(&last)]);
            last[..512].fill(5);
            image.write(PageNo(2), &[page(4), PageBuf::copy_from(&last)], None).await.unwrap();
            let written = memory.image();
            image.trim(PageRange::new(PageNo(3), 1)).await.unwrap();
            assert_eq!(
                (memory.image().len(), &memory.image()[held - 512..]),
                (held, &[0; 512][..])
            );
            written
        });
        let places = [0, 2 * PAGE_BYTES, 3 * PAGE_BYTES - 1, 3 * PAGE_BYTES, held - 1];
        assert_eq!(places.map(|at| written[at]), [9, 4, 4, 5, 5]);
    }

    #[test]
    fn a_run_is_one_operation_up_to_a_mebibyte() {
        let counters = StoreCounters::default();
        let store = Counting::new(MemoryStore::new(600 * PAGE_BYTES as u64), counters.clone());
        let image = Image::new(store, 600).unwrap();
        run(async move {
            image.write(PageNo(3), &vec![page(3); 256], None).await.unwrap();
            let error = image.write(PageNo(0), &vec![page(3); 257], None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge);
            let mut out = vec![page(1); 600];
            image.read(PageNo(0), &mut out, None).await.unwrap();
            for (at, found) in out.iter().enumerate() {
                assert_eq!(*found, page(if (3..259).contains(&at) { 3 } else { 0 }), "page {at}");
            }
        });
        let counted = counters.snapshot();
        assert_eq!((counted.writes, counted.reads, counted.durable_operations()), (1, 3, 0));
    }

    #[test]
    fn what_is_refused_or_fails_names_the_pages() {
        let memory = MemoryStore::new(300 * PAGE_BYTES as u64);
        assert_eq!(
            Image::<_, PageBuf>::new(memory.clone(), 301).err().map(|error| error.kind()),
            Some(ErrorKind::InvalidInput)
        );
        memory.spoil_block(280 * PAGE_BYTES as u64);
        let image = Image::new(memory, 300).unwrap();
        run(async move {
            let mut out = vec![page(0); 300];
            let error = image.read(PageNo(0), &mut out, None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("pages 256+44"), "{error}");
            let error = image.read(PageNo(1), &mut out, None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
            let error = image.trim(PageRange::new(PageNo(299), 2)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
            let error = image.write(PageNo(0), &out[..1], Some(TxId(1))).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownTransaction);
        });
    }
}
