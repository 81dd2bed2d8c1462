//! Dead versions, which cleaning lists before it resets a zone, so that recovery can account for
//! every durable change (see `log::uncovered`).
use tantalum_base::{Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::log::records::{DEAD_RANGES_MAX, encode_dead};
use crate::log::uncovered::VersionRange;
use crate::parts::Parts;
use crate::space::Stream;
use crate::space::durable::Stated;

impl<M: ZoneMedia> Ftl<M> {
    /// Makes sure that recovery can do without `victim`, which is about to be reset: lists its
    /// versions that are not `kept` elsewhere, and states a durable watermark that covers them.
    /// Where `victim` itself holds such a list, or there is no space for one, it writes a
    /// checkpoint instead.
    pub(crate) async fn account_for(&self, victim: ZoneNo, kept: &mut [Version]) -> Result<()> {
        let (dead, due, lists_dead) = {
            let parts = self.parts.borrow();
            let mut dead = parts.log.uncovered.without(victim, kept);
            if Fault::DeadVersionsUnlisted.is_planted() {
                dead.clear();
            }
            let says_more = parts.watermark_due(victim, &parts.space.stated());
            let due = !dead.is_empty() || says_more;
            (dead, due, parts.lists_dead(victim))
        };
        if Fault::NoWatermark.is_planted() {
            return Ok(());
        }
        if lists_dead || due && !self.list_dead(&dead).await? {
            self.checkpoint().await?;
        }
        Ok(())
    }

    /// Writes a list of `dead` versions, durably; false where there is no space for it.
    async fn list_dead(&self, dead: &[VersionRange]) -> Result<bool> {
        let most = DEAD_RANGES_MAX * self.geometry.append_pages_max as usize;
        let mut rest = dead;
        loop {
            // Even a page without dead versions states the watermark.
            let (append, behind) = rest.split_at(rest.len().min(most));
            let mut buffer = self.buffers.take();
            buffer.push_record(
                encode_dead(&append[..append.len().min(DEAD_RANGES_MAX)]),
                Version::NEVER,
            );
            for ranges in append.chunks(DEAD_RANGES_MAX).skip(1) {
                buffer.push_record(encode_dead(ranges), Version::NEVER);
            }
            let pages = buffer.spares.len() as u32;
            let fits = {
                let parts = self.parts.borrow();
                parts.space.append_pages_fit(Stream::Cleaning) >= pages
                    || parts.space.free_count() > self.kept_from_cleaning()
            };
            if fits {
                self.admit(Stream::Cleaning, pages, || self.kept_from_cleaning()).await?;
                let slot = self.append_own(Stream::Cleaning, &buffer, true).await?;
                let parts = &mut *self.parts.borrow_mut();
                // A checkpoint that is being written may have begun before.
                let until = parts.checkpoints.begun;
                parts.space.lists_dead(self.geometry.zone_of(slot), until);
            }
            self.buffers.give(buffer);
            rest = behind;
            if !fits || rest.is_empty() {
                return Ok(fits);
            }
        }
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
