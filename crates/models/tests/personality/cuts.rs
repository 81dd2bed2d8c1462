//! Power cuts on block mapping, BAST, FAST and DFTL: at every operation of a load with every fate,
//! and again in the recovery. Exactly the acknowledged changes survive.
//!
//! The crash lab cuts these layers too, at random places; here every operation of a load is cut, and every
//! operation of a recovery.
use crate::personality::loads::{Known, Load, ORDERS, nand, perform, requests, verify, zones};
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_media::{CutPlan, ErasedZones, Fate, ZoneMedia};
use tantalum_models::fault_points::Fault;
use tantalum_models::personality::{Personality, PersonalitySpec};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

/// A load on a device, with its power cuts.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    spec: PersonalitySpec,
    load: Load,
    blocks: u32,
    pages_per_block: u32,
    /// Number of operations before the cut, and its fate.
    cut: Option<(u64, Fate)>,
    /// The same for a second cut, in the recovery.
    cut_in_recovery: Option<(u64, Fate)>,
}

/// Numbers of operations of the load and of the (first) recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Operations {
    load: u64,
    recovery: u64,
}

/// Runs a load, cuts power, recovers, verifies, goes on, and verifies again after another cut.
fn cut(scenario: &Scenario) -> Result<Operations, String> {
    let Scenario { spec, load, blocks, pages_per_block, .. } = *scenario;
    let block = u64::from(pages_per_block);
    let nand = nand(1, blocks, pages_per_block, 4096);
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = zones(&runtime, &nand);
    let pages = spec.pages_max(&zones.geometry(), 0);
    let mut operations = Operations::default();
    let (mut known, mut in_flight) = (Known::default(), None);
    let media = ErasedZones::new(zones.reopen(runtime.clone()));
    let rt = runtime.clone();
    let device = runtime.run(async move { Personality::format(&rt, media, spec, pages).await });
    let device = device.unwrap().map_err(|error| format!("formatting: {error:?}"))?;
    let (before, cuts) = (nand.mutations(), nand.power_cuts());
    let plan = |cut: Option<(u64, Fate)>| {
        nand.plan_cut(cut.map(|(after_operations, fate)| CutPlan { after_operations, fate }));
    };
    plan(scenario.cut);
    for request in requests(&load, pages, block) {
        let task = Rc::clone(&device);
        let ended = runtime.run(async move { perform(&*task, request).await });
        if nand.power_cuts() > cuts {
            in_flight = Some(request);
            break;
        }
        ended.unwrap().map_err(|error| format!("{request:?}: {error:?}"))?;
        known.apply(request);
    }
    operations.load = nand.mutations() - before;
    runtime.drop_tasks();
    drop(device);
    for opening in 0..3 {
        plan(None);
        let runtime = Virtual::new(Schedule::Fifo);
        let media = ErasedZones::new(zones.reopen(runtime.clone()));
        let (before, cuts) = (nand.mutations(), nand.power_cuts());
        if opening == 0 {
            plan(scenario.cut_in_recovery);
        }
        let rt = runtime.clone();
        let device =
            runtime.run(async move { Personality::recover(&rt, media, spec, pages).await });
        if opening == 0 {
            operations.recovery = nand.mutations() - before;
            if nand.power_cuts() > cuts {
                continue;
            }
        }
        plan(None);
        let device = device.unwrap().map_err(|error| format!("recovery {opening}: {error:?}"))?;
        let mut expected = known.clone();
        let more = Load { seed: load.seed + 9, fill: false, requests: 12, ..load };
        let verified = runtime.run(async move {
            verify(&*device, &mut expected, in_flight).await?;
            for request in requests(&more, pages, block) {
                let done = perform(&*device, request).await;
                done.map_err(|error| format!("after recovery: {request:?}: {error:?}"))?;
                expected.apply(request);
            }
            verify(&*device, &mut expected, None).await?;
            Ok::<_, String>(expected)
        });
        known = verified.unwrap().map_err(|wrong| format!("opening {opening}: {wrong}"))?;
        in_flight = None;
        runtime.drop_tasks();
    }
    Ok(operations)
}

fn scenarios(spec: &str) -> impl Iterator<Item = Scenario> {
    let spec = PersonalitySpec::parse(spec).unwrap();
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 20 } else { 1 };
    (0..seeds).flat_map(move |seed| {
        ORDERS.map(|order| Scenario {
            spec,
            load: Load { seed, order, requests: 40, trims: 0.1, fill: true },
            blocks: 11,
            pages_per_block: 4,
            cut: None,
            cut_in_recovery: None,
        })
    })
}

/// Cuts everywhere in one scenario, `step` operations apart. Returns the first broken promise.
fn everywhere(plain: Scenario, step: u64) -> Result<u64, String> {
    let tell =
        |scenario: &Scenario| cut(scenario).map_err(|wrong| format!("{scenario:?}: {wrong}"));
    let mut cuts = 0;
    let operations = tell(&plain)?.load;
    for after in (0..operations).step_by(step as usize) {
        for fate in Fate::ALL {
            let one = Scenario { cut: Some((after, fate)), ..plain };
            let recovery = tell(&one)?.recovery;
            cuts += 1;
            if after % 7 == 0 {
                for again in 0..recovery {
                    let cut_in_recovery = Some((again, Fate::ALL[(again % 3) as usize]));
                    tell(&Scenario { cut_in_recovery, ..one })?;
                    cuts += 1;
                }
            }
        }
    }
    Ok(cuts)
}

fn survives(spec: &str) {
    let mut cuts = 0;
    for scenario in scenarios(spec) {
        cuts += everywhere(scenario, 1).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{spec}: {cuts} cuts");
    assert!(cuts > 500, "{cuts}");
}

#[test]
fn block_map_survives() {
    survives("block-map");
}

#[test]
fn bast_survives() {
    survives("bast:logs=2");
}

#[test]
fn fast_survives() {
    survives("fast:logs=2");
}

#[test]
fn dftl_survives() {
    survives("dftl:cmt=5");
}

#[test]
fn recovery_that_does_not_look_for_the_newest_is_noticed() {
    for spec in ["block-map", "bast:logs=2", "fast:logs=2", "dftl:cmt=5"] {
        let _planted = plant(Fault::AnyCopyCounts);
        let found = scenarios(spec).find_map(|scenario| {
            let search = || everywhere(scenario, 3);
            let found = std::panic::catch_unwind(search);
            found.map_or(Some("an assertion".to_owned()), |cuts| cuts.err())
        });
        println!("{spec}: {found:?}");
        assert!(found.is_some(), "{spec}");
    }
}
