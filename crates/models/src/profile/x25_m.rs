//! The Intel X25-M of 160 GB, SSDSA2MH160G1GN, used in the energy and cost-ratio experiments.
//!
//! Sources: Intel's data sheet of the first generation, which has 50 nm flash, as quoted in AnandTech's review of the second generation
//! ("The SSD Relapse", 2009); Tom's Hardware's review of the drive (2008); Micron's data sheet of flash of that process, MT29F16G08MAA. The
//! 8,600 random writes of the dissertation's 5.1.1 are of the second generation.
use crate::nand::{NandGeometry, NandTiming};
use tantalum_base::PAGE_BYTES;

use super::Profile;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::CacheKind;

/// Its name.
const PAGES_160_GB: u64 = 160_000_000_000 / PAGE_BYTES as u64;
/// Twenty packages of 8 GiB (AnandTech) for 160 GB.
const OVER_PROVISIONING: f64 = 0.0737;

/// The data rate of SATA at 3 Gb/s: 250 MB/s, as the drive is specified. Derived: 35,000 random reads a second are 28.6 us each,
/// of which the data take 16.4.
const LINK_COMMAND_NS: u64 = 12_200;
const LINK_BYTES_PER_SECOND: u64 = 250_000_000;
const PAGE_TRANSFER_NS: u64 = PAGE_BYTES as u64 * 1_000_000_000 / LINK_BYTES_PER_SECOND;
/// As the drive is specified: a write takes 115 us.
const WRITE_NS: u64 = 115_000;

impl Profile {
    /// An SSD with page mapping and almost no write cache.
    pub(super) fn x25_m() -> Profile {
        Profile {
            name: "x25-m",
            pages: PAGES_160_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Volatile,
            // The 16 MB of DRAM hold no host data (Tom's Hardware); the controller's own memory does. Its 256 KiB are
            // chosen: no available source states the size.
            cache_pages: (256 << 10) / PAGE_BYTES as u64,
            persist_mapping: false,
            nand: NandGeometry {
                // Ten channels of two packages each (the reviews). A package programs one page at a time; chosen, because the 80 GB drive,
                // with half as many chips in each package, is specified with the same rates. The rest is from the flash's data sheet,
                // except for the spare bytes.
                channels: 10,
                packages_per_channel: 2,
                planes_per_package: 1,
                blocks_per_plane: 0,
                pages_per_block: 128,
                page_bytes: PAGE_BYTES as u32,
                spare_bytes: 128,
            },
            timing: NandTiming {
                // Chosen, together with the channel: a read takes 85 us, as the drive is specified.
                read_ns: 32_000,
                // The flash's data sheet: 0.9 ms on average. Upper pages take four times as long as lower ones; chosen.
                program_ns: 360_000,
                program_upper_ns: 1_440_000,
                // The flash's data sheet.
                erase_ns: 3_500_000,
                channel_bytes_per_second: 166_000_000,
            },
            link: HostQueueOptions {
                link_command_ns: LINK_COMMAND_NS,
                write_ns: WRITE_NS - LINK_COMMAND_NS - PAGE_TRANSFER_NS,
                flush_ns: 2_000,
                ..HostQueueOptions::at_rate(LINK_BYTES_PER_SECOND)
            },
            command_quota: false,
            capacitors: None,
            share_entries_max: None,
            copies_with_writes: false,
        }
    }
}
