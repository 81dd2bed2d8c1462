//! The configuration of a device: a profile at one capacity.
use crate::nand::Nand;
use crate::{NandOptions, NandZones, NandZonesOptions};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, Spec};
use tantalum_ftl::{DumpOptions, FtlOptions};
use tantalum_media::{ErasedZones, ZoneGeometry};
use tantalum_runtime::{DeviceKind, Runtime};

use super::parameters::{DurableParameters, FtlParameters, cache_pages_max, command_share_pages};
use super::{DeviceSpec, Profile, memory};
use crate::host_queue::{HostQueue, HostQueueOptions, Linked};
use tantalum_ssd::{CacheKind, FlushMeaning, Ssd, SsdKind, SsdOptions};

/// Accepted words of an on/off option; the first is the default.
pub(super) const ON_OFF: [&str; 2] = ["on", "off"];
const OFF_ON: [&str; 2] = ["off", "on"];
/// The destination of cleaning's copies.
const WITH_WRITES: &str = "with-writes";
const APART: &str = "apart";

/// A device of simulated NAND behind a link.
pub type SimulatedSsd<R, P> = HostQueue<R, Ssd<ErasedZones<P>>>;

/// The configuration of a device of a profile, at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// The array. The seed is set when the device is built.
    pub nand: NandOptions,
    /// Zones over it.
    pub zones: NandZonesOptions,
    /// The FTL.
    pub ftl: FtlOptions,
    /// Write cache and transactions.
    pub ssd: SsdOptions,
    /// The link.
    pub link: HostQueueOptions,
}

impl DeviceConfig {
    /// Parses the SSD in `text`: `durassd`, `durassd:capacity=4GiB,op=0.07`. Further parameters:
    ///
    /// ```text
    /// pages          instead of `capacity`
    /// cache          pages of the write cache
    /// storage-cache  `off`: a write is acknowledged when it and its mapping are on flash
    /// barrier        `on`: a flush reaches the device
    /// flush          effect of a flush there: `order`, or `write-back` (also writes the mapping)
    /// energy         bytes that the stored energy can dump; or `capacitors`, their number
    /// quota          frames of the write cache per command, 0 for any number
    /// cleaning       how the next zone to clean is chosen: `greedy`, `cost-benefit`, `fifo`, `d-choices:8`
    /// wear_spread    maximum difference in resets between zones, 0 for no limit
    /// copies         destination of cleaning's copies: `apart`, or `with-writes`
    /// share-entries  the limit of the table of shared pages
    /// ```
    ///
    /// # Errors
    /// `InvalidInput`, with a list of the accepted values; also if the device in the text is not a
    /// [`DeviceFamily::Ssd`](super::DeviceFamily::Ssd).
    pub fn parse(text: &str) -> Result<DeviceConfig> {
        match DeviceSpec::parse(text)? {
            DeviceSpec::Ssd(config) => Ok(config),
            other => {
                let context =
                    format!("{} is a simulated device, but no SSD of a profile", other.name());
                Err(Error::new(ErrorKind::InvalidInput, context))
            }
        }
    }

    /// Parses the parameters of a device of `profile`.
    pub(super) fn of_profile(profile: &Profile, mut spec: Spec) -> Result<DeviceConfig> {
        let pages = spec.capacity_pages(1..=u64::from(u32::MAX / 2), profile.pages)?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        let usual = profile.copies_with_writes;
        let words = if usual { [WITH_WRITES, APART] } else { [APART, WITH_WRITES] };
        let copies = spec.word("copies", &words)?;
        let with_writes = copies == WITH_WRITES;
        let profile = &Profile { copies_with_writes: with_writes, ..profile.clone() };
        let mut config = profile.scaled(pages, over_provisioning)?;
        if with_writes != usual {
            config.name = format!("{},copies={copies}", config.name);
        }
        let usual = u64::from(config.ssd.cache_pages);
        let chosen = spec.count("cache", 64..=cache_pages_max(pages, usual), usual)?;
        let mut config = config.with_cache_pages(chosen as u32);
        config.name = format!("{},cache={chosen}", config.name);
        let cache_is_on = spec.word("storage-cache", &ON_OFF)? == "on";
        let durable = DurableParameters::take(profile, &mut spec)?;
        if !cache_is_on {
            durable.check_none_given(&config.name)?;
            config = config.without_storage_cache();
            config.name.push_str(",storage-cache=off");
        }
        // The effect of a flush matters only if it reaches the device.
        let barriers =
            if profile.link.barrier || durable.flush.is_some() { ON_OFF } else { OFF_ON };
        let barrier = spec.word("barrier", &barriers)? == "on";
        if barrier != profile.link.barrier {
            config.name.push_str(if barrier { ",barrier=on" } else { ",barrier=off" });
        }
        config = durable.apply(profile, config.with_barrier(barrier))?;
        let usual = u64::from(config.ssd.command_quota_pages);
        let quota = spec.count("quota", 0..=u64::from(config.ssd.cache_pages), usual)?;
        if quota != usual {
            config.name = format!("{},quota={quota}", config.name);
            config.ssd.command_quota_pages = quota as u32;
        }
        let unbounded = u64::from(u32::MAX);
        let usual = profile.share_entries_max.map_or(unbounded, u64::from);
        let entries = spec.count("share-entries", 0..=unbounded, usual)?;
        config.ftl.share_entries_max = (entries < unbounded).then_some(entries as u32);
        if entries != usual {
            config.name = format!("{},share-entries={entries}", config.name);
        }
        FtlParameters::take(&mut spec, &mut config.name)?.apply(&mut config.ftl);
        spec.finish()?;
        Ok(config)
    }

    /// The same device with its write cache switched off: a write is acknowledged when it is on
    /// flash; if the profile persists the mapping, when its mapping is on flash as well.
    pub fn without_storage_cache(mut self) -> DeviceConfig {
        let options = SsdOptions::new(CacheKind::WriteThrough, self.ssd.cache_pages);
        let persist_mapping = self.ssd.persist_mapping;
        self.ssd = SsdOptions { persist_mapping, ..options };
        self.with_dump(None)
    }

    /// The same device under a host with write barriers on or off.
    pub fn with_barrier(mut self, on: bool) -> DeviceConfig {
        self.link.barrier = on;
        // If all acknowledged writes are durable, a flush has nothing to write back.
        self.ssd.flush = if on { FlushMeaning::WriteBack } else { FlushMeaning::Order };
        self
    }

    /// The same device with a write cache of `pages` pages.
    pub fn with_cache_pages(mut self, pages: u32) -> DeviceConfig {
        let old = self.ssd;
        self.ssd = SsdOptions {
            flush: old.flush,
            recharge_ns: old.recharge_ns,
            command_quota_pages: match old.command_quota_pages {
                0 => 0,
                _ => command_share_pages(pages, self.link.depth),
            },
            persist_mapping: old.persist_mapping,
            write_back_pages_max: old.write_back_pages_max,
            write_backs_in_flight: old.write_backs_in_flight,
            ..SsdOptions::new(old.cache, pages)
        };
        let Some(dump) = self.ftl.dump else { return self };
        // The energy for frames follows their number; that for mapping entries stays the same.
        let page_bytes = PAGE_BYTES as u64;
        let entries_bytes = dump.budget_bytes - u64::from(dump.frames_max) * page_bytes;
        let least = DumpOptions::least(&self.geometry(), self.ftl.pages, pages);
        let budget_bytes = least.budget_bytes.max(entries_bytes + u64::from(pages) * page_bytes);
        self.with_dump(Some(DumpOptions { budget_bytes, ..least }))
    }

    /// The same device with another dump; the number of zones changes by the size of the dump.
    pub(super) fn with_dump(mut self, dump: Option<DumpOptions>) -> DeviceConfig {
        let geometry = self.geometry();
        // A budget that is too small is refused when the device is built.
        let zones = |ftl: &FtlOptions| ftl.dump_zones(&geometry).unwrap_or(0);
        let before = zones(&self.ftl);
        self.ftl.dump = dump;
        let blocks = &mut self.nand.geometry.blocks_per_plane;
        *blocks = *blocks - before + zones(&self.ftl);
        self
    }

    /// The geometry of the zones.
    pub fn geometry(&self) -> ZoneGeometry {
        let nand = &self.nand.geometry;
        ZoneGeometry {
            zones: nand.blocks_per_plane - self.zones.spare_blocks_per_plane,
            slots_per_zone: nand.planes() * nand.slots_per_block(),
            append_unit_slots: nand.slots_per_page(),
            append_overhead_slots: 0,
            append_pages_max: self.zones.append_pages_max,
        }
    }

    /// Number of physical page slots.
    pub(super) fn slots(&self) -> u64 {
        let geometry = self.geometry();
        u64::from(geometry.zones) * u64::from(geometry.slots_per_zone)
    }

    /// The FTL options, with `seed` for its random choices.
    pub(super) fn seeded_ftl(&self, seed: u64) -> FtlOptions {
        FtlOptions { cleaning: self.ftl.cleaning.seeded(seed), ..self.ftl }
    }

    /// How the device is made and opened; `seed` determines the random choices of its FTL.
    pub fn kind(&self, seed: u64) -> Linked<SsdKind> {
        let below = SsdKind { ftl: self.seeded_ftl(seed), ssd: self.ssd };
        Linked { below, link: self.link }
    }

    /// Makes the device, formats it and starts its tasks. `seed` determines everything random.
    pub async fn build<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<Rc<SimulatedSsd<R, P>>> {
        let zones = self.new_zones(runtime, seed, u64::from(self.ssd.cache_pages))?;
        self.kind(seed).make(runtime, ErasedZones::new(zones)).await
    }

    /// The zones over a new array. Fails if this machine lacks the memory for the device's tables
    /// and `frames` cache pages.
    pub(super) fn new_zones<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
        frames: u64,
    ) -> Result<NandZones<R, P>> {
        memory::check(&self.name, self.ftl.pages, self.slots(), frames)?;
        let nand = Nand::new(&NandOptions { seed, ..self.nand })?;
        NandZones::new(runtime.clone(), nand, self.zones)
    }
}
