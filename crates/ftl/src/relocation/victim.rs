//! Chooses the zone to empty next.
use tantalum_base::{Version, ZoneNo};
use tantalum_policy::Cleaning;
use tantalum_policy::cleaning::Candidate;

use crate::fault_points::Fault;
use crate::options::{FtlOptions, packed_slots, relocation_slots_max};
use crate::parts::Parts;
use crate::space::{Stream, ZoneState};

/// The cleaning policy, and its last candidates, whose memory is reused.
pub(crate) struct Victims {
    pub policy: Box<dyn Cleaning>,
    pub candidates: Vec<Candidate>,
}

/// The next step of cleaning.
pub(crate) enum Choice {
    /// Empty this zone.
    Zone(ZoneNo),
    /// All candidates wait until this version is durable.
    AfterDurable(Version),
    /// Nothing can be cleaned until appends in flight return, or until zones need no longer be kept
    /// for a checkpoint or for delta pages.
    AfterAppends,
    /// No zone would yield space.
    Nothing,
}

impl Victims {
    /// The policy's choice among the zones that can be emptied now and yield space; a failing zone
    /// first. `kept` free zones are not for cleaning.
    pub fn choose(&mut self, parts: &Parts, options: &FtlOptions, kept: u32) -> Choice {
        let slots_per_zone = parts.space.geometry().slots_per_zone;
        // Above the low watermark, only zones that yield a quarter of their space are worth
        // cleaning.
        let live_max = if parts.space.is_short(options.cleaning_low_zones) {
            slots_per_zone
        } else {
            slots_per_zone / 4 * 3
        };
        self.choose_up_to(live_max, parts, kept)
    }

    /// The same, among zones with at most `live_max` pages to keep.
    pub fn choose_up_to(&mut self, live_max: u32, parts: &Parts, kept: u32) -> Choice {
        let geometry = *parts.space.geometry();
        let watermark = parts.log.durable();
        // A cleaning must be able to finish: nothing else makes space meanwhile.
        let free = u64::from(parts.space.free_count().saturating_sub(kept));
        let copies_max =
            parts.space.pages_left(Stream::Cleaning) + free * u64::from(packed_slots(&geometry));
        let (mut after, mut busy, mut failing) = (None::<Version>, false, false);
        let Victims { policy, candidates } = self;
        candidates.clear();
        let stated = parts.space.stated();
        for (number, zone) in parts.space.iter() {
            // An append in flight replaces content when it returns.
            busy |= zone.appends_in_flight > 0;
            if zone.state != ZoneState::Full
                || zone.being_emptied
                || parts.unreadable.holds(number)
                || (zone.stream == Stream::Meta && zone.live_slots > 0)
            {
                continue;
            }
            let copies = parts.pages_to_keep(number, zone);
            let gives = copies <= live_max
                && relocation_slots_max(&geometry, copies) < geometry.slots_per_zone;
            if !zone.failing && !gives {
                continue;
            }
            let account_due = parts.account_due(number, &stated);
            if u64::from(copies.max(u32::from(account_due))) > copies_max {
                busy |= kept > parts.kept_while_unreadable();
                continue;
            }
            if zone.appends_in_flight > 0 {
                continue;
            }
            let replaced = zone.version_max.max(zone.replaced_by) > watermark;
            if replaced && !Fault::NoWaitForReplacements.is_planted() {
                after = after.max(Some(zone.version_max.max(zone.replaced_by)));
            } else {
                if zone.failing && !failing {
                    failing = true;
                    candidates.clear();
                }
                if zone.failing == failing {
                    let (live_slots, opening) = (copies, zone.epoch);
                    let slots = geometry.slots_per_zone;
                    candidates.push(Candidate { zone: number, live_slots, slots, opening });
                }
            }
        }
        let best = policy.choose(candidates, parts.space.epoch());
        match (best.map(|at| candidates[at].zone), after) {
            (Some(zone), _) => Choice::Zone(zone),
            (None, Some(version)) => Choice::AfterDurable(version),
            (None, None) if busy => Choice::AfterAppends,
            (None, None) => Choice::Nothing,
        }
    }
}

impl Parts {
    /// Zones that cleaning keeps free for a checkpoint in progress, for delta pages, or because
    /// pages cannot be read.
    pub(crate) fn kept_from_cleaning(&self, checkpoint_runs: bool) -> u32 {
        if checkpoint_runs {
            return self.space.reserve_zones() - 1;
        }
        let unreadable = self.kept_while_unreadable();
        let Some(dump) = &self.dump else { return unreadable };
        // The backup of changed entries needs space; otherwise cleaning would wait for itself.
        let used = dump.log.slots() / u64::from(packed_slots(self.space.geometry()));
        dump.layout.delta_zones.saturating_sub(used as u32).max(unreadable)
    }
}
