//! For every protection there is a test that fails when it is switched off.
use crate::tx_cache_crash::matrix::{larger, places, small};
use crate::tx_cache_crash::rig::{Cut, FATES};
use crate::tx_cache_crash::scenario::{Scenario, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tantalum_base::fault_points::plant;
use tantalum_models::fault_points::Fault;

/// Cuts `plain` at every place until an error is found; a failed assertion counts.
fn search(plain: Scenario) -> Option<String> {
    let attempt = |scenario: &Scenario| {
        catch_unwind(AssertUnwindSafe(|| run(scenario)))
            .unwrap_or_else(|_| Err("an assertion".into()))
    };
    let dry = match attempt(&plain) {
        Ok(dry) => dry,
        Err(broken) => return Some(broken),
    };
    places(dry.load).enumerate().find_map(|(number, at)| {
        let cut = Some(Cut { at, fate: FATES[number % 3] });
        attempt(&Scenario { cut, ..plain }).err()
    })
}

/// Without the fault the same search finds nothing: see `matrix`.
fn found(fault: Fault, plain: Scenario) {
    let _planted = plant(fault);
    let found = search(plain);
    println!("{fault:?}: {found:?}");
    assert!(found.is_some(), "{fault:?} was not noticed");
}

#[test]
fn the_commit_flag_comes_after_the_last_page() {
    found(Fault::EarlyCommitFlag, small());
}

#[test]
fn uncommitted_pages_stay_away_from_home() {
    found(Fault::UncommittedGoesHome, larger());
}

#[test]
fn what_is_not_committed_is_rolled_back() {
    found(Fault::RedoUncommitted, small());
}

#[test]
fn what_is_committed_is_rolled_forward() {
    found(Fault::NoRedo, small());
}

#[test]
fn old_versions_are_kept_until_the_commit() {
    found(Fault::OldVersionFreed, small());
}
