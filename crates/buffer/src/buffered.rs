//! A device with a read cache in front, which passes every change on.
//!
//! It makes the same promises as the device below: it acknowledges nothing that the device has not
//! acknowledged, and passes everything on in the order of issue. It does not write back: coalescing
//! of rewrites between two flushes is left to the write cache of the device, which keeps their
//! order.
use std::rc::Rc;
use tantalum_base::{Extent, Limits, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_policy::Policy;
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{LifeCycle, forward_life_cycle};

use crate::read_cache::{ReadCache, Written};
use crate::statistics::PoolStatistics;

/// Maximum number of ranges kept of a transaction's writes. Beyond it, everything from the first to
/// the last page counts as written.
const RANGES_MAX: u32 = 4096;

/// A [`PageDevice`] with a read cache in front. Without a policy there is no cache, and every
/// command passes through.
pub struct Buffered<D: PageDevice> {
    device: Rc<D>,
    cache: Option<ReadCache<D::Page>>,
}

impl<D: PageDevice> Buffered<D> {
    /// Puts a cache with the frames of `policy`, which must be empty, in front of `device`. From
    /// then on the device must not be changed in any other way.
    pub fn new(device: Rc<D>, policy: Option<Box<dyn Policy>>) -> Self {
        Buffered { device, cache: policy.map(ReadCache::new) }
    }

    /// The device below.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// Counters of the cache, if there is one. Requests are pages read outside of transactions and
    /// pages written; a write is a hit if its page was cached. The policy is called for reads only:
    /// no page is ever dirty.
    pub fn statistics(&self) -> Option<PoolStatistics> {
        self.cache.as_ref().map(|cache| cache.state.borrow().statistics)
    }

    /// Frames of the policy; 0 without a cache.
    pub fn capacity_pages(&self) -> u32 {
        let capacity = |cache: &ReadCache<_>| cache.state.borrow().policy.capacity_pages();
        self.cache.as_ref().map_or(0, capacity)
    }

    /// Panics if the cache contradicts itself.
    pub fn validate_cache(&self) {
        if let Some(cache) = &self.cache {
            cache.validate(self.limits());
        }
    }
}

/// The pages as ranges, each of neighbours that follow each other in `pages`.
fn ranges_of(pages: impl Iterator<Item = PageNo>) -> Vec<PageRange> {
    let mut ranges: Vec<PageRange> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(range) if range.end() == page => range.pages += 1,
            _ => ranges.push(PageRange::new(page, 1)),
        }
    }
    ranges
}

impl<D: LifeCycle> LifeCycle for Buffered<D> {
    forward_life_cycle!(device);

    fn metrics(&self, out: &mut Readings) {
        if let Some(statistics) = self.statistics() {
            statistics.tell(self.capacity_pages(), out);
        }
        self.device.metrics(out);
    }

    fn validate(&self) {
        self.validate_cache();
        self.device.validate();
    }
}

impl<D: PageDevice> PageDevice for Buffered<D> {
    type Page = D::Page;

    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        // Only the device knows the writes of a transaction, and includes them in its reads.
        match &self.cache {
            Some(cache) if tx.is_none() => {
                self.limits().check_range(PageRange::new(first, out.len() as u64))?;
                cache.read(&*self.device, first, out).await
            }
            _ => self.device.read(first, out, tx).await,
        }
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        let Some(cache) = &self.cache else { return self.device.write(first, pages, tx).await };
        self.limits().check_range(range)?;
        if let Some(tx) = tx {
            // Recorded before the write: if its future is dropped, the device may still do it.
            if let Some(written) = cache.written.borrow_mut().get_mut(&tx) {
                written.ranges.insert(range);
                // A transaction may write no more pages than this. Further ranges come from writes
                // that the device refused.
                let most = self.limits().transaction_pages_max.min(RANGES_MAX);
                written.ranges.limit(most as usize);
            }
            return self.device.write(first, pages, Some(tx)).await;
        }
        let change = cache.begin_change(std::iter::once(range));
        let done = self.device.write(first, pages, None).await;
        if done.is_err() {
            change.end(false);
            return done;
        }
        cache.count(|counts| {
            counts.device_writes += 1;
            counts.physical_writes += range.pages;
        });
        change.written(first, pages);
        Ok(())
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let Some(cache) = &self.cache else {
            return self.device.write_scattered(pages, ended).await;
        };
        self.limits().check_scattered(&pages)?;
        let ranges = ranges_of(pages.iter().map(|(page, _)| *page));
        let change = cache.begin_change(ranges.into_iter());
        let done = self.device.write_scattered(pages, ended).await;
        change.end(done.is_ok());
        done
    }

    async fn flush(&self) -> Result<()> {
        self.device.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.trim(range).await };
        self.limits().check_range(range)?;
        let change = cache.begin_change(std::iter::once(range));
        let done = self.device.trim(range).await;
        change.end(done.is_ok());
        done
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.device.extent(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.share(pairs).await };
        self.limits().check_share(pairs)?;
        let lefts = ranges_of(pairs.iter().map(|(left, _)| *left));
        let change = cache.begin_change(lefts.iter().copied());
        let done = self.device.share(pairs).await;
        change.end(done.is_ok());
        done
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let Some(cache) = &self.cache else {
            return self.device.clone_range(to, from, pages).await;
        };
        let (to_pages, _) = self.limits().clone_ranges(to, from, pages)?;
        let change = cache.begin_change(std::iter::once(to_pages));
        let done = self.device.clone_range(to, from, pages).await;
        change.end(done.is_ok());
        done
    }

    async fn begin(&self) -> Result<TxId> {
        let tx = self.device.begin().await?;
        if let Some(cache) = &self.cache {
            let written = &mut *cache.written.borrow_mut();
            if written.len() >= 2 * self.limits().transactions_max as usize {
                written.retain(|_, written| !written.ending);
                cache.lost_writes.set(true);
            }
            written.insert(tx, Written::default());
        }
        Ok(tx)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let Some(cache) = &self.cache else { return self.device.commit(tx).await };
        let all = [PageRange::new(PageNo(0), self.limits().pages)];
        let change = {
            let mut written = cache.written.borrow_mut();
            match written.get_mut(&tx) {
                Some(written) => {
                    written.ending = true;
                    cache.begin_change(written.ranges.iter())
                }
                None if cache.lost_writes.get() => cache.begin_change(all.iter().copied()),
                None => cache.begin_change(std::iter::empty()),
            }
        };
        let done = self.device.commit(tx).await;
        change.end(done.is_ok());
        // The transaction has ended even if the commit failed, unless another call commits it.
        cache.written.borrow_mut().remove(&tx);
        done
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        if let Some(cache) = &self.cache {
            cache.written.borrow_mut().entry(tx).and_modify(|written| written.ending = true);
        }
        let aborted = self.device.abort(tx).await;
        if let Some(cache) = &self.cache {
            cache.written.borrow_mut().remove(&tx);
        }
        aborted
    }

    async fn until_released(&self, range: PageRange) {
        self.device.until_released(range).await;
    }
}
