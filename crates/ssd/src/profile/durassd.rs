//! The SSDs of the DuraSSD paper: the prototype, and the two it was compared with.
use tantalum_base::PAGE_BYTES;
use tantalum_media::nand::{NandGeometry, NandTiming};

use super::Profile;
use crate::host_queue::HostQueueOptions;
use crate::options::CacheKind;

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
    /// DuraSSD with write barriers off: a flush never reaches the device.
    pub(super) fn durassd() -> Profile {
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
            share_entries_max: None,
        }
    }

    /// SSD-A, storage cache on. Its capacity and flash are not told; chosen as DuraSSD's.
    pub(super) fn ssd_a() -> Profile {
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
    pub(super) fn ssd_b() -> Profile {
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
}
