//! Storage engines that use a device as the papers' databases did: what they read and write, in
//! which order, and how they recover.
//!
//! ```text
//! database      trees of rows in a buffer pool, a redo log, transactions, checkpoints, recovery: what the next two share
//! double_write  InnoDB's way: dirty pages reach their homes through a double-write area, without one, by SHARE, or in transactions
//!               of the device
//! wal_engine    PostgreSQL's way: pages are written in place and logged whole first, or logged by their changes on a device that
//!               tears none, or written by transactions of the device without a log
//! docstore      Couchbase's way: documents in an append-only file under a copy-on-write B+tree, or
//!               remapped in place by SHARE
//! btree         clustered B+trees: pages, their changes, finding, splits
//! redo          a redo log with its checkpoints
//! key           keys
//! values        values and trees
//! records       what engines keep on a device: one code for bytes, live, and for stamps, in virtual time
//! workload      loads that engines are put under: YCSB, LinkBench, TPC-C
//! fault_points  protections that a test can switch off
//! ```
pub mod btree;
pub mod database;
pub mod docstore;
pub mod double_write;
pub mod fault_points;
mod key;
pub mod records;
pub mod redo;
pub mod values;
pub mod wal_engine;
pub mod workload;
