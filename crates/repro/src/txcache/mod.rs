//! "TxCache: Transactional Cache using Byte-Addressable Non-Volatile Memories in SSDs".
//!
//! ```text
//! trace     the four transaction traces
//! tpcc      TPC-C's trace: a database engine under it
//! recorder  records the transactions that the engine sends to its device
//! devices   WAL, TxFlash, TxCache, NVCache over one array, one FTL, one link
//! replay    closed loop of whole transactions; the device's content is checked afterwards
//! locks     decides which of the connections' transactions may write a page
//! protocols figures 4 and 5: throughput and write size of the four
//! log_size  figures 6 and 7: the same by the size of the log, or of the cache
//! sensitivity  a faster link; transactions larger than the cache
//! host_time the effect of the host's time before a transaction
//! recovery  table III: from the power coming back until transactions are settled
//! shapes    statements of the paper about them, besides the numbers
//! ```
mod devices;
mod host_time;
mod locks;
mod log_size;
mod protocols;
mod recorder;
mod recovery;
mod replay;
mod sensitivity;
mod shapes;
#[cfg(test)]
mod tests;
mod tpcc;
mod trace;

use std::rc::Rc;
use tantalum_base::Result;
use tantalum_models::profile::Profile;

use super::{Progress, Row, Scale};
use devices::Sizes;
pub(super) use shapes::{NOT_MET_SMALL, SHAPES};
use trace::Trace;

/// Section IV-A: 32 MB of non-volatile disk cache; the redo log has the same size.
const CACHE_PAGES: u32 = (32 << 20) / 4096;
/// The paper's 32 GB are scaled down to a capacity that holds the traces (the largest reaches 2.4
/// GB); planes, blocks and zones stay as they are.
const CAPACITY_PAGES: u64 = (4 << 30) / 4096;

/// The setup of an experiment of this paper.
struct Setup {
    sizes: Sizes,
    traces: Vec<Rc<Trace>>,
    /// Number of pages of the cache, and of the redo log.
    cache_pages: u32,
    scale: Scale,
}

impl Setup {
    fn new(scale: Scale, seed: u64) -> Result<Setup> {
        let traces = trace::traces(scale, seed)?.into_iter().map(Rc::new).collect();
        let (capacity_pages, cache_pages) = match scale {
            Scale::Full | Scale::Paper => (CAPACITY_PAGES, CACHE_PAGES),
            // The traces are smaller in proportion.
            Scale::Small => (160 << 10, 1024),
        };
        // Chosen: the rate for the default cache, for every size of the cache.
        let link_bytes_per_second = Profile::tx_ssd().link.link_bytes_per_second;
        let extended_pages = cache_pages;
        let sizes = Sizes { capacity_pages, extended_pages, link_bytes_per_second, seed };
        Ok(Setup { sizes, traces, cache_pages, scale })
    }

    /// TPC-C's trace.
    fn tpcc(&self) -> &Rc<Trace> {
        self.traces.last().expect("there are four, TPC-C's behind those of file systems")
    }
}

/// Measures every reproduced figure and table of the paper.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let setup = Setup::new(scale, seed)?;
    protocols::run(&setup, progress, rows)?;
    log_size::run(&setup, progress, rows)?;
    sensitivity::run(&setup, progress, rows)?;
    host_time::run(&setup, progress, rows)?;
    rows.extend(recovery::run(&setup, progress)?);
    Ok(())
}
