//! Pages that the flash cannot read. A clean page is read from home. A dirty page returns an error for this page alone,
//! and never old content. A decayed page counts as lost after its reads have been wrong for a while; an unreadable page
//! may be readable again later.
use super::failing::Fails;
use super::rig::{Life, PAGES, Rig, page};
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result};
use tantalum_cache::Destage;
use tantalum_cache::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::LifeCycle;
use tantalum_runtime::life_cycle::is_damage;

const DESTAGES: [&str; 2] = ["ordered", "dense"];

/// The failure mode of a page on the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Its content was changed.
    Decayed,
    /// The device reports a read error.
    Unreadable,
}

const DAMAGES: [Damage; 2] = [Damage::Decayed, Damage::Unreadable];

/// Damages every block of the flash that holds the page in this way.
fn damage(flash: &MemoryStore, number: u64, count: u64, how: Damage) {
    let places = Rig::places(flash, number, count);
    assert!(!places.is_empty(), "page {number} is in the flash");
    for byte in places {
        match how {
            Damage::Decayed => flash.flip_bit(byte + 1000, 4),
            Damage::Unreadable => flash.spoil_block(byte),
        }
    }
}

/// Whether `read` failed as a page lost in this way does.
fn is_lost<T: std::fmt::Debug>(read: Result<T>, how: Damage) -> bool {
    let error = read.unwrap_err();
    is_damage(error.kind()) || (how == Damage::Unreadable && error.kind() == ErrorKind::Io)
}

async fn read_run(life: &Life, first: u64, pages: usize) -> Result<Vec<PageBuf>> {
    let mut out = vec![PageBuf::zero(); pages];
    life.volume.read(PageNo(first), &mut out, None).await.map(|()| out)
}

#[test]
fn a_clean_page_that_the_flash_lost_is_read_from_home() {
    for how in DAMAGES {
        let rig = Rig::new("ordered");
        let flash = rig.flash.clone();
        rig.live(move |life| async move {
            for number in 0..100 {
                life.write(number, 1).await.unwrap();
            }
            life.write_home().await.unwrap();
            for number in [3, 40, 41] {
                damage(&flash, number, 1, how);
            }
            assert_eq!(life.read(3).await.unwrap(), page(3, 1), "{how:?}");
            let run = read_run(&life, 38, 6).await.unwrap();
            assert!(run.iter().zip(38..).all(|(it, number)| *it == page(number, 1)), "{how:?}");
            let told = life.statistics();
            assert_eq!((told.pages_read_again_from_home, told.unreadable_pages), (3, 0));
            assert_eq!(told.lost_pages, 0);
            assert_eq!(told.home_failure, None);
            for number in [50, 51] {
                damage(&flash, number, 1, how);
            }
            life.volume.close().await.unwrap();
        });
        rig.live(move |life| async move {
            for number in 0..100 {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1), "{how:?}");
            }
        });
    }
}

/// Home has version 1 of pages 0 to 99, the flash version 2 of pages 0 to 49; pages 7 and 20 are lost on the flash.
async fn lose_dirty_pages(life: &Life, flash: &MemoryStore, how: Damage) {
    for number in 0..100 {
        life.write(number, 1).await.unwrap();
    }
    life.write_home().await.unwrap();
    life.home.fail(Fails::Changes(ErrorKind::Io));
    for number in 0..50 {
        life.write(number, 2).await.unwrap();
    }
    for number in [7, 20] {
        damage(flash, number, 2, how);
    }
    check_lost(life, how).await;
}

/// The two pages return errors, and no other page does.
async fn check_lost(life: &Life, how: Damage) {
    for number in 0..100 {
        let read = life.read(number).await;
        match number {
            7 | 20 => assert!(is_lost(read, how), "page {number}, {how:?}"),
            0..50 => assert_eq!(read.unwrap(), page(number, 2)),
            _ => assert_eq!(read.unwrap(), page(number, 1)),
        }
    }
    assert!(is_lost(read_run(life, 0, 30).await, how));
    read_run(life, 21, 79).await.unwrap();
}

/// Checks the content of these pages at home.
fn assert_home_has(home: &MemoryStore, counts: impl IntoIterator<Item = (u64, u64)>) {
    let image = Rig::under_the_claim(home);
    for (number, count) in counts {
        let at = number as usize * PAGE_BYTES;
        assert!(image[at..at + PAGE_BYTES] == page(number, count)[..], "page {number}, {count}");
    }
}

fn all_ways() -> impl Iterator<Item = (&'static str, Damage)> {
    DESTAGES.into_iter().flat_map(|destage| DAMAGES.map(|how| (destage, how)))
}

/// The rest of the work when two dirty pages are lost: the others are destaged, except in an epoch that would lack a page
/// that may be readable later. The two return errors until they are written.
async fn go_on(life: &Life, home: &MemoryStore, how: Damage) {
    life.home.fail(Fails::Nothing);
    life.sleep_s(90).await;
    let told = life.statistics();
    let is_ordered = life.volume.device().device().options().destage == Destage::Ordered;
    let waits = is_ordered && how == Damage::Unreadable;
    match (how, waits) {
        (Damage::Decayed, _) => {
            assert_eq!((told.lost_pages, told.dirty_or_trimmed_pages), (2, 2), "{told:?}");
            assert_eq!((told.unreadable_pages, told.home_failure), (0, None));
        }
        (_, true) => assert!(told.unreadable_pages > 0 && told.dirty_pages == 50, "{told:?}"),
        (_, false) => {
            assert_eq!((told.unreadable_pages, told.dirty_or_trimmed_pages), (2, 2), "{told:?}");
            assert_eq!((told.lost_pages, told.home_failure), (0, None));
        }
    }
    check_lost(life, how).await;
    let count = |number: u64| if waits || [7, 20].contains(&number) { 1 } else { 2 };
    assert_home_has(home, (0..50).map(|number| (number, count(number))));
    for number in [7, 20] {
        life.write(number, 3).await.unwrap();
        assert_eq!(life.read(number).await.unwrap(), page(number, 3));
    }
    life.write_home().await.unwrap();
    let count = |number: u64| if [7, 20].contains(&number) { 3 } else { 2 };
    assert_home_has(home, (0..50).map(|number| (number, count(number))));
    assert_eq!(life.statistics().dirty_or_trimmed_pages, 0);
}

#[test]
fn a_dirty_page_that_the_flash_lost_is_an_error_until_it_is_written() {
    for (destage, how) in all_ways() {
        println!("{destage}, {how:?}");
        let rig = Rig::new(destage);
        let (flash, home) = (rig.flash.clone(), rig.home.clone());
        rig.live(move |life| async move {
            lose_dirty_pages(&life, &flash, how).await;
            go_on(&life, &home, how).await;
            life.volume.close().await.unwrap();
        });
    }
}

#[test]
fn a_dirty_page_that_was_lost_is_an_error_after_closing_too() {
    for (destage, how) in all_ways() {
        println!("{destage}, {how:?}");
        let rig = Rig::new(destage);
        let (flash, home) = (rig.flash.clone(), rig.home.clone());
        rig.live(move |life| async move {
            lose_dirty_pages(&life, &flash, how).await;
            life.volume.close().await.unwrap();
        });
        rig.live(move |life| async move {
            check_lost(&life, how).await;
            go_on(&life, &home, how).await;
        });
    }
}

/// A killed volume reads all of its log again, and finds its losses.
#[test]
fn a_dirty_page_that_was_lost_is_an_error_after_a_kill_too() {
    for destage in DESTAGES {
        let rig = Rig::new(destage);
        let (flash, home) = (rig.flash.clone(), rig.home.clone());
        let lost = Damage::Decayed;
        rig.live(move |life| async move { lose_dirty_pages(&life, &flash, lost).await });
        rig.live(move |life| async move {
            check_lost(&life, lost).await;
            go_on(&life, &home, lost).await;
        });
    }
}

/// An epoch is destaged without the lost pages, and records the versions that home has. The lost pages' versions are
/// older.
fn lost_before_an_epoch() -> Option<String> {
    let how = Damage::Decayed;
    let rig = Rig::new("ordered");
    rig.live(|life| async move {
        for number in 0..100 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.home.fail(Fails::Changes(ErrorKind::Io));
        for number in 0..50 {
            life.write(number, 2).await.unwrap();
        }
        // The part of the log that the next opening reads begins behind them.
        life.volume.close().await.unwrap();
    });
    let (flash, home) = (rig.flash.clone(), rig.home.clone());
    rig.live(move |life| async move {
        for number in [7, 20] {
            damage(&flash, number, 2, how);
        }
        life.sleep_s(90).await;
        assert_home_has(&home, (30..50).map(|number| (number, 2)));
    });
    let home = rig.home.clone();
    rig.live(move |life| async move {
        check_lost(&life, how).await;
        go_on(&life, &home, how).await;
    });
    None
}

#[test]
fn a_dirty_page_that_was_lost_before_an_epoch_is_an_error_after_a_kill() {
    assert_eq!(lost_before_an_epoch(), None);
}

#[test]
fn pages_that_an_epoch_could_not_read_never_count_as_clean() {
    assert_noticed(Fault::UnreadPagesClean, lost_before_an_epoch);
}

/// Cleaning moves live pages: it must neither drop a page that it cannot read nor bring back its old content from home.
#[test]
fn a_dirty_page_that_is_lost_stays_an_error_while_zones_are_cleaned() {
    // If an epoch waits for a page that may be readable later, nothing is destaged, and nothing more can be written.
    let goes_on = |way: &(&str, Damage)| *way != ("ordered", Damage::Unreadable);
    for (destage, how) in all_ways().filter(goes_on) {
        println!("{destage}, {how:?}");
        let rig = Rig::new(destage);
        let (flash, home) = (rig.flash.clone(), rig.home.clone());
        rig.live(move |life| async move {
            lose_dirty_pages(&life, &flash, how).await;
            life.home.fail(Fails::Nothing);
            for round in 3..6 {
                for number in 200..PAGES {
                    life.write(number, round).await.unwrap();
                }
            }
            let ftl = life.volume.device().device().drive().ftl().statistics();
            assert!(ftl.pages_let_go > 1000, "{ftl:?}");
            check_lost(&life, how).await;
            go_on(&life, &home, how).await;
        });
    }
}
