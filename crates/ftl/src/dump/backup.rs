//! The incremental backup of the mapping: reserves changes of entries, and writes delta pages. The
//! lists and limits are in `mapping_log`.
use tantalum_base::{Error, ErrorKind, Result, SlotNo};
use tantalum_media::{SlotKind, ZoneMedia};
use tantalum_runtime::sync::Waiting;

use crate::dump::Dump;
use crate::dump::delta_pages::ENTRIES_MIN;
use crate::ftl::Ftl;
use crate::options::relocation_slots_max;
use crate::parts::Parts;
use crate::space::Stream;

/// Permission to change `entries` entries of the map, returned when dropped. Without a dump it
/// permits any number.
pub(crate) struct Reservation<'a, M: ZoneMedia> {
    ftl: &'a Ftl<M>,
    entries: u32,
}

impl<M: ZoneMedia> Reservation<'_, M> {
    /// Returns the reservation: the caller makes the changes in the same step.
    pub(crate) fn spend(mut self, parts: &mut Parts) {
        self.give_back(parts);
    }

    fn give_back(&mut self, parts: &mut Parts) {
        let (Some(dump), Some(dumper)) = (&mut parts.dump, &self.ftl.dumper) else { return };
        dump.log.release(std::mem::take(&mut self.entries));
        // Fewer entries may change than were reserved, if newer ones are mapped.
        dumper.entries_freed.wake_all();
    }
}

impl<M: ZoneMedia> Drop for Reservation<'_, M> {
    fn drop(&mut self) {
        if self.entries > 0 {
            let ftl = self.ftl;
            self.give_back(&mut ftl.parts.borrow_mut());
        }
    }
}

impl<M: ZoneMedia> Ftl<M> {
    /// Reserves changes of `entries` entries of the map; waits until a dump could hold them.
    /// Without a dump it never waits.
    ///
    /// # Errors
    /// `TooLarge` if a dump could never hold that many beside other changes; those of a latched FTL.
    pub(crate) async fn reserve_entries(&self, entries: u32) -> Result<Reservation<'_, M>> {
        let Some(dumper) = &self.dumper else {
            return self.check_latch().map(|()| Reservation { ftl: self, entries: 0 });
        };
        let try_reserve = || {
            if let Err(latched) = self.check_latch() {
                return Some(Err(latched));
            }
            let dump = &mut self.parts.borrow_mut().dump;
            dump.as_mut().map_or(Some(Ok(())), |dump| dump.try_reserve(entries))
        };
        if let Some(result) = try_reserve() {
            return result.map(|()| Reservation { ftl: self, entries });
        }
        let _waiting = Waiting::new(&dumper.waiting, 1);
        dumper.backup_wanted.wake_all();
        let result = dumper.entries_freed.until(try_reserve).await;
        result.map(|()| Reservation { ftl: self, entries })
    }

    /// Writes changed entries to delta pages in the background when they near the limit, until the
    /// FTL latches. Spawn it once if the device has energy for a dump.
    pub async fn run_backup(&self) -> Result<()> {
        let Some(dumper) = &self.dumper else { return Ok(()) };
        loop {
            let due = || {
                let parts = self.parts.borrow();
                (parts.log.latched().is_some() || self.backup_due(&parts)).then_some(())
            };
            dumper.backup_wanted.until(due).await;
            self.check_latch()?;
            self.back_up().await.inspect_err(|error| self.latch(error))?;
        }
    }

    fn backup_due(&self, parts: &Parts) -> bool {
        let (Some(dump), Some(dumper)) = (&parts.dump, &self.dumper) else { return false };
        // The most slots that a backup needs now.
        let slots = relocation_slots_max(&self.geometry, dump.log.backup_pages());
        let slots = u64::from(slots) + 2 * u64::from(self.geometry.append_unit_slots);
        dump.log.backup_due(dumper.waiting.get() > 0) && dump.log.fits(slots)
    }

    /// Wakes the backup if it is due.
    pub(crate) fn wake_backup(&self) {
        if let Some(dumper) = &self.dumper
            && self.backup_due(&self.parts.borrow())
        {
            dumper.backup_wanted.wake_all();
        }
    }

    /// Writes the list of changed entries to delta pages.
    async fn back_up(&self) -> Result<()> {
        let (begun, pages) = {
            let parts = &mut *self.parts.borrow_mut();
            let Some(dump) = &mut parts.dump else { return Ok(()) };
            let pages = dump.log.start_backup(&parts.map);
            debug_assert!(pages.len() <= dump.layout.entries_max as usize / ENTRIES_MIN + 1);
            (parts.checkpoints.begun, pages)
        };
        let mut places: Vec<SlotNo> = Vec::with_capacity(pages.len());
        let mut slots = 0;
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let turn = self.checkpointer.meta_turn.acquire(1).await;
            self.admit(Stream::Meta, 1, || 0).await?;
            let mut buffer = self.buffers.take();
            let fit = self.parts.borrow().space.append_pages_fit(Stream::Meta) as usize;
            for (number, version, body) in pages.by_ref().take(fit) {
                buffer.push_own(SlotKind::Delta, number, version, body);
            }
            slots += u64::from(self.geometry.append_slots(buffer.spares.len() as u32));
            self.append_meta(&buffer, true, &mut places).await?;
            self.buffers.give(buffer);
            drop(turn);
        }
        {
            let parts = &mut *self.parts.borrow_mut();
            let in_force = parts.checkpoints.in_force;
            let Some(Dump { log, .. }) = &mut parts.dump else { return Ok(()) };
            if !log.written(begun, in_force, &places, slots) {
                places.iter().for_each(|slot| parts.space.remove_live(*slot));
            }
            if parts.checkpoint_due() {
                self.checkpointer.wanted.wake_all();
            }
        }
        if let Some(dumper) = &self.dumper {
            dumper.entries_freed.wake_all();
        }
        self.cleaner.wanted.wake_all();
        Ok(())
    }
}

impl Dump {
    /// Reserves `entries`; `None` while there is no room for them.
    fn try_reserve(&mut self, entries: u32) -> Option<Result<()>> {
        if !self.log.can_reserve(entries) {
            let context =
                format!("{entries} changes at once are more than the stored energy can dump");
            return Some(Err(Error::new(ErrorKind::TooLarge, context)));
        }
        self.log.try_reserve(entries).then_some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::energy::DumpOptions;
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

    fn entries_max<M: ZoneMedia>(ftl: &Ftl<M>) -> u32 {
        ftl.parts.borrow().dump.as_ref().unwrap().layout.entries_max
    }

    fn waiting_count<M: ZoneMedia>(ftl: &Ftl<M>) -> u32 {
        ftl.dumper.as_ref().unwrap().waiting.get()
    }

    #[test]
    fn room_that_changes_do_not_take_goes_to_who_waits() {
        let runtime = Virtual::new(Schedule::Fifo);
        let rt = runtime.clone();
        let run = async move {
            let ftl = formatted().await;
            let backup = Rc::clone(&ftl);
            rt.spawn("backup", async move { backup.run_backup().await });
            let half = entries_max(&ftl) / 2;
            let first = ftl.reserve_entries(half).await.unwrap();
            let _second = ftl.reserve_entries(half).await.unwrap();
            let waiting = Rc::clone(&ftl);
            let waiter =
                rt.spawn("waiter", async move { waiting.reserve_entries(2).await.map(|_| ()) });
            rt.sleep(1).await;
            first.spend(&mut ftl.parts.borrow_mut());
            waiter.await.unwrap();
            assert_eq!(waiting_count(&ftl), 0);
        };
        runtime.run(run).unwrap();
    }

    #[test]
    fn who_gives_up_waiting_for_room_is_not_counted_any_more() {
        let runtime = Virtual::new(Schedule::Fifo);
        let run = async move {
            let ftl = formatted().await;
            let half = entries_max(&ftl) / 2;
            let _first = ftl.reserve_entries(half).await.unwrap();
            let _second = ftl.reserve_entries(half).await.unwrap();
            {
                let mut waiter = std::pin::pin!(ftl.reserve_entries(2));
                let once = |context: &mut std::task::Context<'_>| {
                    std::task::Poll::Ready(waiter.as_mut().poll(context).is_pending())
                };
                assert!(std::future::poll_fn(once).await);
                assert_eq!(waiting_count(&ftl), 1);
            }
            assert_eq!(waiting_count(&ftl), 0);
        };
        runtime.run(run).unwrap();
    }
}
