//! Power cuts under a pool: flushed content survives, and every page is intact.
mod support;

use std::cell::RefCell;
use std::rc::Rc;
use support::policy;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, Rng};
use tantalum_buffer::{FlusherOptions, Intent, Pool, PoolOptions};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{FileZones, FileZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const PAGES: u64 = 64;
const ZONES: u32 = 24;
const SLOTS_PER_ZONE: u32 = 32;

type Store = CrashStore<MemoryStore, Virtual>;
type Device = Ssd<FileZones<Store>>;

/// For each page, the range of counts that the device may hold: from `flushed` to `newest`.
struct Known {
    flushed: RefCell<Vec<u64>>,
    newest: RefCell<Vec<u64>>,
}

fn content(page: u64, count: u64) -> PageBuf {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&page.to_le_bytes());
    words[8..].copy_from_slice(&count.to_le_bytes());
    PageBuf::copy_from(&words.repeat(PAGE_BYTES / 16))
}

/// The count of a page; panics if the page is torn.
fn count_of(page: u64, found: &PageBuf) -> u64 {
    if *found == PageBuf::zero() {
        return 0;
    }
    let mut word = [0; 8];
    word.copy_from_slice(&found[8..16]);
    let count = u64::from_le_bytes(word);
    assert!(*found == content(page, count), "page {page} is torn or another one: {found:?}");
    count
}

async fn open(
    runtime: &Virtual,
    disk: MemoryStore,
    seed: u64,
    kind: CacheKind,
    new: bool,
) -> Result<(Store, Rc<Device>)> {
    let options = CrashOptions {
        seed,
        read_ns: (10_000, 100_000),
        write_ns: (20_000, 400_000),
        sync_ns: (100_000, 500_000),
    };
    let store = CrashStore::new(runtime.clone(), disk, options);
    let options = FileZonesOptions {
        volume_id: 9,
        first_byte: 0,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    let zones = FileZones::new(store.clone(), options)?;
    let ftl = match new {
        true => Ftl::format(zones, FtlOptions::new(PAGES)).await?,
        false => Ftl::recover(zones, FtlOptions::new(PAGES)).await?.0,
    };
    let ssd = Rc::new(Ssd::new(ftl, SsdOptions::new(kind, 24))?);
    ssd.start(runtime);
    Ok((store, ssd))
}

/// Updates pages through a pool, and flushes from time to time, until power is cut.
async fn engine(pool: Rc<Pool<Device, Virtual>>, known: Rc<Known>, mut rng: Rng) {
    loop {
        if rng.chance(0.02) {
            let before = known.newest.borrow().clone();
            pool.flush().await.unwrap();
            let mut flushed = known.flushed.borrow_mut();
            flushed.iter_mut().zip(before).for_each(|(flushed, new)| *flushed = new.max(*flushed));
        }
        let page = rng.below(PAGES);
        let mut guard = pool.fix(PageNo(page), Intent::Update).await.unwrap();
        let count = known.newest.borrow()[page as usize] + 1;
        assert_eq!(count_of(page, &guard.page()) + 1, count, "page {page} shows an old content");
        *guard.page_mut() = content(page, count);
        known.newest.borrow_mut()[page as usize] = count;
    }
}

fn live_and_cut(seed: u64, kind: CacheKind) -> u64 {
    let mut rng = Rng::split(seed, "cuts");
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let zeros = || RefCell::new(vec![0; PAGES as usize]);
    let known = Rc::new(Known { flushed: zeros(), newest: zeros() });
    let mut flushed = 0;
    for turn in 0..4 {
        let runtime = Virtual::new(Schedule::Shuffled(rng.next_u64()));
        let (handle, disk, known) = (runtime.clone(), disk.clone(), Rc::clone(&known));
        let (engines, frames) = (1 + rng.below(4), 4 + rng.below(40) as u32);
        let (writers, until_ns) = (rng.below(3) as u32, rng.below(60_000_000));
        let mut seeds = Rng::new(rng.next_u64());
        let store = runtime.run(async move {
            let (store, device) = open(&handle, disk, seed + turn, kind, turn == 0).await.unwrap();
            verify(&device, &known, seed).await;
            let flusher = Some(FlusherOptions::default()).filter(|_| turn % 2 == 1);
            let options = PoolOptions { writers, flusher, ..PoolOptions::default() };
            let lru = policy("lru", frames, PAGES);
            let pool = Pool::new(device, handle.clone(), lru, options).unwrap();
            pool.start();
            for _ in 0..engines {
                let rng = Rng::new(seeds.next_u64());
                handle.spawn("engine", engine(Rc::clone(&pool), Rc::clone(&known), rng));
            }
            handle.sleep(until_ns).await;
            store
        });
        let store = store.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
        runtime.drop_tasks();
        let mut fate = Rng::new(rng.next_u64());
        let cut = Virtual::new(Schedule::Fifo);
        cut.run(async move { store.cut(&mut fate, CutStyle::Random).await }).unwrap().unwrap();
    }
    let runtime = Virtual::new(Schedule::Fifo);
    let (handle, known) = (runtime.clone(), known);
    let counted = runtime.run(async move {
        let (_, device) = open(&handle, disk, seed, kind, false).await.unwrap();
        verify(&device, &known, seed).await;
        flushed += known.flushed.borrow().iter().sum::<u64>();
        flushed
    });
    runtime.drop_tasks();
    counted.unwrap()
}

/// Checks the content that survived, and records it as the new state.
async fn verify(device: &Device, known: &Known, seed: u64) {
    let mut found = vec![PageBuf::zero(); PAGES as usize];
    device.read(PageNo(0), &mut found, None).await.unwrap();
    for (page, found) in (0..).zip(&found) {
        let count = count_of(page, found);
        let at = page as usize;
        let (flushed, newest) = (known.flushed.borrow()[at], known.newest.borrow()[at]);
        assert!(
            (flushed..=newest).contains(&count),
            "seed {seed}: page {page} holds {count}, not from {flushed} to {newest}"
        );
        known.flushed.borrow_mut()[at] = count;
        known.newest.borrow_mut()[at] = count;
    }
}

#[test]
fn what_was_flushed_survives_and_every_page_is_whole() {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    for kind in [CacheKind::WriteThrough, CacheKind::Ordered] {
        let seeds = if nightly { 1000 } else { 40 };
        let survived: u64 = (0..seeds).map(|seed| live_and_cut(seed, kind)).sum();
        assert!(survived > 100 * seeds, "the loads are long enough: {survived}");
    }
}
