//! TPC-C over a storage engine: terminals that run its five transactions over its nine tables and their two indexes.
//!
//! ```text
//! population   numbers of rows, and their content at the start  tables    trees, sizes of rows, keys
//! load         loads them                                       rows      the columns that transactions use
//! terminals    a terminal's transactions and their inputs       random    clause 2.1.6, names, values derived from a seed
//! run          terminals run them                               work      a transaction's reads, checked, and its changes
//! new_order payment order_status delivery stock_level           expected  the results that a read may return
//! consistency  the conditions of clause 3.3.2
//! ```
//!
//! Source: "TPC Benchmark C, Standard Specification", revision 5.11. A row is as long as there (clause 4.2.2). The columns that
//! transactions rely on are 64 bits of it, which a [`LoadValue`](super::LoadValue) carries as record and version, so that the same code
//! runs over stamps and over bytes. Columns that never change are derived from seed and key.
//!
//! Differences: C_YTD_PAYMENT is not stored (it is a sum over the history); texts have their length but no content; a delivery is not
//! queued.
mod consistency;
mod delivery;
mod expected;
mod load;
mod new_order;
mod order_status;
mod payment;
mod population;
mod random;
mod rows;
mod run;
mod stock_level;
mod tables;
mod terminals;
mod work;

pub use consistency::Audit;
pub use population::Population;
pub use run::{Tpcc, TpccOptions, TpccReport};
pub use tables::{TREES, Table};
pub use terminals::Kind;
