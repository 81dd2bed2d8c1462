//! Static wear levelling: frees zones of cold content for content that changes.
//!
//! Free zones are opened least worn first (`space`), which levels wear among zones that are reset at
//! all. A zone of cold content is not: cleaning finds no garbage in it. So a full zone is emptied,
//! as by cleaning, if the most worn zone has more resets by more than a threshold, and if more zones
//! were opened since the full one than the device has. Its content moves to the most worn free zone.
//!
//! Source: Chang, "On efficient wear leveling for large-scale flash-memory storage systems", SAC
//! 2007 (dual-pool: cold data to the most worn blocks when the spread of erases exceeds a
//! threshold).
use tantalum_base::{Result, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::ftl::Ftl;
use crate::options::packed_slots;
use crate::parts::Parts;
use crate::space::{Stream, ZoneState};

/// A zone whose wear lags behind.
enum Cold {
    /// Holds content of hosts.
    Content(ZoneNo),
    /// Holds a checkpoint or delta pages: the next checkpoint frees it.
    Checkpoint(ZoneNo),
}

impl<M: ZoneMedia> Ftl<M> {
    /// Empties zones whose wear lags behind, as long as space is not short. Called by the cleaner
    /// when it has made space.
    pub(crate) async fn level_wear(&self) -> Result<()> {
        loop {
            let cold = {
                let parts = self.parts.borrow();
                if self.is_short(&parts, self.options.cleaning_low_zones) {
                    return Ok(());
                }
                parts.coldest(self.options.wear_spread_max, self.checkpointer.is_at_work())
            };
            let Some(cold) = cold else { return Ok(()) };
            self.cleaner.levelling.set(true);
            let moved = match cold {
                Cold::Content(zone) => {
                    // Use a zone of its own: among other copies, most of which are soon replaced, cold content would be
                    // relocated again and again. Cleaning does not continue in the previous zone either, because of two
                    // copies the one in the zone that was opened later counts, and a zone of cold content will be
                    // emptied again.
                    self.parts.borrow_mut().space.seal(Stream::Cleaning);
                    let cleaned = self.clean(zone).await;
                    self.parts.borrow_mut().space.seal(Stream::Cleaning);
                    cleaned
                }
                Cold::Checkpoint(zone) => {
                    self.seal_meta(zone);
                    self.checkpoint().await.map(|()| true)
                }
            };
            self.cleaner.levelling.set(false);
            self.parts.borrow_mut().statistics.zones_levelled += u64::from(moved?);
            if matches!(cold, Cold::Checkpoint(_)) {
                return Ok(());
            }
        }
    }

    /// Ends appending to `zone`, if it is the open zone of checkpoints.
    fn seal_meta(&self, zone: ZoneNo) {
        let space = &mut self.parts.borrow_mut().space;
        if space.open_zone(Stream::Meta) == Some(zone) {
            space.seal(Stream::Meta);
        }
    }
}

impl Parts {
    /// The zone with the fewest resets, if it lags by more than `spread_max` and can be emptied now.
    fn coldest(&self, spread_max: u32, checkpoint_runs: bool) -> Option<Cold> {
        let geometry = self.space.geometry();
        let in_service = self.space.iter().filter(|(_, zone)| zone.state != ZoneState::Retired);
        let most = in_service.map(|(_, zone)| zone.resets).max()?;
        let watermark = self.log.durable();
        let kept = self.kept_from_cleaning(checkpoint_runs);
        let free = u64::from(self.space.free_count().saturating_sub(kept));
        let copies_max = free * u64::from(packed_slots(geometry));
        let lagging = self.space.iter().filter(|(number, zone)| {
            let movable = match zone.stream {
                Stream::Meta => !checkpoint_runs,
                _ => {
                    zone.state == ZoneState::Full
                        // One page more, for a watermark that may have to be written.
                        && u64::from(self.pages_to_keep(*number, zone)) < copies_max
                        && zone.version_max.max(zone.replaced_by) <= watermark
                }
            };
            most - zone.resets > spread_max
                && movable
                // Changing content would have been cleaned meanwhile: then the zone is in use again
                // and catches up by itself.
                && zone.epoch + u64::from(geometry.zones) < self.space.epoch()
                && zone.is_in_use()
                && !zone.being_emptied
                && !self.unreadable.holds(*number)
                && zone.appends_in_flight == 0
        });
        let (number, zone) = lagging.min_by_key(|(_, zone)| (zone.resets, zone.epoch))?;
        Some(match zone.stream {
            Stream::Meta if zone.live_slots > 0 || zone.state == ZoneState::Open => {
                Cold::Checkpoint(number)
            }
            _ => Cold::Content(number),
        })
    }
}
