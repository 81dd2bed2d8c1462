//! "Durable Write Cache in Flash Memory SSD for Relational and NoSQL Databases" (DuraSSD).
//!
//! ```text
//! table1  random writes of 4 KiB by one client, with an fsync after every so many
//! ```
mod table1;

use tantalum_base::Result;

use super::{Progress, Row, Scale};

/// Every figure of the paper that is measured again.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress) -> Result<Vec<Row>> {
    table1::run(scale, seed, progress)
}
