//! InnoDB's storage engine (SHARE, sections 2 and 4.3; DuraSSD, sections 2.1 and 4.3.1): a [`crate::database`] of clustered
//! B+trees that writes its dirty pages durably to their homes, one batch at a time.
//!
//! ```text
//! form         how a batch is written to its homes, and how torn ones are repaired: On, Off, Share, Transactions
//! page_load    pages alone, under a load of accesses
//! image        these pages
//! ```
//!
//! A page of the database may be several device pages. A device need not write those atomically, so a cut can leave a page torn,
//! half old and half new, which the redo log cannot repair. Hence the double write: a batch is first written to an area of its own
//! and made durable, then to the pages' homes. With SHARE the second write is a change of the device's mapping, atomic for the
//! whole batch; with a device transaction there is no first write.
mod form;
mod image;
mod page_load;

use crate::database;
pub use crate::database::{
    Drives, EngineStatistics, HostStatistics, RecoveryReport, RestoreReport,
};
pub use form::Form;
pub use page_load::{PageLoad, restore, versions};

/// A database on a device, with double write or one of its alternatives.
pub type DoubleWrite<R, D, V, C> = database::Database<R, D, V, C, Form>;

/// The options for making and opening it.
pub type DoubleWriteOptions = database::DatabaseOptions<Form>;

/// The layout of its pages on the device and in memory, and the way between the two.
pub type PageOptions = database::PageOptions<Form>;

/// Changes that are made together.
pub type Transaction<R, D, V, C> = database::Transaction<R, D, V, C, Form>;
