//! The dump of a durable cache at a power loss, and its recovery (DuraSSD paper, sections 3.2 and
//! 3.4).
//!
//! ```text
//! power_loss  on stored energy: writes the buffer pool and changed mapping entries to the dump area
//! reboot      recharges, recovers mapping and buffer pool, writes the pool back; only then serves
//! ```
//!
//! A power loss ends all tasks of the device. Writes in flight landed, vanished or tore. Only the
//! device's memory keeps power, from the capacitors, until `power_loss` is done.
use std::rc::Rc;
use tantalum_base::{PageNo, Result};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{DumpReport, Ftl, FtlOptions, RecoveryReport};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use crate::options::{CacheKind, SsdOptions};
use crate::ssd::{Drive, Ssd};

/// The result of a reboot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebootReport {
    /// The report of the recovery of the mapping.
    pub recovery: RecoveryReport,
    /// Pages of the buffer pool that were written back.
    pub pages_replayed: u64,
    /// Time from power-on to the first command.
    pub reboot_ns: u64,
}

impl<M: ZoneMedia> Drive<M> {
    /// Bytes that a power loss now would dump; `None` if the device has no dump. Undoing shares in
    /// flight is not counted: each share reserves its room in the list of changed entries, so that
    /// both together stay within that list's limit.
    pub(crate) fn dump_bytes(&self) -> Option<u64> {
        let dumps = self.options.cache == CacheKind::Durable && self.ftl.options().dump.is_some();
        dumps.then(|| {
            let cache = self.cache.borrow();
            self.ftl.bytes_to_dump(cache.capacity() - cache.free_frames())
        })
    }

    /// Panics unless the stored energy suffices to dump everything that is only in memory.
    pub(crate) fn check_energy(&self) {
        let Some(bytes) = self.dump_bytes() else { return };
        let budget_bytes = self.ftl.options().dump.map_or(0, |dump| dump.budget_bytes);
        assert!(
            bytes <= budget_bytes || Fault::NoDeltaLimit.is_planted(),
            "{bytes} bytes to dump are more than the {budget_bytes} that there is energy for"
        );
        self.count(|counts| counts.dump_bytes_max = counts.dump_bytes_max.max(bytes));
    }

    /// Writes everything that is only in memory to the dump area. `media` is a new handle on the
    /// medium, made after all tasks of the device were dropped. `self` is the memory that the
    /// capacitors still power; it is lost afterwards.
    ///
    /// A device that has accepted nothing since it was opened or closed dumps nothing: the state
    /// that it was opened from, even a dump, is still on the medium.
    ///
    /// # Errors
    /// `InvalidInput` if the device has no energy budget; `PowerCut` if the energy runs out, which
    /// the budget prevents; those of the medium.
    pub async fn power_loss(&self, media: M) -> Result<DumpReport> {
        if !self.serving.get() && !self.ftl.has_unwritten() {
            return Ok(DumpReport::default());
        }
        let frames: Vec<(PageNo, M::Page)> = self.cache.borrow().newest_in_order();
        self.ftl.dump(&media, &frames).await
    }
}

impl<M: ZoneMedia> Ssd<M> {
    /// Charges the capacitors, recovers the mapping and the buffer pool from the medium alone,
    /// writes the pool back, and invalidates the dump. The device serves when this returns. The
    /// power may fail at any point meanwhile; no new dump is needed then.
    ///
    /// # Errors
    /// `Corrupt` if durable content is damaged, a dump included; others as for [`Ftl::recover`].
    pub async fn reboot<R: Runtime>(
        media: M,
        ftl: FtlOptions,
        options: SsdOptions,
        runtime: &R,
    ) -> Result<(Rc<Self>, RebootReport)> {
        let start_ns = runtime.now_ns();
        runtime.sleep(options.recharge_ns).await;
        let (ftl, recovery) = Ftl::recover(media, ftl).await?;
        let ssd = Rc::new(Ssd::new(ftl, options)?);
        ssd.device().spawn_tasks(runtime);
        let frames = ssd.ftl.take_restored();
        for batch in frames.chunks(ssd.batch_pages as usize) {
            ssd.ftl.write(batch, true).await?;
        }
        ssd.ftl.conclude_dump().await?;
        let pages_replayed = frames.len() as u64;
        let reboot_ns = runtime.now_ns() - start_ns;
        Ok((ssd, RebootReport { recovery, pages_replayed, reboot_ns }))
    }
}
