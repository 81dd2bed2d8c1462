//! SHARE: remapping, in order with the writes before and behind it (SHARE, section 3.2).
//!
//! The mapping knows nothing of pages that wait in the write cache. So what is there of the
//! batch's pages is written back first; an ordered cache, which promises a prefix of all that was
//! acknowledged, is written back whole. Writers wait until the share has its place in the log:
//! what they write then is newer, in the cache as in the log. A share is durable when it returns,
//! and so is all that the log holds before it.
//!
//! A share is like a write outside of transactions. It takes what is committed, and is never
//! refused for a page that an open transaction holds; the commit, coming later, overwrites that.
//!
//! A volatile cache has no share: it promises neither order nor that anything is whole.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;

use crate::options::CacheKind;
use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Shares `pairs`, which were checked: to the end, also where the caller gives it up.
    pub(crate) async fn share_pairs(&self, pairs: Vec<(PageNo, PageNo)>) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let share = |ssd: Rc<Self>| async move { ssd.share_in_turn(&pairs).await };
        self.commands.run("share", share).await
    }

    async fn share_in_turn(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        let mut turn = Some(self.write_turn.acquire(1).await);
        let all = PageRange::new(PageNo(0), self.limits().pages);
        self.trims.wait_in_force(all).await;
        if self.options.cache == CacheKind::Ordered {
            self.drain().await?;
        } else if let Some(command) = self.newest_command(pairs) {
            self.drain_to(command).await?;
        }
        self.ftl.share(pairs, true, || drop(turn.take())).await?;
        self.count(|counts| counts.shares += 1);
        Ok(())
    }

    /// The newest command that left a page of `pairs` in the cache.
    fn newest_command(&self, pairs: &[(PageNo, PageNo)]) -> Option<u64> {
        let cache = self.cache.borrow();
        let pages = pairs.iter().flat_map(|(left, right)| [*left, *right]);
        pages.filter_map(|page| cache.command_of(page)).max()
    }
}
