//! The devices of the comparison: they share one array, one FTL, one link, and differ in how a
//! transaction becomes durable.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageDevice, Result, Stamp};
use tantalum_media::ErasedZones;
use tantalum_models::baselines::{
    Clustering, ShadowKind, ShadowOptions, WalCommit, WalKind, WalOptions,
};
use tantalum_models::nand::Nand;
use tantalum_models::profile::TxSsdConfig;
use tantalum_models::tx_cache::HeaderRelease;
use tantalum_models::{DeviceConfig, HostQueue, TxCacheKind, TxCacheOptions};
use tantalum_models::{NandOptions, NandZones, SimulatedDevice};
use tantalum_runtime::{DeviceKind, LifeCycle, Virtual};

use super::replay::{Measured, fill, replay};
use super::trace::Trace;
use tantalum_replay::device_replay::Expected;

/// Maximum number of open transactions of the baselines; more than any trace has outstanding.
pub(super) const TRANSACTIONS_MAX: u32 = 32;

/// If a trace has transactions that do not fit into the redo log, WAL gets all of them in parts of
/// this share of the log: the maximum that ext3's journal allows a transaction.
const PARTS_OF_LOG: u32 = 4;

/// A device of figures 4 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// A redo log of this many pages in flash.
    Wal(u32),
    /// The same, but a commit is a record that waits for its pages.
    RecordedWal(u32),
    /// Shadow pages at the commit; the atomic-write log behaves the same until power is cut.
    TxFlash,
    /// A transactional cache of this many pages.
    TxCache(u32, HeaderRelease),
    /// The same cache of this many pages without transactions.
    NvCache(u32),
}

impl Device {
    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Device::Wal(_) => "WAL",
            Device::RecordedWal(_) => "WAL, record apart",
            Device::TxFlash => "TxFlash",
            Device::TxCache(_, HeaderRelease::WrittenBack) => "TxCache",
            Device::TxCache(_, HeaderRelease::Mapped) => "TxCache, headers until mapped",
            Device::NvCache(_) => "NVCache",
        }
    }
}

/// Sizes that all devices of an experiment share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Number of pages that the host sees.
    pub capacity_pages: u64,
    /// Number of pages of the extended cache.
    pub extended_pages: u32,
    /// Bandwidth of the link in bytes per second.
    pub link_bytes_per_second: u64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Sizes {
    /// The TxSSD's array with a transactional cache. The extended cache is part of the
    /// over-provisioned space, so that every device has the same flash for its home locations.
    pub fn tx_cache(
        &self,
        cache_pages: u32,
        release: HeaderRelease,
    ) -> Result<(DeviceConfig, TxCacheOptions)> {
        let mut config = self.plain(|_| 0)?;
        config.ftl.pages += u64::from(self.extended_pages);
        let options = TxCacheOptions {
            extended_pages: self.extended_pages,
            header_release: release,
            ..TxCacheOptions::new(cache_pages)
        };
        Ok((config, options))
    }

    /// The TxSSD's array and FTL without any cache, with `log_zones` additional zones for a redo log.
    pub fn plain(&self, log_zones: impl FnOnce(&DeviceConfig) -> u32) -> Result<DeviceConfig> {
        let mut config = TxSsdConfig::nv_cache(self.capacity_pages, 1024).device()?;
        config.nand.geometry.blocks_per_plane += log_zones(&config);
        config.link.link_bytes_per_second = self.link_bytes_per_second;
        Ok(config)
    }
}

/// Zones of a fresh array of `config`.
pub(super) fn zones(
    runtime: &Virtual,
    config: &DeviceConfig,
    seed: u64,
) -> Result<(Nand<Stamp>, NandZones<Virtual, Stamp>)> {
    let nand = Nand::new(&NandOptions { seed, ..config.nand })?;
    let zones = NandZones::new(runtime.clone(), nand.clone(), config.zones)?;
    Ok((nand, zones))
}

/// The array with a redo log's zones, and the log's settings.
pub(super) fn wal_config(sizes: &Sizes, log_pages: u32) -> Result<(DeviceConfig, WalOptions)> {
    let options = WalOptions { transactions_max: TRANSACTIONS_MAX, ..WalOptions::new(log_pages) };
    let config = sizes.plain(|config| {
        let nand = &config.nand.geometry;
        log_pages.div_ceil(nand.planes() * nand.slots_per_block()) + 1
    })?;
    Ok((config, options))
}

/// Replays `trace` on a new, aged device.
///
/// # Errors
/// Those of the device; `Corrupt` if it holds anything except the content written last.
pub(super) fn measure(device: Device, sizes: &Sizes, trace: &Rc<Trace>) -> Result<Measured> {
    let what = format!("{} on {device:?}", trace.name);
    let (sizes, trace) = (*sizes, Rc::clone(trace));
    Virtual::alone(what.clone(), move |runtime| async move {
        run(&runtime, device, &sizes, &trace).await.map_err(|error| error.wrap(what))
    })
}

async fn run(
    runtime: &Virtual,
    device: Device,
    sizes: &Sizes,
    trace: &Rc<Trace>,
) -> Result<Measured> {
    let expected = Rc::new(RefCell::new(Expected::new(sizes.capacity_pages)));
    let (pages, seed) = (sizes.capacity_pages, sizes.seed);
    match device {
        Device::Wal(log_pages) => {
            let config = wal_config(sizes, log_pages)?;
            run_wal(runtime, &config, sizes, trace, &expected).await
        }
        Device::RecordedWal(log_pages) => {
            let (config, options) = wal_config(sizes, log_pages)?;
            let config = (config, WalOptions { commit: WalCommit::Record, ..options });
            run_wal(runtime, &config, sizes, trace, &expected).await
        }
        Device::TxFlash => {
            let config = sizes.plain(|_| 0)?;
            let (nand, zones) = zones(runtime, &config, seed)?;
            let options = ShadowOptions {
                clustering: Clustering::Cycles,
                transactions_max: TRANSACTIONS_MAX,
            };
            let kind = ShadowKind { ftl: config.ftl, shadow: options };
            let shadow = kind.make(runtime, ErasedZones::new(zones)).await?;
            shadow.overlap_commits();
            fill(shadow.ftl(), &expected, pages).await?;
            on_link(runtime, shadow, &config, &nand, trace, &expected).await
        }
        Device::TxCache(cache_pages, release) => {
            let config = sizes.tx_cache(cache_pages, release)?;
            run_cache(runtime, &config, sizes, trace, &expected).await
        }
        Device::NvCache(cache_pages) => {
            let config = (sizes.plain(|_| 0)?, TxCacheOptions::nv_cache(cache_pages));
            run_cache(runtime, &config, sizes, trace, &expected).await
        }
    }
}

async fn run_wal(
    runtime: &Virtual,
    (config, options): &(DeviceConfig, WalOptions),
    sizes: &Sizes,
    trace: &Rc<Trace>,
    expected: &Rc<RefCell<Expected>>,
) -> Result<Measured> {
    let (nand, zones) = zones(runtime, config, sizes.seed)?;
    let kind = WalKind { ftl: config.ftl, wal: *options };
    let wal = kind.make(runtime, ErasedZones::new(zones)).await?;
    fill(wal.ftl(), expected, sizes.capacity_pages).await?;
    let fits = trace.pages_max <= wal.limits().transaction_pages_max;
    let parts = (!fits).then(|| Rc::new(trace.in_parts(options.log_pages / PARTS_OF_LOG)));
    let trace = parts.as_ref().unwrap_or(trace);
    on_link(runtime, wal, config, &nand, trace, expected).await
}

async fn run_cache(
    runtime: &Virtual,
    (config, options): &(DeviceConfig, TxCacheOptions),
    sizes: &Sizes,
    trace: &Rc<Trace>,
    expected: &Rc<RefCell<Expected>>,
) -> Result<Measured> {
    let (nand, zones) = zones(runtime, config, sizes.seed)?;
    let kind = TxCacheKind { ftl: config.ftl, cache: *options };
    let cache = kind.make(runtime, ErasedZones::new(zones)).await?;
    fill(cache.ftl(), expected, sizes.capacity_pages).await?;
    on_link(runtime, cache, config, &nand, trace, expected).await
}

/// Puts `device` behind the link and replays.
async fn on_link<D: LifeCycle<Page = Stamp>>(
    runtime: &Virtual,
    device: Rc<D>,
    config: &DeviceConfig,
    nand: &Nand<Stamp>,
    trace: &Rc<Trace>,
    expected: &Rc<RefCell<Expected>>,
) -> Result<Measured> {
    let linked = Rc::new(HostQueue::new(runtime.clone(), device, config.link)?);
    replay(runtime, &SimulatedDevice::new(linked), nand, trace, expected).await
}
