//! Disks: the Seagate Cheetah 15K.6 of the DuraSSD paper, and the three disks of the dissertation's
//! table 4.1.
use crate::disk::{Disk, DiskOptions};
use tantalum_base::{PAGE_BYTES, Result, Spec};

use super::config::ON_OFF;
use super::parameters::cache_pages_max;
use crate::host_queue::{HostQueue, HostQueueOptions, Linked};

/// A disk behind a link.
pub type SimulatedDisk<R, P> = HostQueue<R, Disk<R, P>>;

/// A kind of disk at its full size.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskProfile {
    /// Its name.
    pub name: &'static str,
    /// The disk, with its cache on.
    pub disk: DiskOptions,
    /// The link.
    pub link: HostQueueOptions,
}

impl DiskProfile {
    /// Table 1 names the drive and its cache of 16 MB.
    pub(super) fn cheetah_15k6() -> DiskProfile {
        // Number of commands that the drive reorders; chosen: SAS leaves it to the drive.
        let depth = 128;
        DiskProfile {
            name: "cheetah-15k6",
            disk: DiskOptions {
                pages: 146_800_000_000 / PAGE_BYTES as u64,
                // "Cheetah 15K.6 SAS Product Manual" (100466193), 4.2.3: an average rotational
                // latency of 2.0 ms, and 112 to 171 MB/s sustained.
                rotation_ns: 4_000_000,
                outer_bytes_per_second: 171_000_000,
                inner_bytes_per_second: 112_000_000,
                // Chosen; neither changes the time of random accesses much.
                zones: 16,
                heads: 4,
                // As drives of this generation are specified: 3.4 ms for a read and 3.9 for a write
                // on average, 0.2 from track to track.
                seek_track_ns: 200_000,
                seek_average_ns: 3_400_000,
                write_settle_ns: 500_000,
                // Table 1, cache off, no fsync: 158 writes a second are 6.33 ms each.
                overhead_ns: 400_000,
                queue_depth: depth,
                cache_pages: 16_000_000 / PAGE_BYTES as u32,
            },
            // Manual, 4.2.3: 300 MB/s per port. The overhead of a command is in the disk's
            // overhead.
            link: HostQueueOptions { depth, ..HostQueueOptions::at_rate(300_000_000) },
        }
    }

    /// HDD1 of table 4.1, WD800AAJS: 80 GB, 7,200 turns a minute.
    pub(super) fn wd800aajs() -> DiskProfile {
        DiskProfile {
            name: "wd800aajs",
            disk: DiskOptions {
                pages: 80_000_000_000 / PAGE_BYTES as u64,
                rotation_ns: 8_333_333,
                // As such drives are specified: 8.9 ms for a read and 10.9 for a write on average,
                // 2.0 from track to track. Table A.1 has 15 ms, which is the write plus half a
                // revolution.
                seek_track_ns: 2_000_000,
                seek_average_ns: 8_900_000,
                write_settle_ns: 2_000_000,
                cache_pages: 8_000_000 / PAGE_BYTES as u32,
                ..SATA_DISK
            },
            link: SATA,
        }
    }

    /// HDD2 of table 4.1, WD1500HLFS: 150 GB, 10,000 turns a minute.
    pub(super) fn wd1500hlfs() -> DiskProfile {
        DiskProfile {
            name: "wd1500hlfs",
            disk: DiskOptions {
                pages: 150_000_000_000 / PAGE_BYTES as u64,
                rotation_ns: 6_000_000,
                // As such drives are specified: 4.2 ms for a read and 4.7 for a write on average
                // (table A.1 has 4.5); 0.75 ms from track to track.
                seek_track_ns: 750_000,
                seek_average_ns: 4_200_000,
                write_settle_ns: 500_000,
                outer_bytes_per_second: 126_000_000,
                inner_bytes_per_second: 77_000_000,
                cache_pages: 16_000_000 / PAGE_BYTES as u32,
                ..SATA_DISK
            },
            link: SATA,
        }
    }

    /// HDD3 of table 4.1, Fujitsu MBA3147RC: 147 GB, 15,000 turns a minute.
    pub(super) fn mba3147rc() -> DiskProfile {
        DiskProfile {
            name: "mba3147rc",
            disk: DiskOptions {
                pages: 147_000_000_000 / PAGE_BYTES as u64,
                // Table A.1: 2.0 ms, which is half a revolution.
                rotation_ns: 4_000_000,
                // As such drives are specified: 3.4 ms for a read and 3.9 for a write on average.
                seek_track_ns: 200_000,
                seek_average_ns: 3_400_000,
                write_settle_ns: 500_000,
                outer_bytes_per_second: 160_000_000,
                inner_bytes_per_second: 110_000_000,
                // Section 4.2.1.
                cache_pages: 16_000_000 / PAGE_BYTES as u32,
                ..SATA_DISK
            },
            link: SATA,
        }
    }
}

/// The common options of the dissertation's disks. Chosen, except for the queue depth, which is
/// that of SATA.
const SATA_DISK: DiskOptions = DiskOptions {
    pages: 0,
    rotation_ns: 0,
    zones: 16,
    heads: 2,
    outer_bytes_per_second: 95_000_000,
    inner_bytes_per_second: 50_000_000,
    seek_track_ns: 0,
    seek_average_ns: 0,
    write_settle_ns: 0,
    overhead_ns: 200_000,
    queue_depth: 32,
    cache_pages: 0,
};

/// SATA (and SAS) at 3 Gb/s. The overhead of a command is in the disk's overhead.
const SATA: HostQueueOptions = HostQueueOptions::at_rate(300_000_000);

/// The configuration of a disk at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// The disk.
    pub disk: DiskOptions,
    /// The link.
    pub link: HostQueueOptions,
}

impl DiskConfig {
    /// Parses the parameters of a disk of `profile`: `pages`, `cache` (pages of the write cache),
    /// `storage-cache` and `barrier`. A smaller disk has fewer cylinders, over the same stroke.
    pub(super) fn of_profile(profile: &DiskProfile, mut spec: Spec) -> Result<DiskConfig> {
        let (mut disk, mut link) = (profile.disk, profile.link);
        disk.pages = spec.capacity_pages(1..=1 << 40, disk.pages)?;
        let usual = u64::from(disk.cache_pages);
        let most = cache_pages_max(disk.pages, usual);
        disk.cache_pages = spec.count("cache", 1..=most, usual)? as u32;
        let cache = spec.word("storage-cache", &ON_OFF)?;
        link.barrier = spec.word("barrier", &ON_OFF)? == "on";
        spec.finish()?;
        let mut name = format!("{}:pages={},cache={}", profile.name, disk.pages, disk.cache_pages);
        if cache == "off" {
            disk.cache_pages = 0;
            name.push_str(",storage-cache=off");
        }
        if !link.barrier {
            name.push_str(",barrier=off");
        }
        Ok(DiskConfig { name, disk, link })
    }

    /// How the disk is made and opened.
    pub fn kind(&self) -> Linked<DiskOptions> {
        Linked { below: self.disk, link: self.link }
    }
}
