//! PostgreSQL's storage engine, as far as the papers compare it (TxCache's evaluation; SHARE, sections 2.1 and 5.3.1): a
//! [database](crate::database) of clustered B+trees whose pages are written in place, once, and made durable by checkpoints alone.
//!
//! ```text
//! form         how pages and commits reach the device: FullPages, NoFullPages, Share, Transactions
//! ```
//!
//! A page that is written in place may be torn by a cut until the next flush, and a log of changes cannot mend it. PostgreSQL's answer
//! is `full_page_writes`: the first change of a page after a checkpoint's begin goes into the log as the whole page. Recovery, which
//! begins there, puts that in the place of whatever the home holds, without reading it. A device that writes pages as one needs none
//! of that, and one with transactions needs no log.
mod form;

use crate::database;
pub use crate::database::{Drives, EngineStatistics, HostStatistics, RecoveryReport};
pub use form::WalForm;

/// A database on a device, by write-ahead logging or what takes its place.
pub type WalEngine<R, D, V, C> = database::Database<R, D, V, C, WalForm>;

/// What it is made and opened with.
pub type WalOptions = database::DatabaseOptions<WalForm>;

/// How its pages lie on the device and in memory, and how they get from here to there.
pub type WalPageOptions = database::PageOptions<WalForm>;

/// Changes that are made together.
pub type WalTransaction<R, D, V, C> = database::Transaction<R, D, V, C, WalForm>;
