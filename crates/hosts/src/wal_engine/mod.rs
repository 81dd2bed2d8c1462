//! PostgreSQL's storage engine, as far as the papers compare it (TxCache's evaluation; SHARE, sections 2.1 and 5.3.1): a
//! [`crate::database`] of clustered B+trees whose pages are written once, in place, and made durable only by checkpoints.
//!
//! ```text
//! form         how pages and commits are written to the device: FullPages, NoFullPages, Share, Transactions
//! ```
//!
//! A page that is written in place may be torn by a cut until the next flush, and a log of changes cannot repair it. PostgreSQL's
//! answer is `full_page_writes`: the first change of a page after a checkpoint's start goes into the log as the whole page. Recovery,
//! which begins there, replaces the home with that page, without reading the home. A device that writes pages atomically does not need
//! this, and one with transactions needs no log.
mod form;

use crate::database;
pub use crate::database::{Drives, EngineStatistics, HostStatistics, RecoveryReport};
pub use form::WalForm;

/// A database on a device, with write-ahead logging or one of its alternatives.
pub type WalEngine<R, D, V, C> = database::Database<R, D, V, C, WalForm>;

/// The options for making and opening it.
pub type WalOptions = database::DatabaseOptions<WalForm>;

/// The layout of its pages on the device and in memory, and the way between the two.
pub type WalPageOptions = database::PageOptions<WalForm>;

/// Changes that are made together.
pub type WalTransaction<R, D, V, C> = database::Transaction<R, D, V, C, WalForm>;
