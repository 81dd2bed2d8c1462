//! Devices as numbers: those of the papers, those with which they were compared, and today's. One file per paper or kind.
//!
//! ```text
//! registry   every named device: from text to a configuration to a device
//! simulated  a device of any kind
//! config     the configuration of an SSD: a profile at one capacity
//! parameters text parameters that several kinds of devices accept
//! memory     whether this machine has the memory for a device
//! durassd    DuraSSD, SSD-A, SSD-B         disk   the disk compared with them, and three others
//! open_ssd   OpenSSD                       tx_ssd TxSSD; baseline WAL, TxFlash, compared with it
//! hybrid     MTRON, with log blocks        x25_m  X25-M
//! nvme       today's drives                cloud  cloud storage
//! ```
//!
//! `docs/devices/` documents which numbers come from a paper and which are chosen.
mod baseline;
mod cloud;
mod config;
mod disk;
mod durassd;
mod hybrid;
mod memory;
mod nvme;
mod open_ssd;
mod parameters;
mod registry;
mod simulated;
mod tx_ssd;
mod x25_m;

use crate::nand::{NandFaults, NandGeometry, NandTiming};
use crate::{NandOptions, NandZonesOptions};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_ftl::{DumpOptions, FtlOptions, pages_max};
use tantalum_media::ZoneGeometry;

use crate::energy::Capacitors;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::{CacheKind, SsdOptions};

pub use baseline::{BaselineConfig, BaselineKind, SimulatedShadow, SimulatedWal};
pub use cloud::{CloudConfig, CloudProfile, SimulatedCloud};
pub use config::{DeviceConfig, SimulatedSsd};
pub use disk::{DiskConfig, DiskProfile, SimulatedDisk};
pub use hybrid::{HybridConfig, HybridProfile, SimulatedHybrid};
pub use registry::{DEVICES, DeviceEntry, DeviceFamily, DeviceSpec};
pub use simulated::{Simulated, SimulatedDevice};
pub use tx_ssd::{SimulatedTxSsd, TxSsdConfig};

/// A kind of device at full size.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Logical pages of the whole device.
    pub pages: u64,
    /// Flash beyond the logical pages, as a share of them.
    pub over_provisioning: f64,
    /// The durability of the write cache.
    pub cache: CacheKind,
    /// Size of the whole device's write cache, in pages.
    pub cache_pages: u64,
    /// Whether flushes, and writes without the cache, also write the mapping table to flash.
    pub persist_mapping: bool,
    /// The array; `blocks_per_plane` follows from the capacity.
    pub nand: NandGeometry,
    /// Durations of the array.
    pub timing: NandTiming,
    /// The link.
    pub link: HostQueueOptions,
    /// Whether a command may take no more write-cache frames than its share with a full queue.
    pub command_quota: bool,
    /// The capacitors for the dump of a durable cache. They scale with the capacity, down to the
    /// minimum that can dump the scaled cache.
    pub capacitors: Option<Capacitors>,
    /// Maximum number of entries in the table of shared pages, at any capacity; `None` for no
    /// limit.
    pub share_entries_max: Option<u32>,
    /// Whether hosts' writes follow cleaning's copies in the same zone.
    pub copies_with_writes: bool,
}

/// Minimum write cache of a scaled device, unless the whole device has less: "a buffer pool of several
/// megabytes would be good enough" (DuraSSD, section 3.1.1).
const CACHE_PAGES_MIN: u64 = 1024;
/// Minimum number of zones of a scaled device, so that cleaning works as on the whole device.
const ZONES_MIN: u64 = 128;
const PAGES_PER_BLOCK_MIN: u32 = 16;
/// If hosts' writes follow copies, this many of the zones that an FTL needs beyond its pages are taken from the device's own flash: the
/// hosts' open zone; cleaning's open zone, which becomes the hosts' next one; and one of garbage. Firmware with one log has one free
/// block and no more.
const ZONES_OF_ONE_LOG: u32 = 3;

impl Profile {
    /// This profile with `pages` logical pages, and `over_provisioning` times as much flash beyond them. Channels and planes are kept
    /// if the capacity allows it. The write cache scales with the capacity, down to 4 MiB; a smaller one is not scaled. The zones
    /// that the FTL keeps for itself are added, so that a small device cleans as much as a large one.
    ///
    /// # Errors
    /// `InvalidInput` if the capacity is too small for a device or too large for the array.
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
        let mut ftl = FtlOptions {
            share_entries_max: self.share_entries_max,
            copies_with_writes: self.copies_with_writes,
            ..FtlOptions::new(pages)
        };
        let scale = pages as f64 / self.pages as f64;
        let cache_pages = (self.cache_pages as f64 * scale) as u64;
        let least = CACHE_PAGES_MIN.min(self.cache_pages);
        let cache_pages = cache_pages.clamp(least, u64::from(u32::MAX)) as u32;
        let zone = |blocks_per_plane: u32| ZoneGeometry {
            zones: blocks_per_plane,
            slots_per_zone: nand.planes() * nand.slots_per_block(),
            append_unit_slots: nand.slots_per_page(),
            append_overhead_slots: 0,
            append_pages_max: append_pages_max(&nand),
        };
        if let Some(capacitors) = &self.capacitors {
            let least = DumpOptions::least(&zone(1), pages, cache_pages);
            let scaled_bytes = (capacitors.dump_bytes()? as f64 * scale) as u64;
            let budget_bytes = least.budget_bytes.max(scaled_bytes);
            ftl.dump = Some(DumpOptions { budget_bytes, ..least });
        }
        let dump_zones = ftl.dump_zones(&zone(1))?;
        let slots_per_zone = u64::from(zone(1).slots_per_zone);
        let slots_max = u64::from(u32::MAX) - slots_per_zone;
        let first = raw_pages.div_ceil(slots_per_zone);
        let zones_for = |pages| {
            (first..=slots_max / slots_per_zone)
                .find(|zones| pages_max(&zone(*zones as u32), dump_zones) >= pages)
                .map(|zones| zones as u32)
        };
        let zones = zones_for(raw_pages)
            .zip(zones_for(pages))
            .map(|(raw, least)| match self.copies_with_writes {
                true => raw.saturating_sub(ZONES_OF_ONE_LOG).max(least),
                false => raw + ftl.cleaning_high_zones,
            })
            .filter(|zones| u64::from(*zones) * slots_per_zone <= slots_max)
            .ok_or_else(|| refuse(format!("{} cannot have {pages} pages", self.name)))?;
        nand.blocks_per_plane = zones;
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
            ssd: SsdOptions {
                persist_mapping: self.persist_mapping,
                // Double buffering (DuraSSD, section 3.1.1), plus one in transfer. More would only
                // queue in the planes, ahead of cleaning's reads.
                write_back_pages_max: stripe_pages(&nand),
                write_backs_in_flight: 3,
                command_quota_pages: if self.command_quota {
                    parameters::command_share_pages(cache_pages, self.link.depth)
                } else {
                    0
                },
                recharge_ns: self.capacitors.map_or(0, |capacitors| capacitors.recharge_ns()),
                ..SsdOptions::new(self.cache, cache_pages)
            },
            link: self.link,
        })
    }

    /// The array's geometry for `raw_pages`: first blocks become smaller, then planes fewer.
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

/// One flash page in every plane: enough to keep the whole array busy.
fn stripe_pages(nand: &NandGeometry) -> u32 {
    nand.planes() * nand.slots_per_page()
}

/// Cleaning reads and then programs one group of pages at a time, so it needs long appends to keep
/// up with hosts.
fn append_pages_max(nand: &NandGeometry) -> u32 {
    (4 * stripe_pages(nand)).min(u32::from(u16::MAX))
}
