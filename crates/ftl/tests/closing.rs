//! Devices that are closed while changes are under way: acknowledged changes are there after the next opening, whether
//! they were acknowledged before, while or after the last checkpoint was written.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::fault_points::{Planted, assert_noticed, plant};
use tantalum_base::{Error, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, Rng};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::rig::{FileRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 60;

type Media = ErasedZones<PageBuf>;

fn content(page: u64, count: u8) -> PageBuf {
    PageBuf::copy_from(&std::array::from_fn::<u8, PAGE_BYTES, _>(|at| match at {
        0..8 => page.to_le_bytes()[at],
        _ => count,
    }))
}

fn batch(first: u64, pages: u64, count: u8) -> Vec<(PageNo, PageBuf)> {
    (first..first + pages).map(|page| (PageNo(page), content(page, count))).collect()
}

/// Runs `life` with power, and cuts the power at its end.
fn powered<T: 'static>(
    rig: &mut FileRig,
    seed: u64,
    life: impl AsyncFnOnce(Virtual, Media) -> T + 'static,
) -> T {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let media = rig.open(&runtime);
    let handle = runtime.clone();
    let result = runtime.run(async move { life(handle, media).await }).unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    result
}

/// Changes some pages, durably.
async fn change<M: ZoneMedia<Page = PageBuf>>(ftl: &Ftl<M>, kind: u64) -> Result<()> {
    match kind {
        0 => ftl.write(&batch(0, 12, 2), true).await,
        1 => ftl.trim(PageRange::new(PageNo(0), 12), true).await,
        _ => ftl.share(&[(PageNo(0), PageNo(20)), (PageNo(11), PageNo(21))], true, || ()).await,
    }
}

/// The contents of the changed pages, by the kind of change.
fn expected(kind: u64) -> Vec<PageBuf> {
    let held = |page| match (kind, page) {
        (0, _) => content(page, 2),
        (1, _) => PageBuf::zero(),
        (_, 0) => content(20, 1),
        (_, 11) => content(21, 1),
        _ => content(page, 1),
    };
    (0..12).map(held).collect()
}

async fn read<M: ZoneMedia<Page = PageBuf>>(ftl: &Ftl<M>) -> Result<Vec<PageBuf>> {
    let pages: Vec<PageNo> = (0..12).map(PageNo).collect();
    let mut found = vec![PageBuf::zero(); 12];
    ftl.read(&pages, &mut found).await?;
    Ok(found)
}

/// Closes a device while a change is under way, opens it, changes other pages, loses power and opens it again; returns
/// the problem.
fn problem(seed: u64, closed: impl Fn() -> Option<Planted>) -> Option<String> {
    let mut rig = FileRig::new(seed);
    let mut rng = Rng::split(seed, "closing");
    let (kind, early_ns) = (rng.below(3), rng.below(600_000));
    let options = FtlOptions::new(PAGES);
    let planted = closed();
    powered(&mut rig, seed, async move |runtime: Virtual, media| {
        let ftl = Ftl::format(media, options).await.unwrap();
        for first in (0..PAGES).step_by(12) {
            ftl.write(&batch(first, 12, 1), true).await.unwrap();
        }
        let changing = Rc::clone(&ftl);
        let changing = runtime.spawn("change", async move { change(&changing, kind).await });
        runtime.sleep(early_ns).await;
        ftl.close().await.unwrap();
        changing.await.unwrap();
    });
    drop(planted);
    for opening in 0..2 {
        let found = powered(&mut rig, seed, async move |_, media| {
            let (ftl, _) = Ftl::recover(media, options).await?;
            ftl.validate();
            let found = read(&ftl).await?;
            ftl.write(&batch(40, 4, 3), true).await?;
            Ok::<_, Error>(found)
        });
        match found {
            Err(error) => return Some(format!("seed {seed}, opening {opening}: {error}")),
            Ok(found) if found != expected(kind) => {
                return Some(format!("seed {seed}, opening {opening}: a change {kind} is gone"));
            }
            Ok(_) => {}
        }
    }
    None
}

const SEEDS: std::ops::Range<u64> = 0..200;

#[test]
fn what_is_acknowledged_while_a_device_is_closed_is_there_afterwards() {
    assert_noticed(Fault::UncoveredTakenForClean, || {
        SEEDS.into_iter().find_map(|seed| problem(seed, || None))
    });
}

#[test]
fn what_a_device_lacks_that_was_closed_too_early_is_found_in_the_log() {
    for seed in SEEDS {
        assert_eq!(problem(seed, || Some(plant(Fault::UncoveredTakenForClean))), None);
    }
}

/// Closes a device with energy for a dump while a share that is in no log is under way, and opens it as a device that
/// dumped nothing; returns the problem.
fn shared_while_closed(seed: u64) -> Option<String> {
    const DUMP_ZONES: u32 = 9;
    let mut rig = FileRig::with_more_zones(seed, DUMP_ZONES);
    let early_ns = Rng::split(seed, "closing").below(600_000);
    let options = |media: &Media| {
        let dump = Some(DumpOptions::least(&media.geometry(), PAGES, 1));
        FtlOptions { dump, ..FtlOptions::new(PAGES) }
    };
    let acknowledged = powered(&mut rig, seed, async move |runtime: Virtual, media| {
        let options = options(&media);
        let ftl = Ftl::format(media, options).await.unwrap();
        for first in (0..PAGES).step_by(12) {
            ftl.write(&batch(first, 12, 1), true).await.unwrap();
        }
        let acknowledged = Rc::new(Cell::new(false));
        let (changing, done, rt) = (Rc::clone(&ftl), Rc::clone(&acknowledged), runtime.clone());
        runtime.spawn("change", async move {
            rt.sleep(early_ns).await;
            change(&changing, 2).await.unwrap();
            done.set(true);
        });
        ftl.close().await.unwrap();
        acknowledged.get()
    });
    let found = powered(&mut rig, seed, async move |_, media| {
        let options = options(&media);
        let (ftl, _) = Ftl::recover(media, options).await?;
        ftl.validate();
        read(&ftl).await
    });
    match found {
        Err(error) => Some(format!("seed {seed}: {error}")),
        Ok(found) if acknowledged && found != expected(2) => {
            Some(format!("seed {seed}: an acknowledged share is gone"))
        }
        Ok(_) => None,
    }
}

#[test]
fn what_is_shared_while_a_device_is_closed_is_there_afterwards_without_a_dump() {
    assert_noticed(Fault::UncoveredTakenForClean, || {
        SEEDS.into_iter().find_map(shared_while_closed)
    });
}

/// Then the next opening has nothing to scan.
#[test]
fn a_device_that_is_closed_while_a_change_is_under_way_waits_for_it() {
    let mut rig = FileRig::new(1);
    let options = FtlOptions::new(PAGES);
    powered(&mut rig, 1, async move |runtime: Virtual, media| {
        let ftl = Ftl::format(media, options).await.unwrap();
        let changing = Rc::clone(&ftl);
        let changing = runtime.spawn("change", async move { change(&changing, 0).await });
        while ftl.is_durable() {
            runtime.sleep(1_000).await;
        }
        ftl.close().await.unwrap();
        assert!(ftl.is_durable());
        changing.await.unwrap();
    });
    let (found, report) = powered(&mut rig, 1, async move |_, media| {
        let (ftl, report) = Ftl::recover(media, options).await.unwrap();
        (read(&ftl).await.unwrap(), report)
    });
    assert!(found == expected(0));
    assert_eq!((report.zones_scanned, report.replayed), (0, 0), "{report:?}");
}
