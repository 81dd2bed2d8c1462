//! Making changes durable: syncs that callers share, and waiting for what is in flight.
use tantalum_base::{Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;

impl<M: ZoneMedia> Ftl<M> {
    /// Makes every change that had returned before this call durable, with all changes before
    /// them in the log, which may still be in flight.
    ///
    /// # Errors
    /// The medium's; the FTL is latched then, since nobody knows what became durable.
    pub async fn sync(&self) -> Result<()> {
        if Fault::FlushLeavesGaps.is_planted() {
            return self.sync_appends().await;
        }
        let returned = self.state.borrow().returned;
        self.make_durable(returned).await
    }

    /// Makes every append that had returned before this call durable. Concurrent calls share
    /// one sync of the medium.
    pub(crate) async fn sync_appends(&self) -> Result<()> {
        let turns = &self.sync_turns;
        let mine = turns.started.get() + 1;
        loop {
            self.check_latch()?;
            if turns.done.get() >= mine {
                return Ok(());
            }
            if turns.running.get() {
                self.durable_rose.until(|| (!turns.running.get()).then_some(())).await;
                continue;
            }
            turns.running.set(true);
            turns.started.set(turns.started.get() + 1);
            let _running = RunningSync(self);
            self.sync_medium().await.inspect_err(|error| self.latch(error))?;
            turns.done.set(turns.started.get());
        }
    }

    async fn sync_medium(&self) -> Result<()> {
        let (returned, zones, says) = {
            let state = self.state.borrow();
            let settled = |(number, zone): (ZoneNo, &crate::zones::Zone)| {
                (zone.needs_sync && zone.appends_in_flight == 0).then_some((
                    number,
                    zone.epoch,
                    zone.used_slots,
                    zone.version_max,
                ))
            };
            let zones: Vec<_> = state.zones.iter().filter_map(settled).collect();
            let says = |(number, zone): (ZoneNo, &crate::zones::Zone)| {
                (zone.says > zone.says_durably).then_some((number, zone.epoch, zone.says))
            };
            let says: Vec<_> = state.zones.iter().filter_map(says).collect();
            (state.tracker.before_sync(), zones, says)
        };
        self.media.sync().await?;
        let state = &mut *self.state.borrow_mut();
        state.tracker.synced(&returned);
        for (number, epoch, used_slots, version_max) in zones {
            let zone = state.zones.get_mut(number);
            if zone.epoch == epoch {
                if used_slots >= zone.durable_slots {
                    zone.durable_slots = used_slots;
                    zone.durable_version_max = version_max;
                }
                zone.needs_sync = zone.used_slots != used_slots;
            }
        }
        for (number, epoch, says) in says {
            let zone = state.zones.get_mut(number);
            if zone.epoch == epoch {
                zone.says_durably = zone.says_durably.max(says);
            }
        }
        Ok(())
    }

    /// Whether every change so far is durable already.
    pub fn is_durable(&self) -> bool {
        let state = self.state.borrow();
        state.tracker.watermark().next() == state.next_version
    }

    /// Makes every change up to `version` durable, also those still in flight.
    pub(crate) async fn make_durable(&self, version: Version) -> Result<()> {
        loop {
            // What was appended durably only has to wait for what is in flight before it.
            let next = || {
                let state = self.state.borrow();
                if state.tracker.watermark() >= version {
                    return Some(Ok(true));
                }
                if let Some(error) = &state.latched {
                    return Some(Err(error.clone()));
                }
                state.tracker.wants_sync().then_some(Ok(false))
            };
            if self.durable_rose.until(next).await? {
                return Ok(());
            }
            self.sync_appends().await?;
        }
    }
}

/// Ends a sync's turn, also where its caller was dropped.
struct RunningSync<'a, M: ZoneMedia>(&'a Ftl<M>);

impl<M: ZoneMedia> Drop for RunningSync<'_, M> {
    fn drop(&mut self) {
        self.0.sync_turns.running.set(false);
        self.0.durable_rose.wake_all();
    }
}
