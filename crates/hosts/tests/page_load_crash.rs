//! Power cuts under an engine whose pages are four device pages, on a device with a volatile cache
//! that tears them. Pages that left the pool must be whole after recovery, and no older than the
//! last completed batch.

use crate::page_cuts::{DATABASE_PAGES, DEVICE_PAGES, engine_options, torn_of};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageNo, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_hosts::double_write::{Form, PageLoad, restore, versions};
use tantalum_media::{CutPlan, ErasedZones, Fate};
use tantalum_models::nand::Nand;
use tantalum_models::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_ssd::{CacheKind, Ssd, SsdOptions};

const ACCESSES: u64 = 400;

/// The device writes back batches that are not a multiple of four pages, so that they split pages in
/// two.
const APPEND_PAGES_MAX: u32 = 6;

type Zones = NandZones<Virtual, Stamp>;
type Device = Ssd<ErasedZones<Stamp>>;

fn ftl_options() -> FtlOptions {
    FtlOptions { checkpoint_interval_slots: 128, ..FtlOptions::new(DEVICE_PAGES) }
}

fn device(runtime: &Virtual, ftl: Rc<Ftl<ErasedZones<Stamp>>>, cache: CacheKind) -> Rc<Device> {
    let options = match cache {
        // A write is atomic there, so a write of a whole page is not torn. Therefore it accepts
        // single pages, and its cache becomes full in the middle of the host's pages.
        CacheKind::Ordered => SsdOptions {
            write_pages_max: 1,
            write_back_start_pages: 1,
            ..SsdOptions::new(cache, 6)
        },
        _ => SsdOptions {
            write_back_start_pages: 8,
            write_backs_in_flight: 2,
            ..SsdOptions::new(cache, 24)
        },
    };
    let ssd = Rc::new(Ssd::new(ftl, options).unwrap());
    ssd.start(runtime);
    ssd
}

/// A form of the engine on a kind of device.
type Case = (Form, CacheKind);

/// Lowest and highest version that each page may have after the cut.
type Bounds = Vec<(u64, u64)>;

/// Runs the load until the power is cut.
fn load(case: Case, seed: u64, zones: &Zones, nand: &Nand<Stamp>, runtime: &Virtual) -> Bounds {
    let (form, cache) = case;
    let bounds = Rc::new(RefCell::new(Vec::new()));
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let told = Rc::clone(&bounds);
    let (rt, plan) = (runtime.clone(), nand.clone());
    let cuts_before = nand.power_cuts();
    let ran = runtime.run(async move {
        let ssd = device(&rt, Ftl::format(media, ftl_options()).await?, cache);
        let engine = PageLoad::create(&rt, &ssd, engine_options(form)).await?;
        let mut rng = Rng::split(seed, "load");
        let after_operations = rng.below(150);
        let fate = Fate::ALL[rng.below(3) as usize];
        plan.plan_cut(Some(CutPlan { after_operations, fate }));
        let mut ended = Ok(());
        for _ in 0..ACCESSES {
            let page = PageNo(rng.below(DATABASE_PAGES));
            ended = engine.access(page, rng.chance(0.8)).await;
            if ended.is_err() {
                break;
            }
        }
        let pages = (0..DATABASE_PAGES).map(PageNo);
        *told.borrow_mut() = pages.map(|page| engine.bounds(page)).collect();
        ended
    });
    if let Err(error) = ran.unwrap() {
        // An answer after the cut reaches nobody and may be anything.
        assert!(nand.power_cuts() > cuts_before, "{form:?}, seed {seed}: {error}");
    }
    runtime.drop_tasks();
    bounds.take()
}

/// Recovers, with a cut during the recovery if `cut`; returns the versions of all homes.
fn recovered(
    (form, cache): Case,
    seed: u64,
    zones: &Zones,
    nand: &Nand<Stamp>,
    cut: bool,
) -> Option<Vec<Option<u64>>> {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let cuts_before = nand.power_cuts();
    if cut {
        let mut rng = Rng::split(seed, "second cut");
        let fate = Fate::ALL[rng.below(3) as usize];
        nand.plan_cut(Some(CutPlan { after_operations: rng.below(40), fate }));
    }
    let rt = runtime.clone();
    let ran = runtime.run(async move {
        let (ftl, _) = Ftl::recover(media, ftl_options()).await?;
        let ssd = device(&rt, ftl, cache);
        restore(&rt, &ssd, engine_options(form)).await?;
        versions(&rt, &ssd, engine_options(form)).await
    });
    runtime.drop_tasks();
    let ended = ran.unwrap();
    let was_cut = nand.power_cuts() > cuts_before;
    settle(nand, seed);
    match ended {
        Ok(versions) => Some(versions),
        Err(_) if was_cut => None,
        Err(error) => panic!("{form:?}, seed {seed}: {error}"),
    }
}

/// Writes in flight at the power cut land, vanish or tear.
fn settle(nand: &Nand<Stamp>, seed: u64) {
    nand.plan_cut(None);
    let mut rng = Rng::split(seed, "settle");
    nand.power_cut(0, |_| Fate::ALL[rng.below(3) as usize]);
}

/// The number of torn pages after a cut, a recovery that is cut as well, and a complete one.
fn torn_after_a_cut(case: Case, seed: u64) -> usize {
    let nand = crate::support::nand(seed, 1);
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let options =
        NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: APPEND_PAGES_MAX };
    let zones = NandZones::new(runtime.clone(), nand.clone(), options).unwrap();
    let bounds = load(case, seed, &zones, &nand, &runtime);
    settle(&nand, seed);
    recovered(case, seed, &zones, &nand, true);
    let versions = recovered(case, seed, &zones, &nand, false).expect("nothing is cut");
    torn_of(&versions, &bounds, (case, seed))
}

fn seeds() -> u64 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 2_000 } else { 60 }
}

#[test]
fn double_write_leaves_no_torn_page() {
    for seed in 0..seeds() {
        for cache in [CacheKind::Volatile, CacheKind::Ordered] {
            assert_eq!(torn_after_a_cut((Form::On, cache), seed), 0, "{cache:?}, seed {seed}");
        }
    }
}

#[test]
fn share_leaves_no_torn_page() {
    for seed in 0..seeds() {
        let case = (Form::Share, CacheKind::Ordered);
        assert_eq!(torn_after_a_cut(case, seed), 0, "seed {seed}");
    }
}

/// With the protection switched off: the baseline for the other tests.
#[test]
fn without_double_write_pages_are_torn() {
    for cache in [CacheKind::Volatile, CacheKind::Ordered] {
        let torn = |seed| torn_after_a_cut((Form::Off, cache), seed);
        let torn: usize = (0..seeds()).map(torn).sum();
        assert!(torn > 0, "{cache:?} tears no page, so that the other tests show nothing");
    }
}
