//! Writing a committed epoch in place.
use super::{Journal, Run};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use tantalum_base::{Error, PageDevice, PageNo, Payload, Result};
use tantalum_media::BlockStore;
use tantalum_runtime::sync::Semaphore;

/// The result of [`apply`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Pages with contents that were written.
    pub pages: u64,
    /// Number of writes that this needed.
    pub writes: u64,
    /// Pages that were zeroed.
    pub zeroed_pages: u64,
}

/// Writes the committed epoch, if there is one, to `home`. Pages are written in order, adjacent
/// ones together in writes as long as the home allows, up to `in_flight_max` at a time. Then the
/// home is flushed. May be repeated, even after it was interrupted.
///
/// # Errors
/// Those of [`next_run`](Journal::next_run) and of the home. Some of the pages may have been
/// written.
///
/// # Panics
/// If `in_flight_max` is 0.
pub async fn apply<S, P, D>(
    journal: &Journal<S, P>,
    home: &D,
    in_flight_max: usize,
) -> Result<Applied>
where
    S: BlockStore,
    P: Payload,
    D: PageDevice<Page = P>,
{
    assert!(in_flight_max > 0, "something has to be in flight");
    let work = Work {
        journal,
        home,
        next: Cell::new(Some(PageNo(0))),
        turn: Semaphore::new("the next run of an epoch", 1),
        failure: RefCell::new(None),
        applied: Cell::default(),
    };
    join((0..in_flight_max).map(|_| Box::pin(work.lane())).collect()).await;
    if let Some(failure) = work.failure.take() {
        return Err(failure);
    }
    home.flush().await?;
    Ok(work.applied.get())
}

/// State shared by the lanes. Each lane has one operation in flight.
struct Work<'a, S, P, D> {
    journal: &'a Journal<S, P>,
    home: &'a D,
    /// The page at which the search for the next run starts; `None` after the last run.
    next: Cell<Option<PageNo>>,
    turn: Semaphore,
    failure: RefCell<Option<Error>>,
    applied: Cell<Applied>,
}

impl<S: BlockStore, P: Payload, D: PageDevice<Page = P>> Work<'_, S, P, D> {
    async fn lane(&self) {
        loop {
            let done = match self.take_run().await {
                Ok(None) => return,
                Ok(Some(run)) => self.write(run).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.next.set(None);
                self.failure.borrow_mut().get_or_insert(error);
                return;
            }
        }
    }

    async fn take_run(&self) -> Result<Option<Run<P>>> {
        let _turn = self.turn.acquire(1).await;
        let Some(from) = self.next.get() else { return Ok(None) };
        let pages_max = self.home.limits().atomic_write_pages_max.max(1) as usize;
        let run = self.journal.next_run(from, pages_max).await?;
        // Another lane failed meanwhile, which ended the work.
        if self.next.get().is_none() {
            return Ok(None);
        }
        self.next.set(run.as_ref().map(|run| run.range().end()));
        Ok(run)
    }

    async fn write(&self, run: Run<P>) -> Result<()> {
        let range = run.range();
        match run {
            Run::Contents { first, pages } => self.home.write(first, &pages, None).await?,
            Run::Zeros(range) => {
                self.home.trim(range).await?;
                let applied = self.applied.get();
                let zeroed_pages = applied.zeroed_pages + range.pages;
                self.applied.set(Applied { zeroed_pages, ..applied });
                return Ok(());
            }
        }
        let applied = self.applied.get();
        let (pages, writes) = (applied.pages + range.pages, applied.writes + 1);
        self.applied.set(Applied { pages, writes, ..applied });
        Ok(())
    }
}

/// Runs the lanes until all have ended.
async fn join<F: Future<Output = ()>>(lanes: Vec<Pin<Box<F>>>) {
    let mut lanes: Vec<_> = lanes.into_iter().map(Some).collect();
    poll_fn(|context| {
        for lane in &mut lanes {
            if lane.as_mut().is_some_and(|running| running.as_mut().poll(context).is_ready()) {
                *lane = None;
            }
        }
        if lanes.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
