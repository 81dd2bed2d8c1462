//! Loads that storage engines are put under, in virtual time and live.
//!
//! ```text
//! store  what a load of single values needs of an engine
//! rows   what a load of transactions needs of one
//! ycsb   YCSB's core workloads
//! ```
mod rows;
mod store;
pub mod ycsb;

pub use rows::{RowStore, RowTransaction};
pub use store::{KeyValueStore, LoadValue};
