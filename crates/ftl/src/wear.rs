//! Static wear levelling: content that never changes gives its zone up to content that does.
//!
//! Free zones are opened least worn first (`zones`), which levels wear among zones that are reset at
//! all. A zone of cold content is not: no cleaning finds garbage in it. So when the most worn zone
//! has more resets than a full one by more than a threshold, and that one was not opened for a whole
//! turn of the device, it is emptied as if it were
//! chosen by cleaning, and what was in it moves to the most worn free zone, to rest there.
//!
//! Source: Chang, "On efficient wear leveling for large-scale flash-memory storage systems", SAC
//! 2007 (dual-pool: cold data to the most worn blocks when the spread of erases exceeds a
//! threshold).
use tantalum_base::{Result, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::ftl::{Ftl, State};
use crate::moving::pages_to_move;
use crate::options::packed_slots;
use crate::zones::{Stream, ZoneState};

/// A zone that lags behind.
enum Cold {
    /// Holds content of hosts.
    Content(ZoneNo),
    /// Holds a checkpoint or deltas: the next checkpoint frees it.
    Checkpoint(ZoneNo),
}

impl<M: ZoneMedia> Ftl<M> {
    /// Empties zones that lag behind in wear, as long as none is short of room. For the cleaner,
    /// when it has made room.
    pub(crate) async fn level_wear(&self) -> Result<()> {
        loop {
            let cold = {
                let state = self.state.borrow();
                if self.zones_short(&state, self.options.cleaning_low_zones) {
                    return Ok(());
                }
                self.coldest(&state)
            };
            let Some(cold) = cold else { return Ok(()) };
            self.levelling.set(true);
            let moved = match cold {
                Cold::Content(zone) => {
                    // In a zone of its own: among what cleaning moves else, most of which is
                    // written again soon, cold content would be moved again and again. Nor does
                    // cleaning go on in the zone before: of two copies the one in the zone that
                    // was opened later counts, and a zone of cold content is emptied, too, one day.
                    self.state.borrow_mut().zones.seal(Stream::Cleaning);
                    let cleaned = self.clean(zone).await;
                    self.state.borrow_mut().zones.seal(Stream::Cleaning);
                    cleaned
                }
                Cold::Checkpoint(zone) => {
                    self.seal_meta(zone);
                    self.checkpoint().await
                }
            };
            self.levelling.set(false);
            moved?;
            self.state.borrow_mut().statistics.zones_levelled += 1;
            if matches!(cold, Cold::Checkpoint(_)) {
                return Ok(());
            }
        }
    }

    /// Ends appending to `zone`, where that is the open zone of checkpoints.
    fn seal_meta(&self, zone: ZoneNo) {
        let zones = &mut self.state.borrow_mut().zones;
        if zones.open_zone(Stream::Meta) == Some(zone) {
            zones.seal(Stream::Meta);
        }
    }

    /// The zone with the fewest resets, where it lags too far behind and can be emptied now.
    fn coldest(&self, state: &State<M::Page>) -> Option<Cold> {
        let in_service = state.zones.iter().filter(|(_, zone)| zone.state != ZoneState::Retired);
        let most = in_service.map(|(_, zone)| zone.resets).max()?;
        let threshold = u64::from(self.options.wear_spread_max);
        let watermark = state.tracker.watermark();
        let checkpoint_runs = self.checkpoint_turn.free() == 0;
        let kept = self.kept_from_cleaning();
        let free = u64::from(state.zones.free_count().saturating_sub(kept));
        let room = free * u64::from(packed_slots(&self.geometry));
        let lagging = state.zones.iter().filter(|(_, zone)| {
            let movable = match zone.stream {
                Stream::Meta => !checkpoint_runs,
                _ => {
                    zone.state == ZoneState::Full
                        // One more for a watermark.
                        && u64::from(pages_to_move(&self.geometry, zone)) < room
                        && zone.version_max.max(zone.replaced_by) <= watermark
                }
            };
            u64::from(most - zone.resets) > threshold
                && movable
                // Whatever changes would have been cleaned meanwhile: the zone is in use again and
                // catches up by itself.
                && zone.epoch + u64::from(self.geometry.zones) < state.zones.epoch()
                && matches!(zone.state, ZoneState::Open | ZoneState::Full)
                && !zone.being_emptied
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
