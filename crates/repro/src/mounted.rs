//! A file system between a database and its device, mounted with or without write barriers.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{DeviceLayer, Limits, PageDevice, PageNo, PageRange, Result, Stamp, TxId};
use tantalum_runtime::{Runtime, Virtual};

use super::load::FileSystem;

/// A file that is written in place, with fsyncs as in [`FileSystem`]. Without barriers an fsync sends nothing to the device: then
/// acknowledged writes are only as safe as the device makes them.
pub(crate) struct Mounted<D> {
    runtime: Virtual,
    device: Rc<D>,
    limits: Limits,
    file_system: FileSystem,
    barriers: Cell<bool>,
    /// The file's modification time, in ticks, and whether it is not in the journal yet.
    changed_ticks: Cell<u64>,
    inode_dirty: Cell<bool>,
    journal_next: Cell<u64>,
}

impl<D: PageDevice<Page = Stamp>> Mounted<D> {
    /// The file occupies the whole device except the journal after it; with barriers.
    pub(crate) fn new(runtime: &Virtual, device: Rc<D>, file_system: FileSystem) -> Self {
        let pages = device.limits().pages - file_system.journal_pages;
        let limits = Limits { pages, ..device.limits().clone() };
        Mounted {
            runtime: runtime.clone(),
            device,
            limits,
            file_system,
            barriers: Cell::new(true),
            changed_ticks: Cell::new(u64::MAX),
            inode_dirty: Cell::new(false),
            journal_next: Cell::new(0),
        }
    }

    /// Mounts it again, with or without barriers.
    pub(crate) fn set_barriers(&self, barriers: bool) {
        self.barriers.set(barriers);
    }

    /// The file is written: its modification time is now.
    fn touch(&self) {
        let now_ticks = self.runtime.now_ns() / self.file_system.tick_ns;
        if self.changed_ticks.replace(now_ticks) != now_ticks {
            self.inode_dirty.set(true);
        }
    }

    async fn write_journal(&self) -> Result<()> {
        let block = self.journal_next.get();
        self.journal_next.set(block + 1);
        let page = PageNo(self.limits.pages + block % self.file_system.journal_pages);
        self.device.write(page, &[Stamp::new(page, block)], None).await
    }

    async fn barrier(&self) -> Result<()> {
        if self.barriers.get() { self.device.flush().await } else { Ok(()) }
    }
}

impl<D: PageDevice<Page = Stamp>> DeviceLayer for Mounted<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.device
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        self.device.read(first, out, tx).await
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, pages.len() as u64))?;
        self.touch();
        self.device.write(first, pages, tx).await
    }

    async fn flush(&self) -> Result<()> {
        let changed = self.inode_dirty.replace(false);
        let (write, barrier) = (async || self.write_journal().await, async || self.barrier().await);
        self.file_system.journal.sync(changed, write, barrier).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{FILE_SYSTEM, XFS};
    use super::*;
    use tantalum_models::DeviceSpec;
    use tantalum_runtime::LifeCycle;

    #[test]
    fn an_fsync_flushes_where_barriers_are_on_and_journals_once_a_tick() {
        // The page; ext4 also has a journal block and its commit record, XFS one record of its log.
        journals(FILE_SYSTEM, 1 + 2);
        journals(XFS, 1 + 1);
    }

    fn journals(file_system: FileSystem, written: u64) {
        let ran = Virtual::alone("a file", move |runtime| async move {
            let spec = DeviceSpec::parse("durassd:capacity=256MiB,barrier=on")?;
            let device = spec.build(&runtime, 1).await?.device;
            let file = Mounted::new(&runtime, Rc::clone(&device), file_system);
            let counted = || (device.counters().pages_written, device.counters().flushes);
            for (barriers, flushes) in [(true, 2), (false, 0)] {
                file.set_barriers(barriers);
                let tick_ns = file_system.tick_ns;
                runtime.sleep(tick_ns - runtime.now_ns() % tick_ns).await;
                let before = counted();
                PageDevice::write(&file, PageNo(7), &[Stamp::new(PageNo(7), 1)], None).await?;
                PageDevice::flush(&file).await?;
                assert_eq!(counted(), (before.0 + written, before.1 + flushes), "{barriers}");
                // Nothing was written since.
                PageDevice::flush(&file).await?;
                assert_eq!(counted(), (before.0 + written, before.1 + flushes + flushes / 2));
            }
            let beyond = PageNo(PageDevice::limits(&file).pages);
            let journal = [Stamp::new(beyond, 1)];
            assert!(PageDevice::write(&file, beyond, &journal, None).await.is_err());
            Ok(())
        });
        ran.unwrap();
    }
}
