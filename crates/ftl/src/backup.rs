//! The incremental backup of the mapping: room for changed entries, and the writing of delta
//! pages. Lists and limits are in `deltas`.
use tantalum_base::{Error, ErrorKind, Payload, Result, SlotNo};
use tantalum_media::{Body, SlotKind, Spare, ZoneMedia};
use tantalum_runtime::sync::Waiting;

use crate::deltas::ENTRIES_MIN;
use crate::ftl::{Ftl, State};
use crate::zones::Stream;

/// Room for changed entries, given back where it is dropped.
pub(crate) struct Reservation<'a, M: ZoneMedia> {
    ftl: &'a Ftl<M>,
    entries: u32,
}

impl<M: ZoneMedia> Reservation<'_, M> {
    /// The changes follow now, in the same step: what they do not take is free again.
    pub(crate) fn spend(mut self, state: &mut State<M::Page>) {
        state.deltas.release(std::mem::take(&mut self.entries));
        // They may be fewer, where newer ones are in force, and then there is nothing to back up.
        self.ftl.entries_room.wake_all();
    }
}

impl<M: ZoneMedia> Drop for Reservation<'_, M> {
    fn drop(&mut self) {
        if self.entries > 0 {
            self.ftl.state.borrow_mut().deltas.release(self.entries);
            self.ftl.entries_room.wake_all();
        }
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Waits until `entries` entries of the map may change, and keeps that room.
    ///
    /// # Errors
    /// `TooLarge` where a dump could never hold that many beside others.
    pub(crate) async fn reserve_entries(&self, entries: u32) -> Result<Reservation<'_, M>> {
        let try_reserve = || {
            if let Err(latched) = self.check_latch() {
                return Some(Err(latched));
            }
            let state = &mut *self.state.borrow_mut();
            if !state.deltas.can_reserve(entries) {
                return Some(Err(Error::new(
                    ErrorKind::TooLarge,
                    format!("{entries} changes at once are more than the stored energy can dump"),
                )));
            }
            state.deltas.try_reserve(entries).then_some(Ok(()))
        };
        if let Some(result) = try_reserve() {
            return result.map(|()| Reservation { ftl: self, entries });
        }
        let _waiting = Waiting::new(&self.entries_wanted, 1);
        self.backup_wanted.wake_all();
        let result = self.entries_room.until(try_reserve).await;
        result.map(|()| Reservation { ftl: self, entries })
    }

    /// Writes changed entries to delta pages in the background as they near the limit, until the
    /// FTL latches. Spawn it once where the device has energy for a dump.
    pub async fn run_backup(&self) -> Result<()> {
        loop {
            let due = || {
                let state = self.state.borrow();
                (state.latched.is_some() || self.backup_due(&state)).then_some(())
            };
            self.backup_wanted.until(due).await;
            self.check_latch()?;
            self.back_up().await.inspect_err(|error| self.latch(error))?;
        }
    }

    fn backup_due(&self, state: &State<M::Page>) -> bool {
        state.deltas.backup_due(self.entries_wanted.get() > 0)
            && state.deltas.room_for(self.backup_slots(state))
    }

    /// Tells the backup where there is something for it to do.
    pub(crate) fn wake_backup(&self) {
        if self.options.dump.is_some() && self.backup_due(&self.state.borrow()) {
            self.backup_wanted.wake_all();
        }
    }

    /// Slots that a backup takes now at the most.
    fn backup_slots(&self, state: &State<M::Page>) -> u64 {
        let slots = crate::options::moving_slots_max(&self.geometry, state.deltas.backup_pages());
        u64::from(slots) + 2 * u64::from(self.geometry.append_unit_slots)
    }

    /// Writes the list of changed entries.
    async fn back_up(&self) -> Result<()> {
        let (era, pages) = {
            let state = &mut *self.state.borrow_mut();
            (state.checkpoint_id, state.deltas.start_backup(&state.map))
        };
        debug_assert!(pages.len() <= self.layout.entries_max as usize / ENTRIES_MIN + 1);
        let mut places: Vec<SlotNo> = Vec::with_capacity(pages.len());
        let mut slots = 0;
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let turn = self.meta_turn.acquire(1).await;
            self.admit(Stream::Meta, 1, || 0).await?;
            let mut buffer = self.state.borrow_mut().take_buffer();
            let room = self.state.borrow().zones.room_pages(Stream::Meta) as usize;
            for (page, version, body) in pages.by_ref().take(room) {
                let (kind, checksum) = (SlotKind::Delta, body.checksum());
                buffer.spares.push(Spare { kind, page, version, checksum });
                buffer.bodies.push(Body::Meta(body));
            }
            slots += u64::from(self.geometry.append_slots(buffer.spares.len() as u32));
            let first = self.append_own(Stream::Meta, &buffer, true).await?;
            let state = &mut *self.state.borrow_mut();
            for index in 0..buffer.spares.len() as u32 {
                let slot = SlotNo(first.0 + index);
                state.zones.add_live(slot);
                places.push(slot);
            }
            state.give_buffer(buffer);
            drop(turn);
        }
        {
            let state = &mut *self.state.borrow_mut();
            let in_force = state.checkpoint_in_force;
            if !state.deltas.written(era, in_force, &places, slots) {
                places.iter().for_each(|slot| state.zones.remove_live(*slot));
            }
            if self.checkpoint_due(state) {
                self.checkpoint_wanted.wake_all();
            }
        }
        self.entries_room.wake_all();
        self.cleaning_wanted.wake_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::DumpOptions;
    use crate::options::FtlOptions;
    use std::rc::Rc;
    use tantalum_media::block_store::MemoryStore;
    use tantalum_media::{FileZones, FileZonesOptions};
    use tantalum_runtime::virtual_time::Schedule;
    use tantalum_runtime::{Runtime, Virtual};

    fn zones() -> FileZones<MemoryStore> {
        let options =
            FileZonesOptions { volume_id: 1, first_byte: 0, zones: 60, slots_per_zone: 16 };
        FileZones::new(MemoryStore::new(60 * 16 * 4096), options).unwrap()
    }

    async fn formatted() -> Rc<Ftl<FileZones<MemoryStore>>> {
        let media = zones();
        let dump = Some(DumpOptions::least(&media.geometry(), 100, 8));
        Ftl::format(media, FtlOptions { dump, ..FtlOptions::new(100) }).await.unwrap()
    }

    #[test]
    fn room_that_changes_do_not_take_goes_to_who_waits() {
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let run = async move {
            let ftl = formatted().await;
            let backup = Rc::clone(&ftl);
            rt.spawn("backup", async move { backup.run_backup().await });
            let half = ftl.layout.entries_max / 2;
            let first = ftl.reserve_entries(half).await.unwrap();
            let _second = ftl.reserve_entries(half).await.unwrap();
            let waiting = Rc::clone(&ftl);
            let waiter =
                rt.spawn("waiter", async move { waiting.reserve_entries(2).await.map(|_| ()) });
            rt.sleep(1).await;
            first.spend(&mut ftl.state.borrow_mut());
            waiter.await.unwrap();
            assert_eq!(ftl.entries_wanted.get(), 0);
        };
        runtime.run(run).unwrap();
    }

    #[test]
    fn who_gives_up_waiting_for_room_is_not_counted_any_more() {
        let runtime = Virtual::new(Schedule::Fifo);
        let run = async move {
            let ftl = formatted().await;
            let half = ftl.layout.entries_max / 2;
            let _first = ftl.reserve_entries(half).await.unwrap();
            let _second = ftl.reserve_entries(half).await.unwrap();
            {
                let mut waiter = std::pin::pin!(ftl.reserve_entries(2));
                let once = |context: &mut std::task::Context<'_>| {
                    std::task::Poll::Ready(waiter.as_mut().poll(context).is_pending())
                };
                assert!(std::future::poll_fn(once).await);
                assert_eq!(ftl.entries_wanted.get(), 1);
            }
            assert_eq!(ftl.entries_wanted.get(), 0);
        };
        runtime.run(run).unwrap();
    }
}
