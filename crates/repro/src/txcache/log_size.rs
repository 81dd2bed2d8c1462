//! Figures 6 and 7: the benefit of a larger redo log for WAL, and of a larger cache for TxCache.
use tantalum_base::Result;
use tantalum_models::tx_cache::HeaderRelease;

use super::super::{Progress, Row, Scale};
use super::Setup;
use super::devices::{Device, measure};

/// The label of the figures' x axis.
pub(super) const LOG_OR_CACHE: &str = "log or cache, MiB";

pub(super) fn run(setup: &Setup, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    // Multiples of the default, 32 MB: the figures go from 16 to 256 MB.
    let sizes: &[(u32, u32)] = match setup.scale {
        Scale::Full | Scale::Paper => &[(1, 2), (1, 1), (2, 1), (4, 1), (8, 1)],
        Scale::Small => &[(1, 1), (4, 1)],
    };
    for trace in &setup.traces {
        for (times, over) in sizes {
            let pages = setup.cache_pages * times / over;
            for device in [Device::Wal(pages), Device::TxCache(pages, HeaderRelease::WrittenBack)] {
                let mib = (u64::from(pages) * 4096) >> 20;
                let case = format!("{}, {}, {mib} MiB", trace.name, device.name());
                progress(&format!("figures 6 and 7: {case}"));
                let measured = measure(device, &setup.sizes, trace)?;
                let row = |figure, what, measured| {
                    let row = Row::new(figure, &*case, what, None, measured);
                    row.at(trace.name, device.name(), (LOG_OR_CACHE, mib as f64))
                };
                let throughput = measured.transactions_per_s;
                rows.push(row("Figure 6", ("throughput", "transactions/s"), throughput));
                rows.push(row("Figure 7", ("erased", "pages"), measured.pages_erased));
                if measured.parts > 1.0 {
                    rows.push(row("Figure 6", ("parts", "a transaction"), measured.parts));
                }
            }
        }
    }
    Ok(())
}
