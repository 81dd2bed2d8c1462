//! The result of a run.
use hdrhistogram::Histogram;
use tantalum_trace::ycsb::Kind;

use crate::workload::LoopReport;

/// The result of a run; all figures are of the measured operations only.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbReport(LoopReport);

impl YcsbReport {
    pub(super) fn new(report: LoopReport) -> Self {
        YcsbReport(report)
    }

    /// From the start of the first operation to the end of the last.
    pub fn elapsed_ns(&self) -> u64 {
        self.0.elapsed_ns
    }

    /// Number of records that scans returned.
    pub fn records_scanned(&self) -> u64 {
        self.0.counted(Kind::Scan as usize)
    }

    /// Latencies of a kind of operation, in nanoseconds, with three significant digits.
    pub fn latencies(&self, kind: Kind) -> &Histogram<u64> {
        self.0.latencies(kind as usize)
    }

    /// Number of operations.
    pub fn operations(&self) -> u64 {
        self.0.operations()
    }

    /// Operations per second.
    pub fn throughput(&self) -> f64 {
        self.0.throughput()
    }
}
