//! InnoDB's buffer pool over a device (SHARE, sections 2 and 4.3): pages are fixed in a pool, dirty
//! ones that leave it are collected and flushed in batches.
//!
//! ```text
//! options   the form (double write on, off, or SHARE), sizes      layout  what lies where
//! pool      frames, and pages on their way out of them            image   a page's content, torn or whole
//! engine    access to pages, and the cleaner that flushes batches recovery  after a crash
//! ```
//!
//! A database page may be several device pages. A device need not write those as one, so that a cut
//! can leave a page torn, half old and half new, which the redo log cannot mend. Hence the double
//! write: a batch is first written to an area of its own and made durable, then to the pages' homes.
//! With SHARE the second write is a change of the device's mapping, atomic for the whole batch.
mod engine;
mod image;
mod layout;
mod options;
mod pool;
mod recovery;

pub use engine::{DoubleWrite, HostStatistics};
pub use options::{DoubleWriteOptions, Form};
pub use recovery::{RecoveryReport, recover, versions};
