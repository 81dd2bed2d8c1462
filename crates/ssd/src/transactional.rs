//! Transactions over any device that writes scattered pages all or nothing. Pages wait here until
//! the commit, which is one such write.
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use tantalum_base::{Extent, Limits, PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{DeviceCounters, Finding, LifeCycle, Runtime};

use crate::staging::Staging;
use crate::transactions::Transactions;

/// Adds transactions to `D`, which gets each commit as one
/// [`write_scattered`](PageDevice::write_scattered).
pub struct Transactional<D: PageDevice> {
    pub(crate) device: Rc<D>,
    pub(crate) limits: Limits,
    pub(crate) transactions: Rc<RefCell<Transactions<D::Page>>>,
    /// Woken when a transaction has released its pages.
    released: Rc<WaitQueue>,
    /// Pages for transactions that outgrow their memory, if there are any.
    pub(crate) staging: Option<Rc<Staging>>,
    /// Most pages that each transaction keeps in memory.
    pub(crate) memory_pages_max: usize,
}

impl<D: PageDevice> Transactional<D> {
    /// Allows `transactions_max` open transactions over `device`, of `pages_max` pages each.
    pub fn over(device: Rc<D>, transactions_max: u32, pages_max: u32) -> Self {
        let limits = Limits {
            transactions_max,
            transaction_pages_max: pages_max,
            ..device.limits().clone()
        };
        let transactions = Transactions::new(transactions_max, pages_max);
        let released = transactions.holders.released();
        let transactions = Rc::new(RefCell::new(transactions));
        let memory_pages_max = pages_max as usize;
        Transactional { device, limits, transactions, released, staging: None, memory_pages_max }
    }

    /// The same, but each transaction keeps at most `memory_pages_max` pages in memory. The rest is
    /// staged in `staging`, the last pages of the device, which are not visible outside. With
    /// `is_used` these may have content.
    pub fn staged_in(self, staging: PageRange, is_used: bool, memory_pages_max: u32) -> Self {
        Transactional {
            limits: Limits { pages: staging.first.0, ..self.limits },
            staging: Some(Staging::new(staging, is_used)),
            memory_pages_max: memory_pages_max.max(1) as usize,
            ..self
        }
    }

    /// Trims the staging pages of ended transactions.
    ///
    /// # Errors
    /// Those of a trim.
    pub async fn clear_staged(&self) -> Result<()> {
        match &self.staging {
            Some(staging) => staging.clear(&*self.device).await,
            None => Ok(()),
        }
    }

    /// The device below.
    pub fn device(&self) -> &Rc<D> {
        &self.device
    }

    /// Fails if the device would refuse any write.
    async fn check_writable(&self) -> Result<()> {
        self.device.write(PageNo(0), &[], None).await
    }

    /// Checks a change outside of transactions: fails with `Conflict` if a transaction holds a page
    /// of `range`.
    fn check_released(&self, range: PageRange) -> Result<()> {
        self.transactions.borrow().holders.check_range(range)
    }

    /// Writes the pages of `commit` to the device, and ends its transaction.
    async fn send(
        &self,
        commit: Commit<D::Page>,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let tx = commit.tx;
        let both_ended = move || {
            commit.transactions.borrow_mut().end(tx);
            ended();
        };
        let written = self.device.write_scattered(pages, both_ended).await;
        // This also ends the transaction after a failure.
        self.transactions.borrow_mut().end(tx);
        written
    }
}

/// A commit in flight. If it is dropped before the transaction has ended, a transaction that the
/// host knows is open again; any other one ends.
pub(crate) struct Commit<P: Payload> {
    pub transactions: Rc<RefCell<Transactions<P>>>,
    pub tx: TxId,
    is_known: bool,
}

impl<P: Payload> Drop for Commit<P> {
    fn drop(&mut self) {
        let mut transactions = self.transactions.borrow_mut();
        match self.is_known {
            true => transactions.call_off_commit(self.tx),
            false => transactions.end(self.tx),
        }
    }
}

impl<D: PageDevice> Deref for Transactional<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}

impl<D: LifeCycle> LifeCycle for Transactional<D> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        self.device.start(runtime);
        let Some(staging) = self.staging.as_ref().filter(|staging| staging.is_to_be_cleared())
        else {
            return;
        };
        let (staging, device) = (Rc::clone(staging), Rc::clone(&self.device));
        let clear = async move {
            // On a read-only device the content stays. Other failures are retried before the pages
            // are needed.
            _ = staging.clear(&*device).await;
        };
        drop(runtime.spawn("pages of unfinished transactions", clear));
    }

    async fn close(&self) -> Result<()> {
        self.device.close().await
    }

    fn wait_no_longer(&self) {
        self.device.wait_no_longer();
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.device.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }

    fn metrics(&self, out: &mut Readings) {
        self.device.metrics(out);
    }

    fn validate(&self) {
        self.device.validate();
    }
}

impl<D: PageDevice> PageDevice for Transactional<D> {
    type Page = D::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [D::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, out.len() as u64);
        self.limits.check_range(range)?;
        let Some(tx) = tx else { return self.device.read(first, out, None).await };
        let own = self.transactions.borrow().written_in(tx, range)?;
        let others = gaps(own.iter().map(|(at, _)| *at), out.len());
        match &others[..] {
            [] => {}
            [gap] => read_gap(&*self.device, first, gap, out).await?,
            // One read for all gaps, as of one moment. Only if it fails is each gap read alone.
            gaps => {
                if self.device.read(first, out, None).await.is_err() {
                    for gap in gaps {
                        read_gap(&*self.device, first, gap, out).await?;
                    }
                }
            }
        }
        self.read_own(tx, own, out).await
    }

    async fn write(&self, first: PageNo, pages: &[D::Page], tx: Option<TxId>) -> Result<()> {
        let range = PageRange::new(first, pages.len() as u64);
        self.limits.check_range(range)?;
        let Some(tx) = tx else {
            self.check_released(range)?;
            return self.device.write(first, pages, None).await;
        };
        self.check_writable().await?;
        self.make_room(tx, pages.len()).await?;
        let pages = (first.0..).map(PageNo).zip(pages.iter().cloned());
        self.transactions.borrow_mut().write(tx, pages)
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, D::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits.check_scattered(&pages)?;
        self.check_writable().await?;
        let held = pages.iter().map(|(page, _)| *page).collect();
        let tx = self.transactions.borrow_mut().begin_commit(held)?;
        let commit = Commit { transactions: Rc::clone(&self.transactions), tx, is_known: false };
        match &self.staging {
            Some(staging) if pages.len() > self.memory_pages_max => {
                self.transactions.borrow_mut().fill(tx, pages);
                self.commit_staged(commit, staging, ended).await
            }
            _ => self.send(commit, pages, ended).await,
        }
    }

    async fn flush(&self) -> Result<()> {
        self.device.flush().await
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        self.check_released(range)?;
        self.device.trim(range).await
    }

    fn extent(&self, range: PageRange) -> Extent {
        self.device.extent(range)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.limits.check_share(pairs)?;
        let lefts = pairs.iter().map(|(left, _)| *left);
        self.transactions.borrow().holders.check_outside(lefts)?;
        self.device.share(pairs).await
    }

    async fn clone_range(&self, to: PageNo, from: PageNo, pages: u64) -> Result<()> {
        let (lefts, _) = self.limits.clone_ranges(to, from, pages)?;
        self.check_released(lefts)?;
        self.device.clone_range(to, from, pages).await
    }

    async fn begin(&self) -> Result<TxId> {
        self.check_writable().await?;
        self.transactions.borrow_mut().begin()
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        let pages = self.transactions.borrow_mut().start_commit(tx)?;
        let commit = Commit { transactions: Rc::clone(&self.transactions), tx, is_known: true };
        match (pages, &self.staging) {
            (None, Some(staging)) => self.commit_staged(commit, staging, || ()).await,
            (pages, _) => self.send(commit, pages.unwrap_or_default(), || ()).await,
        }
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        self.transactions.borrow_mut().abort(tx)?;
        if let Some(staging) = &self.staging {
            // A failure here is retried before the pages are needed.
            _ = staging.clear(&*self.device).await;
        }
        Ok(())
    }

    async fn until_released(&self, range: PageRange) {
        self.released.until(|| self.check_released(range).ok()).await;
    }
}

/// The ranges of `0..len` that are not in `taken`, which ascends.
fn gaps(taken: impl Iterator<Item = usize>, len: usize) -> Vec<std::ops::Range<usize>> {
    let mut gaps = Vec::new();
    let mut from = 0;
    for at in taken.chain([len]) {
        if from < at {
            gaps.push(from..at);
        }
        from = at + 1;
    }
    gaps
}

async fn read_gap<D: PageDevice>(
    device: &D,
    first: PageNo,
    gap: &std::ops::Range<usize>,
    out: &mut [D::Page],
) -> Result<()> {
    device.read(PageNo(first.0 + gap.start as u64), &mut out[gap.clone()], None).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll};
    use tantalum_base::{Durability, ErrorKind, PAGE_BYTES, Stamp};
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    const PAGE: PageNo = PageNo(3);

    /// A device on which no scattered write ever ends.
    struct Stuck(Limits);

    impl PageDevice for Stuck {
        type Page = Stamp;

        fn limits(&self) -> &Limits {
            &self.0
        }

        async fn read(&self, _: PageNo, _: &mut [Stamp], _: Option<TxId>) -> Result<()> {
            Ok(())
        }

        async fn write(&self, _: PageNo, _: &[Stamp], _: Option<TxId>) -> Result<()> {
            Ok(())
        }

        async fn write_scattered(
            &self,
            _: Vec<(PageNo, Stamp)>,
            _ended: impl FnOnce() + 'static,
        ) -> Result<()> {
            std::future::pending().await
        }

        async fn flush(&self) -> Result<()> {
            Ok(())
        }

        async fn trim(&self, _: PageRange) -> Result<()> {
            Ok(())
        }
    }

    fn stuck() -> Transactional<Stuck> {
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: 10,
            atomic_write_pages_max: 10,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        Transactional::over(Rc::new(Stuck(limits)), 1, 4)
    }

    /// Polls `command` once and drops it.
    async fn give_up(command: impl Future<Output = Result<()>>) {
        let mut command = pin!(command);
        let once = std::future::poll_fn(|context| {
            Poll::Ready(command.as_mut().poll(context).is_pending())
        });
        assert!(once.await);
    }

    fn run(test: impl Future<Output = ()> + 'static) {
        Virtual::new(Schedule::Fifo).run(test).unwrap();
    }

    #[test]
    fn a_commit_that_is_given_up_leaves_its_transaction_open() {
        run(async {
            let device = stuck();
            let tx = device.begin().await.unwrap();
            device.write(PAGE, &[Stamp::new(PAGE, 1)], Some(tx)).await.unwrap();
            give_up(device.commit(tx)).await;
            device.abort(tx).await.unwrap();
        });
    }

    #[test]
    fn a_scattered_write_that_is_given_up_holds_nothing() {
        run(async {
            let device = stuck();
            give_up(device.write_scattered(vec![(PAGE, Stamp::new(PAGE, 1))], || ())).await;
            let tx = device.begin().await.unwrap();
            device.write(PAGE, &[Stamp::new(PAGE, 2)], Some(tx)).await.unwrap();
        });
    }

    #[test]
    fn a_scattered_write_takes_no_place_of_a_transaction() {
        run(async {
            // The device allows one transaction.
            let device = stuck();
            let tx = device.begin().await.unwrap();
            device.write(PAGE, &[Stamp::new(PAGE, 1)], Some(tx)).await.unwrap();
            let other = vec![(PageNo(4), Stamp::new(PageNo(4), 1))];
            let mut write = pin!(device.write_scattered(other, || ()));
            let once = |context: &mut Context<'_>| Poll::Ready(write.as_mut().poll(context));
            assert!(std::future::poll_fn(once).await.is_pending(), "it is on its way");
            let held = vec![(PAGE, Stamp::new(PAGE, 2))];
            let refused = device.write_scattered(held, || ()).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict);
            // The write in flight holds its page, but does not use up the one transaction.
            device.abort(tx).await.unwrap();
            let next = device.begin().await.unwrap();
            let refused =
                device.write(PageNo(4), &[Stamp::new(PageNo(4), 2)], Some(next)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict);
            let refused = device.begin().await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::TooManyTransactions);
        });
    }

    #[test]
    fn gaps_are_what_is_not_taken() {
        assert_eq!(gaps([].into_iter(), 3), vec![0..3; 1]);
        assert_eq!(gaps([0, 2].into_iter(), 5), [1..2, 3..5]);
        assert!(gaps([0, 1].into_iter(), 2).is_empty());
    }
}
