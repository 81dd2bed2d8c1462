//! The devices with which TxCache was compared, on the TxSSD's array and behind its link.
use tantalum_base::{Result, Spec};
use tantalum_ftl::FtlOptions;
use tantalum_media::ErasedZones;

use super::{DeviceConfig, Profile, TxSsdConfig};
use crate::baselines::{
    Clustering, ShadowDevice, ShadowKind, ShadowOptions, Wal, WalCommit, WalKind, WalOptions,
};
use crate::host_queue::{HostQueue, HostQueueOptions, Linked};

/// A redo log over simulated NAND behind a link.
pub type SimulatedWal<R, P> = HostQueue<R, Wal<P>>;

/// Shadow pages over simulated NAND behind a link.
pub type SimulatedShadow<R, P> = HostQueue<R, ShadowDevice<ErasedZones<P>>>;

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

/// A baseline at one capacity. WAL's log is extra flash beyond that of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// The kind.
    pub kind: BaselineKind,
    /// Number of pages that the host sees.
    pub capacity_pages: u64,
    /// Flash beyond those pages, as a share of them.
    pub over_provisioning: f64,
    /// Size of the redo log in pages; 0 if there is none.
    pub log_pages: u32,
    /// How a redo log commits.
    pub commit: WalCommit,
    /// Maximum number of open transactions.
    pub transactions_max: u32,
    /// The link.
    pub link: HostQueueOptions,
}

impl BaselineConfig {
    /// Parses the parameters of a device of `kind`: `capacity` or `pages`, `op`, `transactions`;
    /// for WAL also `log` (in pages) and `commit`.
    pub(super) fn of_spec(kind: BaselineKind, mut spec: Spec) -> Result<BaselineConfig> {
        let profile = Profile::tx_ssd();
        let pages = spec.capacity_pages(1..=u64::from(u32::MAX / 2), profile.pages)?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        let transactions = spec.count("transactions", 1..=1 << 20, 32)?;
        let mut name = format!(
            "{}:pages={pages},op={over_provisioning},transactions={transactions}",
            kind.name()
        );
        let (mut log_pages, mut commit) = (0, WalCommit::default());
        if kind == BaselineKind::Wal {
            // In proportion to the capacity, like the cache of a TxSSD.
            let scaled = profile.scaled(pages, over_provisioning)?.ssd.cache_pages;
            log_pages = spec.count("log", 64..=1 << 29, u64::from(scaled))? as u32;
            let word = spec.word("commit", &["pages", "record"])?;
            if word == "record" {
                commit = WalCommit::Record;
            }
            name = format!("{name},log={log_pages},commit={word}");
        }
        spec.finish()?;
        let config = BaselineConfig {
            name,
            kind,
            capacity_pages: pages,
            over_provisioning,
            log_pages,
            commit,
            transactions_max: transactions as u32,
            link: profile.link,
        };
        config.device()?;
        Ok(config)
    }

    fn wal_options(&self) -> WalOptions {
        WalOptions {
            transactions_max: self.transactions_max,
            commit: self.commit,
            ..WalOptions::new(self.log_pages)
        }
    }

    /// Array, zones and FTL: those of the TxSSD, with the log's zones at the end.
    ///
    /// # Errors
    /// `InvalidInput` if the capacity is too small for a device or too large for the array, or if
    /// the log is too small for any transaction.
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

    /// The redo log behind its link.
    pub(super) fn wal(&self, ftl: FtlOptions) -> Linked<WalKind> {
        Linked { below: WalKind { ftl, wal: self.wal_options() }, link: self.link }
    }

    /// The shadow pages behind their link.
    pub(super) fn shadow(&self, ftl: FtlOptions, clustering: Clustering) -> Linked<ShadowKind> {
        let shadow = ShadowOptions { clustering, transactions_max: self.transactions_max };
        Linked { below: ShadowKind { ftl, shadow }, link: self.link }
    }
}
