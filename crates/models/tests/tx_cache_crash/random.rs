//! Long random loads, cut at random places, half of them again inside recovery.
use crate::tx_cache_crash::matrix::{larger, small};
use crate::tx_cache_crash::rig::{At, Cut, FATES};
use crate::tx_cache_crash::scenario::{Scenario, run};
use tantalum_base::Rng;

fn seeds() -> u64 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 3000 } else { 150 }
}

fn random(base: Scenario, commands: u32) {
    for seed in 0..seeds() {
        let mut plain = Scenario { seed: 1000 + seed, ..base };
        plain.shape.commands = commands;
        let check = |scenario: &Scenario| {
            run(scenario).unwrap_or_else(|broken| panic!("{broken}\n{scenario:?}"))
        };
        let dry = check(&plain);
        let mut rng = Rng::split(seed, "cuts");
        let cut = |rng: &mut Rng, (stores, operations): (u64, u64)| {
            let at = if stores > 0 && rng.chance(0.5) {
                At::Store(rng.below(stores))
            } else {
                At::Operation(rng.below(operations.max(1)))
            };
            Some(Cut { at, fate: FATES[rng.below(3) as usize] })
        };
        for _ in 0..3 {
            let first = Scenario { cut: cut(&mut rng, dry.load), ..plain };
            let outcome = check(&first);
            let cut_in_recovery = cut(&mut rng, outcome.recovery);
            check(&Scenario { cut_in_recovery, ..first });
        }
    }
}

#[test]
fn small_transactions() {
    random(small(), 60);
}

#[test]
fn large_transactions() {
    random(larger(), 25);
}

/// A trim must be completed while no zone is free until cleaning has run. Searches for the first
/// cut of this kind.
#[test]
fn a_trim_is_completed_where_room_must_be_made_first() {
    let found =
        (0..400u64).flat_map(|seed| (60..70).map(move |at| (seed, at))).find(|(seed, at)| {
            let mut scenario = Scenario { seed: 1000 + seed, ..larger() };
            scenario.shape.commands = 25;
            scenario.cut = Some(Cut { at: At::Operation(*at), fate: FATES[0] });
            scenario.cut_in_recovery = Some(Cut { at: At::Store(2), fate: FATES[0] });
            let outcome = run(&scenario).unwrap_or_else(|broken| panic!("{broken}\n{scenario:?}"));
            outcome.report.trim_redone && outcome.recovery.1 > 2
        });
    println!("{found:?}");
    assert!(found.is_some());
}
