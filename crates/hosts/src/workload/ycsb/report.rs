//! What a run came to.
use hdrhistogram::Histogram;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_trace::ycsb::Kind;

/// What takes longer counts as this: an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// What a run came to; all of the measured operations alone.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbReport {
    /// From the beginning of the first one to the end of the last.
    pub elapsed_ns: u64,
    /// Records that scans gave.
    pub records_scanned: u64,
    latencies: [Histogram<u64>; 5],
}

impl YcsbReport {
    pub(super) fn new() -> Result<Self> {
        let histogram = Histogram::<u64>::new_with_max(LATENCY_MAX_NS, 3).map_err(|error| {
            Error::with_source(ErrorKind::InvalidInput, "latency histogram", error)
        })?;
        let latencies = [(); 5].map(|()| histogram.clone());
        Ok(YcsbReport { elapsed_ns: 0, records_scanned: 0, latencies })
    }

    pub(super) fn record(&mut self, kind: Kind, latency_ns: u64) {
        self.latencies[kind as usize].saturating_record(latency_ns);
    }

    /// Latencies of a kind of operation, in nanoseconds, exact to three digits.
    pub fn latencies(&self, kind: Kind) -> &Histogram<u64> {
        &self.latencies[kind as usize]
    }

    /// How many operations.
    pub fn operations(&self) -> u64 {
        self.latencies.iter().map(Histogram::len).sum()
    }

    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.operations() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}
