//! SHARE: remapping, ordered with the writes before and after it (SHARE, section 3.2).
//!
//! The mapping does not cover pages in the write cache. So the pages of the batch are written back
//! first. An ordered cache, which promises a prefix of all acknowledged writes, is written back as
//! a whole. Writers wait until the share has its place in the log: their content is then newer, in
//! the cache as in the log. When a share returns, it is durable, together with everything before it
//! in the log.
//!
//! A share is like a write outside of transactions: it uses committed content, and no open
//! transaction may hold its left pages.
//!
//! A volatile cache has no share: it promises neither order nor atomicity.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::Permit;

use crate::fault_points::Fault;
use crate::options::CacheKind;
use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Shares `pairs`, which the caller checked. Runs to the end even if the caller drops the
    /// future.
    pub(crate) async fn share_pairs(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        let share = |ssd: Rc<Self>| async move { ssd.share_in_turn(&pairs, &[], || ()).await };
        self.commands.run("share", share).await
    }

    /// Gives the pages of `to` the content of `from`. The caller checked both. Runs to the end even
    /// if the caller drops the future.
    pub(crate) async fn clone_pages(&self, to: PageRange, from: PageRange) -> Result<()> {
        let clone = |ssd: Rc<Self>| async move {
            let newest = |ssd: &Self| {
                let cache = ssd.cache.borrow();
                cache.command_of_range(to).max(cache.command_of_range(from))
            };
            let turn = ssd.turn_to_remap(newest).await?;
            // From here on no page changes until the batch has its place in the log.
            let (mut pairs, zeros) = ssd.ftl.differences(to, from);
            // Even if nothing differs, this waits for the changes that made the pages equal.
            if Fault::ClonedInParts.is_planted() {
                let half = pairs.split_off(pairs.len() / 2);
                ssd.ftl.share(&half, true, || ()).await?;
            }
            ssd.remap(turn, &pairs, &zeros, || ()).await
        };
        self.commands.run("clone", clone).await
    }

    /// Shares `pairs` and trims `zeros`, after all earlier writes. Calls `placed` in the step in
    /// which readers see all of it.
    pub(crate) async fn share_in_turn(
        &self,
        pairs: &[(PageNo, PageNo)],
        zeros: &[PageRange],
        placed: impl FnOnce(),
    ) -> Result<()> {
        let turn = self.turn_to_remap(|ssd| ssd.newest_command(pairs, zeros)).await?;
        self.remap(turn, pairs, zeros, placed).await
    }

    /// Takes the writers' turn, and waits until all earlier changes of these pages are in the log.
    /// `newest` returns their newest command in the cache. An ordered cache waits for all earlier
    /// changes.
    async fn turn_to_remap(&self, newest: impl FnOnce(&Self) -> Option<u64>) -> Result<Permit> {
        let turn = self.write_turn.acquire(1).await;
        let all = PageRange::new(PageNo(0), self.limits().pages);
        self.trims.wait_in_force(all).await;
        if self.options.cache == CacheKind::Ordered {
            self.drain().await?;
        } else if let Some(command) = newest(self) {
            self.drain_to(command).await?;
        }
        Ok(turn)
    }

    /// Remaps during the writers' `turn`, which is released when the batch has its place in the
    /// log.
    async fn remap(
        &self,
        turn: Permit,
        pairs: &[(PageNo, PageNo)],
        zeros: &[PageRange],
        placed: impl FnOnce(),
    ) -> Result<()> {
        let placed = || {
            drop(turn);
            placed();
        };
        self.ftl.share_and_trim(pairs, zeros, true, placed).await?;
        self.count(|counts| counts.shares += 1);
        Ok(())
    }

    /// The newest command that left a page of `pairs` or `zeros` in the cache.
    fn newest_command(&self, pairs: &[(PageNo, PageNo)], zeros: &[PageRange]) -> Option<u64> {
        let cache = self.cache.borrow();
        let pages = pairs.iter().flat_map(|(left, right)| [*left, *right]);
        let of_zeros = zeros.iter().filter_map(|range| cache.command_of_range(*range)).max();
        pages.filter_map(|page| cache.command_of(page)).max().max(of_zeros)
    }
}
