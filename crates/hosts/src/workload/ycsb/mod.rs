//! YCSB's core workloads over a storage engine: clients that wait for one operation before they begin the next.
//!
//! ```text
//! options  the records and the operations on them  keys    the keys of records
//! chooser  the choice of an operation's record     checks  the results that a read may return
//! clients  loading, and the operations of clients  report  numbers of operations, and their latencies
//! ```
//!
//! Source: Cooper, Silberstein, Tam, Ramakrishnan, Sears, "Benchmarking cloud serving systems with YCSB", SoCC 2010. Details
//! that the paper leaves open follow the benchmark's distribution.
mod checks;
mod chooser;
mod clients;
mod keys;
mod options;
mod report;

pub use clients::Ycsb;
pub use keys::key_of;
pub use options::{RecordOptions, YcsbOptions};
pub use report::YcsbReport;
pub use tantalum_trace::ycsb::{Kind, Mix, Requests, Workload};
