//! Cloud storage: a local SSD of Google's Compute Engine, and a network volume of Amazon's EBS. The providers document the
//! limits, but not the hardware.
//!
//! Sources: Google Cloud, "Optimizing persistent disk and local SSD performance" (cloud.google.com/compute/docs/disks/performance),
//! table "Block storage performance comparison", and "About local SSDs" (…/disks/local-ssd); AWS, "Amazon EBS General Purpose SSD
//! volumes" (docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html) and "Amazon EBS I/O characteristics and monitoring"
//! (…/ebs-io-characteristics.html).
use crate::metered::{Allowance, Metered, MeteredOptions, Rate};
use tantalum_base::size::Size;
use tantalum_base::{PAGE_BYTES, Result, Spec};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// 4 PiB, more than any volume for sale.
const PAGES_MAX: u64 = 1 << 40;
/// More commands a second than any volume for sale.
const COMMANDS_PER_SECOND_MAX: u64 = 10_000_000;
/// A second, more than the latency of any volume.
const LATENCY_US_MAX: u64 = 1_000_000;

/// A kind of cloud storage.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudProfile {
    /// Its name.
    pub name: &'static str,
    /// Its latencies and its allowance, at its full size.
    pub metered: MeteredOptions,
}

impl CloudProfile {
    /// A local SSD of 375 GiB over NVMe.
    pub(super) fn local_ssd() -> CloudProfile {
        CloudProfile {
            name: "cloud-local-ssd",
            metered: MeteredOptions {
                // "Each Local SSD disk is 375 GiB in size."
                pages: 375 * GIB / PAGE_BYTES as u64,
                // Assumed: reading flash with three bits per cell, and a write into a cache. The documents say "very low
                // latency".
                read_ns: 100_000,
                write_ns: 50_000,
                // Assumed: the same as a write.
                flush_ns: 50_000,
                // 453.3 read and 240 write IOPS, and 1.77 and 0.94 MB/s, for each of 375 GB. These MB are MiB: 170,000 commands of 4
                // KiB are 664 MiB a second.
                allowance: Allowance::Apart {
                    reads: Rate { commands_per_second: 170_000, bytes_per_second: 664 * MIB },
                    writes: Rate { commands_per_second: 90_000, bytes_per_second: 352 * MIB },
                },
                // Not documented; chosen: counted as EBS does.
                command_pages: COMMAND_PAGES,
            },
        }
    }

    /// A gp3 volume with the performance included in its price: 3,000 IOPS and 125 MiB/s, for reads and writes together and
    /// without bursts.
    pub(super) fn volume() -> CloudProfile {
        CloudProfile {
            name: "cloud-volume",
            metered: MeteredOptions {
                // Chosen: gp3 has 1 GiB to 64 TiB.
                pages: 1024 * GIB / PAGE_BYTES as u64,
                // "Single-digit millisecond latency": the lowest such value is assumed.
                read_ns: 1_000_000,
                write_ns: 1_000_000,
                // Assumed: one round trip.
                flush_ns: 1_000_000,
                allowance: Allowance::Shared(Rate {
                    commands_per_second: 3_000,
                    bytes_per_second: 125 * MIB,
                }),
                command_pages: COMMAND_PAGES,
            },
        }
    }
}

/// "I/O size is capped at 256 KiB for SSD volumes": a longer command counts as several.
const COMMAND_PAGES: u32 = (256 << 10) / PAGE_BYTES as u32;

/// Such a device at one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudConfig {
    /// Its name as requested, with every parameter.
    pub name: String,
    /// Its latencies and its allowance.
    pub metered: MeteredOptions,
}

impl CloudConfig {
    /// Parses the parameters of a device of `profile`: `capacity` or `pages`; for a volume also `iops`, `throughput` (bytes a second)
    /// and `latency-us` (of each command). A smaller device is equally fast.
    pub(super) fn of_profile(profile: &CloudProfile, mut spec: Spec) -> Result<CloudConfig> {
        let mut metered = profile.metered;
        metered.pages = spec.capacity_pages(1..=PAGES_MAX, metered.pages)?;
        let mut name = format!("{}:pages={}", profile.name, metered.pages);
        if let Allowance::Shared(rate) = &mut metered.allowance {
            let usual = rate.commands_per_second;
            rate.commands_per_second = spec.count("iops", 1..=COMMANDS_PER_SECOND_MAX, usual)?;
            let words = "bytes a second, with a unit, default 125MiB";
            if let Some(text) = spec.text("throughput", words) {
                let bytes = Size::parse_bytes(text).ok().filter(|bytes| *bytes > 0);
                rate.bytes_per_second = bytes.ok_or_else(|| spec.refuse("throughput", text))?;
            }
            let usual_us = metered.read_ns / 1_000;
            let latency_us = spec.count("latency-us", 1..=LATENCY_US_MAX, usual_us)?;
            let (iops, bytes) = (rate.commands_per_second, rate.bytes_per_second);
            name = format!("{name},iops={iops},throughput={bytes}B,latency-us={latency_us}");
            let latency_ns = latency_us * 1_000;
            metered = MeteredOptions {
                read_ns: latency_ns,
                write_ns: latency_ns,
                flush_ns: latency_ns,
                ..metered
            };
        }
        spec.finish()?;
        Ok(CloudConfig { name, metered })
    }
}

/// A simulated cloud device.
pub type SimulatedCloud<R, P> = Metered<R, P>;
