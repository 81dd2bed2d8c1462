//! The OpenSSD board of the SHARE paper (section 4.1): the first generation, with Indilinx's Barefoot
//! controller and Samsung's K9LCG08U1M.
use tantalum_base::PAGE_BYTES;
use tantalum_media::nand::{NandGeometry, NandTiming};

use super::Profile;
use crate::host_queue::HostQueueOptions;
use crate::options::CacheKind;

/// Section 5.1: a 4 GB drive.
const PAGES_4_GB: u64 = 4_000_000_000 / PAGE_BYTES as u64;
/// 4 GiB of flash for 4 GB; chosen.
const OVER_PROVISIONING: f64 = 0.074;
/// Section 4.2.1: 250 entries in 4 KB.
const SHARE_ENTRIES: u32 = 250;

impl Profile {
    /// The OpenSSD with page mapping and the bounded reverse map. Its DRAM is not protected: what was
    /// not flushed may be lost, and a write is atomic page by page.
    pub(super) fn open_ssd() -> Profile {
        Profile {
            name: "openssd",
            pages: PAGES_4_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Ordered,
            // Of 64 MB of DRAM (section 4.1), which holds the mapping as well; chosen.
            cache_pages: 4_000_000 / PAGE_BYTES as u64,
            // Deltas of the mapping are in the log (section 4.2.2); the table itself follows later.
            persist_mapping: false,
            capacitors: None,
            // The public firmware of the board has for this part: 8 KiB pages with 448 spare bytes,
            // 128 of them in a block, 2 planes a die, two dies side by side on a channel. Such a die
            // has 4 GiB, so that the drive is taken to be one pair of them, cut short; chosen.
            nand: NandGeometry {
                channels: 1,
                packages_per_channel: 2,
                planes_per_package: 2,
                blocks_per_plane: 0,
                pages_per_block: 128,
                page_bytes: 8192,
                spare_bytes: 448,
            },
            // Chosen: MLC flash of the time. The firmware clocks two chips together, a byte of each
            // in 30 ns.
            timing: NandTiming {
                read_ns: 60_000,
                program_ns: 1_300_000,
                program_upper_ns: 1_300_000,
                erase_ns: 3_000_000,
                channel_bytes_per_second: 66_000_000,
            },
            // Chosen: SATA 3 Gb/s, and what an ARM of 87.5 MHz (section 4.1) needs for each page. The
            // firmware as published has no command queue.
            link: HostQueueOptions {
                depth: 1,
                command_ns: 0,
                page_ns: 50_000,
                link_command_ns: 0,
                link_bytes_per_second: 250_000_000,
                flush_ns: 0,
                flush_alone: true,
                barrier: true,
            },
            share_entries_max: Some(SHARE_ENTRIES),
        }
    }
}
