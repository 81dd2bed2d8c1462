//! The TxSSD of table II, scaled down.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Payload, Rng, Stamp};
use tantalum_ftl::Ftl;
use tantalum_media::ErasedZones;
use tantalum_models::profile::{SimulatedTxSsd, TxSsdConfig};
use tantalum_models::tx_cache::TxCacheStatistics;
use tantalum_models::{Nand, NandZones};
use tantalum_models::{Profile, TxCache};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

const PAGES: u64 = 40_000;

/// Rewrites random pages, eight per transaction or as plain writes, and compares every page.
fn load(config: TxSsdConfig, seed: u64) -> (TxCacheStatistics, u64) {
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let main = async move {
        let built = config.build::<_, Stamp>(&handle, seed).await;
        let device: Rc<SimulatedTxSsd<Virtual, Stamp>> = built.unwrap();
        let transactional = device.limits().transactions_max > 0;
        let mut rng = Rng::new(seed);
        let mut expected = vec![0; PAGES as usize];
        for count in 1..=8_000u64 {
            let tx = if transactional { Some(device.begin().await.unwrap()) } else { None };
            for _ in 0..8 {
                // Four of five writes go to a tenth of the pages.
                let range = if rng.chance(0.8) { PAGES / 10 } else { PAGES };
                let page = rng.below(range);
                device.write(PageNo(page), &[Stamp::new(PageNo(page), count)], tx).await.unwrap();
                expected[page as usize] = count;
            }
            if let Some(tx) = tx {
                device.commit(tx).await.unwrap();
            }
        }
        let load_ns = handle.now_ns();
        for (page, count) in (0..).map(PageNo).zip(expected) {
            let mut out = [Stamp::default()];
            device.read(page, &mut out, None).await.unwrap();
            let wanted = if count == 0 { Stamp::zero() } else { Stamp::new(page, count) };
            assert_eq!(out[0], wanted);
        }
        (device.device().statistics(), load_ns)
    };
    let done = runtime.run(main).unwrap();
    runtime.drop_tasks();
    done
}

#[test]
fn a_scaled_tx_ssd_merges_writes_and_cleans() {
    let (tx_cache, tx_ns) = load(TxSsdConfig::new(PAGES, 1024), 1);
    let (nv_cache, nv_ns) = load(TxSsdConfig::nv_cache(PAGES, 1024), 1);
    println!("TxCache {tx_ns} ns {tx_cache:?}\nNVCache {nv_ns} ns {nv_cache:?}");
    for (statistics, coalesced) in [(&tx_cache, 4_000), (&nv_cache, 6_000)] {
        assert_eq!(statistics.pages_written, 64_000);
        assert!(statistics.pages_coalesced > coalesced, "{statistics:?}");
        assert!(statistics.ftl.zones_cleaned > 0, "{statistics:?}");
    }
    assert_eq!((tx_cache.commits, nv_cache.commits), (8_000, 0));
    assert_eq!(load(TxSsdConfig::new(PAGES, 1024), 1), (tx_cache, tx_ns), "deterministic");
}

#[test]
fn the_whole_device_is_that_of_table_ii() {
    let profile = Profile::tx_ssd();
    let config = TxSsdConfig::new(profile.pages, profile.cache_pages as u32).device().unwrap();
    let nand = config.nand.geometry;
    assert_eq!((nand.channels * nand.packages_per_channel, nand.planes_per_package), (8, 8));
    assert_eq!((nand.page_bytes, nand.pages_per_block), (4096, 64));
    let zones = nand.blocks_per_plane;
    assert_eq!(config.ftl.cleaning_low_zones, (zones * 5).div_ceil(100));
    assert_eq!(config.ftl.pages, (32 << 30) / 4096 + 8192);
}

/// Section IV-E, table III: 19 µs for 128 headers. Here there are half as many headers as pages of the cache, and each is
/// examined: 0.6 ms. The time to rebuild the indexes is added.
#[test]
fn recovery_of_a_cache_of_32_mib() {
    let config = TxSsdConfig::new(20_000, 8192);
    let device = config.device().unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let (zones, nvram) = runtime
        .run(async move {
            let nand = Nand::new(&device.nand).unwrap();
            let zones = NandZones::<_, Stamp>::new(handle.clone(), nand, device.zones).unwrap();
            let ftl = Ftl::format(ErasedZones::new(zones.reopen(handle.clone())), device.ftl)
                .await
                .unwrap();
            let cache = Rc::new(TxCache::new(handle.clone(), ftl, config.cache).unwrap());
            cache.start(&handle);
            for page in (0..3000).map(PageNo) {
                cache.write(page, &[Stamp::new(page, 1)], None).await.unwrap();
            }
            (zones, cache.nvram())
        })
        .unwrap();
    runtime.drop_tasks();
    let config = TxSsdConfig::new(20_000, 8192);
    let ftl_options = config.device().unwrap().ftl;
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let recover = async move {
        let (ftl, _) = Ftl::recover(ErasedZones::new(zones.reopen(handle.clone())), ftl_options)
            .await
            .unwrap();
        let (_, report) = TxCache::recover(handle, ftl, config.cache, nvram).await.unwrap();
        report
    };
    let report = runtime.run(recover).unwrap();
    runtime.drop_tasks();
    assert_eq!((report.headers, report.redone, report.undone), (4_097, 0, 0));
    assert_eq!((report.time_ns, report.page_headers), (614_550, 16_384));
    assert_eq!(report.index_ns, 16_384 * 150);
}
