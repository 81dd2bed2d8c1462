//! A read of several pages shows a single moment, whether they are in a cache, at home or on their
//! way.
mod check;
pub mod devices;
mod long;
mod order;

use check::{Load, Seen, check};
use devices::{Shape, Zones, run, ssd};
use order::orders;
use std::future::Future;
use std::panic::UnwindSafe;
use std::rc::Rc;
use tantalum_base::fault_points::{FaultPoint, plant};
use tantalum_base::{PageDevice, Result, Stamp};
use tantalum_ftl::fault_points::Fault as LogFault;
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_models::baselines::{
    Clustering, RedoLog, ShadowDevice, ShadowLog, ShadowOptions, Wal, WalCommit, WalOptions,
};
use tantalum_models::fault_points::Fault;
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::CacheKind;

const SEEDS: u64 = 24;
const LOAD: Load = Load { seed: 0, commands: 120, others: 100, pause_ns: 300_000, trims: 1 };

/// Runs `load` on the devices that `make` returns, once per seed. Enough reads must have overlapped
/// with a command.
fn whole<D, F, T>(load: Load, make: F)
where
    D: PageDevice<Page = Stamp>,
    F: Fn(Virtual) -> T + Copy + 'static,
    T: Future<Output = Result<Rc<D>>> + 'static,
{
    whole_and(load, make, |_| ());
}

/// As [`whole`], with a check of the device afterwards.
fn whole_and<D, F, T>(load: Load, make: F, look: fn(&D))
where
    D: PageDevice<Page = Stamp>,
    F: Fn(Virtual) -> T + Copy + 'static,
    T: Future<Output = Result<Rc<D>>> + 'static,
{
    let mut all = Seen::default();
    for seed in 0..SEEDS {
        let load = Load { seed, ..load };
        let seen = run(seed, move |runtime| async move {
            let device = make(runtime.clone()).await.unwrap();
            let seen = check(&runtime, &device, load).await;
            look(&device);
            seen
        });
        all.reads += seen.reads;
        all.overlapped += seen.overlapped;
    }
    assert!(all.overlapped > 10 * SEEDS, "few reads met a command: {all:?}");
}

#[test]
fn durable_cache() {
    whole(LOAD, |runtime| ssd(runtime, CacheKind::Durable, FtlOptions::new(160)));
    orders(|runtime| ssd(runtime, CacheKind::Durable, FtlOptions::new(160)));
}

#[test]
fn written_through() {
    whole(LOAD, |runtime| ssd(runtime, CacheKind::WriteThrough, FtlOptions::new(160)));
    orders(|runtime| ssd(runtime, CacheKind::WriteThrough, FtlOptions::new(160)));
}

#[test]
fn ordered_cache() {
    whole(LOAD, |runtime| ssd(runtime, CacheKind::Ordered, FtlOptions::new(160)));
    orders(|runtime| ssd(runtime, CacheKind::Ordered, FtlOptions::new(160)));
}

/// In a batch, some pairs are remapped and others copied.
#[test]
fn shares_of_which_some_are_copied() {
    let ftl = FtlOptions { share_entries_max: Some(2), ..FtlOptions::new(160) };
    whole(LOAD, move |runtime| ssd(runtime, CacheKind::WriteThrough, ftl));
}

#[test]
fn shares_seen_by_halves_are_noticed() {
    assert!(is_noticed(LogFault::SharesSeenByHalves, shares_of_which_some_are_copied));
}

/// Whether `test` fails while `fault` is planted.
fn is_noticed(fault: impl Into<FaultPoint>, test: impl Fn() + UnwindSafe) -> bool {
    let _planted = plant(fault);
    std::panic::catch_unwind(test).is_err()
}

async fn tx_cache(runtime: Virtual, cache_pages: u32) -> Result<Rc<TxCache<Virtual, Zones>>> {
    let options = TxCacheOptions {
        transactions_max: 6,
        headers: 6,
        write_pages_max: 4,
        free_frames: 2,
        write_backs_in_flight: 2,
        extended_pages: 24,
        ..TxCacheOptions::new(cache_pages)
    };
    let zones = devices::zones(&runtime, Shape::SMALL)?;
    let pages = 160 + u64::from(options.extended_pages);
    let ftl = Ftl::format(zones, FtlOptions::new(pages)).await?;
    let device = Rc::new(TxCache::new(runtime.clone(), ftl, options)?);
    device.start(&runtime);
    Ok(device)
}

#[test]
fn transactional_cache() {
    whole(LOAD, |runtime| tx_cache(runtime, 24));
    orders(|runtime| tx_cache(runtime, 24));
}

/// Most transactions are larger than the part of the cache that they may use.
#[test]
fn transactions_larger_than_the_cache() {
    whole_and(
        LOAD,
        |runtime| tx_cache(runtime, 8),
        |device| assert!(device.statistics().pages_spilled > 50, "{:?}", device.statistics()),
    );
}

async fn wal(runtime: Virtual, memory_pages: u32, commit: WalCommit) -> Result<Rc<Wal<Stamp>>> {
    let zones = Rc::new(devices::zones(&runtime, Shape::SMALL)?);
    let options = WalOptions { memory_pages, commit, ..WalOptions::new(64) };
    let device = Rc::new(RedoLog::format(zones, FtlOptions::new(120), options).await?);
    device.device().start(&runtime);
    Ok(device)
}

#[test]
fn redo_log() {
    whole(LOAD, |runtime| wal(runtime, 64, WalCommit::Pages));
    orders(|runtime| wal(runtime, 64, WalCommit::Pages));
    orders(|runtime| wal(runtime, 64, WalCommit::Record));
}

/// Pages in the log must be read from there, while zones are cleaned all the time.
#[test]
fn redo_log_without_memory() {
    whole(LOAD, |runtime| wal(runtime, 0, WalCommit::Pages));
    orders(|runtime| wal(runtime, 0, WalCommit::Pages));
    whole(LOAD, |runtime| wal(runtime, 0, WalCommit::Record));
}

/// Programs fail, so that some commands take longer than later ones.
async fn shadow(runtime: Virtual) -> Result<Rc<ShadowDevice<Zones>>> {
    let shape = Shape { program_fail: 0.02, blocks_per_plane: 120 };
    let zones = devices::zones(&runtime, shape)?;
    let ftl = Ftl::format(zones, FtlOptions::new(160)).await?;
    let options = ShadowOptions { clustering: Clustering::Cycles, transactions_max: 8 };
    let device = Rc::new(ShadowLog::device(ftl, options));
    device.device().start(&runtime);
    Ok(device)
}

#[test]
fn cyclic_commits() {
    whole(LOAD, shadow);
    orders(shadow);
}

#[test]
fn changes_that_overtake_are_noticed() {
    assert!(is_noticed(Fault::ChangesOvertake, || orders(shadow)));
    for commit in [WalCommit::Pages, WalCommit::Record] {
        let in_order = move || orders(move |runtime| wal(runtime, 64, commit));
        assert!(is_noticed(Fault::ChangesOvertake, in_order), "{commit:?}");
    }
}

#[test]
fn readers_that_are_not_waited_for_are_noticed() {
    assert!(is_noticed(LogFault::NoWaitForReaders, long::while_zones_are_emptied));
    assert!(is_noticed(LogFault::NoWaitForReaders, redo_log_without_memory));
}
