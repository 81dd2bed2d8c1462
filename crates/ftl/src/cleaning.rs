//! Cleaning: empties the zone that the policy chooses, between two watermarks.
use tantalum_base::{ErrorKind, Result, SlotNo, Version, ZoneNo};
use tantalum_media::ZoneMedia;
use tantalum_policy::cleaning::Candidate;
use tantalum_runtime::sync::Waiting;

use crate::fault_points::Fault;
use crate::ftl::{Ftl, Victims};
use crate::map::Occupant;
use crate::moving::pages_to_move;
use crate::options::{moving_slots_max, packed_slots};
use crate::zones::{Stream, ZoneState};

/// What cleaning found to do.
enum Choice {
    /// Empty this zone.
    Zone(ZoneNo),
    /// The candidates wait for this version to become durable.
    AfterDurable(Version),
    /// Appends are in flight, to candidates or in place of what candidates hold.
    AfterAppends,
    /// Nothing would give room.
    Nothing,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Cleans in the background until the FTL latches. Spawn it once.
    pub async fn run_cleaner(&self) -> Result<()> {
        loop {
            let due = || {
                let state = self.state.borrow();
                let due = self.zones_short(&state, self.options.cleaning_low_zones)
                    || state.evacuation_wanted;
                let may = !state.cleaning_stuck && !self.cleaner_rest.is_due();
                (state.latched.is_some() || (due && may)).then_some(())
            };
            self.cleaning_wanted.until(due).await;
            self.check_latch()?;
            let _at_work = self.cleaner_rest.work();
            self.clean_to_high().await.inspect_err(|error| self.latch(error))?;
        }
    }

    pub(crate) fn zones_short(&self, state: &crate::ftl::State<M::Page>, wanted: u32) -> bool {
        state.zones.free_count() < self.reserve_zones + wanted.max(1)
    }

    /// Cleans until the high watermark is reached or nothing gives room.
    async fn clean_to_high(&self) -> Result<()> {
        loop {
            self.check_latch()?;
            if self.cleaner_rest.is_due() {
                return Ok(());
            }
            let choice = {
                let state = self.state.borrow();
                if !state.evacuation_wanted
                    && !self.zones_short(&state, self.options.cleaning_high_zones)
                {
                    None
                } else {
                    Some(self.choose(&state))
                }
            };
            let Some(choice) = choice else { return self.level_wear().await };
            match choice {
                Choice::Zone(victim) => self.clean(victim).await?,
                Choice::AfterDurable(version) => self.wait_for_hosts(version).await?,
                Choice::AfterAppends => {
                    let mut first = true;
                    self.cleaning_wanted
                        .until(|| (!std::mem::take(&mut first)).then_some(()))
                        .await;
                }
                Choice::Nothing if self.give_up_records().await? => {}
                Choice::Nothing => {
                    let state = &mut *self.state.borrow_mut();
                    state.evacuation_wanted = false;
                    // Above the low watermark it was only not worth while.
                    state.cleaning_stuck = self.zones_short(state, self.options.cleaning_low_zones);
                    self.room.wake_all();
                    return Ok(());
                }
            }
        }
    }

    /// Where zones are short, writes a checkpoint that covers records, whose slots it sets free;
    /// false where there are none that it could cover, or no room for it.
    async fn give_up_records(&self) -> Result<bool> {
        let before = {
            let state = self.state.borrow();
            let short = self.zones_short(&state, self.options.cleaning_low_zones);
            if !short || state.zones.free_count() + 1 < self.reserve_zones {
                return Ok(false);
            }
            state.records.len()
        };
        if before > 0 {
            self.checkpoint().await?;
        }
        Ok(self.state.borrow().records.len() < before)
    }

    /// The zone that the policy chooses of those that can be emptied now and give room; a failing
    /// one first.
    fn choose(&self, state: &crate::ftl::State<M::Page>) -> Choice {
        let watermark = state.tracker.watermark();
        // Above the low watermark only zones that give a quarter of their room are worth it.
        let live_max = if self.zones_short(state, self.options.cleaning_low_zones) {
            self.geometry.slots_per_zone
        } else {
            self.geometry.slots_per_zone / 4 * 3
        };
        // A cleaning that is begun must be able to end: nobody else makes room meanwhile.
        let kept = self.kept_from_cleaning();
        let free = u64::from(state.zones.free_count().saturating_sub(kept));
        let room = self.open_room(state, Stream::Cleaning)
            + free * u64::from(packed_slots(&self.geometry));
        let (mut after, mut busy, mut failing) = (None::<Version>, false, false);
        let Victims { policy, candidates } = &mut *self.victims.borrow_mut();
        candidates.clear();
        let stated = state.zones.stated();
        for (number, zone) in state.zones.iter() {
            // What is in flight replaces something when it returns.
            busy |= zone.appends_in_flight > 0;
            if zone.state != ZoneState::Full
                || zone.being_emptied
                || (zone.stream == Stream::Meta && zone.live_slots > 0)
            {
                continue;
            }
            let moving = pages_to_move(&self.geometry, zone);
            let gives = moving <= live_max
                && moving_slots_max(&self.geometry, moving) < self.geometry.slots_per_zone;
            if !zone.failing && !gives {
                continue;
            }
            let account_due = state.account_due(number, &stated);
            if u64::from(moving.max(u32::from(account_due))) > room {
                busy |= kept > 0;
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
                    let (live_slots, opening) = (moving, zone.epoch);
                    let slots = self.geometry.slots_per_zone;
                    candidates.push(Candidate { zone: number, live_slots, slots, opening });
                }
            }
        }
        let best = policy.choose(candidates, state.zones.epoch());
        match (best.map(|at| candidates[at].zone), after) {
            (Some(zone), _) => Choice::Zone(zone),
            (None, Some(version)) => Choice::AfterDurable(version),
            (None, None) if busy => Choice::AfterAppends,
            (None, None) => Choice::Nothing,
        }
    }

    /// Moves what is live in `victim`, makes that durable, and resets the zone.
    pub(crate) async fn clean(&self, victim: ZoneNo) -> Result<()> {
        self.state.borrow_mut().zones.get_mut(victim).being_emptied = true;
        let live = self.live_slots(victim);
        let (mut moved, mut lost) = (false, false);
        let mut kept = Vec::new();
        let mut next = 0;
        while next < live.len() {
            // The open zone is filled to its end before the next is taken.
            let room = self.state.borrow().zones.room_pages(Stream::Cleaning);
            let most = if room > 0 { room } else { self.geometry.append_pages_max };
            let group = self.group(&live, &mut next, most as usize);
            let group = self.move_group(group).await?;
            moved |= group.moved;
            lost |= group.lost;
            kept.extend(group.kept);
        }
        if lost {
            // Only a checkpoint can tell the next recovery that a page is gone.
            self.checkpoint().await?;
        }
        if moved && !Fault::NoSyncOfCopies.is_planted() {
            self.sync_appends().await?;
        }
        self.state.borrow_mut().copied.clear();
        // Hosts may have replaced pages meanwhile, and a power cut may take that back.
        let replaced_by = self.state.borrow().zones.get(victim).replaced_by;
        if !Fault::NoWaitForReplacements.is_planted() {
            self.wait_for_hosts(replaced_by).await?;
        }
        self.account_for(victim, &mut kept).await?;
        self.reset_emptied(victim).await
    }

    /// Waits until every change up to `version` is durable. Appends that failed to program may
    /// take the last zones meanwhile: they give them back, and whoever waits here does not.
    pub(crate) async fn wait_for_hosts(&self, version: Version) -> Result<()> {
        let _waiting = Waiting::new(&self.waiting_for_hosts, 1);
        self.room.wake_all();
        self.make_durable(version).await
    }

    /// The slots of `zone` that are live.
    fn live_slots(&self, zone: ZoneNo) -> Vec<SlotNo> {
        let state = self.state.borrow();
        let slots = (0..state.zones.get(zone).used_slots).map(|at| self.geometry.slot(zone, at));
        slots.filter(|slot| state.map.occupant(*slot) != Occupant::Dead).collect()
    }

    /// Zones that cleaning leaves to a checkpoint that is being written, and to delta pages.
    pub(crate) fn kept_from_cleaning(&self) -> u32 {
        if self.checkpoint_turn.free() == 0 {
            return self.reserve_zones - 1;
        }
        // The backup of changed entries must find room, or cleaning would wait for itself.
        let used = self.state.borrow().deltas.slots() / u64::from(packed_slots(&self.geometry));
        self.layout.delta_zones.saturating_sub(used as u32)
    }

    /// Resets an emptied zone and gives it back to the pool.
    pub(crate) async fn reset_emptied(&self, zone: ZoneNo) -> Result<()> {
        self.readers.wait_until_left(zone).await;
        let reset = self.media.reset(zone).await;
        {
            let state = &mut *self.state.borrow_mut();
            assert_eq!(state.zones.get(zone).live_slots, 0, "{zone:?} is reset with live content");
            match reset {
                Ok(()) => {
                    state.logged.reset(zone);
                    state.anchors.given_up(zone);
                    state.zones.freed(zone);
                    state.statistics.zone_resets += 1;
                    state.statistics.zones_cleaned += 1;
                }
                Err(error) if error.kind() == ErrorKind::ZoneRetired => state.zones.retire(zone),
                Err(error) => return Err(error),
            }
            state.zones.get_mut(zone).failing = false;
            let failing = |(_, zone): (ZoneNo, &crate::zones::Zone)| zone.failing;
            state.evacuation_wanted = state.evacuation_wanted && state.zones.iter().any(failing);
        }
        self.room.wake_all();
        Ok(())
    }
}
