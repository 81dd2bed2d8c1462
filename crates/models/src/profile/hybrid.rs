//! SSDs from the time before page mapping: a translation layer with log blocks over several
//! channels, behind a link. There is one so far, the MTRON of the CFDC experiments.
use crate::NandOptions;
use crate::nand::{NandFaults, NandGeometry, NandTiming};
use crate::personality::{
    PersonalityConfig, PersonalityKind, PersonalitySpec, SimulatedPersonality,
};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result, Spec};

use crate::host_queue::{HostQueue, HostQueueOptions, Linked};

/// A translation layer of an earlier device behind a link.
pub type SimulatedHybrid<R, P> = HostQueue<R, SimulatedPersonality<P>>;

/// A kind of such SSDs at full size.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridProfile {
    /// Its name.
    pub name: &'static str,
    /// Logical pages of the whole device.
    pub pages: u64,
    /// Number of BAST's log blocks: the number of places that can be written at once.
    pub logs: u32,
    /// The array; `blocks_per_plane` follows from the capacity.
    pub nand: NandGeometry,
    /// Durations of the array.
    pub timing: NandTiming,
    /// The link.
    pub link: HostQueueOptions,
}

impl HybridProfile {
    /// MTRON MSP-SATA7525-032, 32 GB of single-level cells: 12,000 random reads and 130 random
    /// writes of 4 KiB a second (dissertation, 2.4.1, from the drive's data sheet).
    pub(super) fn mtron() -> HybridProfile {
        HybridProfile {
            name: "mtron",
            pages: 32_000_000_000 / PAGE_BYTES as u64,
            // Derived: uFLIP (Bouganim et al., CIDR 2009) finds random writes cheap as long as they
            // stay within 8 MB, which is 16 logs of 512 KiB.
            logs: 16,
            nand: NandGeometry {
                // Chosen: enough to write 120 MB/s sequentially.
                channels: 4,
                packages_per_channel: 2,
                planes_per_package: 1,
                blocks_per_plane: 0,
                // Derived: a merge copies a block in each plane, and 130 random writes a second
                // are 7.7 ms each.
                pages_per_block: 16,
                page_bytes: PAGE_BYTES as u32,
                spare_bytes: 128,
            },
            // Single-level cells as in the DFTL paper (table 1). The channel is derived: 12,000
            // random reads a second are 83 us each, of which sensing takes 25 and the link 27.
            timing: NandTiming {
                read_ns: 25_000,
                program_ns: 200_000,
                program_upper_ns: 200_000,
                erase_ns: 1_500_000,
                channel_bytes_per_second: 137_000_000,
            },
            // SATA at 1.5 Gb/s. Chosen: a request of 128 KiB is 32 commands of a page here.
            link: HostQueueOptions::at_rate(150_000_000),
        }
    }
}

/// Such an SSD at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// Layer and array.
    pub layer: PersonalityConfig,
    /// The link.
    pub link: HostQueueOptions,
}

impl HybridConfig {
    /// Parses the parameters of a device of `profile`: `capacity` or `pages`, `logs`, `layer` (`bast`, whose logs belong to one
    /// block each; `fast`, whose logs all blocks share; `block-map`, which has none), `block` (pages per block in each plane),
    /// `channels`, `packages` (per channel, with one plane each). These do not depend on the capacity.
    pub(super) fn of_profile(profile: &HybridProfile, mut spec: Spec) -> Result<HybridConfig> {
        let pages = spec.capacity_pages(1..=u64::from(u32::MAX / 2), profile.pages)?;
        let logs = spec.count("logs", 1..=65_536, u64::from(profile.logs))? as u32;
        let mut geometry = profile.nand;
        let mut more = String::new();
        let layer = match spec.word("layer", &["bast", "fast", "block-map"])? {
            "fast" => PersonalitySpec::Fast { logs },
            "block-map" => PersonalitySpec::BlockMap,
            _ => PersonalitySpec::Bast { logs },
        };
        match layer {
            PersonalitySpec::Fast { .. } => more.push_str(",layer=fast"),
            PersonalitySpec::BlockMap => more.push_str(",layer=block-map"),
            _ => {}
        }
        let shape: [(&'static str, &mut u32); 3] = [
            ("block", &mut geometry.pages_per_block),
            ("channels", &mut geometry.channels),
            ("packages", &mut geometry.packages_per_channel),
        ];
        for (key, value) in shape {
            let taken = spec.count(key, 1..=1024, u64::from(*value))? as u32;
            if taken != *value {
                more.push_str(&format!(",{key}={taken}"));
            }
            *value = taken;
        }
        spec.finish()?;
        let block_pages = geometry.planes() * geometry.pages_per_block;
        let blocks = layer.blocks_for(pages, block_pages).max(8);
        if blocks * u64::from(block_pages) > u64::from(u32::MAX) {
            let context = format!("{} with {pages} pages has more than 2^32 slots", profile.name);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        geometry.blocks_per_plane = blocks as u32;
        let name = format!("{}:pages={pages},logs={logs}{more}", profile.name);
        let (timing, faults) = (profile.timing, NandFaults::default());
        let nand = NandOptions { geometry, timing, faults, seed: 0 };
        let layer = PersonalityConfig { name: name.clone(), spec: layer, pages, nand };
        Ok(HybridConfig { name, layer, link: profile.link })
    }

    /// How the device is made and opened.
    pub fn kind(&self) -> Linked<PersonalityKind> {
        Linked { below: self.layer.kind(), link: self.link }
    }
}
