//! The FTL alone on a file store that loses power.
//!
//! Not part of the crash lab, which runs whole devices: the FTL alone promises more, a prefix of
//! its batches, which is checked here at every write and sync.
use crate::support::prefix::{LOAD, every_cut, random_load, random_shares, run};

#[test]
fn a_zone_is_reset_only_when_what_replaced_its_pages_is_durable() {
    every_cut(LOAD, 1).unwrap();
}

#[test]
fn random_loads_leave_a_prefix() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 5000 } else { 100 };
    let cuts: u64 = (0..seeds).map(|seed| every_cut(random_load(seed), 7).unwrap()).sum();
    println!("{seeds} loads, {cuts} cuts");
}

#[test]
fn random_shares_leave_a_prefix() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 5000 } else { 100 };
    let cuts: u64 = (0..seeds).map(|seed| every_cut(random_shares(seed), 7).unwrap()).sum();
    println!("{seeds} loads, {cuts} cuts");
}

/// In each of these loads a share, durable or flushed, has no pairs. In one the changes before it are not durable yet;
/// in the other the power is cut during them.
#[test]
fn a_share_of_no_pages_is_as_durable_as_any() {
    for (seed, cut) in [(143, 140), (431, 140)] {
        run(&random_shares(seed), Some(cut)).unwrap();
    }
}
