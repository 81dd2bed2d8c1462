//! The TxSSD of the TxCache paper (table II), with or without its transactional cache.
use crate::NandZones;
use crate::nand::{NandGeometry, NandTiming};
use std::rc::Rc;
use tantalum_base::{Error, PAGE_BYTES, Payload, Result, Spec};
use tantalum_ftl::FtlOptions;
use tantalum_media::ErasedZones;
use tantalum_policy::CleaningSpec;
use tantalum_runtime::{DeviceKind, Runtime};

use super::parameters::{FtlParameters, cache_pages_max};
use super::{DeviceConfig, Profile};
use crate::host_queue::{HostQueue, HostQueueOptions, Linked};
use crate::tx_cache::{HeaderRelease, TxCache, TxCacheKind, TxCacheOptions};
use tantalum_ssd::CacheKind;

/// Table II.
const PAGES_32_GB: u64 = (32 << 30) / PAGE_BYTES as u64;
/// Section IV-A.
const CACHE_PAGES_32_MB: u64 = (32 << 20) / PAGE_BYTES as u64;
/// Table II: cleaning starts below this share of free zones.
const CLEANING_THRESHOLD_PERCENT: u32 = 5;
/// Not given; chosen.
const OVER_PROVISIONING: f64 = 0.15;

/// A TxCache over simulated NAND behind a link.
pub type SimulatedTxSsd<R, P> = HostQueue<R, TxCache<R, ErasedZones<P>>>;

impl Profile {
    /// The TxSSD of table II without the transactional cache: with a durable write cache of the
    /// same size.
    pub fn tx_ssd() -> Profile {
        Profile {
            name: "txssd",
            pages: PAGES_32_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Durable,
            cache_pages: CACHE_PAGES_32_MB,
            persist_mapping: false,
            // Table II: 8 packages of 8 planes, blocks of 64 pages of 4 KiB. One channel per
            // package; chosen.
            nand: NandGeometry {
                channels: 8,
                packages_per_channel: 1,
                planes_per_package: 8,
                blocks_per_plane: 0,
                pages_per_block: 64,
                page_bytes: 4096,
                spare_bytes: 128,
            },
            // Table II. The channel is not given; 25 ns a byte is chosen.
            timing: NandTiming {
                read_ns: 25_000,
                program_ns: 200_000,
                program_upper_ns: 200_000,
                erase_ns: 1_500_000,
                channel_bytes_per_second: 40_000_000,
            },
            // Not given. Section III-A names SATA's command queue; chosen: the rate of SATA's
            // second generation and no other cost.
            link: HostQueueOptions { flush_alone: false, ..HostQueueOptions::at_rate(300_000_000) },
            command_quota: false,
            capacitors: None,
            share_entries_max: None,
            copies_with_writes: false,
        }
    }
}

/// A TxSSD at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct TxSsdConfig {
    /// Its name as requested, with every parameter; without parameters if it was not made from
    /// text.
    pub name: String,
    /// Number of pages that the host sees.
    pub capacity_pages: u64,
    /// Flash beyond those pages (and the extended cache), as a share.
    pub over_provisioning: f64,
    /// The transactional cache.
    pub cache: TxCacheOptions,
    /// The cleaning policy of the flash.
    pub cleaning: CleaningSpec,
    /// Maximum difference in resets between zones of the flash; `u32::MAX` switches levelling off.
    pub wear_spread_max: u32,
    /// The link.
    pub link: HostQueueOptions,
}

impl TxSsdConfig {
    /// Table II at a capacity of `capacity_pages`, with a cache of `cache_pages` pages.
    pub fn new(capacity_pages: u64, cache_pages: u32) -> Self {
        let Profile { over_provisioning, link, .. } = Profile::tx_ssd();
        let cache = TxCacheOptions::new(cache_pages);
        let name = "txssd".to_owned();
        let FtlOptions { cleaning, wear_spread_max, .. } = FtlOptions::new(capacity_pages);
        TxSsdConfig {
            name,
            capacity_pages,
            over_provisioning,
            cache,
            cleaning,
            wear_spread_max,
            link,
        }
    }

    /// The same device as the paper's NVCache, without transactions.
    pub fn nv_cache(capacity_pages: u64, cache_pages: u32) -> Self {
        TxSsdConfig {
            name: "nvcache".to_owned(),
            cache: TxCacheOptions::nv_cache(cache_pages),
            ..TxSsdConfig::new(capacity_pages, cache_pages)
        }
    }

    /// Parses the parameters of a device of `kind`: `capacity` or `pages`, `op`, `cache` (pages of the
    /// cache), `cleaning`, `wear_spread`; with transactions also `extended` (pages of the extended
    /// cache, by default as many as the cache has), `transactions` and `headers` (their numbers),
    /// `release` (of headers: `written-back` or `mapped`).
    pub(super) fn of_spec(kind: fn(u64, u32) -> Self, mut spec: Spec) -> Result<TxSsdConfig> {
        let profile = Profile::tx_ssd();
        let pages = spec.capacity_pages(1..=u64::from(u32::MAX / 2), profile.pages)?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        // In proportion to the capacity, as for any profile.
        let usual = u64::from(profile.scaled(pages, over_provisioning)?.ssd.cache_pages);
        // Cache and extended cache have at most 2^30 pages.
        let most = cache_pages_max(pages, usual).min(1 << 29);
        let cache = spec.count("cache", 64..=most, usual)? as u32;
        let mut config = TxSsdConfig { over_provisioning, ..kind(pages, cache) };
        config.name = format!("{}:pages={pages},op={over_provisioning},cache={cache}", config.name);
        if config.cache.transactions_max > 0 {
            config.take_transactions(&mut spec)?;
        }
        let mut ftl = FtlOptions::new(pages);
        FtlParameters::take(&mut spec, &mut config.name)?.apply(&mut ftl);
        (config.cleaning, config.wear_spread_max) = (ftl.cleaning, ftl.wear_spread_max);
        spec.finish()?;
        config.cache.check().map_err(|error| error.wrap(config.name.clone()))?;
        config.device()?;
        Ok(config)
    }

    /// Takes the parameters that only a cache with transactions has.
    fn take_transactions(&mut self, spec: &mut Spec) -> Result<()> {
        let cache = &mut self.cache;
        let most = u64::from(cache.cache_pages).max(self.capacity_pages).min(1 << 29);
        let mut take = |key, least, most, value: &mut u32| {
            let usual = u64::from(*value);
            let taken = spec.count(key, least..=most, usual)?;
            *value = taken as u32;
            if taken != usual {
                self.name.push_str(&format!(",{key}={taken}"));
            }
            Ok::<_, Error>(())
        };
        take("extended", 0, most, &mut cache.extended_pages)?;
        take("transactions", 1, 1 << 16, &mut cache.transactions_max)?;
        // Each open transaction needs a header.
        cache.headers = cache.headers.max(cache.transactions_max);
        take("headers", u64::from(cache.transactions_max), 1 << 20, &mut cache.headers)?;
        let release = spec.word("release", &["written-back", "mapped"])?;
        if release == "mapped" {
            cache.header_release = HeaderRelease::Mapped;
            self.name.push_str(",release=mapped");
        }
        Ok(())
    }

    /// Array, zones and FTL of this device, and for comparison a plain SSD with a durable cache of
    /// the same size on them. The FTL's logical pages include the extended cache.
    ///
    /// # Errors
    /// `InvalidInput` if the capacity is too small for a device or too large for the array.
    pub fn device(&self) -> Result<DeviceConfig> {
        let pages = self.capacity_pages + u64::from(self.cache.extended_pages);
        let device = Profile::tx_ssd().scaled(pages, self.over_provisioning)?;
        let mut device = device.with_cache_pages(self.cache.cache_pages);
        let zones = device.nand.geometry.blocks_per_plane;
        device.ftl.cleaning_low_zones = (zones * CLEANING_THRESHOLD_PERCENT).div_ceil(100);
        device.ftl.cleaning_high_zones = device.ftl.cleaning_low_zones + 2;
        (device.ftl.cleaning, device.ftl.wear_spread_max) = (self.cleaning, self.wear_spread_max);
        device.link = self.link;
        Ok(device)
    }

    /// Makes the device, formats it and starts its tasks. `seed` determines everything random.
    ///
    /// # Errors
    /// `InvalidInput` if the configuration is not valid.
    pub async fn build<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<Rc<SimulatedTxSsd<R, P>>> {
        let (kind, zones) = (self.kind(seed)?, self.new_zones(runtime, seed)?);
        kind.make(runtime, ErasedZones::new(zones)).await
    }

    /// How the device is made and opened; `seed` determines the random choices of its FTL.
    ///
    /// # Errors
    /// As [`device`](Self::device).
    pub fn kind(&self, seed: u64) -> Result<Linked<TxCacheKind>> {
        let below = TxCacheKind { ftl: self.device()?.seeded_ftl(seed), cache: self.cache };
        Ok(Linked { below, link: self.link })
    }

    /// The zones over a new array.
    pub(super) fn new_zones<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<NandZones<R, P>> {
        let frames = u64::from(self.cache.cache_pages) + u64::from(self.cache.extended_pages);
        let device = DeviceConfig { name: self.name.clone(), ..self.device()? };
        device.new_zones(runtime, seed, frames)
    }
}
