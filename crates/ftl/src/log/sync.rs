//! Makes changes durable: callers share syncs, and wait for batches in flight.
use std::cell::Cell;
use tantalum_base::{Result, Version};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::ftl::Ftl;

/// Lets concurrent callers share one sync.
#[derive(Default)]
pub(crate) struct SyncTurns {
    running: Cell<bool>,
    started: Cell<u64>,
    done: Cell<u64>,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Makes every change that had returned before this call durable, and all changes before these
    /// in the log, even those still in flight.
    ///
    /// # Errors
    /// That of the medium; the FTL then latches, since it is unknown which changes became durable.
    pub async fn sync(&self) -> Result<()> {
        if Fault::FlushLeavesGaps.is_planted() {
            return self.sync_appends().await;
        }
        let returned = self.parts.borrow().log.returned();
        self.make_durable(returned).await
    }

    /// Logs a batch that changes nothing. With `durable`, it returns when every batch whose versions were assigned
    /// before this call survives a power cut. This includes batches in flight, because readers may already see them,
    /// for example a share.
    ///
    /// # Errors
    /// As for any batch.
    pub(crate) async fn log_nothing(&self, durable: bool) -> Result<()> {
        self.check_latch()?;
        match durable {
            false => Ok(()),
            true if Fault::NothingAwaited.is_planted() => self.sync().await,
            true => self.sync_started().await,
        }
    }

    /// Makes every batch durable whose versions are assigned, even those still in flight.
    pub(crate) async fn sync_started(&self) -> Result<()> {
        let started = self.parts.borrow().log.watermark.last_started();
        self.make_durable(started).await
    }

    /// Makes every append that had returned before this call durable. Concurrent calls share
    /// one sync of the medium.
    pub(crate) async fn sync_appends(&self) -> Result<()> {
        let turns = &self.log.sync;
        let mine = turns.started.get() + 1;
        loop {
            self.check_latch()?;
            if turns.done.get() >= mine {
                return Ok(());
            }
            if turns.running.get() {
                self.log.durable_rose.until(|| (!turns.running.get()).then_some(())).await;
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
        let (returned, zones) = {
            let parts = self.parts.borrow();
            (parts.log.watermark.before_sync(), parts.space.before_sync())
        };
        self.media.sync().await?;
        let parts = &mut *self.parts.borrow_mut();
        parts.log.watermark.synced(&returned);
        parts.space.synced(&zones);
        Ok(())
    }

    /// Whether every change so far is durable already.
    pub fn is_durable(&self) -> bool {
        self.parts.borrow().log.is_durable()
    }

    /// Makes every change up to `version` durable, even those still in flight.
    pub(crate) async fn make_durable(&self, version: Version) -> Result<()> {
        loop {
            // Durable appends need no sync, only the end of earlier batches in flight.
            let next = || {
                let parts = self.parts.borrow();
                if parts.log.durable() >= version {
                    return Some(Ok(true));
                }
                if let Some(error) = parts.log.latched() {
                    return Some(Err(error.clone()));
                }
                parts.log.watermark.wants_sync().then_some(Ok(false))
            };
            if self.log.durable_rose.until(next).await? {
                return Ok(());
            }
            self.sync_appends().await?;
        }
    }
}

/// Ends a sync's turn, even if its future is dropped.
struct RunningSync<'a, M: ZoneMedia>(&'a Ftl<M>);

impl<M: ZoneMedia> Drop for RunningSync<'_, M> {
    fn drop(&mut self) {
        self.0.log.sync.running.set(false);
        self.0.log.durable_rose.wake_all();
    }
}
