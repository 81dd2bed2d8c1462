//! Shadow paging in the FTL: the pages of a transaction are written once, to new places, as one
//! batch.
//!
//! TxFlash (Prabhakaran et al., OSDI 2008) marks a transaction by links in the pages' spare areas:
//! each page links to the next, the last one to the first, and the transaction is committed when
//! the cycle is complete. FusionIO's atomic write (Ouyang et al., HPCA 2011) marks it by flags in
//! the log's mapping metadata. Our log stores either as the pair (first version, length) of a batch
//! of contiguous versions: the link of version v leads to v + 1, that of the last one to the first,
//! and the end flag is on version first + length - 1. So both write the same pages at the same
//! times. They differ in recovery: TxFlash has no other record of its mapping and reads the whole
//! drive; the log FTL reads its tail after the last checkpoint.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Durability, Limits, PAGE_BYTES, PageDevice, PageNo, PageRange, Result, TxId};
use tantalum_ftl::{CommandTasks, Ftl, FtlOptions, FtlStatistics, RecoveryReport};
use tantalum_media::ZoneMedia;
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::{DeviceCounters, DeviceKind, Finding, LifeCycle, Opening, Runtime};

use super::cycles::{CycleScan, scan_cycles};
use crate::page_turns::PageTurns;
use tantalum_ssd::Transactional;

/// How recovery finds all pages of a transaction after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// TxFlash's cyclic commit: links in the spare areas, recovery by scanning the drive.
    Cycles,
    /// FusionIO's atomic write: flags in the log, recovery by scanning the log's tail.
    LogFlags,
}

/// Options of a [`ShadowDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowOptions {
    /// How transactions are marked.
    pub clustering: Clustering,
    /// Maximum number of open transactions.
    pub transactions_max: u32,
}

/// Counters of a [`ShadowLog`] since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowStatistics {
    /// Pages read by the host.
    pub pages_read: u64,
    /// Flush commands; they have no effect.
    pub flushes: u64,
    /// Pages written by the host; those of a transaction are counted when it commits.
    pub pages_written: u64,
    /// The FTL's counters.
    pub ftl: FtlStatistics,
}

/// A device without a write cache: the pages of a transaction are collected in the controller's
/// memory, as `WriteAtomic` passes them all at once, and are written to flash at the commit.
pub type ShadowDevice<M> = Transactional<ShadowLog<M>>;

/// The same device without transactions: each write goes to flash as one batch.
pub struct ShadowLog<M: ZoneMedia> {
    ftl: Rc<Ftl<M>>,
    limits: Limits,
    turns: PageTurns,
    commands: CommandTasks<Self>,
    counts: Cell<ShadowStatistics>,
    overlap_commits: Cell<bool>,
}

impl<M: ZoneMedia> ShadowLog<M> {
    /// A device over `ftl`.
    pub fn device(ftl: Rc<Ftl<M>>, options: ShadowOptions) -> ShadowDevice<M> {
        let pages_max = ftl.batch_pages_max();
        let limits = Limits {
            page_bytes: PAGE_BYTES as u32,
            pages: ftl.options().pages,
            atomic_write_pages_max: pages_max,
            transaction_pages_max: pages_max,
            transactions_max: 0,
            share_pairs_max: 0,
            durability: Durability::OnAck,
        };
        let log = ShadowLog {
            ftl,
            limits,
            turns: PageTurns::new(),
            commands: CommandTasks::new(),
            counts: Cell::default(),
            overlap_commits: Cell::new(false),
        };
        Transactional::over(Rc::new(log), options.transactions_max, pages_max)
    }

    /// From now on a commit in flight no longer holds its pages: for hosts that order their
    /// transactions themselves and send the next one in the meantime, as the file systems of the
    /// TxCache paper do. Commits of the same pages still take effect in the order in which they
    /// were sent.
    pub fn overlap_commits(&self) {
        self.overlap_commits.set(true);
    }

    /// Opens the device stored on `media`. With cycles the whole drive is read first, as TxFlash
    /// must. The resulting mapping is the one that the FTL has in its checkpoint and log, which is
    /// then loaded.
    ///
    /// # Errors
    /// The errors of [`Ftl::recover`].
    pub async fn recover(
        media: M,
        ftl: FtlOptions,
        options: ShadowOptions,
    ) -> Result<(ShadowDevice<M>, Option<CycleScan>, RecoveryReport)> {
        let scan = match options.clustering {
            Clustering::Cycles => Some(scan_cycles(&media).await?),
            Clustering::LogFlags => None,
        };
        let (ftl, report) = Ftl::recover(media, ftl).await?;
        Ok((ShadowLog::device(ftl, options), scan, report))
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<Ftl<M>> {
        &self.ftl
    }

    /// Counters since opening.
    pub fn statistics(&self) -> ShadowStatistics {
        ShadowStatistics { ftl: self.ftl.statistics(), ..self.counts.get() }
    }

    /// Writes `pages` in the order of arrival with other changes of the same pages. The caller must
    /// drive the future to its end.
    async fn write_pages(&self, pages: Vec<(PageNo, M::Page)>) -> Result<()> {
        let turn = self.turns.pages(pages.iter().map(|(page, _)| *page).collect()).await;
        let first = async {
            turn.first().await;
            Ok(())
        };
        self.ftl.write_behind(&pages, true, first).await?;
        self.count(|counts| counts.pages_written += pages.len() as u64);
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut ShadowStatistics)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

impl<M: ZoneMedia> LifeCycle for ShadowLog<M> {
    fn start(self: &Rc<Self>, runtime: &impl Runtime) {
        self.commands.start(self, runtime);
        self.ftl.start_tasks(runtime);
    }

    async fn close(&self) -> Result<()> {
        let close = |device: Rc<Self>| async move { device.ftl.close().await };
        self.commands.run("close", close).await
    }

    async fn check(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<Finding>> {
        self.ftl.check(progress).await
    }

    fn counters(&self) -> DeviceCounters {
        let ShadowStatistics { pages_read, pages_written, flushes, ftl } = self.statistics();
        DeviceCounters { pages_read, pages_written, flushes, ..ftl.counters() }
    }

    fn metrics(&self, out: &mut Readings) {
        self.counters().tell(self.limits(), out);
        self.ftl.statistics().tell(out);
    }

    fn validate(&self) {
        self.ftl.validate();
    }
}

/// A [`ShadowDevice`] on zones of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowKind {
    /// The FTL.
    pub ftl: FtlOptions,
    /// Transactions.
    pub shadow: ShadowOptions,
}

impl<R: Runtime, M: ZoneMedia> DeviceKind<R, M> for ShadowKind {
    type Device = ShadowDevice<M>;
    type Kept = ();
    type Report = (Option<CycleScan>, RecoveryReport);

    async fn format(&self, on: Opening<R, M, ()>) -> Result<Rc<Self::Device>> {
        let ftl = Ftl::format(on.media, self.ftl).await?;
        Ok(Rc::new(ShadowLog::device(ftl, self.shadow)))
    }

    async fn open(&self, on: Opening<R, M, ()>) -> Result<(Rc<Self::Device>, Self::Report)> {
        let (device, scan, recovery) = ShadowLog::recover(on.media, self.ftl, self.shadow).await?;
        Ok((Rc::new(device), (scan, recovery)))
    }
}

impl<M: ZoneMedia> PageDevice for ShadowLog<M> {
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_range(PageRange::new(first, out.len() as u64))?;
        self.count(|counts| counts.pages_read += out.len() as u64);
        if out.len() == 1 {
            return self.ftl.read(&[first], out).await;
        }
        let pages = (first.0..).map(PageNo).zip(0..out.len());
        self.ftl.read_at_once(pages, out).await
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], _tx: Option<TxId>) -> Result<()> {
        self.limits.check_write(PageRange::new(first, pages.len() as u64))?;
        if pages.is_empty() {
            return Ok(());
        }
        let numbered = (first.0..).map(PageNo).zip(pages.iter().cloned());
        let pages: Vec<_> = numbered.collect();
        let write = |device: Rc<Self>| async move { device.write_pages(pages).await };
        self.commands.run("write", write).await
    }

    async fn write_scattered(
        &self,
        pages: Vec<(PageNo, M::Page)>,
        ended: impl FnOnce() + 'static,
    ) -> Result<()> {
        let mut ended = Some(ended);
        let mut end = move || ended.take().into_iter().for_each(|ended| ended());
        if self.overlap_commits.get() {
            end();
        }
        let write = |device: Rc<Self>| async move {
            let written = device.write_pages(pages).await;
            end();
            written
        };
        self.commands.run("commit", write).await
    }

    async fn flush(&self) -> Result<()> {
        self.count(|counts| counts.flushes += 1);
        Ok(())
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        self.limits.check_range(range)?;
        if range.pages == 0 {
            return Ok(());
        }
        let trim = |device: Rc<Self>| async move {
            let _turn = device.turns.range(range).await;
            device.ftl.trim(range, true).await
        };
        self.commands.run("trim", trim).await
    }
}
