//! The device from start to close, and its counters and metrics.
use std::rc::Rc;
use tantalum_base::{Limits, PageDevice, Result};
use tantalum_media::ZoneMedia;
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, DumpCounters, Finding, LifeCycle, Runtime};

use crate::fault_points::Fault;
use crate::ssd::Drive;

impl<M: ZoneMedia> LifeCycle for Drive<M> {
    /// Starts flushers, cleaner and checkpointer, unless the device is open read-only. After a
    /// `reboot` they already run.
    ///
    /// # Panics
    /// If a dump waits to be written back: only a reboot does that.
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        assert!(!self.ftl.has_dump(), "a dump is in force: the device must be rebooted");
        if !self.started.get() && !self.is_read_only() {
            self.spawn_tasks(runtime);
        }
    }

    /// Writes everything back, makes it durable and writes a checkpoint.
    async fn close(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        self.check_failed()?;
        let close = |ssd: Rc<Self>| async move {
            let accepted = ssd.progress.borrow().accepted;
            if !Fault::CacheDroppedAtClose.is_planted() {
                ssd.drain_unless_stalled().await?;
            }
            ssd.ftl.close().await?;
            // If the caller dropped the future, the device may have been used since.
            if ssd.progress.borrow().accepted == accepted {
                ssd.serving.set(false);
            }
            Ok(())
        };
        self.commands.run("close", close).await
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.ftl.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        let counts = self.counts.get();
        let ftl = self.ftl.statistics().counters();
        let bytes_max = counts.dump_bytes_max;
        DeviceCounters {
            pages_read: counts.pages_read,
            read_hits: counts.read_hits,
            pages_written: counts.pages_written,
            flushes: counts.flushes,
            dump: ftl.dump.map(|dump| DumpCounters { bytes_max, ..dump }),
            ..ftl
        }
    }

    fn metrics(&self, out: &mut Readings) {
        let counters = self.counters();
        // Hosts do not see the staging pages.
        let limits = Limits { pages: self.staging().first.0, ..self.limits().clone() };
        counters.tell(&limits, out);
        counters.tell_write_cache(out);
        self.statistics().tell(out);
    }

    fn validate(&self) {
        self.ftl.validate();
    }
}
