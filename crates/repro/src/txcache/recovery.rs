//! Table III: the time of each protocol from the power coming back until transactions are settled. The time in which the FTL
//! loads its own mapping comes before, in separate rows, as the paper's mapping is durable; only TxFlash rebuilds its mapping
//! from the drive.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result, Stamp};
use tantalum_ftl::Ftl;
use tantalum_media::{ErasedZones, Fate};
use tantalum_models::baselines::{WalKind, WalRecovery, scan_cycles};
use tantalum_models::tx_cache::{HeaderRelease, TxCache, TxRecoveryReport};
use tantalum_models::{TxCacheKind, TxCacheOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{DeviceKind, LifeCycle, Opening, Runtime, Virtual};

use super::super::{Progress, Row, Scale};
use super::Setup;
use super::devices::{Sizes, wal_config, zones};
use super::replay::fill;
use tantalum_replay::device_replay::Expected;

/// Table II: the whole drive, in pages.
const DRIVE_PAGES: u64 = (32 << 30) / 4096;
/// Number of pages of each transaction that is in progress or in the log at the power cut.
const TRANSACTION_PAGES: u64 = 16;
/// Section IV-E: "a maximum concurrency of 128 transactions", each with a header.
const PAPER_HEADERS: u32 = 128;
/// The header for writes outside of transactions.
const COMMAND_HEADERS: u32 = 1;

pub(super) fn run(setup: &Setup, progress: Progress) -> Result<Vec<Row>> {
    let pages = setup.cache_pages;
    // Not on the traces, but on full drives and logs: the paper's times are those of the scans.
    progress("table III: TxCache");
    let cache = tx_cache(&setup.sizes, pages, None)?;
    let few = tx_cache(&setup.sizes, pages, Some(PAPER_HEADERS))?;
    progress("table III: WAL");
    let wal = wal(&setup.sizes, pages)?;
    progress("table III: TxFlash");
    let drive = match setup.scale {
        Scale::Full | Scale::Paper => Sizes { capacity_pages: DRIVE_PAGES, ..setup.sizes },
        Scale::Small => setup.sizes,
    };
    let whole = tx_flash(&drive)?;
    let full = setup.scale != Scale::Small;
    let row = |case: String, paper: Option<f64>, measured_ms| {
        let paper = paper.filter(|_| full);
        let row = Row::new("Table III", &*case, ("recovery time", "ms"), paper, measured_ms);
        row.at("", "", ("recovery of", case))
    };
    let (log_mib, drive_gib) = ((u64::from(pages) * 4096) >> 20, drive.capacity_pages >> 18);
    let transactions = format!("TxCache, {} transactions", cache.transactions);
    let of = |cache: &CacheRecovery| {
        format!("{transactions}, scan of {} headers", cache.report.headers - COMMAND_HEADERS)
    };
    let report = &cache.report;
    // "For a maximum concurrency of 128 transactions, it takes 19 microseconds": 128 accesses of 0.15 us, one for each header.
    let paper_headers = Some(0.019).filter(|_| few.transactions == u64::from(PAPER_HEADERS));
    Ok(vec![
        row(format!("WAL, reading a log of {log_mib} MiB"), None, milliseconds(wal.report.scan_ns)),
        row(
            format!("WAL, log of {log_mib} MiB, until it serves"),
            Some(64.0),
            milliseconds(wal.report.scan_ns + wal.report.reset_ns),
        ),
        row(
            format!("WAL, log of {log_mib} MiB, until all of it is home after"),
            None,
            milliseconds(wal.home_ns),
        ),
        row("WAL, the FTL's mapping before".into(), None, milliseconds(wal.report.ftl_ns)),
        row(format!("TxFlash, scan of a drive of {drive_gib} GiB"), Some(6957.0), whole),
        row(of(&few), paper_headers, milliseconds(few.report.time_ns)),
        row(of(&cache), None, milliseconds(report.time_ns)),
        row(
            format!("{transactions}, indexes of {} Page Headers after", report.page_headers),
            None,
            milliseconds(report.index_ns),
        ),
        row("TxCache, the FTL's mapping before".into(), None, milliseconds(cache.ftl_ns)),
    ])
}

/// The result of a recovery of TxCache.
struct CacheRecovery {
    /// Number of transactions that were in progress.
    transactions: u64,
    report: TxRecoveryReport,
    ftl_ns: u64,
}

/// The result of a recovery of WAL.
struct LogRecovery {
    report: WalRecovery,
    /// Time of copying the log's content home, after the device is open.
    home_ns: u64,
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The pages of transaction `number`: consecutive, and disjoint from those of other transactions.
fn range(number: u64, device_pages: u64) -> PageRange {
    let places = device_pages / TRANSACTION_PAGES;
    PageRange::new(PageNo(number % places * TRANSACTION_PAGES), TRANSACTION_PAGES)
}

/// One transaction on `device`, committed or left open.
async fn transact<D: PageDevice<Page = Stamp>>(
    device: &D,
    expected: &mut Expected,
    range: PageRange,
    commit: bool,
) -> Result<()> {
    let tx = device.begin().await?;
    let mut contents = Vec::new();
    if commit {
        expected.write(range, &mut contents);
    } else {
        contents.extend(range.iter().map(|page| Stamp::new(page, u64::MAX)));
    }
    device.write(range.first, &contents, Some(tx)).await?;
    if commit { device.commit(tx).await } else { Ok(()) }
}

/// Reads and checks the pages of the first `transactions` transactions.
async fn check<D: PageDevice<Page = Stamp>>(
    device: &D,
    expected: &Expected,
    transactions: u64,
) -> Result<()> {
    for number in 0..transactions {
        let range = range(number, device.limits().pages);
        let mut out = vec![Stamp::default(); range.pages as usize];
        device.read(range.first, &mut out, None).await?;
        expected.check(range.first, &out)?;
    }
    Ok(())
}

/// TxCache with the maximum number of transactions, half of them open, the others committed and holding their headers; with
/// `headers` headers, or the default for a cache of this size.
fn tx_cache(sizes: &Sizes, cache_pages: u32, headers: Option<u32>) -> Result<CacheRecovery> {
    let (device, usual) = sizes.tx_cache(cache_pages, HeaderRelease::WrittenBack)?;
    let headers = headers.unwrap_or(usual.headers);
    let options = TxCacheOptions { headers, ..usual };
    let transactions = u64::from(options.transactions_max).min(u64::from(cache_pages) / 64);
    let runtime = Virtual::new(Schedule::Fifo);
    let (nand, zones) = zones(&runtime, &device, sizes.seed)?;
    let mut expected = Expected::new(sizes.capacity_pages);
    let (media, handle) = (ErasedZones::new(zones.reopen(runtime.clone())), runtime.clone());
    let (nvram, expected) = runtime.finish("recovery", async move {
        let kind = TxCacheKind { ftl: device.ftl, cache: options };
        let cache = kind.make(&handle, media).await?;
        for number in 0..transactions {
            let range = range(number, cache.limits().pages);
            transact(&*cache, &mut expected, range, number % 2 == 0).await?;
        }
        Ok((cache.nvram(), expected))
    })?;
    runtime.drop_tasks();
    nand.power_cut(runtime.now_ns(), |_| Fate::Vanish);
    Virtual::alone("recovery", |runtime| async move {
        let media = ErasedZones::new(zones.reopen(runtime.clone()));
        let (ftl, _) = Ftl::recover(media, device.ftl).await?;
        let ftl_ns = runtime.now_ns();
        let (cache, report) = TxCache::recover(runtime, ftl, options, nvram).await?;
        check(&cache, &expected, transactions).await?;
        Ok(CacheRecovery { transactions, report, ftl_ns })
    })
}

/// WAL with a full log.
fn wal(sizes: &Sizes, log_pages: u32) -> Result<LogRecovery> {
    let runtime = Virtual::new(Schedule::Fifo);
    let (config, options) = wal_config(sizes, log_pages)?;
    let (nand, zones) = zones(&runtime, &config, sizes.seed)?;
    // Exactly as many as fill the log.
    let transactions = u64::from(log_pages) / TRANSACTION_PAGES;
    let mut expected = Expected::new(sizes.capacity_pages);
    let kind = WalKind { ftl: config.ftl, wal: options };
    let (media, handle) = (ErasedZones::new(zones.reopen(runtime.clone())), runtime.clone());
    let expected = runtime.finish("recovery", async move {
        let wal = kind.make(&handle, media).await?;
        for number in 0..transactions {
            let range = range(number, wal.limits().pages);
            transact(&*wal, &mut expected, range, true).await?;
        }
        Ok(expected)
    })?;
    runtime.drop_tasks();
    nand.power_cut(runtime.now_ns(), |_| Fate::Vanish);
    Virtual::alone("recovery", |runtime| async move {
        let media = ErasedZones::new(zones.reopen(runtime.clone()));
        let on = Opening { runtime: runtime.clone(), media, kept: () };
        let (wal, report) = kind.open(on).await?;
        wal.start(&runtime);
        check(&*wal, &expected, transactions).await?;
        let served_ns = runtime.now_ns();
        wal.checkpoint().await?;
        let home_ns = runtime.now_ns() - served_ns;
        check(&*wal, &expected, transactions).await?;
        Ok(LogRecovery { report, home_ns })
    })
}

/// TxFlash with a full drive: the scan of its spare areas.
fn tx_flash(sizes: &Sizes) -> Result<f64> {
    let runtime = Virtual::new(Schedule::Fifo);
    let config = sizes.plain(|_| 0)?;
    let (nand, zones) = zones(&runtime, &config, sizes.seed)?;
    let expected = Rc::new(RefCell::new(Expected::new(sizes.capacity_pages)));
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let (handle, sizes) = (runtime.clone(), *sizes);
    runtime.finish("recovery", async move {
        let ftl = Ftl::format(media, config.ftl).await?;
        let cleaning = Rc::clone(&ftl);
        handle.spawn("cleaner", async move { cleaning.run_cleaner().await });
        fill(&ftl, &expected, sizes.capacity_pages).await
    })?;
    runtime.drop_tasks();
    nand.power_cut(runtime.now_ns(), |_| Fate::Vanish);
    let runtime = Virtual::new(Schedule::Fifo);
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let pages = sizes.capacity_pages;
    let found = runtime.finish("recovery", async move { scan_cycles(&media).await })?;
    if (found.mapping.len() as u64) < pages {
        let context = format!("the scan found {} of {pages} pages", found.mapping.len());
        return Err(Error::new(ErrorKind::Corrupt, context));
    }
    Ok(milliseconds(runtime.now_ns()))
}
