//! The devices that TxCache was measured against, on the TxSSD's array and behind its link.
use crate::nand::Nand;
use crate::{NandOptions, NandZones};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Limits, PageDevice, PageNo, PageRange, Payload, Result, Spec, TxId};
use tantalum_ftl::{Ftl, FtlStatistics};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Runtime;

use super::{DeviceConfig, Profile, TxSsdConfig};
use crate::baselines::{
    Clustering, RedoLog, ShadowDevice, ShadowLog, ShadowOptions, Wal, WalOptions,
};
use crate::host_queue::{HostQueue, HostQueueOptions};

/// A baseline over simulated NAND behind a link.
pub type SimulatedBaseline<R, P> = HostQueue<R, Baseline<NandZones<R, P>>>;

/// How a transaction becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineKind {
    /// A redo log in flash.
    Wal,
    /// Shadow pages in new places.
    Shadow(Clustering),
}

impl BaselineKind {
    fn name(self) -> &'static str {
        match self {
            BaselineKind::Wal => "wal",
            BaselineKind::Shadow(Clustering::Cycles) => "tx-flash",
            BaselineKind::Shadow(Clustering::LogFlags) => "atomic-log",
        }
    }
}

/// A baseline at one capacity. WAL's log comes on top of the flash that the others have.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineConfig {
    /// As it was asked for, with every parameter.
    pub name: String,
    /// Which one.
    pub kind: BaselineKind,
    /// Pages that the host gets.
    pub capacity_pages: u64,
    /// Flash beyond them, as a share.
    pub over_provisioning: f64,
    /// Pages of the redo log; 0 where there is none.
    pub log_pages: u32,
    /// Transactions that may be open at once.
    pub transactions_max: u32,
    /// The link.
    pub link: HostQueueOptions,
}

impl BaselineConfig {
    /// The device of `kind` that `spec` describes: `capacity` or `pages`, `op`, `transactions`,
    /// and of WAL `log`, in pages.
    pub(super) fn of_spec(kind: BaselineKind, mut spec: Spec) -> Result<BaselineConfig> {
        let profile = Profile::tx_ssd();
        let pages = spec.capacity_pages(1..=u64::from(u32::MAX / 2), profile.pages)?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        let transactions = spec.count("transactions", 1..=1 << 20, 32)?;
        let mut name = format!(
            "{}:pages={pages},op={over_provisioning},transactions={transactions}",
            kind.name()
        );
        let mut log_pages = 0;
        if kind == BaselineKind::Wal {
            // In proportion to the capacity, as the cache of a TxSSD.
            let scaled = profile.scaled(pages, over_provisioning)?.ssd.cache_pages;
            log_pages = spec.count("log", 64..=1 << 29, u64::from(scaled))? as u32;
            name = format!("{name},log={log_pages}");
        }
        spec.finish()?;
        let config = BaselineConfig {
            name,
            kind,
            capacity_pages: pages,
            over_provisioning,
            log_pages,
            transactions_max: transactions as u32,
            link: profile.link,
        };
        config.device()?;
        Ok(config)
    }

    fn wal_options(&self) -> WalOptions {
        WalOptions { transactions_max: self.transactions_max, ..WalOptions::new(self.log_pages) }
    }

    /// Array, zones and FTL: the TxSSD's, with the log's zones at the end.
    ///
    /// # Errors
    /// `InvalidInput` where the capacity is too small for a device or too large for the array, or
    /// the log for any transaction.
    pub fn device(&self) -> Result<DeviceConfig> {
        let plain = TxSsdConfig {
            over_provisioning: self.over_provisioning,
            ..TxSsdConfig::nv_cache(self.capacity_pages, 1024)
        };
        let mut device = plain.device()?;
        if self.kind == BaselineKind::Wal {
            let zones = self.wal_options().log_zones(&device.geometry());
            device.nand.geometry.blocks_per_plane += zones;
            self.wal_options().check(&device.geometry())?;
        }
        Ok(device)
    }

    /// Makes the device on `nand`, formats it and starts its tasks.
    pub async fn build_on<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        nand: Nand<P>,
    ) -> Result<Rc<SimulatedBaseline<R, P>>> {
        let config = self.device()?;
        let zones = NandZones::new(runtime.clone(), nand, config.zones)?;
        let device = match self.kind {
            BaselineKind::Wal => {
                let options = self.wal_options();
                let wal = Rc::new(RedoLog::format(Rc::new(zones), config.ftl, options).await?);
                wal.device().start(runtime);
                Either::Wal(wal)
            }
            BaselineKind::Shadow(clustering) => {
                let ftl = Ftl::format(zones, config.ftl).await?;
                let transactions_max = self.transactions_max;
                let options = ShadowOptions { clustering, transactions_max };
                let shadow = Rc::new(ShadowLog::device(ftl, options));
                shadow.device().start(runtime);
                Either::Shadow(shadow)
            }
        };
        let baseline = Baseline { device, pages_read: Cell::new(0), flushes: Cell::new(0) };
        Ok(Rc::new(HostQueue::new(runtime.clone(), Rc::new(baseline), self.link)?))
    }

    /// The array, new. What is left to chance comes from `seed`.
    pub fn nand<P: Payload>(&self, seed: u64) -> Result<Nand<P>> {
        Nand::new(&NandOptions { seed, ..self.device()?.nand })
    }
}

enum Either<M: ZoneMedia> {
    Wal(Rc<Wal<M>>),
    Shadow(Rc<ShadowDevice<M>>),
}

/// Either of the baselines, with what their own counters leave out.
pub struct Baseline<M: ZoneMedia> {
    device: Either<M>,
    pages_read: Cell<u64>,
    flushes: Cell<u64>,
}

/// Counters of a [`Baseline`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaselineStatistics {
    /// Pages that the host read.
    pub pages_read: u64,
    /// Pages that the host wrote, transactions included when they commit.
    pub pages_written: u64,
    /// Flush commands; they find nothing to do.
    pub flushes: u64,
    /// Slots programmed in the redo log.
    pub log_slots: u64,
    /// The FTL's counters, without the log.
    pub ftl: FtlStatistics,
}

/// The same call on whichever it is.
macro_rules! on_each {
    ($self:ident, $device:ident => $call:expr) => {
        match &$self.device {
            Either::Wal($device) => $call,
            Either::Shadow($device) => $call,
        }
    };
}

impl<M: ZoneMedia> Baseline<M> {
    /// Counters.
    pub fn statistics(&self) -> BaselineStatistics {
        let (pages_written, log_slots, ftl) = match &self.device {
            Either::Wal(wal) => {
                let counted = wal.statistics();
                (counted.pages_written, counted.log_slots, counted.ftl)
            }
            Either::Shadow(shadow) => {
                let counted = shadow.statistics();
                (counted.pages_written, 0, counted.ftl)
            }
        };
        let (pages_read, flushes) = (self.pages_read.get(), self.flushes.get());
        BaselineStatistics { pages_read, pages_written, flushes, log_slots, ftl }
    }
}

impl<M: ZoneMedia> PageDevice for Baseline<M> {
    type Page = M::Page;

    fn limits(&self) -> &Limits {
        on_each!(self, device => device.limits())
    }

    async fn read(&self, first: PageNo, out: &mut [M::Page], tx: Option<TxId>) -> Result<()> {
        self.pages_read.set(self.pages_read.get() + out.len() as u64);
        on_each!(self, device => device.read(first, out, tx).await)
    }

    async fn write(&self, first: PageNo, pages: &[M::Page], tx: Option<TxId>) -> Result<()> {
        on_each!(self, device => device.write(first, pages, tx).await)
    }

    async fn flush(&self) -> Result<()> {
        self.flushes.set(self.flushes.get() + 1);
        on_each!(self, device => device.flush().await)
    }

    async fn trim(&self, range: PageRange) -> Result<()> {
        on_each!(self, device => device.trim(range).await)
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        on_each!(self, device => device.share(pairs).await)
    }

    async fn begin(&self) -> Result<TxId> {
        on_each!(self, device => device.begin().await)
    }

    async fn commit(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.commit(tx).await)
    }

    async fn abort(&self, tx: TxId) -> Result<()> {
        on_each!(self, device => device.abort(tx).await)
    }
}
