//! The papers' figures and tables, measured again: one experiment per figure or table, one folder per
//! paper. Each returns [`Row`]s, which compare the paper's numbers with the numbers measured here.
//!
//! ```text
//! registry  the experiments by name, one entry per paper: the list of `tantalum repro`
//! beside    several of them at a time
//! row       the result of each
//! shape     statements of a paper about its figures that are not numbers, checked on the rows
//! lines     lines of a figure, for shapes
//! summary   how many of a paper's numbers and shapes are met
//! engines   three storage engines on five devices, which no paper has
//! energy    idle and peak power of components over virtual time
//! load      closed-loop clients: random reads or writes, with an fsync after every N
//! journal   the journal of a file system
//! mounted   a file system that is mounted with write barriers or without
//! devices   the devices of the dissertation compared with their data sheets
//! documents a document store under YCSB, for SHARE's and DuraSSD's papers
//! durassd   "Durable Write Cache in Flash Memory SSD for Relational and NoSQL Databases"
//! dissertation "Caching for flash-based databases and flash-based caching for databases"
//! share     "SHARE Interface in Flash Storage for Relational and NoSQL Databases"
//! tiers     "Improving database performance using a flash-based write cache", and chapters 6 and 7 of
//!           the dissertation
//! txcache   "TxCache: Transactional Cache using Byte-Addressable Non-Volatile Memories in SSDs"
//! ```
mod beside;
pub mod cleaning;
pub mod devices;
pub mod dissertation;
mod documents;
mod durassd;
pub mod energy;
pub mod engines;
pub mod journal;
mod lines;
pub mod load;
mod mounted;
pub mod personalities;
mod registry;
mod row;
mod shape;
mod share;
mod summary;
mod tiers;
mod txcache;

pub use beside::{Measured, Watch, measure_all};
pub use registry::{EXPERIMENTS, Experiment, Progress};
pub use row::{Place, Row, Scale, X};
pub use shape::{Relation, Rows, Shape, Surprise, surprises};
pub use summary::Summary;
