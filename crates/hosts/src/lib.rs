//! Storage engines that use a device as the databases of the papers did: the reads and writes that they issue, the order of these,
//! and recovery.
//!
//! ```text
//! database      trees of rows in a buffer pool, a redo log, transactions, checkpoints, recovery: common to the next two
//! double_write  InnoDB's way: dirty pages are written home through a double-write area, in place without one, by SHARE, or in
//!               transactions of the device
//! wal_engine    PostgreSQL's way: pages are written in place, with full-page writes in the log, or with changes only, on a device
//!               that does not tear pages, or in transactions of the device, without a log
//! docstore      Couchbase's way: documents in an append-only file under a copy-on-write B+tree, or
//!               remapped in place by SHARE
//! btree         clustered B+trees: pages, changes of pages, search, splits
//! redo          a redo log with its checkpoints
//! key           keys
//! values        values and trees
//! records       the format of engines on a device: the same code for bytes (live) and for stamps (virtual time)
//! workload      loads that drive the engines: YCSB, LinkBench, TPC-C
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
