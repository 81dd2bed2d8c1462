//! Devices as numbers: those of the papers, those they were compared with, and those of today. One file a paper, or a kind.
//!
//! ```text
//! registry   every device that has a name: from text to a configuration to a device
//! simulated  a device of any kind
//! config     an SSD as it is built: a profile at one capacity
//! parameters what several kinds of devices take in text
//! memory     whether this machine has what a device takes
//! durassd    DuraSSD, SSD-A, SSD-B         disk   the disk beside them, and three others
//! open_ssd   OpenSSD                       tx_ssd TxSSD; baseline WAL, TxFlash beside it
//! hybrid     MTRON, behind log blocks      x25_m  X25-M
//! nvme       drives of today              cloud  storage of clouds
//! ```
//!
//! `docs/devices/` says which numbers come from a paper and which are chosen.
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
    /// Flushes, and writes without the cache, also write the mapping table down.
    pub persist_mapping: bool,
    /// The array; `blocks_per_plane` follows from the capacity.
    pub nand: NandGeometry,
    /// Durations of the array.
    pub timing: NandTiming,
    /// The link.
    pub link: HostQueueOptions,
    /// One command may take no more frames of the write cache than its share of a full queue's.
    pub command_quota: bool,
    /// What feeds the dump of a durable cache; it shrinks with the capacity, to the least with
    /// which the scaled cache can be dumped.
    pub capacitors: Option<Capacitors>,
    /// Entries of the table of shared pages, which does not shrink with the capacity; `None` lets
    /// it grow.
    pub share_entries_max: Option<u32>,
    /// Hosts write behind what cleaning copies, in the same zone.
    pub copies_with_writes: bool,
}

/// The least write cache of a scaled device, where the whole one has no less: "a buffer pool of several
/// megabytes would be good enough" (DuraSSD, section 3.1.1).
const CACHE_PAGES_MIN: u64 = 1024;
/// Zones that a scaled device has at least, so that cleaning works as on the whole device.
const ZONES_MIN: u64 = 128;
const PAGES_PER_BLOCK_MIN: u32 = 16;
/// Of the zones for which an FTL needs room beyond its pages these are of the flash that the device has, where hosts write behind
/// copies: hosts' open zone, cleaning's, which becomes hosts' next one, and one of garbage. Firmware with one log has one block free, and
/// no others.
const ZONES_OF_ONE_LOG: u32 = 3;

impl Profile {
    /// This profile with `pages` logical pages and flash of `over_provisioning` times that
    /// beyond them. Channels and planes stay where the capacity allows it; the write cache
    /// shrinks in proportion, to 4 MiB at the least, or not at all where it has no more. The zones that the FTL keeps for itself come
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
                // Double buffering (DuraSSD, section 3.1.1), and one to hand over; more would only
                // queue in the planes, before what cleaning wants to read.
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

/// One flash page in every plane: what keeps the whole array busy.
fn stripe_pages(nand: &NandGeometry) -> u32 {
    nand.planes() * nand.slots_per_page()
}

/// Cleaning moves a group of pages at a time, first reads and then programs it, so that it needs
/// long appends to keep up with hosts.
fn append_pages_max(nand: &NandGeometry) -> u32 {
    (4 * stripe_pages(nand)).min(u32::from(u16::MAX))
}
