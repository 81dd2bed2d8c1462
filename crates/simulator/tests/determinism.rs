//! The same scenario twice leads to the same decisions at the same times; and the same requests,
//! live and in virtual time, lead to the same decisions.
use std::rc::Rc;
use tantalum_base::{
    PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp,
};
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions, FtlStatistics};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::Recorder;
use tantalum_media::{FileZones, FileZonesOptions, ZoneMedia};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Live, Runtime, Virtual};
use tantalum_simulator::{NandRig, Rig};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions, SsdStatistics};

/// Operations, their hash, and the counters after a load of `seed` by `clients`.
fn load(seed: u64, schedule: Schedule, clients: u64) -> (u64, u64, u64, FtlStatistics) {
    let runtime = Virtual::new(schedule);
    let media = NandRig::<Stamp>::new(seed).open(&runtime);
    let media = Recorder::new(Rc::new(media), 0);
    let options = FtlOptions { checkpoint_interval_slots: 100, ..FtlOptions::new(120) };
    let ftl = runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    let cleaner = Rc::clone(&ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(&ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let ftl = Rc::clone(&ftl);
            runtime.spawn("client", async move {
                let mut rng = Rng::split(seed, &format!("client {client}"));
                for count in 0..300 {
                    let page = PageNo(rng.below(120));
                    ftl.write(&[(page, Stamp::new(page, count))], rng.chance(0.5)).await.unwrap();
                }
            })
        })
        .collect();
    let all = async move {
        for task in tasks {
            task.await;
        }
    };
    runtime.run(all).unwrap();
    ftl.validate();
    (ftl.media().count(), ftl.media().hash(), runtime.now_ns(), ftl.statistics())
}

#[test]
fn the_same_scenario_twice_is_the_same() {
    for seed in 0..10 {
        let once = load(seed, Schedule::Shuffled(seed), 3);
        assert!(once.3.zones_cleaned > 0 && once.3.checkpoints > 1, "the load reaches every part");
        assert_eq!(once, load(seed, Schedule::Shuffled(seed), 3), "seed {seed}");
    }
    let other = |seed| load(seed, Schedule::Shuffled(seed), 3).1;
    assert_ne!(other(1), other(2), "the hash tells loads apart");
}

const PAGES: u64 = 120;

fn content(page: PageNo, count: u64) -> PageBuf {
    let mut bytes = [count as u8; PAGE_BYTES];
    bytes[..8].copy_from_slice(&page.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    PageBuf::copy_from(&bytes)
}

/// One request after the other: writes, reads, trims, transactions, flushes.
async fn requests<D: PageDevice<Page = PageBuf>>(device: &D, seed: u64) -> Result<()> {
    let mut rng = Rng::split(seed, "requests");
    for count in 1..=600 {
        let len = 1 + rng.below(6);
        let first = PageNo(rng.below(PAGES - len + 1));
        let pages: Vec<PageBuf> = (0..len).map(|at| content(PageNo(first.0 + at), count)).collect();
        match rng.below(20) {
            0 => device.flush().await?,
            1 => device.trim(PageRange::new(first, len)).await?,
            2..=4 => device.read(first, &mut vec![PageBuf::zero(); len as usize], None).await?,
            kind @ 5..=8 => {
                let tx = device.begin().await?;
                device.write(first, &pages, Some(tx)).await?;
                if kind == 8 { device.abort(tx).await? } else { device.commit(tx).await? }
            }
            _ => device.write(first, &pages, None).await?,
        }
    }
    Ok(())
}

/// The actions of a device: every media operation with its header and spares in order (the last
/// ones in full, all of them as a hash), its counters, and its content at the end.
#[derive(Debug, PartialEq)]
struct Decisions {
    operations: u64,
    hash: u64,
    last: Vec<String>,
    statistics: SsdStatistics,
    contents: Vec<PageBuf>,
}

/// Runs the requests of `seed` on a device on a file in memory, whose operations take no time: the
/// result depends only on the order of requests and tasks.
async fn decide<R: Runtime>(runtime: R, cache: CacheKind, seed: u64) -> Result<Decisions> {
    // A durable cache needs a dump area in addition.
    let zones = if cache == CacheKind::Durable { 21 } else { 14 };
    let options = FileZonesOptions { volume_id: 7, first_byte: 0, zones, slots_per_zone: 32 };
    let store = MemoryStore::new(u64::from(zones) * 32 * PAGE_BYTES as u64);
    let media = Recorder::new(Rc::new(FileZones::new(store, options)?), 1000);
    let dump = DumpOptions::least(&media.geometry(), PAGES, 24);
    let dump = (cache == CacheKind::Durable).then_some(dump);
    let options = FtlOptions { checkpoint_interval_slots: 100, dump, ..FtlOptions::new(PAGES) };
    let ftl = Ftl::format(media, options).await?;
    let ssd = Rc::new(Ssd::new(ftl, SsdOptions::new(cache, 24))?);
    ssd.start(&runtime);
    requests(&*ssd, seed).await?;
    ssd.close().await?;
    let media = ssd.ftl().media();
    let (operations, hash, last) = (media.count(), media.hash(), media.take());
    let mut contents = vec![PageBuf::zero(); PAGES as usize];
    ssd.read(PageNo(0), &mut contents, None).await?;
    Ok(Decisions { operations, hash, last, statistics: ssd.statistics(), contents })
}

#[test]
fn the_same_requests_live_and_in_virtual_time_are_decided_alike() {
    for cache in [CacheKind::WriteThrough, CacheKind::Ordered, CacheKind::Durable] {
        for seed in 0..5 {
            let runtime = Virtual::new(Schedule::Fifo);
            let simulated = runtime.run(decide(runtime.clone(), cache, seed)).unwrap().unwrap();
            runtime.drop_tasks();
            let runtime = Live::new(LiveOptions::default()).unwrap();
            let live = runtime.run(decide(runtime.clone(), cache, seed)).unwrap();
            runtime.drop_tasks();
            let ftl = simulated.statistics.ftl;
            assert!(ftl.zones_cleaned > 0 && ftl.checkpoints > 2, "every part is reached: {ftl:?}");
            let pairs = simulated.last.iter().zip(&live.last);
            let differ = pairs.enumerate().find(|(_, (simulated, live))| simulated != live);
            assert!(differ.is_none(), "{cache:?} seed {seed}: {differ:?}");
            assert!(simulated == live, "{cache:?} seed {seed}");
        }
    }
}
