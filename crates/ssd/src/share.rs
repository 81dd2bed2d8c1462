//! SHARE: remapping, ordered with the writes before and after it (SHARE, section 3.2).
//!
//! The mapping does not cover pages in the write cache. So the batch's pages are written back
//! first, and an ordered cache, which promises a prefix of all acknowledged writes, as a whole.
//! Writers wait until the share has its place in the log: what they write then is newer, in the
//! cache as in the log. A share is durable when it returns, and so is all that the log holds before
//! it.
//!
//! A share is like a write outside of transactions. It uses committed content, and is never refused
//! for a page that an open transaction holds; the later commit overwrites it.
//!
//! A volatile cache has no share: it promises neither order nor atomicity.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;

use crate::options::CacheKind;
use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Shares `pairs`, which were checked; runs to the end even if the caller drops the future.
    pub(crate) async fn share_pairs(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let share = |ssd: Rc<Self>| async move { ssd.share_in_turn(&pairs, &[], || ()).await };
        self.commands.run("share", share).await
    }

    /// Trims `zeros` as well, and calls `placed` in the step in which readers see all of it.
    pub(crate) async fn share_in_turn(
        &self,
        pairs: &[(PageNo, PageNo)],
        zeros: &[PageRange],
        placed: impl FnOnce(),
    ) -> Result<()> {
        let mut turn = Some(self.write_turn.acquire(1).await);
        let all = PageRange::new(PageNo(0), self.limits().pages);
        self.trims.wait_in_force(all).await;
        if self.options.cache == CacheKind::Ordered {
            self.drain().await?;
        } else if let Some(command) = self.newest_command(pairs, zeros) {
            self.drain_to(command).await?;
        }
        let placed = || {
            drop(turn.take());
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
