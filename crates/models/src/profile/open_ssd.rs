//! The OpenSSD board of the SHARE paper (section 4.1): the first generation, with Indilinx's Barefoot
//! controller and Samsung's K9LCG08U1M.
use crate::nand::{NandGeometry, NandTiming};
use tantalum_base::PAGE_BYTES;

use super::Profile;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::CacheKind;

/// Section 5.1: a 4 GB drive.
const PAGES_4_GB: u64 = 4_000_000_000 / PAGE_BYTES as u64;
/// The public firmware offers 1,953,504 of each 2,097,152 sectors: 4 GB out of 4 GiB.
const OVER_PROVISIONING: f64 = 0.074;
/// Section 4.2.1: 250 entries in 4 KB or 500 in 8 KB. A batch of 120 pages of 16 KiB needs 480.
const SHARE_ENTRIES: u32 = 500;

impl Profile {
    /// The OpenSSD with page mapping and the bounded reverse map. Its DRAM is not protected: data
    /// that was not flushed may be lost, and writes are atomic page by page.
    pub(super) fn open_ssd() -> Profile {
        Profile {
            name: "openssd",
            pages: PAGES_4_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Ordered,
            // Out of 64 MB of DRAM (section 4.1), which also holds the mapping; chosen.
            cache_pages: 4_000_000 / PAGE_BYTES as u64,
            // Without capacitors a flush ends with the log page that holds the deltas of the mapping
            // (section 4.2.2). A share's record is such a page.
            persist_mapping: true,
            command_quota: false,
            capacitors: None,
            // The board's public firmware operates the two chips of a bank in parallel, both planes
            // of each together: blocks of 1 MiB are erased four at a time, and a bank programs one
            // page at a time. 4 GiB is half of such a bank. Each page of 4 KiB takes a program of its
            // own; chosen after table 1, whose latencies imply 1.8 ms for each page written.
            nand: NandGeometry {
                channels: 1,
                packages_per_channel: 1,
                planes_per_package: 1,
                blocks_per_plane: 0,
                pages_per_block: 1024,
                page_bytes: 4096,
                spare_bytes: 224,
            },
            // Chosen: MLC flash of that time. The firmware clocks two chips together, with one byte
            // from each per 30 ns.
            timing: NandTiming {
                read_ns: 60_000,
                program_ns: 1_300_000,
                program_upper_ns: 1_300_000,
                erase_ns: 3_000_000,
                channel_bytes_per_second: 66_000_000,
            },
            // Chosen: SATA 3 Gb/s, and the time that an ARM of 87.5 MHz (section 4.1) needs per page.
            // The published firmware has no command queue.
            link: HostQueueOptions {
                depth: 1,
                page_ns: 50_000,
                ..HostQueueOptions::at_rate(250_000_000)
            },
            share_entries_max: Some(SHARE_ENTRIES),
            copies_with_writes: true,
        }
    }
}
