//! TPC-C over a storage engine: terminals that run its five transactions over its nine tables and their two indexes.
//!
//! ```text
//! population   how many rows, and what is in them at the start      tables   trees, sizes of rows, keys
//! load         puts them in                                          rows     the columns that transactions use
//! terminals    a terminal's transactions and their inputs            random   clause 2.1.6, names, what follows from a seed
//! run          terminals run them                                    work     a transaction's reads, checked, and its changes
//! new_order payment order_status delivery stock_level                expected what a read may find
//! consistency  the conditions of clause 3.3.2
//! ```
//!
//! Source: "TPC Benchmark C, Standard Specification", revision 5.11. A row is as long as there (clause 4.2.2). What transactions
//! count on in it is 64 bits: they are what a [`LoadValue`](super::LoadValue) carries as record and version, so that the same code
//! runs over stamps and over bytes. Columns that never change follow from seed and key.
//!
//! Not as there: C_YTD_PAYMENT is kept nowhere (it is a sum over the history); texts have their length and no content; a delivery is not
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
