//! The effect of two parameters that the paper does not state: the speed of the link, and how much larger than the cache the
//! file server's transactions are. For the effect of the host's time see [`host_time`](super::host_time).
use std::rc::Rc;
use tantalum_base::Result;
use tantalum_models::tx_cache::HeaderRelease;

use super::super::{Progress, Row, Scale};
use super::devices::{Device, Sizes, measure};
use super::log_size::LOG_OR_CACHE;
use super::protocols::{TRACE, absolute, gain, percent};
use super::replay::Measured;
use super::trace::{Trace, fileserver};
use super::{CACHE_PAGES, Setup};

/// 512 bytes in 0.2384 µs: PCI Express in the parameter files of the paper's simulator (`ssd-sr250k.parv` of the SSD extension
/// for DiskSim), with which table II agrees in every line. The rate of the other experiments is there too, as a comment.
const LINK_BYTES_PER_SECOND: u64 = 2_147_651_006;

/// Maximum number of pages of a transaction: the cache has 8192, of which 7936 may be uncommitted. Together with the extended
/// cache the limit is 16128.
pub(super) const LARGE_PAGES: [u32; 3] = [8704, 10240, 12288];

pub(super) fn run(setup: &Setup, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    for trace in &setup.traces {
        rows.extend(fast_link(setup, trace, progress)?);
    }
    // At the sizes of the small scale they would show nothing new.
    if setup.scale != Scale::Small {
        for pages in LARGE_PAGES {
            large(setup, pages, progress, rows)?;
        }
    }
    Ok(())
}

fn fast_link(setup: &Setup, trace: &Rc<Trace>, progress: Progress) -> Result<Vec<Row>> {
    let sizes = Sizes { link_bytes_per_second: LINK_BYTES_PER_SECOND, ..setup.sizes };
    let name = trace.name;
    let link = format!("link of {} MB/s", LINK_BYTES_PER_SECOND / 1_000_000);
    let mut on = |device: Device| {
        progress(&format!("{link}: {name} on {}", device.name()));
        measure(device, &sizes, trace)
    };
    let pages = setup.cache_pages;
    let cache = |pages| Device::TxCache(pages, HeaderRelease::WrittenBack);
    let tx_cache = on(cache(pages))?;
    let (wal, tx_flash) = (on(Device::Wal(pages))?, on(Device::TxFlash)?);
    let nv_cache = on(Device::NvCache(pages))?;
    let gain_row = |other: &str, measured: &Measured| {
        let case = format!("{name}, TxCache over {other}, {link}");
        let row = percent("Figure 4", case, "throughput gain", None, gain(&tx_cache, measured));
        row.at(&*link, format!("over {other}"), (TRACE, name))
    };
    let case = format!("{name}, TxCache below NVCache, {link}");
    let penalty =
        percent("Figure 4", case, "throughput penalty", None, -gain(&tx_cache, &nv_cache));
    let penalty = penalty.at(&*link, "TxCache", (TRACE, name));
    let mut rows = vec![gain_row("WAL", &wal), gain_row("TxFlash", &tx_flash), penalty];
    for (pages, measured) in
        [(pages / 2, on(cache(pages / 2))?), (pages, tx_cache), (8 * pages, on(cache(8 * pages))?)]
    {
        let mib = (u64::from(pages) * 4096) >> 20;
        let case = format!("{name}, TxCache, {mib} MiB, {link}");
        let what = ("throughput", "transactions/s");
        let row = Row::new("Figure 6", case, what, None, measured.transactions_per_s);
        rows.push(row.at(format!("{name}, {link}"), "TxCache", (LOG_OR_CACHE, mib as f64)));
    }
    Ok(rows)
}

/// The file server with transactions of up to `pages` pages, on all devices.
fn large(setup: &Setup, pages: u32, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let trace = Rc::new(fileserver(pages, setup.sizes.seed)?);
    let name = format!("fileserver, up to {pages} pages");
    let devices = [
        Device::Wal(CACHE_PAGES),
        Device::TxFlash,
        Device::TxCache(CACHE_PAGES, HeaderRelease::WrittenBack),
        Device::NvCache(CACHE_PAGES),
    ];
    for device in devices {
        progress(&format!("{name} on {}", device.name()));
        let measured = measure(device, &setup.sizes, &trace)?;
        let measured = absolute(&name, device, &measured).into_iter();
        rows.extend(measured.map(|row| row.in_panel("transactions larger than the cache")));
    }
    Ok(())
}
