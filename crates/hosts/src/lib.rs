//! Storage engines that use a device as the papers' databases did: what they read and write, in
//! which order, and how they recover.
//!
//! ```text
//! double_write  InnoDB's way: dirty pages reach their homes through a double-write area, without
//!               one, or by SHARE. It keeps no rows; a page's content is a stamp that says which
//!               page it is and the how-many-th content of it, so that every read is checked
//! docstore      Couchbase's way: documents in an append-only file under a copy-on-write B+tree, or
//!               remapped in place by SHARE
//! records       what engines keep on a device: one code for bytes, live, and for stamps, in virtual time
//! workload      loads that engines are put under: YCSB
//! fault_points  protections that a test can switch off
//! ```
pub mod docstore;
pub mod double_write;
pub mod fault_points;
pub mod records;
pub mod workload;
