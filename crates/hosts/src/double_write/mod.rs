//! InnoDB's storage engine (SHARE, sections 2 and 4.3; DuraSSD, sections 2.1 and 4.3.1): a [database](crate::database) of clustered
//! B+trees whose dirty pages are durable at their homes a batch at a time.
//!
//! ```text
//! form         how a batch reaches its homes, and how torn ones are mended: On, Off, Share, Transactions
//! page_load    pages alone, under a load of accesses
//! image        what these are
//! ```
//!
//! A page of the database may be several device pages. A device need not write those as one, so that a cut can leave a page torn,
//! half old and half new, which the redo log cannot mend. Hence the double write: a batch is first written to an area of its own
//! and made durable, then to the pages' homes. With SHARE the second write is a change of the device's mapping, atomic for the
//! whole batch; in a transaction of the device there is no first one.
mod form;
mod image;
mod page_load;

use crate::database;
pub use crate::database::{
    Drives, EngineStatistics, HostStatistics, RecoveryReport, RestoreReport,
};
pub use form::Form;
pub use page_load::{PageLoad, restore, versions};

/// A database on a device, by double write or what takes its place.
pub type DoubleWrite<R, D, V, C> = database::Database<R, D, V, C, Form>;

/// What it is made and opened with.
pub type DoubleWriteOptions = database::DatabaseOptions<Form>;

/// How its pages lie on the device and in memory, and how they get from here to there.
pub type PageOptions = database::PageOptions<Form>;

/// Changes that are made together.
pub type Transaction<R, D, V, C> = database::Transaction<R, D, V, C, Form>;
