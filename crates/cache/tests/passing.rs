//! A cache with passing failures: all or part of the flash cannot be read now and then, writes and
//! syncs of home and journal fail, and power is lost meanwhile. A failed sync has lost some of the
//! earlier writes, and the next one reports success.
use crate::support::lives::{Life, Seen, live};
use tantalum_cache::Destage;

fn lives(destage: Destage, seeds: std::ops::Range<u64>) -> Seen {
    let seen = seeds.map(|seed| live(Life::failing(seed, destage)).unwrap());
    seen.fold(Seen::default(), Seen::plus)
}

fn seeds() -> std::ops::Range<u64> {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 0..3000 } else { 0..40 }
}

#[test]
fn ordered_home_is_a_moment_of_the_past_whatever_fails_for_a_while() {
    let seen = lives(Destage::Ordered, seeds());
    println!("{seen:?}");
    assert!(seen.failed > 100 && seen.flash_reads > 500, "{seen:?}");
    assert!(seen.rounds > 50 && seen.rescued_older > 50, "{seen:?}");
    assert!(seen.safe > 100 && seen.preserved > 20, "{seen:?}");
}

#[test]
fn dense_nothing_acknowledged_is_lost_whatever_fails_for_a_while() {
    let seen = lives(Destage::Dense, seeds());
    println!("{seen:?}");
    assert!(seen.failed > 100 && seen.flash_reads > 500, "{seen:?}");
    assert!(seen.rounds > 50, "{seen:?}");
}
