//! The papers' figures and tables, measured again: one experiment a figure or table, one folder a
//! paper. Each returns [`Row`]s, which put what the paper says beside what was measured here.
mod row;

pub use row::{Row, Scale};
