//! A claim that its home cannot show, as no sector at its ends is zero, and whose journal is lost.
use super::rig::{Life, PAGES, Rig, page};
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::LifeCycle;
use tantalum_volume::OpenOptions;
use tantalum_volume::fault_points::Fault;

/// The page of zeros that shows the claim, until it is written.
const SHOWING: u64 = 5;
/// Pages at the ends of the home that only home has.
const AT_HOME: [u64; 4] = [0, 255, PAGES - 256, PAGES - 1];

const ACCEPTING: OpenOptions =
    OpenOptions { read_only: false, accept_loss: true, system_cache: false };

/// A home without a sector of zeros, but for those of page `SHOWING`, if there `is_zero` one.
fn home(is_zero: bool) -> MemoryStore {
    let mut image: Vec<u8> = (0..PAGES).flat_map(|number| page(number, 9).to_vec()).collect();
    if is_zero {
        image[SHOWING as usize * PAGE_BYTES..][..PAGE_BYTES].fill(0);
    }
    MemoryStore::with_image(&image)
}

/// A volume over such a home. Page `SHOWING` is written, goes home, and then `use_it` is called.
fn used<F: Future<Output = ()> + 'static>(
    home: MemoryStore,
    use_it: impl FnOnce(Life) -> F + 'static,
) -> Rig {
    let rig = Rig::over("dense", 77, home);
    rig.live(|life| async move {
        life.write(SHOWING, 1).await.unwrap();
        life.write_home().await.unwrap();
        use_it(life.clone()).await;
        life.volume.close().await.unwrap();
    });
    rig
}

/// The volume without its journal.
fn without_journal(rig: &Rig) -> Rig {
    Rig { journal: MemoryStore::new(rig.journal.image().len() as u64), ..rig.clone() }
}

/// The first page that is read wrong.
fn wrong_page(rig: &Rig) -> Option<String> {
    wrong_page_as(rig, OpenOptions::default())
}

fn wrong_page_as(rig: &Rig, options: OpenOptions) -> Option<String> {
    rig.live_as(options, |opened| async move {
        let life = opened.unwrap();
        for number in AT_HOME.into_iter().chain([SHOWING, 1000]) {
            let count = if number == SHOWING { 1 } else { 9 };
            if life.read(number).await.unwrap() != page(number, count) {
                return Some(format!("page {number}"));
            }
        }
        None
    })
}

#[test]
fn a_claim_that_cannot_be_seen_is_found_by_a_page() {
    let lost = || without_journal(&used(home(true), |_| async {}));
    assert_ne!(Rig::under_the_claim(&lost().home), home(true).image(), "page 5 is written");
    let rig = lost();
    assert_eq!(wrong_page(&rig), None);
    // The new journal knows it.
    assert_eq!(wrong_page(&rig), None);
    assert_noticed(Fault::UnseenClaimIgnored, || wrong_page(&lost()));
}

#[test]
fn ends_that_may_be_stored_either_way_are_not_read() {
    // The page leaves the flash, which holds less than that.
    let rig = used(home(true), |life| async move {
        for number in 300..PAGES - 300 {
            life.write(number, 9).await.unwrap();
        }
        life.write_home().await.unwrap();
    });
    let lost = without_journal(&rig);
    for options in [OpenOptions::default(), ACCEPTING] {
        let before = [&lost.flash, &lost.home].map(MemoryStore::image);
        let error = lost.live_as(options, |opened| async move { opened.err() });
        let error = error.expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(
            error.to_string().contains("nothing tells whether the home has a claim"),
            "{error}"
        );
        assert!(before == [&lost.flash, &lost.home].map(MemoryStore::image), "it was changed");
    }
    assert_eq!(wrong_page(&rig), None, "with its journal");
}

#[test]
fn a_home_without_a_claim_is_known_by_a_page() {
    // A claim could not be seen there, so that it got none.
    let lost = without_journal(&used(home(false), |_| async {}));
    let error = lost.live_as(OpenOptions::default(), |opened| async move { opened.err() });
    let error = error.expect("the home may have been used since").to_string();
    assert!(error.contains("the home has no claim that would show"), "{error}");
    assert_eq!(wrong_page_as(&lost, ACCEPTING), None);
}
