//! Today's NVMe drives: a consumer drive with three bits per cell, one with four, and a server drive with capacitors.
//!
//! Sources, by their names in the comments below:
//!
//! - *ISSCC*: "2021 NAND Flash Updates from ISSCC: The Leaning Towers of TLC and QLC" (AnandTech 16491, 2021), tables of the flash that these
//!   drives are made of: sensing, programming a die, planes.
//! - *990 PRO*: Samsung's data sheet of the 990 PRO, 1 TB. *FPS*: The FPS Review of that drive (2024), 82 MB/s of single random reads.
//! - *980 PRO*: TechPowerUp's review of its 1 TB predecessor: 1.5 GB/s when the SLC cache is full.
//! - *fsync*: M. Callaghan, "SSDs, power loss protection and fsync latency" (smalldatum.blogspot.com, 2026).
//! - *670p*: Intel's specification of the SSD 670p, 2 TB, from Tom's Hardware's review (2021). *P41*: Guru3D's review of the P41 Plus of 1
//!   TB, with the same flash: 262 MB/s when the SLC cache is full.
//! - *PM9A3*: Samsung's data sheet of the PM9A3, 2.5", 7.68 TB, from ComputerBase (2020) and heise (4720224).
//! - *MQSim*: `Flash_Parameter_Set.cpp` of that simulator: 3.8 ms for an erase.
//!
//! Consumer drives have a pseudo-SLC cache, to which their data sheets refer. It is not modelled: these profiles are drives whose SLC
//! cache is full.
use crate::nand::{NandGeometry, NandTiming};
use tantalum_base::PAGE_BYTES;

use super::Profile;
use crate::energy::Capacitors;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::CacheKind;

const GB: u64 = 1_000_000_000;
/// Assumed for all of them: flash pages with 16 KiB of data and 2 KiB of spare area, 1,024 of them in a
/// block.
const FLASH_PAGE_BYTES: u32 = 16_384;
const SPARE_BYTES: u32 = 2_048;
const PAGES_PER_BLOCK: u32 = 1_024;
/// MQSim.
const ERASE_NS: u64 = 3_800_000;
/// Here a read transfers a whole flash page over its channel, while a real drive transfers only the requested 4 KiB. So a channel has four
/// times the rate of the flash's pins, and single reads take the right time; programs, which transfer whole pages, wait 10 us too little.
const READ_SHARE: u64 = FLASH_PAGE_BYTES as u64 / PAGE_BYTES as u64;
/// Commands in flight: the size that Linux gives an NVMe queue.
const DEPTH: u32 = 1_023;

/// An NVMe link: flushes are queued like any command.
const fn nvme(bytes_per_second: u64) -> HostQueueOptions {
    let link = HostQueueOptions::at_rate(bytes_per_second);
    HostQueueOptions { depth: DEPTH, flush_alone: false, ..link }
}

/// Durations of flash whose programs are all alike: with three and four bits per cell, all pages of a row are programmed
/// together.
const fn timing(read_ns: u64, program_ns: u64, pins_bytes_per_second: u64) -> NandTiming {
    NandTiming {
        read_ns,
        program_ns,
        program_upper_ns: program_ns,
        erase_ns: ERASE_NS,
        channel_bytes_per_second: READ_SHARE * pins_bytes_per_second,
    }
}

impl Profile {
    /// Samsung 990 PRO of 1 TB.
    pub(super) fn nvme_tlc() -> Profile {
        Profile {
            name: "nvme-tlc",
            pages: 1_000 * GB / PAGE_BYTES as u64,
            // 1 TiB of flash; assumed.
            over_provisioning: 0.0995,
            cache: CacheKind::Volatile,
            // Assumed, out of 1 GB of DRAM that holds the mapping.
            cache_pages: (64 << 20) / PAGE_BYTES as u64,
            persist_mapping: true,
            // Sixteen dies of 512 Gb with four planes each (ISSCC), on eight channels.
            nand: NandGeometry {
                channels: 8,
                packages_per_channel: 2,
                planes_per_package: 4,
                blocks_per_plane: 0,
                pages_per_block: PAGES_PER_BLOCK,
                page_bytes: FLASH_PAGE_BYTES,
                spare_bytes: SPARE_BYTES,
            },
            // ISSCC: 40 us to sense, 2 Gb/s per pin. Its 184 MB/s per die are 356 us a page and 2.9 GB/s in all. Derived from the 980
            // PRO instead: 1.5 GB/s, because a drive whose SLC cache is full empties that at the same time.
            timing: timing(40_000, 690_000, 2_000_000_000),
            link: HostQueueOptions {
                // 990 PRO: 1,200,000 random reads a second are 833 ns each, of which the data take 550.
                link_command_ns: 283,
                // 990 PRO: 22,000 single reads a second, 80,000 single writes a second.
                command_ns: 2_300,
                write_ns: 9_400,
                // fsync: milliseconds, of which two programs are 1.4. Chosen.
                flush_ns: 1_000_000,
                ..nvme(7_450_000_000)
            },
            command_quota: false,
            capacitors: None,
            share_entries_max: None,
            copies_with_writes: false,
        }
    }

    /// Intel SSD 670p of 2 TB; Solidigm's P41 Plus has the same flash.
    pub(super) fn nvme_qlc() -> Profile {
        Profile {
            name: "nvme-qlc",
            pages: 2_000 * GB / PAGE_BYTES as u64,
            // 2 TiB of flash; assumed.
            over_provisioning: 0.0995,
            cache: CacheKind::Volatile,
            // Assumed, out of 256 MB of DRAM.
            cache_pages: (16 << 20) / PAGE_BYTES as u64,
            persist_mapping: true,
            // Sixteen dies of 1 Tb with four planes each (ISSCC), on four channels.
            nand: NandGeometry {
                channels: 4,
                packages_per_channel: 4,
                planes_per_package: 4,
                blocks_per_plane: 0,
                pages_per_block: PAGES_PER_BLOCK,
                page_bytes: FLASH_PAGE_BYTES,
                spare_bytes: SPARE_BYTES,
            },
            // ISSCC: 85 us to sense, 1.2 Gb/s per pin, and 40 MB/s per die, which is 1.64 ms a page. Derived from the P41, which reaches
            // 82 % of that with its eight dies: 2 ms.
            timing: timing(85_000, 2_000_000, 1_200_000_000),
            link: HostQueueOptions {
                // 670p: 310,000 random reads a second are 3.2 us each, of which the data take 1.2.
                link_command_ns: 2_050,
                // Assumed as for the 990 PRO. 670p: 54,000 single writes a second.
                command_ns: 2_300,
                write_ns: 13_000,
                // Assumed: none in addition to its programs, which take four milliseconds.
                flush_ns: 0,
                ..nvme(3_500_000_000)
            },
            command_quota: false,
            capacitors: None,
            share_entries_max: None,
            copies_with_writes: false,
        }
    }

    /// Samsung PM9A3 of 7.68 TB, 2.5". Its cache survives a power cut, so hosts need not flush.
    pub(super) fn nvme_plp() -> Profile {
        Profile {
            name: "nvme-plp",
            pages: 7_680 * GB / PAGE_BYTES as u64,
            // 8 TiB of flash; assumed.
            over_provisioning: 0.145,
            cache: CacheKind::Durable,
            // Assumed.
            cache_pages: (32 << 20) / PAGE_BYTES as u64,
            persist_mapping: true,
            // Dies of two planes (ISSCC). The drive has 128; derived from 3,500 MB/s sequential: only as many program at once as its power
            // allows.
            nand: NandGeometry {
                channels: 8,
                packages_per_channel: 6,
                planes_per_package: 2,
                blocks_per_plane: 0,
                pages_per_block: PAGES_PER_BLOCK,
                page_bytes: FLASH_PAGE_BYTES,
                spare_bytes: SPARE_BYTES,
            },
            // ISSCC: 45 us to sense, 1.2 Gb/s per pin, 82 MB/s per die, which is 400 us a page.
            timing: timing(45_000, 400_000, 1_200_000_000),
            link: HostQueueOptions {
                // PM9A3: 900,000 random reads a second are 1.11 us each, of which the data take 0.63.
                link_command_ns: 480,
                // Assumed: 20 us for a single write. A read then takes 69.
                command_ns: 19_000,
                write_ns: 0,
                // fsync: about ten microseconds.
                flush_ns: 12_000,
                barrier: false,
                ..nvme(6_500_000_000)
            },
            command_quota: false,
            // Assumed: twice the energy needed to dump the cache.
            capacitors: Some(Capacitors {
                count: 8,
                microfarads: 470,
                charged_millivolts: 28_000,
                empty_millivolts: 6_000,
                picojoules_per_byte: 20_000,
                charging_milliamperes: 1_000,
            }),
            share_entries_max: None,
            copies_with_writes: false,
        }
    }
}
