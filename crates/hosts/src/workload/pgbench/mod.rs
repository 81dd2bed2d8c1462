//! pgbench's "TPC-B (sort of)": bank accounts with their branches and tellers, and a history of what was paid in and out.
//!
//! ```text
//! tables   the four tables, their keys and rows      run    clients pay in and out
//! balances what a read must find                     audit  all tables beside each other, after a run
//! ```
//!
//! Source: the documentation of [pgbench](https://www.postgresql.org/docs/9.4/pgbench.html) in PostgreSQL 9.4, with its built-in
//! script: account, teller and branch are drawn each by itself, any as often as any other. A row is as long as PostgreSQL has it, with the
//! header of 24 bytes; it lies in a B+tree by its key, and in a history, which has no key there, in the order of the payments.
mod audit;
mod balances;
mod run;
mod tables;

pub use audit::Audit;
pub use run::{Pgbench, PgbenchReport};
pub use tables::{Population, TREES, Table};
