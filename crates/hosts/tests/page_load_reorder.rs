//! The forms on the worst device that the contract allows: each page that was not flushed survives
//! a cut or does not, independently of earlier and later writes. So each flush of an engine is
//! needed.

use crate::page_cuts::{DATABASE_PAGES, DEVICE_PAGES, engine_options, torn_of};
use crate::worst_disk::WorstDisk;
use tantalum_base::{Durability, PageNo, Rng, Stamp};
use tantalum_hosts::double_write::{Form, PageLoad, restore, versions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// The number of torn pages after a cut, a recovery that is cut as well, and a complete one.
async fn torn_after_a_cut(runtime: &Virtual, form: Form, seed: u64) -> usize {
    let mut rng = Rng::split(seed, "cut");
    let disk = WorstDisk::<Stamp>::new(Durability::Volatile, DEVICE_PAGES);
    let options = engine_options(form);
    let engine = PageLoad::create(runtime, &disk, options).await.unwrap();
    disk.cut_after(rng.below(1_000));
    while !disk.is_off() {
        // An error is the cut; the caller is gone.
        let page = PageNo(rng.below(DATABASE_PAGES));
        if engine.access(page, rng.chance(0.8)).await.is_err() {
            break;
        }
    }
    let bounds: Vec<_> = (0..DATABASE_PAGES).map(|page| engine.bounds(PageNo(page))).collect();
    disk.power_on(&mut rng);
    disk.cut_after(rng.below(30));
    let first = restore(runtime, &disk, options).await;
    assert!(first.is_ok() || disk.is_off(), "{form:?}, seed {seed}: {first:?}");
    disk.power_on(&mut rng);
    restore(runtime, &disk, options).await.unwrap();
    let found = versions(runtime, &disk, options).await.unwrap();
    torn_of(&found, &bounds, (form, seed))
}

fn torn(form: Form) -> usize {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 20_000 } else { 500 };
    let mut torn = 0;
    for seed in 0..seeds {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let rt = runtime.clone();
        let run = runtime.run(async move { torn_after_a_cut(&rt, form, seed).await });
        runtime.drop_tasks();
        let left = run.unwrap();
        assert!(left == 0 || form == Form::Off, "{form:?}, seed {seed}: {left} torn pages");
        torn += left;
    }
    torn
}

#[test]
fn double_write_leaves_no_torn_page() {
    torn(Form::On);
}

#[test]
fn share_leaves_no_torn_page() {
    torn(Form::Share);
}

/// The protection switched off.
#[test]
fn without_double_write_pages_are_torn() {
    assert!(torn(Form::Off) > 0);
}
