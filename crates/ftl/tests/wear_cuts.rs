//! Power cuts during constant wear levelling: cold content has zones of its own, and recovery must
//! know which copy of a page counts.
//!
//! Not part of the crash lab, whose devices level wear as rarely as real ones: here zones are
//! levelled whenever possible.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, PageNo, Payload, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::{CutPlan, Fate};
use tantalum_models::rig::{NandRig, Rig};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 100;

fn options(seed: u64) -> FtlOptions {
    FtlOptions {
        wear_spread_max: 0,
        cleaning: CleaningSpec::DChoices { choices: 2, seed },
        checkpoint_interval_slots: 16,
        ..FtlOptions::new(PAGES)
    }
}

/// Recovers, checks that every page is at least as new as acknowledged, and writes until power is
/// cut; returns how many zones were levelled in all.
fn lives(seed: u64) -> u64 {
    let mut rng = Rng::split(seed, "lives");
    let mut rig = NandRig::<Stamp>::with_more_zones(seed, 2);
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    runtime.run(async move { Ftl::format(media, options(seed)).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    let acknowledged = Rc::new(RefCell::new(vec![0; PAGES as usize]));
    let mut levelled = 0;
    for power_on in 1..=30 {
        let runtime = Virtual::new(Schedule::Shuffled(rng.next_u64()));
        let media = rig.open(&runtime);
        let after_operations = rng.below(1000);
        rig.plan(CutPlan { after_operations, fate: Fate::ALL[rng.below(3) as usize] });
        let (known, rt, mut load) =
            (Rc::clone(&acknowledged), runtime.clone(), Rng::new(rng.next_u64()));
        let device = Rc::new(RefCell::new(None));
        let kept = Rc::clone(&device);
        let life = async move {
            let (ftl, report) = Ftl::recover(media, options(seed)).await?;
            assert_eq!(report.pages_lost, 0, "seed {seed}, power-on {power_on}");
            ftl.validate();
            for page in 0..PAGES {
                let mut out = [Stamp::zero()];
                let read = ftl.read(&[PageNo(page)], &mut out).await;
                read.inspect_err(|error| eprintln!("seed {seed}, power-on {power_on}: {error}"))?;
                let count = &mut known.borrow_mut()[page as usize];
                // Writes in flight may have landed.
                assert!(out[0].count >= *count, "seed {seed}, power-on {power_on}: page {page}");
                *count = out[0].count;
            }
            *kept.borrow_mut() = Some(Rc::clone(&ftl));
            let (cleaner, checkpointer) = (Rc::clone(&ftl), Rc::clone(&ftl));
            rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
            rt.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            for count in power_on * 1_000_000.. {
                // First all pages, then a part of them again and again.
                let cold = count - power_on * 1_000_000 < PAGES && power_on == 1;
                let among = if load.chance(0.5) { 12 } else { PAGES };
                let page = if cold { count - 1_000_000 } else { load.below(among) };
                ftl.write(&[(PageNo(page), Stamp::new(PageNo(page), count))], true).await?;
                known.borrow_mut()[page as usize] = count;
            }
            Ok::<(), Error>(())
        };
        let ended = runtime.run(life);
        if let Ok(Err(error)) = ended {
            assert!(rig.is_cut(), "seed {seed}, power-on {power_on}: {error}");
        }
        runtime.drop_tasks();
        levelled += device.take().map_or(0, |ftl: Rc<Ftl<_>>| ftl.statistics().zones_levelled);
        rig.power_off(&runtime).unwrap();
    }
    levelled
}

#[test]
fn what_was_levelled_is_found_where_it_is() {
    for seed in 0..60 {
        let levelled = lives(seed);
        assert!(levelled > 10, "seed {seed}: {levelled} zones");
    }
}
