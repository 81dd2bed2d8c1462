//! What a run came to.
use hdrhistogram::Histogram;
use tantalum_trace::ycsb::Kind;

use crate::workload::LoopReport;

/// What a run came to; all of the measured operations alone.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbReport(LoopReport);

impl YcsbReport {
    pub(super) fn new(report: LoopReport) -> Self {
        YcsbReport(report)
    }

    /// From the beginning of the first operation to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.0.elapsed_ns
    }

    /// Records that scans gave.
    pub fn records_scanned(&self) -> u64 {
        self.0.counted(Kind::Scan as usize)
    }

    /// Latencies of a kind of operation, in nanoseconds, exact to three digits.
    pub fn latencies(&self, kind: Kind) -> &Histogram<u64> {
        self.0.latencies(kind as usize)
    }

    /// How many operations.
    pub fn operations(&self) -> u64 {
        self.0.operations()
    }

    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.0.throughput()
    }
}
