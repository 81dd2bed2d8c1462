//! Cleaning: empties zones, between two watermarks.
use tantalum_base::{ErrorKind, PageNo, Result, SlotNo, Version, ZoneNo};
use tantalum_media::ZoneMedia;
use tantalum_runtime::sync::Waiting;

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::map::{MapEntry, Occupant};
use crate::parts::Parts;
use crate::relocation::retries::Interrupted;
use crate::relocation::victim::Choice;
use crate::space::Stream;

impl<M: ZoneMedia> Ftl<M> {
    /// Cleans in the background until the FTL latches. Spawn it once.
    pub async fn run_cleaner(&self) -> Result<()> {
        loop {
            let due = || {
                let parts = self.parts.borrow();
                let due = self.is_short(&parts, self.options.cleaning_low_zones)
                    || parts.relocation.evacuation_wanted
                    || parts.space.may_give_room_back();
                let may = !parts.relocation.stuck && !self.cleaner.rest.is_due();
                (parts.log.latched().is_some() || (due && may)).then_some(())
            };
            self.cleaner.wanted.until(due).await;
            self.check_latch()?;
            let _at_work = self.cleaner.rest.work();
            self.cleaner.pace.begin();
            self.clean_to_high().await.inspect_err(|error| self.latch(error))?;
            self.shrink().await.inspect_err(|error| self.latch(error))?;
        }
    }

    /// Cleans until the high watermark is reached or no zone would give space.
    async fn clean_to_high(&self) -> Result<()> {
        let waits = loop {
            self.check_latch()?;
            if self.cleaner.rest.is_due() {
                return Ok(());
            }
            let choice = {
                let parts = self.parts.borrow();
                if !parts.relocation.evacuation_wanted
                    && !self.is_short(&parts, self.cleaning_high_zones())
                {
                    None
                } else {
                    let kept = parts.kept_from_cleaning(self.checkpointer.is_at_work());
                    let victims = &mut *self.cleaner.victims.borrow_mut();
                    Some(victims.choose(&parts, &self.options, kept))
                }
            };
            let Some(choice) = choice else { return self.level_wear().await };
            match choice {
                Choice::Zone(victim) => {
                    self.clean(victim).await?;
                }
                Choice::AfterDurable(version) => self.wait_for_hosts(version).await?,
                Choice::AfterAppends => {
                    let mut first = true;
                    self.cleaner.wanted.until(|| (!std::mem::take(&mut first)).then_some(())).await;
                }
                Choice::Nothing if self.give_up_records().await? => {}
                Choice::Nothing => {
                    let parts = &mut *self.parts.borrow_mut();
                    parts.relocation.evacuation_wanted = false;
                    // Above the low watermark this only means that no zone was worth cleaning.
                    let short = parts.space.is_short(self.options.cleaning_low_zones);
                    parts.relocation.stuck = short;
                    let waits = short && !parts.unreadable.is_empty();
                    break waits;
                }
            }
        };
        if waits {
            self.wait_for_readable();
        }
        self.zones_freed.wake_all();
        Ok(())
    }

    /// The free zones at which cleaning stops. With one log it cleans a zone when the next one is needed, so that hosts
    /// write behind its copies.
    fn cleaning_high_zones(&self) -> u32 {
        match self.options.copies_with_writes {
            true => self.options.cleaning_low_zones,
            false => self.options.cleaning_high_zones,
        }
    }

    /// Whether fewer than `wanted` zones are free beyond the reserve. A zone in which hosts may write behind copies
    /// counts as free, as long as no task waits for a zone.
    pub(crate) fn is_short(&self, parts: &Parts, wanted: u32) -> bool {
        let enough =
            parts.space.has_room_behind_copies() && self.cleaner.pace.zones_wanted.get() == 0;
        parts.space.is_short_but_for(u32::from(enough), wanted)
    }

    /// If zones are short, writes a checkpoint that covers records, to free their slots; returns false if it would
    /// cover none, or if there is no space for it.
    async fn give_up_records(&self) -> Result<bool> {
        let before = {
            let parts = self.parts.borrow();
            let short = parts.space.is_short(self.options.cleaning_low_zones);
            if !short || parts.space.free_count() + 1 < parts.space.reserve_zones() {
                return Ok(false);
            }
            parts.log.records.len()
        };
        if before > 0 {
            self.checkpoint().await?;
        }
        Ok(self.parts.borrow().log.records.len() < before)
    }

    /// Copies the live slots of `victim`, makes the copies durable, and resets the zone. Returns whether it did: if a
    /// page cannot be read, the zone is left, as it yields no space until that page can be read.
    pub(crate) async fn clean(&self, victim: ZoneNo) -> Result<bool> {
        {
            let space = &mut self.parts.borrow_mut().space;
            space.begin_emptying(victim);
            space.cleaning_empties(true);
        }
        let (live, gone) = self.let_go_and_keep(victim);
        let (mut moved, mut needs_checkpoint) = (false, false);
        let (mut kept, mut unreadable) = (Vec::new(), Vec::new());
        let mut next = 0;
        while next < live.len() && unreadable.is_empty() {
            let short = self.next_copy_pages_max(live.len()).await;
            // The open zone is filled before the next is opened.
            let room = self.parts.borrow().space.append_pages_fit(Stream::Cleaning);
            let most = if room > 0 { room } else { self.geometry.append_pages_max };
            let from = next;
            let group = self.group(&live, &mut next, most.min(short) as usize);
            let group = self.relocate_group(group).await?;
            moved |= group.moved;
            needs_checkpoint |= group.needs_checkpoint;
            kept.extend(group.kept);
            unreadable = group.unreadable;
            let (copied, slots) = ((next - from) as u64, self.geometry.slots_per_zone.into());
            self.cleaner.pace.copied(copied, live.len() as u64, slots);
        }
        if needs_checkpoint {
            self.checkpoint().await?;
        }
        if moved && !Fault::NoSyncOfCopies.is_planted() {
            self.sync_appends().await?;
        }
        self.parts.borrow_mut().relocation.copied.clear();
        if !unreadable.is_empty() {
            self.hold(victim, Interrupted { unreadable, copied: kept, gone });
            return Ok(false);
        }
        // Hosts may have replaced pages meanwhile: until that is durable, a power cut restores the
        // originals.
        let replaced_by = self.parts.borrow().space.get(victim).replaced_by;
        if !Fault::NoWaitForReplacements.is_planted() {
            self.wait_for_hosts(replaced_by).await?;
        }
        let gone: Vec<_> = gone.iter().map(|(page, entry)| (*page, entry.version)).collect();
        self.account_for(victim, &mut kept, &gone).await?;
        self.reset_emptied(victim).await?;
        self.parts.borrow_mut().space.cleaning_empties(false);
        // Hosts may write behind the copies from here on.
        self.zones_freed.wake_all();
        Ok(true)
    }

    /// Waits until every change up to `version` is durable. Meanwhile an append that failed may be repeated in the last
    /// free zone; otherwise the two would wait for each other.
    pub(crate) async fn wait_for_hosts(&self, version: Version) -> Result<()> {
        let _waiting = Waiting::new(&self.cleaner.waiting_for_hosts, 1);
        self.zones_freed.wake_all();
        self.make_durable(version).await
    }

    /// Evicts the pages of `zone` that may be evicted. Returns the slots that stay live, and the evicted pages with
    /// their former entries.
    fn let_go_and_keep(&self, zone: ZoneNo) -> (Vec<SlotNo>, Vec<(PageNo, MapEntry)>) {
        let parts = &mut *self.parts.borrow_mut();
        let slots = (0..parts.space.get(zone).used_slots).map(|at| self.geometry.slot(zone, at));
        let (mut live, mut may_go) = (Vec::new(), Vec::new());
        for slot in slots {
            match parts.map.occupant(slot) {
                Occupant::Dead => {}
                Occupant::Page(page)
                    if parts.clean.as_ref().is_some_and(|clean| clean.may_go_from(slot)) =>
                {
                    may_go.push(page);
                }
                _ => live.push(slot),
            }
        }
        (live, parts.let_pages_go(&may_go))
    }

    /// Resets an emptied zone and returns it to the pool.
    pub(crate) async fn reset_emptied(&self, zone: ZoneNo) -> Result<()> {
        self.pins.wait_until_unpinned(zone).await;
        let reset = self.media.reset(zone).await;
        {
            let parts = &mut *self.parts.borrow_mut();
            assert_eq!(parts.space.get(zone).live_slots, 0, "{zone:?} is reset with live content");
            match reset {
                Ok(()) => {
                    parts.log.uncovered.reset(zone);
                    parts.checkpoints.zone_given_up(zone);
                    parts.space.freed(zone);
                    parts.space.named_until(zone, parts.checkpoints.begun);
                    parts.unreadable.patience.end();
                    parts.statistics.zone_resets += 1;
                    parts.statistics.zones_cleaned += 1;
                }
                Err(error) if error.kind() == ErrorKind::ZoneRetired => parts.space.retire(zone),
                Err(error) => return Err(error),
            }
            let failing = parts.space.iter().any(|(_, zone)| zone.failing);
            parts.relocation.evacuation_wanted &= failing;
        }
        self.zones_freed.wake_all();
        Ok(())
    }

    /// Zones that cleaning must leave free now.
    pub(crate) fn kept_from_cleaning(&self) -> u32 {
        self.parts.borrow().kept_from_cleaning(self.checkpointer.is_at_work())
    }
}
