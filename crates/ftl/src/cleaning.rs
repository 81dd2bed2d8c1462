//! Cleaning: empties the zone with the least live content, between two watermarks.
use std::cell::Cell;
use tantalum_base::{ErrorKind, PageNo, Payload, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{Body, SlotKind, Spare, ZoneMedia};

use crate::ftl::{AppendBuffer, Ftl};
use crate::map::{Entry, Occupant, Place};
use crate::options::{moving_slots_max, packed_slots};
use crate::planted::{Fault, is_planted};
use crate::records;
use crate::zones::{Stated, Stream, ZoneState};

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
                (state.latched.is_some() || (due && !state.cleaning_stuck)).then_some(())
            };
            self.cleaning_wanted.until(due).await;
            self.check_latch()?;
            self.clean_to_high().await.inspect_err(|error| self.latch(error))?;
        }
    }

    fn zones_short(&self, state: &crate::ftl::State<M::Page>, wanted: u32) -> bool {
        state.zones.free_count() < self.reserve_zones + wanted.max(1)
    }

    /// Cleans until the high watermark is reached or nothing gives room.
    async fn clean_to_high(&self) -> Result<()> {
        loop {
            self.check_latch()?;
            let choice = {
                let state = self.state.borrow();
                if !state.evacuation_wanted
                    && !self.zones_short(&state, self.options.cleaning_high_zones)
                {
                    return Ok(());
                }
                self.choose(&state)
            };
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

    /// Greedy: the zone that costs least to empty, the oldest of those; a failing one first.
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
        let (mut best, mut after, mut busy) = (None, None::<Version>, false);
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
            let gives = zone.live_slots <= live_max
                && moving_slots_max(&self.geometry, zone.live_slots) < self.geometry.slots_per_zone;
            if !zone.failing && !gives {
                continue;
            }
            let watermark_due = state.watermark_due(number, &stated);
            if u64::from(zone.live_slots.max(u32::from(watermark_due))) > room {
                busy |= kept > 0;
                continue;
            }
            if zone.appends_in_flight > 0 {
                continue;
            }
            let replaced = zone.version_max.max(zone.replaced_by) > watermark;
            if replaced && !is_planted(Fault::NoWaitForReplacements) {
                after = after.max(Some(zone.version_max.max(zone.replaced_by)));
            } else {
                let rank = (!zone.failing, zone.live_slots, zone.epoch);
                if best.is_none_or(|(best, _)| rank < best) {
                    best = Some((rank, number));
                }
            }
        }
        match (best, after) {
            (Some((_, zone)), _) => Choice::Zone(zone),
            (None, Some(version)) => Choice::AfterDurable(version),
            (None, None) if busy => Choice::AfterAppends,
            (None, None) => Choice::Nothing,
        }
    }

    /// Moves what is live in `victim`, makes that durable, and resets the zone.
    async fn clean(&self, victim: ZoneNo) -> Result<()> {
        self.state.borrow_mut().zones.get_mut(victim).being_emptied = true;
        let live = self.live_slots(victim);
        let (mut moved, mut lost) = (false, false);
        let mut next = 0;
        while next < live.len() {
            // The open zone is filled to its end before the next is taken.
            let room = self.state.borrow().zones.room_pages(Stream::Cleaning);
            let most = if room > 0 { room } else { self.geometry.append_pages_max };
            let group = &live[next..live.len().min(next + most as usize)];
            next += group.len();
            let group = self.move_group(group).await?;
            moved |= group.moved;
            lost |= group.lost;
        }
        if lost {
            // Only a checkpoint can tell the next recovery that a page is gone.
            self.checkpoint().await?;
        }
        if moved && !is_planted(Fault::NoSyncOfCopies) {
            self.sync_appends().await?;
        }
        // Hosts may have replaced pages meanwhile, and a power cut may take that back.
        let replaced_by = self.state.borrow().zones.get(victim).replaced_by;
        if !is_planted(Fault::NoWaitForReplacements) {
            self.wait_for_hosts(replaced_by).await?;
        }
        self.write_watermark_down(victim).await?;
        self.reset_emptied(victim).await
    }

    /// Waits until every change up to `version` is durable. Appends that failed to program may
    /// take the last zones meanwhile: they give them back, and whoever waits here does not.
    pub(crate) async fn wait_for_hosts(&self, version: Version) -> Result<()> {
        let _waiting = WaitingForHosts::new(&self.waiting_for_hosts);
        self.room.wake_all();
        self.make_durable(version).await
    }

    /// The slots of `zone` that are live.
    fn live_slots(&self, zone: ZoneNo) -> Vec<SlotNo> {
        let state = self.state.borrow();
        let slots = (0..state.zones.get(zone).used_slots).map(|at| self.geometry.slot(zone, at));
        slots.filter(|slot| state.map.occupant(*slot) != Occupant::Dead).collect()
    }

    /// Copies one group of live slots.
    async fn move_group(&self, group: &[SlotNo]) -> Result<Moved> {
        let mut buffer = self.state.borrow_mut().take_buffer();
        let mut sources = Vec::with_capacity(group.len());
        let lost = self.read_group(group, &mut buffer, &mut sources).await?;
        let moved = !sources.is_empty();
        if moved {
            self.admit(Stream::Cleaning, sources.len() as u32, || self.kept_from_cleaning())
                .await?;
            let first = self.append_own(Stream::Cleaning, &buffer, false).await?;
            let state = &mut *self.state.borrow_mut();
            for (index, (source, spare)) in sources.iter().zip(&buffer.spares).enumerate() {
                let slot = SlotNo(first.0 + index as u32);
                state.redirect(*source, slot, spare);
            }
        }
        self.state.borrow_mut().give_buffer(buffer);
        Ok(Moved { moved, lost })
    }

    /// Zones that cleaning leaves to a checkpoint that is being written.
    fn kept_from_cleaning(&self) -> u32 {
        if self.checkpoint_turn.free() == 0 { self.reserve_zones - 1 } else { 0 }
    }

    /// Reads what is live in `group` into `buffer`, checked. A page that the medium cannot give
    /// back is marked lost, so that reading it stays an error; true where there was one.
    async fn read_group(
        &self,
        group: &[SlotNo],
        buffer: &mut AppendBuffer<M::Page>,
        sources: &mut Vec<SlotNo>,
    ) -> Result<bool> {
        let mut lost = false;
        let mut pages: Vec<(SlotNo, PageNo, Entry)> = Vec::with_capacity(group.len());
        let mut record_slots = Vec::new();
        {
            let state = self.state.borrow();
            let page = |slot: &SlotNo| match state.map.occupant(*slot) {
                Occupant::Page(page) => Some(page),
                Occupant::Record | Occupant::Dead => None,
            };
            state.map.fetch(group.iter().filter_map(page));
            for slot in group {
                match state.map.occupant(*slot) {
                    Occupant::Page(page) => pages.push((*slot, page, state.map.get(page))),
                    Occupant::Record => record_slots.push(*slot),
                    Occupant::Dead => {}
                }
            }
        }
        let slots: Vec<SlotNo> = pages.iter().map(|(slot, ..)| *slot).collect();
        let mut contents = vec![M::Page::zero(); slots.len()];
        let all =
            if slots.is_empty() { Ok(()) } else { self.media.read(&slots, &mut contents).await };
        for ((slot, page, entry), mut content) in pages.into_iter().zip(contents) {
            let mut intact = all.is_ok();
            if !intact {
                intact = self.media.read(&[slot], std::slice::from_mut(&mut content)).await.is_ok();
            }
            if intact && content.checksum() == entry.checksum {
                let (version, checksum) = (entry.version, entry.checksum);
                buffer.spares.push(Spare { kind: SlotKind::Copy, page, version, checksum });
                buffer.bodies.push(Body::Data(content));
                sources.push(slot);
            } else {
                let state = &mut *self.state.borrow_mut();
                if state.map.get(page) == entry {
                    state.replace(page, Entry { place: Place::Lost, ..entry });
                    lost = true;
                }
            }
        }
        for slot in record_slots {
            let Some(version) = self.state.borrow().record_version(slot) else { continue };
            let body = self.media.read_meta(slot).await?;
            // A record that cannot be read must not be dropped: what it undid would come back.
            records::decode(&body)?;
            let (kind, checksum) = (SlotKind::Record, body.checksum());
            buffer.spares.push(Spare { kind, page: PageNo(0), version, checksum });
            buffer.bodies.push(Body::Meta(body));
            sources.push(slot);
        }
        Ok(lost)
    }

    /// Writes the durable watermark down where `victim` must not be reset before.
    async fn write_watermark_down(&self, victim: ZoneNo) -> Result<()> {
        let due = {
            let state = self.state.borrow();
            state.watermark_due(victim, &state.zones.stated())
        };
        if !due || is_planted(Fault::NoWatermark) {
            return Ok(());
        }
        self.admit(Stream::Cleaning, 1, || self.kept_from_cleaning()).await?;
        let mut buffer = self.state.borrow_mut().take_buffer();
        let body = records::encode(&[]);
        let (version, checksum) = (Version::NEVER, body.checksum());
        buffer.spares.push(Spare { kind: SlotKind::Record, page: PageNo(0), version, checksum });
        buffer.bodies.push(Body::Meta(body));
        self.append_own(Stream::Cleaning, &buffer, true).await?;
        self.state.borrow_mut().give_buffer(buffer);
        Ok(())
    }

    /// Resets an emptied zone and gives it back to the pool.
    pub(crate) async fn reset_emptied(&self, zone: ZoneNo) -> Result<()> {
        let reset = self.media.reset(zone).await;
        {
            let state = &mut *self.state.borrow_mut();
            assert_eq!(state.zones.get(zone).live_slots, 0, "{zone:?} is reset with live content");
            match reset {
                Ok(()) => {
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

/// Counts who waits for hosts, also where it is dropped.
struct WaitingForHosts<'a>(&'a Cell<u32>);

impl<'a> WaitingForHosts<'a> {
    fn new(count: &'a Cell<u32>) -> Self {
        count.set(count.get() + 1);
        WaitingForHosts(count)
    }
}

impl Drop for WaitingForHosts<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// What became of a group of live slots.
struct Moved {
    /// An append was made.
    moved: bool,
    /// A page was marked lost.
    lost: bool,
}

impl<P> crate::ftl::State<P> {
    /// Whether a watermark must be written down before `zone` is reset. Recovery takes versions
    /// for granted only up to one that it finds on media: before a zone's contents vanish, one
    /// elsewhere must cover them, and all that the zone itself said of others that have gone.
    fn watermark_due(&self, zone: ZoneNo, stated: &Stated) -> bool {
        let elsewhere = stated.without(zone).max(self.checkpoint_says);
        let zone = self.zones.get(zone);
        elsewhere < zone.version_max.max(zone.says)
    }

    /// `source` was copied to `slot`: what is still in force there moves.
    fn redirect(&mut self, source: SlotNo, slot: SlotNo, spare: &Spare) {
        if spare.kind == SlotKind::Record {
            if let Some(record) = self.records.iter_mut().find(|(_, at)| *at == source) {
                record.1 = slot;
                self.map.set_record(source, false);
                self.zones.remove_live(source);
                self.map.set_record(slot, true);
                self.zones.add_live(slot);
            }
            return;
        }
        let entry = self.map.get(spare.page);
        if entry.place == Place::At(source) && entry.version == spare.version {
            self.statistics.pages_moved += 1;
            self.replace(spare.page, Entry { place: Place::At(slot), ..entry });
        }
    }

    /// Version of the record in `slot`, if one is in force there.
    fn record_version(&self, slot: SlotNo) -> Option<Version> {
        self.records.iter().find(|(_, at)| *at == slot).map(|(version, _)| *version)
    }
}
