//! The FTL as a cache of a home: whichever pages it evicts, and whenever the power is cut, a page
//! reads as it was last written, here or at home.
use crate::support::home;
use crate::support::home::{Limits, cycles};
use tantalum_base::Stamp;
use tantalum_base::fault_points::assert_noticed;
use tantalum_ftl::fault_points::Fault;
use tantalum_models::rig::{FileRig, NandRig};

fn seeds() -> std::ops::Range<u64> {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 0..400 } else { 0..12 }
}

#[test]
fn pages_are_as_written_here_or_at_home_on_a_file() {
    let counts = seeds().map(|seed| cycles::<FileRig>(seed, 25, Limits::of(seed)).unwrap());
    let counts = counts.fold(home::Counts::default(), home::Counts::plus);
    println!("{counts:?}");
    assert!(counts.let_go > 1000 && counts.admitted > 1000 && counts.read_home > 1000);
}

#[test]
fn pages_are_as_written_here_or_at_home_on_flash() {
    let counts = seeds().map(|seed| cycles::<NandRig<Stamp>>(seed, 25, Limits::of(seed)).unwrap());
    let counts = counts.fold(home::Counts::default(), home::Counts::plus);
    println!("{counts:?}");
    assert!(counts.let_go > 1000 && counts.admitted > 1000 && counts.read_home > 1000);
}

fn by_chance(seeds: std::ops::Range<u64>) -> impl Fn() -> Option<String> {
    move || seeds.clone().find_map(|seed| cycles::<FileRig>(seed, 25, Limits::of(seed)).err())
}

#[test]
fn what_was_let_go_is_listed() {
    assert_noticed(Fault::GoneUnlisted, by_chance(0..40));
}

#[test]
fn copies_of_what_went_home_since_are_not_taken() {
    assert_noticed(Fault::ForgottenPagesTaken, by_chance(0..40));
}
