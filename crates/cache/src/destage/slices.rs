//! Writes pages in place and marks them clean, a slice at a time, so that room becomes free as
//! destaging proceeds.
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;
use tantalum_runtime::sync::Semaphore;

use crate::fault_points::Fault;
use crate::journal::Run;
use crate::tiered::Tiered;

/// Maximum pages zeroed on the home in one operation. A disk without a command for this writes zeros: 32 MiB take less than
/// the time after which a home counts as silent.
const ZEROED_PAGES_MAX: u64 = 8192;

/// One operation of the home.
pub(super) enum HomeWrite<P> {
    /// Pages from this one on.
    Contents(PageNo, Rc<[P]>),
    /// Pages that were trimmed.
    Zeros(PageRange),
}

impl<P> HomeWrite<P> {
    /// All of a run of the journal.
    pub(super) fn of(run: Run<P>) -> Self {
        match run {
            Run::Contents { first, pages } => HomeWrite::Contents(first, Rc::from(pages)),
            Run::Zeros(range) => HomeWrite::Zeros(range),
        }
    }

    fn range(&self) -> PageRange {
        match self {
            HomeWrite::Contents(first, pages) => PageRange::new(*first, pages.len() as u64),
            HomeWrite::Zeros(range) => *range,
        }
    }
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Performs these writes, a limited number at a time, and makes them durable. Then marks those
    /// pages clean that did not change meanwhile.
    pub(super) async fn write_slice(&self, writes: Vec<HomeWrite<M::Page>>) -> Result<()> {
        if writes.is_empty() {
            return Ok(());
        }
        let turns = Semaphore::new("the home's turn", u64::from(self.options.home_writes_max));
        all_ended(writes.iter().map(|write| {
            let turns = turns.clone();
            async move {
                let _turn = turns.acquire(1).await;
                self.write_one(write).await
            }
        }))
        .await?;
        if !Fault::HomeNotFlushed.is_planted() {
            self.at_home(self.home.flush()).await?;
        }
        let worn = self.is_worn();
        for write in &writes {
            let arrived = self.dirty.borrow_mut().arrived(write.range());
            let cleaned = self.drive.ftl().mark_clean(arrived.iter().copied());
            self.count(|counts| counts.pages_cleaned += cleaned);
            let keeps = self.mode().keeps_written() && !worn;
            let goes = |page: &PageNo| self.dirty.borrow_mut().take_passed(*page) || !keeps;
            self.drive.ftl().unused(arrived.into_iter().filter(goes));
        }
        self.may_change.wake_all();
        Ok(())
    }

    /// The writes for these pages, which are in page order: neighbours share a write.
    pub(super) fn in_long_writes(&self, contents: &[(PageNo, M::Page)]) -> Vec<HomeWrite<M::Page>> {
        let most = self.home.limits().atomic_write_pages_max.max(1) as usize;
        let follows = |one: &(PageNo, M::Page), next: &(PageNo, M::Page)| next.0.0 == one.0.0 + 1;
        let runs = contents.chunk_by(follows).flat_map(|run| run.chunks(most));
        let write = |run: &[(PageNo, M::Page)]| {
            let pages: Vec<M::Page> = run.iter().map(|(_, content)| content.clone()).collect();
            HomeWrite::Contents(run[0].0, Rc::from(pages))
        };
        runs.map(write).collect()
    }

    async fn write_one(&self, write: &HomeWrite<M::Page>) -> Result<()> {
        let range = write.range();
        match write {
            HomeWrite::Contents(first, pages) => {
                self.at_home(self.home.write(*first, pages, None)).await?;
                self.count(|counts| {
                    counts.home_writes += 1;
                    counts.home_pages_written += range.pages;
                });
            }
            HomeWrite::Zeros(range) => {
                // In steps, so that a slow home that zeroes a long range keeps answering.
                let (mut first, end) = (range.first.0, range.end().0);
                while first < end {
                    let step = PageRange::new(PageNo(first), ZEROED_PAGES_MAX.min(end - first));
                    self.at_home(self.home.trim(step)).await?;
                    self.count(|counts| counts.home_pages_zeroed += step.pages);
                    first += step.pages;
                }
            }
        }
        Ok(())
    }
}

/// Runs these concurrently until all have ended; returns the first error, in the order of the
/// futures.
pub(super) async fn all_ended<E, F: Future<Output = Result<(), E>>>(
    futures: impl Iterator<Item = F>,
) -> Result<(), E> {
    let mut futures: Vec<(Pin<Box<F>>, _)> =
        futures.map(|future| (Box::pin(future), None::<Result<(), E>>)).collect();
    poll_fn(|context| {
        for (future, ended) in futures.iter_mut().filter(|(_, ended)| ended.is_none()) {
            if let Poll::Ready(result) = future.as_mut().poll(context) {
                *ended = Some(result);
            }
        }
        match futures.iter().all(|(_, ended)| ended.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, ended)| ended).collect()
}
