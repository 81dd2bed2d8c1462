//! pgbench's "TPC-B (sort of)": bank accounts with their branches and tellers, and a history of payments in and out.
//!
//! ```text
//! tables   the four tables, their keys and rows  run    clients pay in and out
//! balances the result that a read must return    audit  all tables compared, after a run
//! ```
//!
//! Source: the documentation of [pgbench](https://www.postgresql.org/docs/9.4/pgbench.html) in PostgreSQL 9.4, with its built-in script:
//! account, teller and branch are drawn independently, each uniformly. A row is as long as in PostgreSQL, with the header of 24 bytes. It
//! is in a B+tree under its key. The history, which has no key there, is in the order of the payments.
mod audit;
mod balances;
mod run;
mod tables;

pub use audit::Audit;
pub use run::{Pgbench, PgbenchReport};
pub use tables::{Population, TREES, Table};
