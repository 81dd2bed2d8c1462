//! Temporary errors. While reads of the flash fail, the volume draws no conclusions: dirty pages keep their place, and an
//! epoch that would lack one is not committed. Nothing is lost either if home or journal fail for a while.
use super::failing::{Failing, Fails};
use super::rig::{Life, PAGES, Rig, SECOND_NS, page};
use super::vanishing::{Done, change, comes_back, numbers};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange, Rng};
use tantalum_cache::Mode;
use tantalum_cache::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::{LifeCycle, Runtime};
use tantalum_volume::{OpenOptions, TieredStores};

/// The page that cannot be read.
const PAGE: u64 = 7;

/// Number of pages that were written before it became unreadable.
const WRITTEN: u64 = 50;

/// Home has version 1 of pages 0 to 99, the flash version 2 of pages 0 to 49; page 7 cannot be read there.
async fn hide_dirty_page(life: &Life, rig: &Rig) {
    for number in 0..100 {
        life.write(number, 1).await.unwrap();
    }
    life.write_home().await.unwrap();
    // Nothing of version 2 is at home before page 7 becomes unreadable.
    life.home.fail(Fails::Changes(ErrorKind::Io));
    life.journal.as_ref().unwrap().fail(Fails::Changes(ErrorKind::Io));
    for number in 0..WRITTEN {
        life.write(number, 2).await.unwrap();
    }
    let byte = Rig::places(&rig.flash, PAGE, 2)[0];
    life.flash.fail(Fails::ReadsOf(byte, byte + PAGE_BYTES as u64));
    life.home.fail(Fails::Nothing);
    life.journal.as_ref().unwrap().fail(Fails::Nothing);
}

/// The write number of each of the first 100 pages of an image.
fn counts(image: &[u8]) -> Vec<u64> {
    let count = |(number, bytes): (u64, &[u8])| {
        (0..10).find(|count| *bytes == page(number, *count)[..]).unwrap_or(u64::MAX)
    };
    (0..100).zip(image.chunks(PAGE_BYTES)).map(count).collect()
}

/// The same, if pages 0 to 49 are from `written`, page 7 from `hidden` and the others from 1.
fn expected(written: u64, hidden: u64) -> Vec<u64> {
    let count = |number| match number {
        PAGE => hidden,
        0..WRITTEN => written,
        _ => 1,
    };
    (0..100).map(count).collect()
}

/// The report says that pages wait, and that home works.
fn assert_told(life: &Life) {
    let told = life.statistics();
    assert_eq!((told.unreadable_pages, told.first_unreadable), (1, Some(PageNo(PAGE))), "{told:?}");
    assert_eq!((told.lost_pages, told.home_failure), (0, None));
}

/// The content that home has without the flash, while a page cannot be read.
fn while_unreadable(destage: &'static str) -> [MemoryStore; 2] {
    let rig = Rig::new(destage);
    let media = rig.clone();
    rig.live(move |life| async move {
        hide_dirty_page(&life, &media).await;
        life.sleep_s(300).await;
        media.left()
    })
}

#[test]
fn no_epoch_is_committed_without_a_page_that_cannot_be_read() {
    let epoch_without = || {
        let found = counts(&Rig::rescued(while_unreadable("ordered")));
        (found != expected(1, 1)).then(|| format!("without the flash home has {found:?}"))
    };
    assert_noticed(Fault::EpochWithoutUnreadable, epoch_without);
}

#[test]
fn without_epochs_all_others_go_home() {
    let [home, _] = while_unreadable("dense");
    assert_eq!(counts(&Rig::under_the_claim(&home)), expected(2, 1));
}

#[test]
fn it_goes_home_when_it_can_be_read_and_clients_go_on_meanwhile() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::new(destage);
        let media = rig.clone();
        rig.live(move |life| async move {
            hide_dirty_page(&life, &media).await;
            life.sleep_s(60).await;
            assert_told(&life);
            assert_eq!(life.read(PAGE).await.unwrap_err().kind(), ErrorKind::Io);
            for number in (0..100).filter(|number| *number != PAGE) {
                let count = if number < WRITTEN { 2 } else { 1 };
                assert_eq!(life.read(number).await.unwrap(), page(number, count));
            }
            life.write(60, 2).await.unwrap();
            let error = life.write_home().await.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Io && error.to_string().contains("page 7"),
                "{error}"
            );
            // The times of the attempts: the pauses grow.
            let tried_ns = life.flash.failed_ns();
            let last: Vec<u64> = tried_ns.iter().rev().copied().take(30).collect();
            assert!(last.len() < 30 || last[0] - last[29] > SECOND_NS, "{tried_ns:?}");
            life.flash.fail(Fails::Nothing);
            life.sleep_s(30).await;
            let told = life.statistics();
            assert_eq!((told.unreadable_pages, told.dirty_or_trimmed_pages), (0, 0), "{told:?}");
            assert_eq!(life.read(PAGE).await.unwrap(), page(PAGE, 2));
            life.volume.validate();
            life.volume.close().await.unwrap();
        });
        let mut expected = expected(2, 2);
        expected[60] = 2;
        assert_eq!(counts(&Rig::under_the_claim(&rig.home)), expected, "{destage}");
    }
}

/// The change replaces the old content, and the epoch that lacks it is abandoned: the next one has the new content.
#[test]
fn a_page_that_cannot_be_read_may_be_written_and_trimmed() {
    for (destage, count) in [("ordered", 3), ("ordered", 0), ("dense", 3), ("dense", 0)] {
        println!("{destage}, {count}");
        let rig = Rig::new(destage);
        let media = rig.clone();
        rig.live(move |life| async move {
            hide_dirty_page(&life, &media).await;
            life.sleep_s(60).await;
            match count {
                0 => life.volume.trim(PageRange::new(PageNo(PAGE), 1)).await.unwrap(),
                _ => life.write(PAGE, count).await.unwrap(),
            }
            life.write_home().await.unwrap();
            let told = life.statistics();
            assert_eq!((told.unreadable_pages, told.dirty_or_trimmed_pages), (0, 0), "{told:?}");
            assert_eq!(life.read(PAGE).await.unwrap(), page(PAGE, count));
        });
        assert_eq!(
            counts(&Rig::under_the_claim(&rig.home)),
            expected(2, count),
            "{destage}, {count}"
        );
    }
}

#[test]
fn what_cannot_be_read_goes_home_after_closing_and_after_a_kill() {
    for (destage, closes) in
        [("ordered", true), ("ordered", false), ("dense", true), ("dense", false)]
    {
        let rig = Rig::new(destage);
        let media = rig.clone();
        rig.live(move |life| async move {
            hide_dirty_page(&life, &media).await;
            life.sleep_s(60).await;
            if closes {
                life.volume.close().await.unwrap();
            }
        });
        rig.live(|life| async move {
            assert_eq!(life.read(PAGE).await.unwrap(), page(PAGE, 2));
            life.write_home().await.unwrap();
        });
        assert_eq!(
            counts(&Rig::under_the_claim(&rig.home)),
            expected(2, 2),
            "{destage}, closed: {closes}"
        );
    }
}

/// The page is lost from then on, even though the flash has it, and home's older content does not replace it.
#[test]
fn whoever_accepts_the_loss_gives_up_what_cannot_be_read_and_nothing_else() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::new(destage);
        let media = rig.clone();
        let byte = rig.live(move |life| async move {
            hide_dirty_page(&life, &media).await;
            life.sleep_s(60).await;
            life.volume.close().await.unwrap();
            Rig::places(&media.flash, PAGE, 2)[0]
        });
        let accept_loss = OpenOptions { accept_loss: true, ..OpenOptions::default() };
        let hide = |stores: &TieredStores<Failing>| {
            stores.flash.fail(Fails::ReadsOf(byte, byte + PAGE_BYTES as u64));
        };
        rig.live_over(accept_loss, hide, |opened| async move {
            opened.unwrap().volume.close().await.unwrap();
        });
        rig.live(|life| async move {
            let error = life.read(PAGE).await.unwrap_err();
            assert_ne!(error.kind(), ErrorKind::Io, "{error}");
            for number in (0..100).filter(|number| *number != PAGE) {
                let count = if number < WRITTEN { 2 } else { 1 };
                assert_eq!(life.read(number).await.unwrap(), page(number, count));
            }
            life.write(PAGE, 3).await.unwrap();
            life.write_home().await.unwrap();
        });
        assert_eq!(counts(&Rig::under_the_claim(&rig.home)), expected(2, 3), "{destage}");
    }
}

/// Nothing is destaged: writers that make more pages dirty wait, as when home fails; dirty pages can be overwritten.
#[test]
fn writers_wait_where_no_page_goes_home_and_who_mends_the_page_does_not() {
    let rig = Rig::new("ordered");
    let media = rig.clone();
    rig.live(move |life| async move {
        hide_dirty_page(&life, &media).await;
        let written = Rc::new(Cell::new(100));
        let (writer, done) = (life.clone(), Rc::clone(&written));
        let writing = life.runtime.spawn("writer", async move {
            for number in 100..PAGES {
                writer.write(number, 1).await.unwrap();
                done.set(number + 1);
            }
        });
        life.sleep_s(60).await;
        let stuck = written.get();
        life.sleep_s(60).await;
        assert_eq!(written.get(), stuck, "there is no room");
        assert_told(&life);
        assert_eq!(life.read(stuck - 1).await.unwrap(), page(stuck - 1, 1));
        assert_eq!(life.read(PAGES - 1).await.unwrap(), page(PAGES - 1, 0));
        life.write(PAGE, 3).await.unwrap();
        life.sleep_s(30).await;
        assert!(written.get() > stuck, "pages go home again");
        // Before other pages are stored at the place of its old version.
        life.flash.fail(Fails::Nothing);
        writing.await;
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
    assert_eq!(counts(&Rig::under_the_claim(&rig.home)), expected(2, 3));
}

/// Operations that wait for home return an error meanwhile, even though the flash has the page.
#[test]
fn modes_that_wait_for_home_say_that_it_has_not_all() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::new(destage);
        let media = rig.clone();
        rig.live(move |life| async move {
            hide_dirty_page(&life, &media).await;
            let device = life.volume.device().device();
            let error = device.set_mode(Mode::WriteThrough).await.unwrap_err();
            let told = error.to_string();
            assert!(
                told.contains("cannot be read") && told.contains("write-through from now on"),
                "{told}"
            );
            assert_eq!(device.mode(), Mode::WriteThrough);
            let error = life.write(90, 2).await.unwrap_err();
            assert!(error.to_string().contains("page 7"), "{destage}: {error}");
            assert_eq!(life.read(90).await.unwrap(), page(90, 2));
            life.flash.fail(Fails::Nothing);
            life.sleep_s(30).await;
            life.write(91, 2).await.unwrap();
            device.set_mode(Mode::WriteThrough).await.unwrap();
        });
        let mut expected = expected(2, 2);
        expected[90..92].fill(2);
        assert_eq!(counts(&Rig::under_the_claim(&rig.home)), expected, "{destage}");
    }
}

/// After a short failure the flash reads a clean page again.
#[test]
fn a_clean_page_that_could_not_be_read_is_read_from_the_flash_again() {
    let rig = Rig::new("ordered");
    let media = rig.clone();
    rig.live(move |life| async move {
        life.write(PAGE, 1).await.unwrap();
        life.write_home().await.unwrap();
        let byte = Rig::places(&media.flash, PAGE, 1)[0];
        life.flash.fail(Fails::ReadsOf(byte, byte + PAGE_BYTES as u64));
        for _ in 0..3 {
            assert_eq!(life.read(PAGE).await.unwrap(), page(PAGE, 1));
        }
        assert_eq!(life.statistics().pages_read_again_from_home, 1, "it was asked once");
        life.flash.fail(Fails::Nothing);
        life.sleep_s(11).await;
        life.home.fail(Fails::Reads);
        assert_eq!(life.read(PAGE).await.unwrap(), page(PAGE, 1));
    });
}

/// One of the stores fails in some way, repeatedly, for up to a few seconds.
async fn fail_now_and_then(life: Life, stripe: u64, seed: u64) {
    let mut rng = Rng::split(seed, "episodes");
    let journal = life.journal.clone().unwrap();
    let ways: [(&Failing, Fails); 10] = [
        (&life.flash, Fails::Reads),
        (&life.flash, Fails::ReadsOf(stripe / 4, stripe)),
        (&life.flash, Fails::ReadsOfMember(stripe / 32)),
        (&life.home, Fails::Reads),
        (&life.home, Fails::Syncs),
        (&life.home, Fails::Changes(ErrorKind::Io)),
        (&life.home, Fails::ReadsOf(0, 100 * PAGE_BYTES as u64)),
        (&journal, Fails::Reads),
        (&journal, Fails::Syncs),
        (&journal, Fails::Changes(ErrorKind::Io)),
    ];
    loop {
        life.runtime.sleep(rng.below(SECOND_NS / 10)).await;
        let (store, way) = ways[rng.below(ways.len() as u64) as usize];
        store.fail(way);
        let most_ns = SECOND_NS / if rng.chance(0.1) { 1 } else { 20 };
        life.runtime.sleep(rng.below(most_ns)).await;
        store.fail(Fails::Nothing);
    }
}

/// Clients work while stores fail from time to time, until the volume is killed.
fn episodes(destage: &'static str, seed: u64) -> (Rig, Done) {
    let rig = Rig::new(destage);
    let done = Rc::new(RefCell::new(Done::default()));
    let (told, stripe) = (Rc::clone(&done), rig.superblock.store_bytes());
    rig.live(move |life| async move {
        drop(life.runtime.spawn("episodes", fail_now_and_then(life.clone(), stripe, seed)));
        let _changing = life.runtime.spawn("change", change(life.clone(), told, seed));
        let mut rng = Rng::split(seed, "a kill");
        life.runtime.sleep(SECOND_NS / 20 + rng.below(2 * SECOND_NS)).await;
        life.volume.validate();
    });
    (rig, Rc::into_inner(done).unwrap().into_inner())
}

#[test]
fn ordered_home_is_a_moment_of_the_past_whatever_fails_for_a_while() {
    let (mut later, mut older) = (0, 0);
    for seed in 0..40 {
        let (rig, done) = episodes("ordered", seed);
        let moment = done.moment(&numbers(&Rig::rescued(rig.left())));
        let moment = moment.unwrap_or_else(|| panic!("seed {seed}: home is no moment"));
        later += usize::from(moment > 0);
        older += usize::from(0 < moment && moment < done.acknowledged);
        comes_back(&rig, &done, seed);
    }
    assert!(later > 10 && older > 10, "{later}, {older} older");
}

#[test]
fn dense_nothing_is_lost_whatever_fails_for_a_while() {
    for seed in 0..20 {
        let (rig, done) = episodes("dense", seed);
        comes_back(&rig, &done, seed);
    }
}
