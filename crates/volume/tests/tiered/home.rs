//! A home that is full, or fails for a while: dirty pages stay in the flash, and nothing is lost.
use super::failing::{Failing, Fails};
use super::rig::{Life, PAGES, Rig, SECOND_NS, page};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange};
use tantalum_runtime::{First, LifeCycle, Runtime, first};

const DESTAGES: [&str; 2] = ["ordered", "dense"];

/// The store that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Home,
    Journal,
}

fn store(life: &Life, which: Which) -> Failing {
    match which {
        Which::Home => life.home.clone(),
        Which::Journal => life.journal.clone().unwrap(),
    }
}

/// Whether home holds each of these pages as last written.
fn is_at_home(rig: &Rig, counts: &[u64]) -> bool {
    let image = Rig::under_the_claim(&rig.home);
    let mut pages = image.chunks(PAGE_BYTES).zip(counts).zip(0..);
    pages.all(|((bytes, count), number)| *bytes == page(number, *count)[..])
}

/// Every failure of home and of the journal beside it.
fn cases() -> impl Iterator<Item = (&'static str, Which, ErrorKind)> {
    let of = |destage: &'static str| {
        let stores = [Which::Home, Which::Journal];
        let kinds = [ErrorKind::OutOfSpace, ErrorKind::Io];
        stores.into_iter().flat_map(move |which| kinds.map(|kind| (destage, which, kind)))
    };
    DESTAGES
        .into_iter()
        .flat_map(of)
        .filter(|(destage, which, _)| *destage == "ordered" || *which == Which::Home)
}

#[test]
fn while_home_fails_writes_go_on_and_nothing_is_lost() {
    for (destage, which, kind) in cases() {
        println!("{destage}, {which:?}, {kind:?}");
        let rig = Rig::new(destage);
        let mut counts = vec![0; PAGES as usize];
        counts[..200].fill(1);
        counts[..100].fill(2);
        counts[50..60].fill(0);
        rig.live(move |life| async move {
            let failing = store(&life, which);
            failing.fail(Fails::Changes(kind));
            for number in 0..200 {
                life.write(number, 1).await.unwrap();
            }
            life.sleep_s(60).await;
            for number in 0..100 {
                life.write(number, 2).await.unwrap();
            }
            life.volume.trim(PageRange::new(PageNo(50), 10)).await.unwrap();
            for number in 0..200 {
                let count = if number < 100 { 2 } else { 1 };
                let count = if (50..60).contains(&number) { 0 } else { count };
                assert_eq!(life.read(number).await.unwrap(), page(number, count));
            }
            let told = life.statistics();
            let failure = told.home_failure.expect("it is told");
            assert!(failure.contains("injected"), "{failure}");
            assert!(told.home_errors > 3 && told.dirty_pages > 100, "{} dirty", told.dirty_pages);
            let error = life.write_home().await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            failing.fail(Fails::Nothing);
            // The longest wait between two attempts is shorter.
            life.sleep_s(30).await;
            let told = life.statistics();
            assert_eq!((told.home_failure, told.dirty_or_trimmed_pages), (None, 0));
            life.volume.close().await.unwrap();
        });
        assert!(is_at_home(&rig, &counts), "{destage}, {which:?}, {kind:?}");
    }
}

#[test]
fn waits_between_tries_become_longer_and_a_kill_meanwhile_loses_nothing() {
    for destage in DESTAGES {
        let rig = Rig::new(destage);
        rig.live(|life| async move {
            life.home.fail(Fails::Changes(ErrorKind::Io));
            for number in 0..50 {
                life.write(number, 1).await.unwrap();
            }
            life.sleep_s(100).await;
            // One round issues several operations at the same time.
            let mut failed_ns = life.home.failed_ns();
            failed_ns.dedup_by_key(|at| *at / (SECOND_NS / 20));
            let waits: Vec<u64> = failed_ns.windows(2).map(|two| two[1] - two[0]).collect();
            assert!((8..25).contains(&waits.len()), "{waits:?}");
            let longer = waits.windows(2).take(6).all(|two| two[1] * 2 > two[0] * 3);
            assert!(longer && waits[0] < SECOND_NS, "{waits:?}");
            assert!(waits.iter().all(|wait| *wait < 20 * SECOND_NS), "{waits:?}");
        });
        let mut counts = vec![0; PAGES as usize];
        counts[..50].fill(1);
        assert!(!is_at_home(&rig, &counts), "it was killed before");
        rig.live(|life| async move {
            for number in 0..50 {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1));
            }
            life.write_home().await.unwrap();
        });
        assert!(is_at_home(&rig, &counts), "{destage}");
    }
}

#[test]
fn a_volume_full_of_dirty_pages_goes_on_when_home_comes_back() {
    for destage in DESTAGES {
        let rig = Rig::new(destage);
        rig.live(|life| async move {
            life.home.fail(Fails::Changes(ErrorKind::OutOfSpace));
            let written = Rc::new(Cell::new(0));
            let (writer, done) = (life.clone(), Rc::clone(&written));
            let writing = life.runtime.spawn("writer", async move {
                for number in 0..PAGES {
                    writer.write(number, 1).await.unwrap();
                    done.set(number + 1);
                }
            });
            life.sleep_s(60).await;
            let (stuck, told) = (written.get(), life.statistics());
            assert!((100..PAGES).contains(&stuck), "{stuck} written");
            assert!(told.dirty_pages >= stuck - 40, "{} of {stuck} dirty", told.dirty_pages);
            life.sleep_s(60).await;
            assert_eq!(written.get(), stuck, "there is no room");
            // Reads do not wait, neither in the flash nor at home.
            assert_eq!(life.read(stuck - 1).await.unwrap(), page(stuck - 1, 1));
            assert_eq!(life.read(PAGES - 1).await.unwrap(), page(PAGES - 1, 0));
            life.home.fail(Fails::Nothing);
            writing.await;
            for number in 0..PAGES {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1));
            }
            life.write_home().await.unwrap();
            assert_eq!(life.statistics().home_failure, None);
            life.volume.validate();
            life.volume.close().await.unwrap();
        });
        assert!(is_at_home(&rig, &[1; PAGES as usize]), "{destage}");
    }
}

/// A writer that waits for room must get an error when there will be none.
#[test]
fn a_volume_full_of_dirty_pages_can_be_closed() {
    for destage in DESTAGES {
        let rig = Rig::new(destage);
        let acknowledged = rig.live(|life| async move {
            life.home.fail(Fails::Changes(ErrorKind::Io));
            let written = Rc::new(Cell::new(0));
            let (writer, done) = (life.clone(), Rc::clone(&written));
            drop(life.runtime.spawn("writer", async move {
                for number in 0..PAGES {
                    if writer.write(number, 1).await.is_err() {
                        return;
                    }
                    done.set(number + 1);
                }
            }));
            life.sleep_s(60).await;
            life.volume.close().await.unwrap();
            written.get()
        });
        assert!((100..PAGES).contains(&acknowledged));
        rig.live(move |life| async move {
            for number in 0..acknowledged {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1));
            }
        });
    }
}

/// A disk that writes zeros takes 41 s for this trim. It works all the time.
#[test]
fn a_home_that_is_busy_with_a_long_trim_is_not_silent() {
    const LONG_PAGES: u64 = 41_000;
    for destage in DESTAGES {
        let rig = Rig::large(destage, LONG_PAGES + 10);
        rig.live(move |life| async move {
            life.home.slow_zeros(SECOND_NS / 1000);
            life.write(3, 1).await.unwrap();
            life.volume.trim(PageRange::new(PageNo(5), LONG_PAGES)).await.unwrap();
            let mut busy_s = 0;
            while life.statistics().dirty_or_trimmed_pages > 0 {
                let told = life.statistics().home_failure;
                assert_eq!(told, None, "{destage}, after {busy_s} s");
                life.sleep_s(1).await;
                busy_s += 1;
            }
            assert!(busy_s >= 40, "{destage}: {busy_s} s");
            assert_eq!(life.statistics().home_pages_zeroed, LONG_PAGES);
        });
    }
}

/// They keep neither a writer that waits for room, nor a reader, nor a trim, nor the server that stops.
#[test]
fn stores_that_do_not_answer_can_be_left() {
    let homes = DESTAGES.map(|destage| (destage, Which::Home));
    for (destage, which) in homes.into_iter().chain([("ordered", Which::Journal)]) {
        let rig = Rig::new(destage);
        let acknowledged = rig.live(move |life| async move {
            store(&life, which).fail(Fails::Hangs);
            let written = Rc::new(Cell::new(0));
            let (writer, done) = (life.clone(), Rc::clone(&written));
            let writing = life.runtime.spawn("writer", async move {
                for number in 0..PAGES - 10 {
                    if let Err(error) = writer.write(number, 1).await {
                        return Some(error.kind());
                    }
                    done.set(number + 1);
                }
                None
            });
            let reader = life.clone();
            let read = async move { reader.read(PAGES - 1).await.map_err(|error| error.kind()) };
            let reading = life.runtime.spawn("reader", read);
            life.sleep_s(60).await;
            let trimmer = life.clone();
            let trimming = life.runtime.spawn("trimmer", async move {
                trimmer.volume.trim(PageRange::new(PageNo(PAGES - 5), 2)).await
            });
            life.sleep_s(1).await;
            let failure = life.statistics().home_failure;
            let is_told = failure.is_some_and(|told| told.contains("has not answered for"));
            assert_eq!(is_told, which == Which::Home);
            life.volume.wait_no_longer();
            assert_eq!(writing.await, Some(ErrorKind::Closed));
            let read = reading.await;
            match which {
                Which::Home => assert_eq!(read, Err(ErrorKind::Closed)),
                Which::Journal => assert_eq!(read, Ok(page(PAGES - 1, 0))),
            }
            // It waits for the epoch that is on its way, if there is one.
            assert!(
                trimming.await.map_or_else(|error| error.kind() == ErrorKind::Closed, |()| true)
            );
            life.volume.close().await.unwrap();
            written.get()
        });
        assert!((100..PAGES).contains(&acknowledged));
        rig.live(move |life| async move {
            for number in 0..acknowledged {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1));
            }
            life.write_home().await.unwrap();
        });
    }
}

#[test]
fn a_read_that_home_fails_is_an_error_of_its_own() {
    let rig = Rig::over("dense", 3, {
        let home: Vec<u8> = (0..PAGES).flat_map(|number| page(number, 9).to_vec()).collect();
        tantalum_media::block_store::MemoryStore::with_image(&home)
    });
    rig.live(|life| async move {
        life.write(5, 10).await.unwrap();
        life.home.fail(Fails::Reads);
        assert_eq!(life.read(5).await.unwrap(), page(5, 10), "it is in the flash");
        let error = life.read(6).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error.to_string().contains("reading pages")
                && error.to_string().contains("of the home"),
            "{error}"
        );
        let told = life.statistics();
        assert!(told.home_errors == 1 && told.home_failure.is_some(), "{told:?}");
        life.home.fail(Fails::Nothing);
        assert_eq!(life.read(6).await.unwrap(), page(6, 9));
        assert_eq!(life.statistics().home_failure, None, "it works again");
    });
}

/// The journal was made for the limit of that time. A higher limit is lowered to the room of the journal.
#[test]
fn a_higher_limit_on_dirty_pages_is_lowered_to_the_room_of_the_journal() {
    let mut rig = Rig::new("ordered");
    let open = |rig: &Rig, number: u64| {
        rig.live(move |life| async move {
            life.write(number, 1).await.unwrap();
            life.write_home().await.unwrap();
            life.volume.close().await.unwrap();
        });
    };
    open(&rig, 1);
    for (share, number) in [("80%", 2), ("95%", 3)] {
        rig.config.home.as_mut().unwrap().dirty_max = share.into();
        open(&rig, number);
    }
    // As many dirty pages as there may be, with the home failing, and all of them home afterwards.
    rig.config.home.as_mut().unwrap().dirty_max = "95%".into();
    rig.live(|life| async move {
        let limit = life.volume.device().device().options().dirty_hard_pages;
        life.home.fail(Fails::Changes(ErrorKind::Io));
        for number in 0..limit {
            life.write(number, 5).await.unwrap();
        }
        // The journal also has room for ranges of zeros: trims that lie apart wait for no epoch.
        let trims = async {
            for number in (0..limit).step_by(4) {
                life.volume.trim(PageRange::new(PageNo(number), 1)).await.unwrap();
            }
        };
        let late = life.runtime.sleep(60 * SECOND_NS);
        assert!(matches!(first(trims, late).await, First::One(())), "trims wait for the home");
        life.home.fail(Fails::Nothing);
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
}
