//! LinkBench over rows of a storage engine: a social graph, and clients that ask for its nodes and links and change them.
//!
//! ```text
//! graph     nodes and how many links each has     rows        tables, their keys and values
//! degrees   the published numbers of links        checks      what a read may find
//! draws     what clients ask for                  loading     the graph is put into an engine
//! operations  the ten, as transactions            inspection  all tables beside each other, after a run
//! run       clients run them                       after_cut   what a power cut left of their changes
//! ```
//!
//! Source: Armstrong, Ponnekanti, Borthakur, Callaghan, "LinkBench: a database benchmark based on the Facebook social graph", SIGMOD
//! 2013; what the paper leaves open is as in the benchmark's distribution with its workload `FBWorkload` and its adapter of MySQL.
mod after_cut;
mod checks;
mod degrees;
mod draws;
mod graph;
mod inspection;
mod loading;
mod operations;
mod rows;
mod run;

pub use inspection::Inspection;
pub use operations::{Drawn, Requests};
pub use rows::{TREES, Table};
pub use run::{LinkBench, LinkBenchReport};
pub use tantalum_trace::link_bench::Operation;
