//! The facts that recovery needs about a zone that cleaning resets: its dead versions, so that it can
//! account for every durable change (see `log::uncovered`), and the pages that a cache evicted, so that it
//! does not accept older content of them elsewhere as the newest.
use tantalum_base::{PageBuf, PageNo, Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::log::records::{DEAD_RANGES_MAX, GONE_MAX, encode_dead, encode_gone};
use crate::log::uncovered::VersionRange;
use crate::parts::Parts;
use crate::space::Stream;
use crate::space::durable::Stated;

impl<M: ZoneMedia> Ftl<M> {
    /// Makes recovery independent of `victim`, which is about to be reset: lists its versions that are not
    /// `kept` elsewhere and the pages that are `gone` home, and states a durable watermark that covers them.
    /// If `victim` itself holds such a list, or there is no space for one, it writes a checkpoint instead.
    pub(crate) async fn account_for(
        &self,
        victim: ZoneNo,
        kept: &mut [Version],
        gone: &[(PageNo, Version)],
    ) -> Result<()> {
        let (dead, due, lists_dead) = {
            let parts = self.parts.borrow();
            let mut dead = parts.log.uncovered.without(victim, kept);
            if Fault::DeadVersionsUnlisted.is_planted() {
                dead.clear();
            }
            let says_more = parts.watermark_due(victim, &parts.space.stated());
            let due = !dead.is_empty() || !gone.is_empty() || says_more;
            (dead, due, parts.lists_dead(victim))
        };
        if Fault::NoWatermark.is_planted() {
            return Ok(());
        }
        if lists_dead || due && !self.list(&dead, gone).await? {
            self.checkpoint().await?;
        }
        Ok(())
    }

    /// Durably writes lists of `dead` versions and of pages that are `gone` home; returns false if there is
    /// no space for them.
    async fn list(&self, dead: &[VersionRange], gone: &[(PageNo, Version)]) -> Result<bool> {
        // Even a page without dead versions states the watermark.
        let none = dead.is_empty() && gone.is_empty();
        let mut pages: Vec<PageBuf> = dead.chunks(DEAD_RANGES_MAX).map(encode_dead).collect();
        if !Fault::GoneUnlisted.is_planted() {
            pages.extend(gone.chunks(GONE_MAX).map(encode_gone));
        }
        pages.extend(none.then(|| encode_dead(&[])));
        for append in pages.chunks(self.geometry.append_pages_max as usize) {
            let fits = {
                let parts = self.parts.borrow();
                parts.space.append_pages_fit(Stream::Cleaning) >= append.len() as u32
                    || parts.space.free_count() > self.kept_from_cleaning()
            };
            if !fits {
                return Ok(false);
            }
            let mut buffer = self.buffers.take();
            append.iter().for_each(|page| buffer.push_record(page.clone(), Version::NEVER));
            let count = append.len() as u32;
            self.admit(Stream::Cleaning, count, || self.kept_from_cleaning()).await?;
            let slot = self.append_own(Stream::Cleaning, &buffer, true).await?;
            self.buffers.give(buffer);
            let parts = &mut *self.parts.borrow_mut();
            // A checkpoint that is being written may have begun earlier: it does not replace the list.
            let until = parts.checkpoints.begun;
            parts.space.lists_dead(self.geometry.zone_of(slot), until);
        }
        Ok(true)
    }
}

impl Parts {
    /// Whether a list or a watermark must be written before `zone` is reset.
    pub(crate) fn account_due(&self, zone: ZoneNo, stated: &Stated) -> bool {
        self.log.uncovered.holds_any(zone)
            || self.watermark_due(zone, stated)
            || self.lists_dead(zone)
    }

    /// Whether `zone` holds a list of dead versions that recovery needs.
    fn lists_dead(&self, zone: ZoneNo) -> bool {
        let until = self.space.get(zone).lists_dead_until;
        until.is_some_and(|until| self.checkpoints.in_force <= until)
    }

    /// Whether a watermark must be written before `zone` is reset. Recovery accepts gaps in the
    /// versions only up to a watermark that it finds: before a zone is reset, another must state
    /// one that covers its versions and is as high as those that it stated itself.
    fn watermark_due(&self, zone: ZoneNo, stated: &Stated) -> bool {
        let elsewhere = stated.without(zone).max(self.checkpoints.durable);
        let zone = self.space.get(zone);
        elsewhere < zone.version_max.max(zone.stated)
    }
}
