//! YCSB's core workloads over a storage engine: clients that each wait for one operation before they begin the next.
//!
//! ```text
//! options  the records, and what is done with them     keys     what a record is called
//! chooser  which record an operation is about          checks   what a read may find
//! clients  records are loaded; clients run             report   how many operations, how long each took
//! ```
//!
//! Source: Cooper, Silberstein, Tam, Ramakrishnan, Sears, "Benchmarking cloud serving systems with YCSB", SoCC 2010; what the
//! paper leaves open is as in the benchmark's distribution.
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
