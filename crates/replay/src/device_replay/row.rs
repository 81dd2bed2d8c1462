//! The result of a replay on a device.
use hdrhistogram::Histogram;
use tantalum_base::{Error, ErrorKind, Result, Stamp};
use tantalum_models::nand::NandCounters;
use tantalum_models::{DeviceSpec, Simulated};
use tantalum_runtime::{DeviceCounters, DumpCounters, LifeCycle, Runtime, Virtual};
use tantalum_trace::PageEvent;

use super::DeviceReplayOptions;
use super::trace::DeviceTrace;

/// Latencies of one kind of request, in nanoseconds of virtual time; the percentiles have three
/// significant digits. All 0 if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Number of requests.
    pub requests: u64,
    /// Half of them took at most this long.
    pub p50_ns: u64,
    /// 99 of 100 took at most this long.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// One trace on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReplayRow {
    /// The trace's name.
    pub trace: String,
    /// The device, with every parameter.
    pub device: String,
    /// Number of clients.
    pub clients: u32,
    /// Pages of the device's write cache.
    pub cache_pages: u32,
    /// Pages read and written; a request of several pages counts once for each.
    pub requests: u64,
    /// Pages read that were not in the write cache.
    pub misses: u64,
    /// Virtual time of the replay, in seconds.
    pub seconds: f64,
    /// `requests` per virtual second.
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
    /// Number of transactions of the trace that were larger than the device allows.
    pub transactions_split: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Flash pages read, for hosts and for cleaning.
    pub physical_reads: u64,
    /// Flash pages programmed, for any reason.
    pub physical_writes: u64,
    /// Slots of 4 KiB programmed per page that the host wrote; 0 without writes.
    pub write_amplification: f64,
    /// Blocks erased.
    pub erases: u64,
    /// Zones that cleaning emptied; 0 for layers that merge.
    pub zones_cleaned: u64,
    /// Pages that cleaning moved.
    pub pages_moved: u64,
    /// `None` if no stored energy dumps anything; delta pages are those that the replay wrote.
    pub dump: Option<DumpCounters>,
}

/// A longer latency counts as this: a week.
const LATENCY_MAX_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;

/// The counters of the clients.
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

/// The counters of a device at one moment.
#[derive(Default)]
pub(super) struct Counters {
    now_ns: u64,
    device: DeviceCounters,
    /// The counters of the array; a disk's accesses count as flash pages.
    media: NandCounters,
}

impl Counters {
    pub(super) fn of(runtime: &Virtual, simulated: &Simulated<Stamp>) -> Self {
        let device = simulated.device.counters();
        let DeviceCounters { disk_reads: reads, disk_writes: programs, .. } = device;
        let disk = NandCounters { reads, programs, ..NandCounters::default() };
        let media = simulated.array.as_ref().map_or(disk, |array| array.counters());
        Counters { now_ns: runtime.now_ns(), device, media }
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
        let (device, before) = (&end.device, &start.device);
        let written = device.pages_written - before.pages_written;
        let programmed = |counted: &DeviceCounters| counted.slots_programmed + counted.log_slots;
        let programmed = programmed(device) - programmed(before);
        let read = device.pages_read - before.pages_read;
        DeviceReplayRow {
            trace: trace.name.clone(),
            device: config.name().to_owned(),
            clients: options.clients,
            cache_pages: config.cache_pages(),
            requests: tally.pages,
            misses: read - (device.read_hits - before.read_hits),
            seconds,
            requests_per_s: if seconds > 0.0 { tally.pages as f64 / seconds } else { 0.0 },
            read: latency(&tally.read),
            write: latency(&tally.write),
            trim: latency(&tally.trim),
            commit: latency(&tally.commit),
            transactions: tally.transactions,
            transactions_split: tally.transactions_split,
            flushes: device.flushes - before.flushes,
            physical_reads: end.media.reads - start.media.reads,
            physical_writes: end.media.programs - start.media.programs,
            write_amplification: if written > 0 { programmed as f64 / written as f64 } else { 0.0 },
            erases: end.media.erases - start.media.erases,
            zones_cleaned: device.zones_cleaned - before.zones_cleaned,
            pages_moved: device.pages_moved - before.pages_moved,
            dump: device.dump.map(|dump| {
                let before = before.dump.unwrap_or_default().delta_pages;
                DumpCounters { delta_pages: dump.delta_pages - before, ..dump }
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
