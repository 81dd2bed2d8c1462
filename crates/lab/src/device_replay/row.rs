//! What a replay on a device gives.
use hdrhistogram::Histogram;
use tantalum_base::{Error, ErrorKind, Result, Stamp};
use tantalum_ftl::{Ftl, FtlStatistics};
use tantalum_models::NandZones;
use tantalum_models::nand::NandCounters;
use tantalum_models::personality::PersonalityStatistics;
use tantalum_models::tx_cache::TxCacheStatistics;
use tantalum_models::{DeviceSpec, SimulatedDevice};
use tantalum_runtime::{Runtime, Virtual};
use tantalum_ssd::SsdStatistics;
use tantalum_trace::PageEvent;

use super::trace::DeviceTrace;
use super::{Device, DeviceReplayOptions};

/// Latencies of one kind of request, in nanoseconds of virtual time; the percentiles are exact to
/// three decimal digits. All 0 where there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Requests.
    pub requests: u64,
    /// Half of them took at most this long.
    pub p50_ns: u64,
    /// 99 of 100 took at most this long.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What a power loss would have to dump, of a device with stored energy for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Most bytes at any time since the device was made.
    pub bytes_max: u64,
    /// Bytes that there is energy for.
    pub budget_bytes: u64,
    /// Delta pages that the replay wrote, so that a dump need not hold their mapping entries.
    pub delta_pages: u64,
}

/// One trace on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReplayRow {
    /// The trace's name.
    pub trace: String,
    /// The device, with every parameter.
    pub device: String,
    /// Clients.
    pub clients: u32,
    /// Pages of the device's write cache.
    pub cache_pages: u32,
    /// Pages read and written; a request of several pages counts as many.
    pub requests: u64,
    /// Pages read that were not in the write cache.
    pub misses: u64,
    /// Virtual time that the replay took, in seconds.
    pub seconds: f64,
    /// `requests` a virtual second.
    pub requests_per_s: f64,
    /// Latencies of reads.
    pub read: Latency,
    /// Latencies of writes.
    pub write: Latency,
    /// Latencies of trims.
    pub trim: Latency,
    /// Latencies of commit points.
    pub commit: Latency,
    /// Device transactions committed.
    pub transactions: u64,
    /// Times that a transaction of the trace was longer than the device allows.
    pub transactions_split: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Flash pages sensed, for hosts and for cleaning.
    pub physical_reads: u64,
    /// Flash pages programmed, for any reason.
    pub physical_writes: u64,
    /// Places of 4 KiB programmed a page that the host wrote; 0 without writes.
    pub write_amplification: f64,
    /// Blocks erased.
    pub erases: u64,
    /// Zones that cleaning emptied; 0 of layers that merge.
    pub zones_cleaned: u64,
    /// Pages that cleaning moved.
    pub pages_moved: u64,
    /// `None` where no stored energy dumps anything.
    pub dump: Option<Dump>,
}

/// What takes longer counts as this: a week.
const LATENCY_MAX_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;

/// What the clients count.
#[derive(Clone)]
pub(super) struct Tally {
    pages: u64,
    read: Histogram<u64>,
    write: Histogram<u64>,
    trim: Histogram<u64>,
    commit: Histogram<u64>,
    pub(super) transactions: u64,
    pub(super) transactions_split: u64,
}

impl Tally {
    pub(super) fn new() -> Result<Self> {
        let histogram = || {
            Histogram::new_with_max(LATENCY_MAX_NS, 3).map_err(|error| {
                Error::with_source(ErrorKind::InvalidInput, "latency histogram", error)
            })
        };
        Ok(Tally {
            pages: 0,
            read: histogram()?,
            write: histogram()?,
            trim: histogram()?,
            commit: histogram()?,
            transactions: 0,
            transactions_split: 0,
        })
    }

    pub(super) fn note(&mut self, event: &PageEvent, latency_ns: u64) {
        let (histogram, pages) = match event {
            PageEvent::Read { pages, .. } => (&mut self.read, *pages),
            PageEvent::Write { pages, .. } => (&mut self.write, *pages),
            PageEvent::Trim { .. } => (&mut self.trim, 0),
            PageEvent::Commit => (&mut self.commit, 0),
        };
        histogram.saturating_record(latency_ns);
        self.pages += u64::from(pages);
    }
}

/// What the device has counted at one moment.
#[derive(Default)]
pub(super) struct Counters {
    now_ns: u64,
    pages_read: u64,
    read_hits: u64,
    pages_written: u64,
    flushes: u64,
    /// The FTL's; all 0 of a disk.
    slots_programmed: u64,
    zones_cleaned: u64,
    pages_moved: u64,
    dump: Option<Dump>,
    /// A disk's accesses count as flash pages.
    nand: NandCounters,
}

impl Counters {
    pub(super) fn of(runtime: &Virtual, device: &Device) -> Self {
        let now_ns = runtime.now_ns();
        match device {
            SimulatedDevice::Ssd(device) => {
                let ssd = device.device();
                let counted = ssd.statistics();
                let SsdStatistics { pages_read, read_hits, pages_written, flushes, .. } = counted;
                let dump = Dump {
                    bytes_max: counted.dump_bytes_max,
                    budget_bytes: counted.ftl.dump_budget_bytes,
                    delta_pages: counted.ftl.delta_pages,
                };
                let counted = Counters {
                    pages_read,
                    read_hits,
                    pages_written,
                    flushes,
                    now_ns,
                    dump: (dump.budget_bytes > 0).then_some(dump),
                    ..Counters::default()
                };
                counted.with_ftl(ssd.ftl())
            }
            SimulatedDevice::TxSsd(device) => {
                let cache = device.device();
                let TxCacheStatistics { pages_read, read_hits, pages_written, flushes, .. } =
                    cache.statistics();
                let counted = Counters {
                    pages_read,
                    read_hits,
                    pages_written,
                    flushes,
                    now_ns,
                    ..Counters::default()
                };
                counted.with_ftl(cache.ftl())
            }
            SimulatedDevice::Baseline { device, nand } => {
                let counted = device.device().statistics();
                Counters {
                    now_ns,
                    pages_read: counted.pages_read,
                    read_hits: 0,
                    pages_written: counted.pages_written,
                    flushes: counted.flushes,
                    slots_programmed: counted.ftl.slots_programmed + counted.log_slots,
                    zones_cleaned: counted.ftl.zones_cleaned,
                    pages_moved: counted.ftl.pages_moved,
                    nand: nand.counters(),
                    dump: None,
                }
            }
            SimulatedDevice::Hybrid { device, nand } => {
                Counters::of_layer(now_ns, &device.device().statistics(), nand.counters())
            }
            SimulatedDevice::Personality { device, nand } => {
                Counters::of_layer(now_ns, &device.statistics(), nand.counters())
            }
            SimulatedDevice::Disk(device) => {
                let disk = device.device().counters();
                let (reads, programs) = (disk.reads, disk.writes);
                Counters {
                    now_ns,
                    pages_read: disk.pages_read,
                    read_hits: disk.pages_hit,
                    pages_written: disk.pages_written,
                    flushes: disk.flushes,
                    nand: NandCounters { reads, programs, ..NandCounters::default() },
                    ..Counters::default()
                }
            }
        }
    }

    fn of_layer(now_ns: u64, counted: &PersonalityStatistics, nand: NandCounters) -> Self {
        Counters {
            now_ns,
            pages_read: counted.host_reads,
            read_hits: 0,
            pages_written: counted.host_pages,
            flushes: counted.flushes,
            slots_programmed: counted.programs,
            zones_cleaned: counted.blocks_cleaned,
            pages_moved: counted.pages_moved,
            dump: None,
            nand,
        }
    }

    fn with_ftl(self, ftl: &Ftl<NandZones<Virtual, Stamp>>) -> Self {
        let FtlStatistics { slots_programmed, zones_cleaned, pages_moved, .. } = ftl.statistics();
        let nand = ftl.media().nand().counters();
        Counters { slots_programmed, zones_cleaned, pages_moved, nand, ..self }
    }
}

impl DeviceReplayRow {
    pub(super) fn new(
        trace: &DeviceTrace,
        config: &DeviceSpec,
        options: &DeviceReplayOptions,
        tally: &Tally,
        start: &Counters,
        end: &Counters,
    ) -> Self {
        let seconds = (end.now_ns - start.now_ns) as f64 / 1e9;
        let written = end.pages_written - start.pages_written;
        let programmed = end.slots_programmed - start.slots_programmed;
        let read = end.pages_read - start.pages_read;
        DeviceReplayRow {
            trace: trace.name.clone(),
            device: config.name().to_owned(),
            clients: options.clients,
            cache_pages: config.cache_pages(),
            requests: tally.pages,
            misses: read - (end.read_hits - start.read_hits),
            seconds,
            requests_per_s: if seconds > 0.0 { tally.pages as f64 / seconds } else { 0.0 },
            read: latency(&tally.read),
            write: latency(&tally.write),
            trim: latency(&tally.trim),
            commit: latency(&tally.commit),
            transactions: tally.transactions,
            transactions_split: tally.transactions_split,
            flushes: end.flushes - start.flushes,
            physical_reads: end.nand.reads - start.nand.reads,
            physical_writes: end.nand.programs - start.nand.programs,
            write_amplification: if written > 0 { programmed as f64 / written as f64 } else { 0.0 },
            erases: end.nand.erases - start.nand.erases,
            zones_cleaned: end.zones_cleaned - start.zones_cleaned,
            pages_moved: end.pages_moved - start.pages_moved,
            dump: end.dump.map(|dump| {
                let before = start.dump.unwrap_or_default().delta_pages;
                Dump { delta_pages: dump.delta_pages - before, ..dump }
            }),
        }
    }
}

fn latency(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    Latency {
        requests: histogram.len(),
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        max_ns: histogram.max(),
    }
}
