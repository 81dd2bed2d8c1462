//! Devices as numbers: the DuraSSD of the paper and the SSDs that it was compared with.
//!
//! `docs/devices.md` says which numbers come from the paper (DuraSSD: Durable Cache in SSD,
//! sections 2 to 4, tables 1 and 2) and which are chosen.
use std::rc::Rc;
use tantalum_base::size::Size;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Payload, Result, Spec};
use tantalum_ftl::{Ftl, FtlOptions, pages_max};
use tantalum_media::nand::{Nand, NandFaults, NandGeometry, NandTiming};
use tantalum_media::{NandOptions, NandZones, NandZonesOptions, ZoneGeometry};
use tantalum_runtime::Runtime;

use crate::host_queue::{HostQueue, HostQueueOptions};
use crate::options::{CacheKind, SsdOptions};
use crate::ssd::Ssd;

/// A device of simulated NAND behind a link.
pub type SimulatedSsd<R, P> = HostQueue<R, Ssd<NandZones<R, P>>>;

/// A kind of device at its full size.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Logical pages of the whole device.
    pub pages: u64,
    /// Flash beyond the logical pages, as a share of them.
    pub over_provisioning: f64,
    /// How the write cache keeps its promise.
    pub cache: CacheKind,
    /// Pages of the write cache of the whole device.
    pub cache_pages: u64,
    /// The array; `blocks_per_plane` follows from the capacity.
    pub nand: NandGeometry,
    /// Durations of the array.
    pub timing: NandTiming,
    /// The link.
    pub link: HostQueueOptions,
}

/// What a device of a profile is made with, at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// As it was asked for, with every parameter.
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

/// The least write cache of a scaled device: "a buffer pool of several megabytes would be good
/// enough" (section 3.1.1).
const CACHE_PAGES_MIN: u64 = 1024;
/// Zones that a scaled device has at least, so that cleaning works as on the whole device.
const ZONES_MIN: u64 = 128;
const PAGES_PER_BLOCK_MIN: u32 = 16;

/// 480 GB in pages (section 3.1.2: 120 million mapping entries, roughly).
const PAGES_480_GB: u64 = 480_000_000_000 / PAGE_BYTES as u64;
/// 512 GiB of flash for 480 GB, as drives of that size are made; chosen.
const OVER_PROVISIONING: f64 = 0.145;

/// Section 2.3: "8 channels, 4 packages per channel, 4 chips per package, and 2 planes per chip"
/// is the paper's example, not the prototype's shape; chosen is a quarter of it. 8 KiB flash pages:
/// section 3.1.2.
const NAND: NandGeometry = NandGeometry {
    channels: 8,
    packages_per_channel: 4,
    planes_per_package: 2,
    blocks_per_plane: 0,
    pages_per_block: 256,
    page_bytes: 8192,
    spare_bytes: 448,
};

/// Chosen: MLC flash of the time.
const TIMING: NandTiming = NandTiming {
    read_ns: 60_000,
    program_ns: 1_300_000,
    erase_ns: 3_000_000,
    channel_bytes_per_second: 200_000_000,
};

/// Table 2, read-only with 128 threads: 16 KiB at 29,870 a second are 489 MB/s of the link, and
/// what 4 KiB at 89,083 a second take beyond that rate is 2.9 µs a command.
const LINK: HostQueueOptions = HostQueueOptions {
    depth: 32,
    command_ns: 0,
    link_command_ns: 2_860,
    link_bytes_per_second: 489_000_000,
    flush_ns: 0,
    flush_alone: true,
};

impl Profile {
    /// The accepted names.
    pub const NAMES: &'static [&'static str] = &["durassd", "ssd-a", "ssd-b"];

    /// The profile called `name`.
    ///
    /// # Errors
    /// `InvalidInput`, which lists the names.
    pub fn by_name(name: &str) -> Result<Profile> {
        Ok(match name {
            "durassd" => Profile::durassd(),
            "ssd-a" => Profile::ssd_a(),
            "ssd-b" => Profile::ssd_b(),
            _ => return Err(Spec::parse(name)?.unknown_name("device profile", Profile::NAMES)),
        })
    }

    /// DuraSSD with write barriers off: a flush never reaches the device.
    fn durassd() -> Profile {
        Profile {
            name: "durassd",
            pages: PAGES_480_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Durable,
            // 512 MB less the 480 MB of the mapping table (section 3.1.2).
            cache_pages: 32_000_000 / PAGE_BYTES as u64,
            nand: NAND,
            timing: TIMING,
            // Table 1, no barrier: 15,458 writes a second without fsync are 64.7 µs a write, of
            // which the link takes 11.2; 14,484 with an fsync after each are 4.3 µs an fsync.
            link: HostQueueOptions {
                command_ns: 53_400,
                flush_ns: 4_300,
                flush_alone: false,
                ..LINK
            },
        }
    }

    /// SSD-A, storage cache on. Its capacity and flash are not told; chosen as DuraSSD's.
    fn ssd_a() -> Profile {
        Profile {
            name: "ssd-a",
            cache: CacheKind::Volatile,
            cache_pages: 512_000_000 / PAGE_BYTES as u64,
            // Table 1: 11,681 writes a second without fsync are 85.6 µs each; 256 with one after
            // each are 3.9 ms, of which the program of the page takes about 1.33.
            link: HostQueueOptions { command_ns: 74_300, flush_ns: 2_490_000, ..LINK },
            ..Profile::durassd()
        }
    }

    /// SSD-B, storage cache on. Its capacity and flash are not told; chosen as DuraSSD's, but
    /// quicker to program, since its fsync of one page takes 1.4 ms in all.
    fn ssd_b() -> Profile {
        Profile {
            name: "ssd-b",
            cache: CacheKind::Volatile,
            cache_pages: 128_000_000 / PAGE_BYTES as u64,
            timing: NandTiming { program_ns: 800_000, ..TIMING },
            // Table 1: 8,456 writes a second without fsync are 118 µs each; 655 with one after
            // each are 1.53 ms.
            link: HostQueueOptions { command_ns: 107_000, flush_ns: 580_000, ..LINK },
            ..Profile::durassd()
        }
    }

    /// This profile with `pages` logical pages and flash of `over_provisioning` times that
    /// beyond them. Channels and planes stay where the capacity allows it; the write cache
    /// shrinks in proportion, to 4 MiB at the least. The zones that the FTL keeps for itself come
    /// on top, so that a small device cleans as much as a large one.
    ///
    /// # Errors
    /// `InvalidInput` where the capacity is too small for a device or too large for the array.
    pub fn scaled(&self, pages: u64, over_provisioning: f64) -> Result<DeviceConfig> {
        let refuse = |problem: String| Error::new(ErrorKind::InvalidInput, problem);
        if !(0.0..=8.0).contains(&over_provisioning) || pages == 0 {
            return Err(refuse(format!(
                "{} with {pages} pages and over-provisioning {over_provisioning}: accepted are \
                 at least one page and 0 to 8",
                self.name
            )));
        }
        let raw_pages = pages + (pages as f64 * over_provisioning).ceil() as u64;
        let mut nand = self.shape(raw_pages);
        let ftl = FtlOptions::new(pages);
        let zone = |blocks_per_plane: u32| ZoneGeometry {
            zones: blocks_per_plane,
            slots_per_zone: nand.planes() * nand.slots_per_block(),
            append_unit_slots: nand.slots_per_page(),
            append_overhead_slots: 0,
            append_pages_max: append_pages_max(&nand),
        };
        let slots_per_zone = u64::from(zone(1).slots_per_zone);
        let slots_max = u64::from(u32::MAX) - slots_per_zone;
        let first = raw_pages.div_ceil(slots_per_zone);
        let zones = (first..=slots_max / slots_per_zone)
            .find(|zones| pages_max(&zone(*zones as u32), 0) >= raw_pages)
            .map(|zones| zones as u32 + ftl.cleaning_high_zones)
            .filter(|zones| u64::from(*zones) * slots_per_zone <= slots_max)
            .ok_or_else(|| refuse(format!("{} cannot have {pages} pages", self.name)))?;
        nand.blocks_per_plane = zones;
        let cache_pages = (self.cache_pages as f64 * (pages as f64 / self.pages as f64)) as u64;
        let cache_pages = cache_pages.clamp(CACHE_PAGES_MIN, u64::from(u32::MAX));
        Ok(DeviceConfig {
            name: format!("{}:pages={pages},op={over_provisioning}", self.name),
            nand: NandOptions {
                geometry: nand,
                timing: self.timing,
                faults: NandFaults::default(),
                seed: 0,
            },
            zones: NandZonesOptions {
                spare_blocks_per_plane: 0,
                append_pages_max: append_pages_max(&nand),
            },
            ftl,
            ssd: SsdOptions::new(self.cache, cache_pages as u32),
            link: self.link,
        })
    }

    /// The array's shape for `raw_pages`: blocks shrink first, then planes become fewer.
    fn shape(&self, raw_pages: u64) -> NandGeometry {
        let mut nand = self.nand;
        let zones = |nand: &NandGeometry| {
            raw_pages / (u64::from(nand.planes()) * u64::from(nand.slots_per_block()))
        };
        while zones(&nand) < ZONES_MIN && nand.pages_per_block > PAGES_PER_BLOCK_MIN {
            nand.pages_per_block /= 2;
        }
        let parts: [fn(&mut NandGeometry) -> &mut u32; 3] = [
            |nand| &mut nand.packages_per_channel,
            |nand| &mut nand.planes_per_package,
            |nand| &mut nand.channels,
        ];
        for part in parts {
            while zones(&nand) < ZONES_MIN && *part(&mut nand) > 1 {
                *part(&mut nand) /= 2;
            }
        }
        nand
    }
}

/// One flash page in every plane, so that an append keeps the whole array busy.
fn append_pages_max(nand: &NandGeometry) -> u32 {
    nand.planes() * nand.slots_per_page()
}

impl DeviceConfig {
    /// Makes the device that `text` names: `durassd`, `durassd:capacity=4GiB,op=0.07`. Also takes
    /// `pages` instead of `capacity`, and `cache` (pages of the write cache).
    ///
    /// # Errors
    /// `InvalidInput`, which lists what is accepted.
    pub fn parse(text: &str) -> Result<DeviceConfig> {
        let (text, capacity_pages) = take_capacity(text)?;
        let mut spec = Spec::parse(&text)?;
        let profile = Profile::by_name(spec.name())
            .map_err(|_| spec.unknown_name("device profile", Profile::NAMES))?;
        let pages_max = u64::from(u32::MAX / 2);
        let pages = spec.count("pages", 1..=pages_max, capacity_pages.unwrap_or(profile.pages))?;
        let over_provisioning = spec.number("op", 0.0..=8.0, profile.over_provisioning)?;
        let mut config = profile.scaled(pages, over_provisioning)?;
        let cache_pages = u64::from(config.ssd.cache_pages);
        let chosen = spec.count("cache", 64..=u64::from(u32::MAX / 2), cache_pages)?;
        spec.finish()?;
        config.ssd = SsdOptions::new(config.ssd.cache, chosen as u32);
        config.name = format!("{},cache={chosen}", config.name);
        Ok(config)
    }

    /// The same device with room for `pages` pages in its write cache.
    pub fn with_cache_pages(mut self, pages: u32) -> DeviceConfig {
        self.ssd = SsdOptions::new(self.ssd.cache, pages);
        self
    }

    /// Makes the device, formats it and starts its tasks. What is left to chance comes from
    /// `seed`.
    pub async fn build<R: Runtime, P: Payload>(
        &self,
        runtime: &R,
        seed: u64,
    ) -> Result<Rc<SimulatedSsd<R, P>>> {
        let nand = Nand::new(&NandOptions { seed, ..self.nand })?;
        let zones = NandZones::new(runtime.clone(), nand, self.zones)?;
        let ftl = Ftl::format(zones, self.ftl).await?;
        let ssd = Rc::new(Ssd::new(ftl, self.ssd, None)?);
        ssd.start(runtime);
        Ok(Rc::new(HostQueue::new(runtime.clone(), ssd, self.link)?))
    }
}

/// Takes `capacity=4GiB` out of the text: sizes in bytes are no business of [`Spec`].
fn take_capacity(text: &str) -> Result<(String, Option<u64>)> {
    let Some((name, rest)) = text.split_once(':') else { return Ok((text.to_owned(), None)) };
    let mut pages = None;
    let mut kept = Vec::new();
    for part in rest.split(',') {
        match part.trim().strip_prefix("capacity=") {
            None => kept.push(part),
            Some(size) if pages.is_none() => {
                pages = Some(Size::parse_bytes(size)? / PAGE_BYTES as u64);
            }
            Some(_) => {
                let context = format!("{text:?}: \"capacity\" is given twice");
                return Err(Error::new(ErrorKind::InvalidInput, context));
            }
        }
    }
    Ok((format!("{name}:{}", kept.join(",")), pages))
}
