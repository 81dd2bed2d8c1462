//! SHARE: remapping, ordered with the writes before and after it (SHARE, section 3.2).
//!
//! The mapping does not cover pages in the write cache. So the batch's pages are written back
//! first, and an ordered cache, which promises a prefix of all acknowledged writes, as a whole.
//! Writers wait until the share has its place in the log: what they write then is newer, in the
//! cache as in the log. A share is durable when it returns, and so is all that the log holds before
//! it.
//!
//! A share is like a write outside of transactions: it uses committed content, and its left pages are none that an open
//! transaction holds.
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
    /// Shares `pairs`, which were checked; runs to the end even if the caller drops the future.
    pub(crate) async fn share_pairs(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        let share = |ssd: Rc<Self>| async move { ssd.share_in_turn(&pairs, &[], || ()).await };
        self.commands.run("share", share).await
    }

    /// Makes the pages of `to` like those of `from`, which were checked; runs to the end even if the caller drops the
    /// future.
    pub(crate) async fn clone_pages(&self, to: PageRange, from: PageRange) -> Result<()> {
        let clone = |ssd: Rc<Self>| async move {
            let newest = |ssd: &Self| {
                let cache = ssd.cache.borrow();
                cache.command_of_range(to).max(cache.command_of_range(from))
            };
            let turn = ssd.turn_to_remap(newest).await?;
            // Nobody changes a page from here on until the batch has its place in the log.
            let (mut pairs, zeros) = ssd.ftl.differences(to, from);
            // Where there is nothing to change it still waits for what made the pages alike.
            if Fault::ClonedInParts.is_planted() {
                let half = pairs.split_off(pairs.len() / 2);
                ssd.ftl.share(&half, true, || ()).await?;
            }
            ssd.remap(turn, &pairs, &zeros, || ()).await
        };
        self.commands.run("clone", clone).await
    }

    /// Trims `zeros` as well, and calls `placed` in the step in which readers see all of it.
    pub(crate) async fn share_in_turn(
        &self,
        pairs: &[(PageNo, PageNo)],
        zeros: &[PageRange],
        placed: impl FnOnce(),
    ) -> Result<()> {
        let turn = self.turn_to_remap(|ssd| ssd.newest_command(pairs, zeros)).await?;
        self.remap(turn, pairs, zeros, placed).await
    }

    /// The writers' turn, when the log has all that came before, of the pages concerned at least: up to their `newest`
    /// command in the cache.
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

    /// Remaps in the writers' `turn`, which others get when the batch has its place in the log.
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
