//! A cache over a home loses power at any operation of flash, home and journal, and sometimes loses
//! the flash.
use crate::support::lives::{Life, Seen, live};
use tantalum_base::fault_points::assert_noticed;
use tantalum_cache::Destage;
use tantalum_cache::fault_points::Fault;

fn lives(destage: Destage, seeds: std::ops::Range<u64>) -> Seen {
    let seen = seeds.map(|seed| live(Life::of(seed, destage)).unwrap());
    seen.fold(Seen::default(), Seen::plus)
}

fn seeds() -> std::ops::Range<u64> {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 0..3000 } else { 0..40 }
}

#[test]
fn ordered_nothing_acknowledged_is_lost_and_home_is_a_moment_of_the_past() {
    let seen = lives(Destage::Ordered, seeds());
    println!("{seen:?}");
    assert!(seen.cuts > 200 && seen.rounds > 100, "{seen:?}");
    assert!(seen.rescued_older > 50 && seen.preserved > 50, "{seen:?}");
    assert!(seen.let_go > 50 && seen.admitted > 50 && seen.safe > 500, "{seen:?}");
}

#[test]
fn dense_nothing_acknowledged_is_lost() {
    let seen = lives(Destage::Dense, seeds());
    println!("{seen:?}");
    assert!(seen.cuts > 200 && seen.rounds > 100, "{seen:?}");
    assert!(seen.let_go > 50 && seen.admitted > 50, "{seen:?}");
}

fn by_chance(destage: Destage) -> impl Fn() -> Option<String> {
    move || (0..60).find_map(|seed| live(Life::of(seed, destage)).err())
}

#[test]
fn an_epoch_is_in_the_flash_before_home_knows_of_it() {
    assert_noticed(Fault::EpochNotSettled, by_chance(Destage::Ordered));
}

#[test]
fn what_home_should_have_is_not_acknowledged_before() {
    assert_noticed(Fault::HomeNotAwaited, by_chance(Destage::Ordered));
    assert_noticed(Fault::HomeNotAwaited, by_chance(Destage::Dense));
}

#[test]
fn what_changes_while_an_epoch_is_written_down_is_dirty_after_a_kill() {
    assert_noticed(Fault::LaterChangesClean, by_chance(Destage::Ordered));
}

#[test]
fn what_an_epoch_needs_is_preserved() {
    assert_noticed(Fault::PagesNotPreserved, by_chance(Destage::Ordered));
}

#[test]
fn pages_are_clean_when_home_has_them_for_good() {
    assert_noticed(Fault::HomeNotFlushed, by_chance(Destage::Dense));
}

#[test]
fn what_changed_since_it_was_read_does_not_come_in() {
    assert_noticed(Fault::StalePagesTakenIn, by_chance(Destage::Dense));
}
