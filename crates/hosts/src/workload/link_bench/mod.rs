//! LinkBench over rows of a storage engine: a social graph, and clients that read and change its nodes and links.
//!
//! ```text
//! graph     nodes, and the number of links of each  rows        tables, their keys and values
//! degrees   the published numbers of links          checks      the results that a read may return
//! draws     the requests of clients                 loading     the graph is loaded into an engine
//! operations  the ten, as transactions              inspection  all tables compared, after a run
//! run       clients run them                        after_cut   the state of changes after a power cut
//! ```
//!
//! Source: Armstrong, Ponnekanti, Borthakur, Callaghan, "LinkBench: a database benchmark based on the Facebook social
//! graph", SIGMOD 2013. Details that the paper leaves open follow the benchmark's distribution with its workload
//! `FBWorkload` and its adapter for MySQL.
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
