//! Transactions that outgrow their memory. Their pages are staged in pages that nobody else can
//! see. The commit remaps all written pages to the staged ones, as one share. Zero pages are not
//! staged and need no space: the commit trims them. So a transaction that frees pages by
//! overwriting them with zeros, as databases may do, succeeds on a full device.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result, TxId};
use tantalum_runtime::join_all;

use crate::fault_points::Fault;
use crate::staging::Staging;
use crate::transactional::{Commit, Transactional};
use crate::transactions::{Content, Moving};

impl<D: PageDevice> Transactional<D> {
    /// Makes room in memory for `pages` more pages of `tx`, if it may be staged.
    pub(crate) async fn make_room(&self, tx: TxId, pages: usize) -> Result<()> {
        let Some(staging) = &self.staging else { return Ok(()) };
        let in_memory = self.transactions.borrow().in_memory(tx);
        match in_memory > 0 && in_memory + pages > self.memory_pages_max {
            true => self.stage(tx, staging).await,
            false => Ok(()),
        }
    }

    /// Stages all pages of `tx` that are in memory.
    async fn stage(&self, tx: TxId, staging: &Rc<Staging>) -> Result<()> {
        // Pages that ended transactions left are needed now.
        staging.clear(&*self.device).await?;
        let mut moving = self.transactions.borrow_mut().begin_staging(tx, staging)?;
        moving.sort_unstable_by_key(|it| it.place);
        let most = self.limits.atomic_write_pages_max.max(1) as usize;
        let follows =
            |one: &Moving<D::Page>, next: &Moving<D::Page>| next.place.0 == one.place.0 + 1;
        let runs = moving.chunk_by(follows).flat_map(|run| run.chunks(most));
        let write = async |run: &[Moving<D::Page>]| {
            let contents: Vec<D::Page> = run.iter().map(|it| it.content.clone()).collect();
            self.device.write(run[0].place, &contents, None).await
        };
        // The writes run concurrently, so that they share appends.
        join_all(runs.map(write).collect()).await?;
        self.transactions.borrow_mut().end_staging(tx, &moving);
        Ok(())
    }

    /// Commits a transaction that is staged in part, or is still to be staged.
    pub(crate) async fn commit_staged(
        &self,
        commit: Commit<D::Page>,
        staging: &Rc<Staging>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let tx = commit.tx;
        let taken_over = match self.stage(tx, staging).await {
            Err(error) => Err(error),
            Ok(()) => {
                let (pairs, zeros) = self.transactions.borrow().outcome(tx);
                let both_ended = move || {
                    commit.transactions.borrow_mut().end(tx);
                    ended();
                };
                self.take_over(pairs, zeros, both_ended).await
            }
        };
        // This also ends the transaction after a failure.
        self.transactions.borrow_mut().end(tx);
        // A failure here is retried before the pages are needed.
        _ = staging.clear(&*self.device).await;
        taken_over
    }

    async fn take_over(
        &self,
        mut pairs: Vec<(PageNo, PageNo)>,
        zeros: Vec<PageRange>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        if Fault::CommittedInParts.is_planted() {
            let half = pairs.split_off(pairs.len() / 2);
            self.device.take_over(half, Vec::new(), || ()).await?;
        }
        self.device.take_over(pairs, zeros, ended).await
    }

    /// Reads into `out` the pages that `tx` wrote itself.
    pub(crate) async fn read_own(
        &self,
        tx: TxId,
        own: Vec<(usize, Content<D::Page>)>,
        out: &mut [D::Page],
    ) -> Result<()> {
        let mut staged = Vec::new();
        for (at, content) in own {
            match content {
                Content::Memory(content) => out[at] = content,
                Content::Zeros => out[at] = D::Page::zero(),
                Content::Staged(place) => staged.push((at, place)),
            }
        }
        if staged.is_empty() {
            return Ok(());
        }
        let follows = |one: &(usize, PageNo), next: &(usize, PageNo)| {
            next.0 == one.0 + 1 && next.1.0 == one.1.0 + 1
        };
        let read = async |run: &[(usize, PageNo)]| {
            let mut pages = vec![D::Page::zero(); run.len()];
            self.device.read(run[0].1, &mut pages, None).await.map(|()| (run[0].0, pages))
        };
        let runs = staged.chunk_by(follows);
        for (at, pages) in join_all(runs.map(read).collect()).await? {
            out[at..at + pages.len()].clone_from_slice(&pages);
        }
        // Once the transaction has ended, others may reuse these pages.
        self.transactions.borrow().check_open(tx)
    }
}
