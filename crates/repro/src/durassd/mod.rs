//! "Durable Write Cache in Flash Memory SSD for Relational and NoSQL Databases" (DuraSSD).
//!
//! ```text
//! rig         a device of the paper, aged, with a file on it
//! table1      random writes of 4 KiB by one client, with an fsync after every N of them
//! table2      page sizes: reads, and writes with many fsyncs, few and none
//! table4      TPC-C with a barrier for each written page, by page size
//! synced      its two drives
//! table5      Couchbase under YCSB, by the size of a batch
//! link_bench  figures 5 and 6 and table 3: LinkBench on MySQL
//! machine     the machine for it
//! shapes      statements of the paper about them, besides the numbers
//! ```
mod link_bench;
mod machine;
mod rig;
mod shapes;
mod synced;
mod table1;
mod table2;
mod table4;
mod table5;
#[cfg(test)]
mod tests;

use tantalum_base::Result;

use super::{Progress, Row, Scale};
pub(super) use shapes::{NOT_MET_SMALL, SHAPES};

/// Measures every reproduced table of the paper.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    table1::run(scale, seed, progress, rows)?;
    table2::run(scale, seed, progress, rows)?;
    table4::run(scale, seed, progress, rows)?;
    link_bench::run(scale, seed, progress, rows)?;
    table5::run(scale, seed, progress, rows)
}
