//! Loads that drive storage engines, in virtual time and live.
//!
//! ```text
//! store        the interface between a load of single values and an engine
//! rows         the interface between a load of transactions and an engine
//! row_layer    a store of rows over another one that changes some of its calls
//! undo         undo logs above a store that needs none
//! one_tree     one tree of rows as single values
//! closed_loop  clients that wait for one operation before they begin the next
//! link_bench   LinkBench: a social graph in rows
//! ycsb         YCSB's core workloads
//! tpcc         TPC-C
//! pgbench      pgbench's bank, like TPC-B
//! ```
mod closed_loop;
pub mod link_bench;
mod one_tree;
pub mod pgbench;
mod row_layer;
mod rows;
mod store;
pub mod tpcc;
mod undo;
pub mod ycsb;

pub use closed_loop::{ClosedLoad, Ending, LoopOptions, LoopReport, run_closed_loop, transact};
pub use one_tree::OneTree;
pub use row_layer::{RowStoreLayer, RowTransactionLayer};
pub use rows::{RowStore, RowTransaction};
pub use store::{KeyValueStore, LoadValue};
pub use undo::{UndoLog, Undone};
