//! The SSDs of the DuraSSD paper: the prototype, and the two with which it was compared.
use crate::nand::{NandGeometry, NandTiming};
use tantalum_base::PAGE_BYTES;

use super::Profile;
use crate::energy::Capacitors;
use crate::host_queue::HostQueueOptions;
use tantalum_ssd::CacheKind;

/// 480 GB in pages (section 3.1.2: about 120 million mapping entries).
const PAGES_480_GB: u64 = 480_000_000_000 / PAGE_BYTES as u64;
/// 512 GiB of flash for 480 GB, as usual for drives of that size; chosen.
const OVER_PROVISIONING: f64 = 0.145;

/// Section 2.3: "8 channels, 4 packages per channel, 4 chips per package, and 2 planes per chip" is
/// the paper's example, not the prototype's geometry; a quarter of it is chosen. 8 KiB flash pages:
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

/// Multi-level cells, whose upper pages take four times as long to program as the lower ones;
/// chosen. Table 1, cache off, no fsync: 498 writes a second are 2.01 ms each. In that time the
/// page is programmed, and then a page of the mapping table: one page of each kind.
const TIMING: NandTiming = NandTiming {
    read_ns: 60_000,
    program_ns: 371_000,
    program_upper_ns: 1_484_000,
    erase_ns: 3_000_000,
    channel_bytes_per_second: 200_000_000,
};

/// Chosen: the data rate of SATA at 6 Gb/s. Table 2, read-only with 128 threads: 89,083 reads of 4
/// KiB a second are 11.2 us each, of which the data take 7.4.
const LINK: HostQueueOptions = HostQueueOptions {
    link_command_ns: 3_780,
    flush_ns: 2_000,
    ..HostQueueOptions::at_rate(550_000_000)
};

/// Section 3.1: fifteen tantalum capacitors, which allow "dozens of mega bytes". The rest is chosen:
/// 1.28 J, enough for 51 MB; the cache takes 32, changed mapping entries the rest.
const CAPACITORS: Capacitors = Capacitors {
    count: 15,
    microfarads: 470,
    charged_millivolts: 20_000,
    empty_millivolts: 6_000,
    picojoules_per_byte: 25_000,
    charging_milliamperes: 1_000,
};

impl Profile {
    /// DuraSSD, with a host that has write barriers off: a flush never reaches the device.
    pub(super) fn durassd() -> Profile {
        Profile {
            name: "durassd",
            pages: PAGES_480_GB,
            over_provisioning: OVER_PROVISIONING,
            cache: CacheKind::Durable,
            // 512 MB minus the 480 MB of the mapping table (section 3.1.2).
            cache_pages: 32_000_000 / PAGE_BYTES as u64,
            persist_mapping: true,
            nand: NAND,
            timing: TIMING,
            // Table 1, no barrier: 15,458 writes a second without fsync are 64.7 us a write, of
            // which the link takes 11.2. Table 2, fsync every 256, 16 KiB: 4,563 writes a second
            // are 219 us each, of which the link takes 33.6 and the fsync 44.
            link: HostQueueOptions { command_ns: 24_200, page_ns: 29_300, barrier: false, ..LINK },
            // Section 3.1.1: "each command may have a quota of the buffer pool".
            command_quota: true,
            capacitors: Some(CAPACITORS),
            share_entries_max: None,
            copies_with_writes: false,
        }
    }

    /// SSD-A. Its capacity and flash are not given; DuraSSD's are chosen, as both have the same
    /// write time without the cache (494 a second).
    pub(super) fn ssd_a() -> Profile {
        Profile {
            name: "ssd-a",
            cache: CacheKind::Volatile,
            command_quota: false,
            capacitors: None,
            cache_pages: 512_000_000 / PAGE_BYTES as u64,
            // Table 1, cache on: 11,681 writes a second without fsync are 85.6 us each.
            link: HostQueueOptions { command_ns: 74_300, ..LINK },
            ..Profile::durassd()
        }
    }

    /// SSD-B. Its capacity and flash are not given; DuraSSD's are chosen except for the program
    /// time, since without the cache a write takes 0.86 ms (1,157 a second).
    pub(super) fn ssd_b() -> Profile {
        Profile {
            name: "ssd-b",
            cache: CacheKind::Volatile,
            command_quota: false,
            capacitors: None,
            cache_pages: 128_000_000 / PAGE_BYTES as u64,
            timing: NandTiming { program_ns: 132_000, program_upper_ns: 528_000, ..TIMING },
            // Table 1, cache on: 8,456 writes a second without fsync are 118 us each; 655 with an
            // fsync after each are 1.53 ms, of which each flush takes 0.2 and the rest is programs
            // and transfers.
            link: HostQueueOptions { command_ns: 107_000, flush_ns: 200_000, ..LINK },
            ..Profile::durassd()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::DeviceConfig;

    #[test]
    fn every_size_of_the_profile_has_the_energy_for_its_cache() {
        for text in [
            "durassd",
            "durassd:cache=64",
            "durassd:cache=200k",
            "durassd:capacity=64MiB,op=0.07",
            "durassd:capacity=8GiB,cache=64k",
        ] {
            let config = DeviceConfig::parse(text).unwrap();
            config
                .ftl
                .check(&config.geometry(), 0)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let dump = config.ftl.dump.expect("a durable cache has energy");
            assert_eq!(dump.frames_max, config.ssd.cache_pages, "{text}");
            assert!(config.ssd.recharge_ns > 0, "{text}");
        }
        let whole = DeviceConfig::parse("durassd").unwrap();
        let dump = whole.ftl.dump.unwrap();
        assert!((48_000_000..52_000_000).contains(&dump.budget_bytes), "{dump:?}");
        for text in ["durassd:storage-cache=off", "ssd-a", "ssd-b", "openssd"] {
            assert_eq!(DeviceConfig::parse(text).unwrap().ftl.dump, None, "{text}");
        }
    }
}
