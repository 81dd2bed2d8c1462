//! Concurrent writes on layers whose zones have several planes: writes to consecutive pages go in
//! one append, and a power cut still affects each page independently.
use crate::personality::loads::{nand, read, stamp, zones};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Rng, Stamp};
use tantalum_media::{CutPlan, ErasedZones, Fate, ZoneMedia};
use tantalum_models::personality::{Personality, PersonalitySpec};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PLANES: u32 = 4;
const CLIENTS: u32 = 8;

/// For each page: the last write that was begun, and the last that was acknowledged.
#[derive(Clone, Default)]
struct History {
    begun: Vec<u64>,
    acknowledged: Vec<u64>,
}

/// Runs clients that write runs of pages, with a power cut or without, and verifies the result.
/// Returns the operations of the medium and the virtual nanoseconds.
fn load(spec: &str, planes: u32, cut: Option<(u64, Fate)>) -> (u64, u64) {
    let spec = PersonalitySpec::parse(spec).unwrap();
    let nand = nand(planes, 12, 16 / planes, 4096);
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = zones(&runtime, &nand);
    let pages = spec.pages_max(&zones.geometry(), 0);
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let rt = runtime.clone();
    let device = runtime.run(async move { Personality::format(&rt, media, spec, pages).await });
    let device = device.unwrap().unwrap();
    let (before, cuts) = (nand.mutations(), nand.power_cuts());
    nand.plan_cut(cut.map(|(after_operations, fate)| CutPlan { after_operations, fate }));
    let none = vec![0; pages as usize];
    let history = Rc::new(RefCell::new(History { begun: none.clone(), acknowledged: none }));
    let runs = Rc::new(RefCell::new((Rng::new(5), 0u64, 0u64)));
    let written = Rc::new(Cell::new(0u64));
    let started_ns = runtime.now_ns();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (device, history) = (Rc::clone(&device), Rc::clone(&history));
            let (runs, written) = (Rc::clone(&runs), Rc::clone(&written));
            runtime.spawn("client", async move {
                while written.get() < 6 * pages {
                    let page = {
                        let (rng, at, left) = &mut *runs.borrow_mut();
                        if *left == 0 {
                            (*at, *left) = (rng.below(pages), 1 + rng.below(24));
                        }
                        *left -= 1;
                        *at = (*at + 1) % pages;
                        *at
                    };
                    written.set(written.get() + 1);
                    let count = written.get();
                    // Only one write of a page at a time, so that the newest is known.
                    let begun = history.borrow().begun[page as usize];
                    if begun != history.borrow().acknowledged[page as usize] {
                        continue;
                    }
                    history.borrow_mut().begun[page as usize] = count;
                    let content: Stamp = stamp(page, count);
                    device.write(PageNo(page), &[content], None).await?;
                    history.borrow_mut().acknowledged[page as usize] = count;
                }
                Ok::<_, tantalum_base::Error>(())
            })
        })
        .collect();
    let all = async move {
        for client in clients {
            client.await?;
        }
        Ok::<_, tantalum_base::Error>(())
    };
    let ended = runtime.run(all);
    let took_ns = runtime.now_ns() - started_ns;
    let operations = nand.mutations() - before;
    if nand.power_cuts() == cuts {
        ended.unwrap().unwrap();
    }
    runtime.drop_tasks();
    drop(device);
    nand.plan_cut(None);
    verify(spec, pages, &zones, &history.borrow());
    (operations, took_ns)
}

/// After reopening, each page has the content of its last acknowledged write or of the write in
/// progress.
fn verify(
    spec: PersonalitySpec,
    pages: u64,
    zones: &crate::personality::loads::Zones,
    history: &History,
) {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let history = history.clone();
    let rt = runtime.clone();
    let check = async move {
        let device = Personality::recover(&rt, media, spec, pages).await.unwrap();
        for page in 0..pages {
            let found = read(&*device, page).await.unwrap();
            let at = page as usize;
            let allowed = [history.acknowledged[at], history.begun[at]];
            assert!(
                allowed.iter().any(|count| found == stamp(page, *count)),
                "{spec}: page {page} is {found:?}, allowed are {allowed:?}"
            );
        }
    };
    runtime.run(check).unwrap();
}

#[test]
fn writes_in_flight_survive_a_cut_each_for_itself() {
    let step = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 1 } else { 7 };
    for spec in ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"] {
        let (operations, _) = load(spec, PLANES, None);
        assert!(operations > 100, "{spec}: {operations}");
        for after in (0..operations).step_by(step) {
            for fate in Fate::ALL {
                load(spec, PLANES, Some((after, fate)));
            }
        }
    }
}

#[test]
fn planes_work_side_by_side_where_the_layer_appends_runs() {
    for spec in ["bast:logs=2", "fast:logs=2"] {
        // The same flash and the same writes.
        let (one, four) = (load(spec, 1, None).1, load(spec, PLANES, None).1);
        assert!(3 * four < 2 * one, "{spec}: {four} ns and {one} ns");
    }
}
