//! Another disk in the place of the home: nothing is concluded from it, and nothing is written, to the flash and the journal either.
use super::failing::Fails;
use super::rig::{PAGES, Rig, page};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange};
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::LifeCycle;
use tantalum_volume::OpenOptions;

const ACCEPTING: OpenOptions =
    OpenOptions { read_only: false, accept_loss: true, system_cache: false };
const WRITTEN: u64 = 200;

/// A volume whose pages are at home and in the flash.
fn used(destage: &str) -> Rig {
    let rig = Rig::new(destage);
    rig.live(|life| async move {
        for number in 0..WRITTEN {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
    rig
}

fn images(rig: &Rig) -> [Vec<u8>; 3] {
    [&rig.flash, &rig.home, &rig.journal].map(MemoryStore::image)
}

/// Another disk, of zeros or of random text, that has the home's name.
fn another(fill: u8) -> MemoryStore {
    MemoryStore::with_image(&vec![fill; PAGES as usize * PAGE_BYTES])
}

/// Checks that the volume is refused with `says`, and that no store was changed.
fn is_refused(rig: &Rig, options: OpenOptions, says: &str) {
    let before = images(rig);
    let error = rig.live_as(options, |opened| async move { opened.err() });
    let error = error.expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}\nshould say: {says}");
    let after = images(rig);
    for (store, (before, after)) in
        ["flash", "home", "journal"].iter().zip(before.iter().zip(&after))
    {
        assert!(before == after, "the {store} was changed");
    }
}

/// A page of the flash is damaged. It is not given up over another disk.
#[test]
fn damage_of_the_flash_is_not_given_up_before_the_home_is_known() {
    for destage in ["ordered", "dense"] {
        for fill in [0, b'x'] {
            let mut rig = used(destage);
            let place = Rig::places(&rig.flash, 7, 1)[0];
            rig.flash.wipe_block(place);
            let own = std::mem::replace(&mut rig.home, another(fill));
            is_refused(&rig, ACCEPTING, "home does not hold page");
            // Its own home is taken.
            rig.home = own;
            rig.live_as(ACCEPTING, |opened| async move {
                let life = opened.unwrap();
                for number in (0..WRITTEN).filter(|number| *number != 7) {
                    assert_eq!(life.read(number).await.unwrap(), page(number, 1));
                }
            });
        }
    }
}

/// The journal of a volume that is destaged page by page is lost, and with it the record of the claim.
#[test]
fn without_journal_and_claim_pages_must_show_whose_the_home_is() {
    for fill in [0, b'x'] {
        let mut rig = Rig::new("dense");
        // No page is clean.
        rig.live(|life| async move {
            life.home.fail(Fails::Changes(ErrorKind::Io));
            for number in 0..WRITTEN {
                life.write(number, 1).await.unwrap();
            }
            life.volume.close().await.unwrap();
        });
        rig.journal = MemoryStore::new(rig.journal.image().len() as u64);
        let own = std::mem::replace(&mut rig.home, another(fill));
        is_refused(&rig, OpenOptions::default(), "no page shows that this home");
        is_refused(&rig, ACCEPTING, "no page shows that this home");
        // Its own home shows the claim.
        rig.home = own;
        rig.live(|life| async move {
            for number in 0..WRITTEN {
                assert_eq!(life.read(number).await.unwrap(), page(number, 1));
            }
        });
    }
}

/// A disk without a sector of zeros at its ends, which could show no claim. It differs from the home in one page.
#[test]
fn a_disk_that_could_show_no_claim_is_compared_in_many_pages() {
    for destage in ["ordered", "dense"] {
        let mut rig = Rig::new(destage);
        rig.live(|life| async move {
            for number in 1000..1200 {
                life.write(number, 1).await.unwrap();
            }
            life.write_home().await.unwrap();
            life.volume.close().await.unwrap();
        });
        let mut image = Rig::under_the_claim(&rig.home);
        image[1150 * PAGE_BYTES..1151 * PAGE_BYTES].fill(b'y');
        for sector in image.chunks_mut(512).filter(|sector| sector.iter().all(|byte| *byte == 0)) {
            sector.fill(b'z');
        }
        rig.home = MemoryStore::with_image(&image);
        is_refused(&rig, OpenOptions::default(), "home does not hold page");
    }
}

/// A volume that was just made has nothing that could be compared.
#[test]
fn a_new_volume_needs_no_proof() {
    for destage in ["ordered", "dense"] {
        let rig = Rig::new(destage);
        rig.live(|life| async move {
            life.volume.trim(PageRange::new(PageNo(3), 2)).await.unwrap();
            life.volume.close().await.unwrap();
        });
    }
}
