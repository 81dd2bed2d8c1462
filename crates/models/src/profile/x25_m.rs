//! The Intel X25-M of 160 GB, SSDSA2MH160G1GN, of the energy and cost-ratio experiments.
use crate::nand::{NandGeometry, NandTiming};
use tantalum_base::PAGE_BYTES;

use super::Profile;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::CacheKind;

/// Its name.
const PAGES_160_GB: u64 = 160_000_000_000 / PAGE_BYTES as u64;
/// Derived: 8,600 random writes a second over the whole span (5.1.1, from the data sheet).
const OVER_PROVISIONING: f64 = 0.10;

impl Profile {
    /// An SSD behind a page mapping, whose random writes are no weakness: 35,000 random reads and
    /// 8,600 random writes of 4 KiB a second (dissertation, 5.1.1), a write 4.5 times as long as a
    /// read with the cache off (5.3.3).
    pub(super) fn x25_m() -> Profile {
        Profile {
            name: "x25-m",
            pages: PAGES_160_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Volatile,
            // The drive has 16 MB of DRAM, and is said to keep no host data there; chosen.
            cache_pages: 16_000_000 / PAGE_BYTES as u64,
            persist_mapping: false,
            nand: NandGeometry {
                // Ten channels (as reviews of the drive describe it); the rest is chosen.
                channels: 10,
                packages_per_channel: 2,
                planes_per_package: 1,
                blocks_per_plane: 0,
                pages_per_block: 128,
                page_bytes: PAGE_BYTES as u32,
                spare_bytes: 128,
            },
            timing: NandTiming {
                // Chosen, with the channel: a read of 85 us, as the drive is sold.
                read_ns: 32_000,
                // Derived: a write with the cache off takes 4.5 times as long as a read (5.3.3).
                // Upper pages take four times as long as lower ones; chosen.
                program_ns: 132_000,
                program_upper_ns: 528_000,
                erase_ns: 2_000_000,
                channel_bytes_per_second: 166_000_000,
            },
            // What SATA at 3 Gb/s leaves for data: 250 MB/s, as the drive is sold. Derived: 35,000
            // random reads a second are 28.6 us each, of which the data take 16.4.
            link: HostQueueOptions {
                link_command_ns: 12_200,
                flush_ns: 2_000,
                ..HostQueueOptions::at_rate(250_000_000)
            },
            command_quota: false,
            capacitors: None,
            share_entries_max: None,
            copies_with_writes: false,
        }
    }
}
