//! Devices that do not belong together are refused with an error that gives advice; nothing is written.
use super::failing::Fails;
use super::rig::{PAGES, Rig, page};
use tantalum_base::fault_points::{assert_noticed, plant};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf};
use tantalum_cache::fault_points::Fault;
use tantalum_cache::journal::{Journal, Pair};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};
use tantalum_volume::fault_points::Fault as VolumeFault;
use tantalum_volume::{ClaimConfig, DestageConfig, OpenOptions};

/// A volume with this identity whose pages are also at home.
fn volume(volume_id: u128, count: u64) -> Rig {
    let rig = Rig::over("ordered", volume_id, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    rig.live(move |life| async move {
        for number in 0..300 {
            life.write(number, count).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
    rig
}

/// The error of opening the volume, after checking that home and journal did not change.
fn refusal(rig: &Rig) -> (ErrorKind, String) {
    let images = || [&rig.home, &rig.journal].map(MemoryStore::image);
    let before = images();
    let error = rig.live_as(OpenOptions::default(), |opened| async move {
        opened.err().map(|error| (error.kind(), error.to_string()))
    });
    assert!(images() == before, "what is refused stays as it was");
    error.expect("it is refused")
}

#[test]
fn another_volumes_journal_is_refused() {
    let (one, other) = (volume(1, 1), volume(2, 2));
    one.live(|life| async move {
        life.home.fail(Fails::Changes(ErrorKind::Io));
        life.write(5, 9).await.unwrap();
        life.volume.close().await.unwrap();
    });
    let other_journal_bytes = other.journal.bytes();
    let mut mixed = Rig { journal: other.journal, ..one };
    let (kind, error) = refusal(&mixed);
    assert_eq!(kind, ErrorKind::Format, "{error}");
    assert!(error.contains("journal") && error.contains("is of"), "{error}");
    assert!(error.contains("attach") && error.contains("--force"), "what to do: {error}");
    assert!(error.contains("\"dense\""), "{error}");
    mixed.config.home.as_mut().unwrap().destage = DestageConfig::Dense;
    let (kind, error) = refusal(&mixed);
    assert_eq!(kind, ErrorKind::Format, "it stays the other's: {error}");
    // As the error says: with a new journal nothing is missing.
    mixed.journal = MemoryStore::new(other_journal_bytes);
    mixed.live(|life| async move {
        for number in 0..300 {
            let count = if number == 5 { 9 } else { 1 };
            assert_eq!(life.read(number).await.unwrap(), page(number, count));
        }
        life.write_home().await.unwrap();
    });
}

#[test]
fn another_home_is_refused() {
    let (one, other) = (volume(1, 1), volume(2, 2));
    let own = one.home.clone();
    let mixed = Rig { home: other.home, ..one };
    let (kind, error) = refusal(&mixed);
    assert_eq!(kind, ErrorKind::Corrupt, "{error}");
    assert!(error.contains("belongs to volume") && error.contains("00002"), "{error}");
    assert!(error.contains("put its own home back"), "what to do: {error}");
    assert!(!error.contains("--force"), "it would cost the other volume its home: {error}");
    // The attempt lost nothing.
    Rig { home: own, ..mixed }.live(|life| async move {
        for number in 0..300 {
            assert_eq!(life.read(number).await.unwrap(), page(number, 1));
        }
    });
}

#[test]
fn a_home_that_another_program_wrote_to_is_refused() {
    let rig = volume(1, 1);
    // A new file system writes to scattered places, here every 16th page.
    for number in (0..PAGES).step_by(16) {
        rig.home.flip_bit(number * PAGE_BYTES as u64 + 100, 3);
    }
    let (kind, error) = refusal(&rig);
    assert_eq!(kind, ErrorKind::Corrupt, "{error}");
    assert!(error.contains("another program has changed it"), "{error}");
}

/// The error of opening a volume without a claim on its home, after somebody changed pages at home that the
/// flash does not hold.
fn changed_behind(is_closed: bool, page: Option<u64>) -> Option<(ErrorKind, String)> {
    let mut rig = Rig::over("ordered", 1, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    rig.config.home.as_mut().unwrap().claim = ClaimConfig::None;
    rig.live(move |life| async move {
        for number in 100..300 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.write(200, 2).await.unwrap();
        if is_closed {
            life.volume.close().await.unwrap();
        }
    });
    assert!(rig.home.image()[..100 * PAGE_BYTES].iter().all(|byte| *byte == 0), "a plain image");
    if let Some(page) = page {
        rig.home.flip_bit(page * PAGE_BYTES as u64 + 80, 3);
    }
    rig.live_as(OpenOptions::default(), |opened| async move {
        opened.err().map(|error| (error.kind(), error.to_string()))
    })
}

#[test]
fn a_plain_home_that_somebody_changed_is_refused() {
    for is_closed in [true, false] {
        assert_eq!(changed_behind(is_closed, None), None);
        for page in [0, 16, 31] {
            let (kind, error) = changed_behind(is_closed, Some(page)).expect("it is refused");
            assert_eq!(kind, ErrorKind::Corrupt, "{error}");
            assert!(error.contains("without its cache") && error.contains("--force"), "{error}");
        }
    }
    assert_noticed(Fault::ChangesUnnoticed, || {
        changed_behind(true, Some(0)).is_none().then(|| "it is opened".into())
    });
}

/// The error of opening a volume after its flash was away and its home was rescued and, if `is_used`, changed.
fn back_after_a_rescue(claim: ClaimConfig, is_used: bool) -> Option<(ErrorKind, String)> {
    back_as(claim, is_used, false)
}

/// The same, if loss is accepted or not. A home that is refused is not changed.
fn back_as(claim: ClaimConfig, is_used: bool, accept_loss: bool) -> Option<(ErrorKind, String)> {
    let mut rig = Rig::over("ordered", 1, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    rig.config.home.as_mut().unwrap().claim = claim;
    rig.live(|life| async move {
        for number in 100..300 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.write(200, 2).await.unwrap();
    });
    Rig::rescued([rig.home.clone(), rig.journal.clone()]);
    assert!(rig.home.image()[..100 * PAGE_BYTES].iter().all(|byte| *byte == 0), "a plain image");
    if is_used {
        // A file system has its superblock there.
        rig.home.flip_bit(1080, 3);
    }
    let before = rig.home.image();
    let options = OpenOptions { accept_loss, ..OpenOptions::default() };
    let refused = rig.live_as(options, |opened| async move {
        match opened {
            Ok(life) => {
                assert_eq!(life.read(200).await.unwrap(), page(200, 2), "of the flash");
                None
            }
            Err(error) => Some((error.kind(), error.to_string())),
        }
    });
    assert!(refused.is_none() || rig.home.image() == before, "a home that is refused was changed");
    refused
}

#[test]
fn a_flash_that_comes_back_is_refused_where_its_home_was_used_since() {
    for claim in [ClaimConfig::Xor, ClaimConfig::None] {
        assert_eq!(back_after_a_rescue(claim, false), None, "{claim:?}");
        for accept_loss in [false, true] {
            let (kind, error) = back_as(claim, true, accept_loss).expect("it is refused");
            assert_eq!(kind, ErrorKind::Corrupt, "{error}");
            assert!(error.contains("rescued") && error.contains("attach --force"), "{error}");
            assert!(!error.contains("--accept-loss"), "it would mix old pages in: {error}");
        }
        assert_noticed(VolumeFault::RescuedHomeUnwatched, || {
            back_after_a_rescue(claim, true).is_none().then(|| "it is opened".into())
        });
    }
}

/// The error of opening a volume whose flash was away, whose home was rescued and then changed in `page`, and whose journal was
/// lost. It is destaged `"dense"` now, as an error about a lost journal advises. A home that is refused is not changed.
fn back_without_journal(claim: ClaimConfig, page: u64, options: OpenOptions) -> Option<String> {
    let mut rig = Rig::over("ordered", 1, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    rig.config.home.as_mut().unwrap().claim = claim;
    rig.live(|life| async move {
        for number in 100..300 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.home.fail(Fails::Changes(ErrorKind::Io));
        life.write(200, 2).await.unwrap();
        // The record of clean pages is written.
        life.volume.close().await.unwrap();
    });
    Rig::rescued([rig.home.clone(), rig.journal.clone()]);
    rig.home.flip_bit(page * PAGE_BYTES as u64 + 80, 3);
    rig.journal = MemoryStore::new(rig.journal.image().len() as u64);
    rig.config.home.as_mut().unwrap().destage = DestageConfig::Dense;
    let before = rig.home.image();
    let refused = rig.live_as(options, |opened| async move {
        let life = match opened {
            Ok(life) => life,
            Err(error) => return Some(error.to_string()),
        };
        life.write_home().await.unwrap();
        None
    });
    assert!(refused.is_none() || rig.home.image() == before, "a home that is refused was changed");
    refused
}

/// Page 250 is in the flash, too, as it was when the home was rescued; page 1000 is not.
#[test]
fn a_flash_that_comes_back_without_the_journal_is_refused_where_its_home_was_used_since() {
    let read_only = OpenOptions { read_only: true, ..OpenOptions::default() };
    for claim in [ClaimConfig::Xor, ClaimConfig::None] {
        for options in [OpenOptions::default(), read_only] {
            let error = back_without_journal(claim, 1000, options).expect("refused");
            assert!(error.contains("the home has no claim that would show"), "{error}");
            assert!(error.contains("attach --force"), "{error}");
        }
        for options in [OpenOptions::default(), read_only, ACCEPT] {
            let error = back_without_journal(claim, 250, options).expect("refused");
            assert!(error.contains("home does not hold page 250"), "{error}");
        }
    }
    assert_noticed(VolumeFault::UnclaimedHomeTaken, || {
        let refused = back_without_journal(ClaimConfig::Xor, 1000, OpenOptions::default());
        refused.is_none().then(|| "older pages go over it".into())
    });
}

const ACCEPT: OpenOptions =
    OpenOptions { read_only: false, accept_loss: true, system_cache: false };

/// The error of opening with loss accepted, after checking that home and journal did not change.
fn refusal_of_loss(rig: &Rig) -> String {
    let images = || [&rig.home, &rig.journal].map(MemoryStore::image);
    let before = images();
    let error = rig.live_as(ACCEPT, |opened| async move { opened.err().map(|it| it.to_string()) });
    assert!(images() == before, "what is refused stays as it was");
    error.expect("it is refused")
}

/// Content that overwrote a claim is accepted as it is, also by later openings.
#[test]
fn a_home_that_was_written_over_is_opened_where_loss_is_accepted() {
    let rig = volume(1, 1);
    rig.home.wipe_block(4000 * PAGE_BYTES as u64);
    assert!(refusal(&rig).1.contains("without its cache"));
    for options in [ACCEPT, OpenOptions::default()] {
        rig.live_as(options, move |opened| async move {
            let life = opened.unwrap();
            assert_eq!(life.read(7).await.unwrap(), page(7, 1));
            assert_eq!(life.read(2000).await.unwrap(), page(2000, 0));
            life.volume.close().await.unwrap();
        });
    }
}

/// The names of devices change. A disk that shows no claim is another one, unless its pages are the volume's.
#[test]
fn another_disk_without_a_claim_is_never_written_to() {
    let full = || {
        let life = volume(1, 1);
        life.live(|life| async move {
            life.home.fail(Fails::Changes(ErrorKind::Io));
            life.write(5, 9).await.unwrap();
        });
        life
    };
    for is_clean in [true, false] {
        let rig = if is_clean { full() } else { all_dirty() };
        let own = rig.home.clone();
        let mut image = vec![0; PAGES as usize * PAGE_BYTES];
        image[1024..2048].fill(5);
        let other = Rig { home: MemoryStore::with_image(&image), ..rig };
        let (kind, error) = refusal(&other);
        assert_eq!(kind, ErrorKind::Corrupt, "{error}");
        assert!(error.contains("does not show the claim"), "{error}");
        assert!(error.contains("probably another disk") && error.contains("stat"), "{error}");
        assert!(!error.contains("attach"), "it would claim the other disk: {error}");
        let told = refusal_of_loss(&other);
        let why = if is_clean { "home does not hold page" } else { "no page shows" };
        assert!(told.contains(why) && told.contains("home.path"), "{told}");
        // Nothing is forgotten: the next opening still expects the claim.
        assert!(refusal(&other).1.contains("does not show the claim"));
        Rig { home: own, ..other }.live(|life| async move {
            assert_eq!(life.read(5).await.unwrap(), page(5, 9));
        });
    }
}

/// A volume killed before anything was destaged.
fn all_dirty() -> Rig {
    let rig = Rig::new("ordered");
    rig.live(|life| async move {
        life.home.fail(Fails::Changes(ErrorKind::Io));
        life.write(5, 9).await.unwrap();
    });
    rig
}

#[test]
fn another_disk_is_refused_without_claims_too() {
    let mut rig = Rig::over("ordered", 1, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    rig.config.home.as_mut().unwrap().claim = ClaimConfig::None;
    rig.live(|life| async move {
        for number in 0..300 {
            life.write(number, 1).await.unwrap();
        }
        life.write_home().await.unwrap();
        life.write(200, 2).await.unwrap();
        life.volume.close().await.unwrap();
    });
    let mut image = vec![0; PAGES as usize * PAGE_BYTES];
    image[1024..2048].fill(5);
    let other = Rig { home: MemoryStore::with_image(&image), ..rig.clone() };
    assert!(refusal(&other).1.contains("or it is another disk"));
    assert!(refusal_of_loss(&other).contains("home does not hold page"));
    // The volume's own home is taken, though somebody changed a page of it.
    rig.home.flip_bit(80, 3);
    assert!(refusal(&rig).1.contains("without its cache"));
    rig.live_as(ACCEPT, |opened| async move {
        assert_eq!(opened.unwrap().read(200).await.unwrap(), page(200, 2));
    });
}

/// A claim was taken off below a cache that went on writing under it. The pages that the flash has are written home again.
#[test]
fn a_home_that_is_claimed_in_part_has_the_pages_of_the_flash() {
    let rig = volume(1, 1);
    let claimed = rig.home.image();
    let mut image = Rig::under_the_claim(&rig.home);
    // These were destaged afterwards.
    image[100 * PAGE_BYTES..110 * PAGE_BYTES]
        .copy_from_slice(&claimed[100 * PAGE_BYTES..110 * PAGE_BYTES]);
    let mixed = Rig { home: MemoryStore::with_image(&image), ..rig };
    assert!(refusal(&mixed).1.contains("does not show the claim"));
    mixed.live_as(ACCEPT, |opened| async move {
        let life = opened.unwrap();
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
    let home = Rig::under_the_claim(&mixed.home);
    for number in 0..300 {
        let at = number as usize * PAGE_BYTES;
        assert!(home[at..at + PAGE_BYTES] == page(number, 1)[..], "page {number}");
    }
}

#[test]
fn a_home_that_is_too_small_is_refused() {
    let rig = volume(1, 1);
    let half = rig.home.image()[..PAGES as usize / 2 * PAGE_BYTES].to_vec();
    let cut = Rig { home: MemoryStore::with_image(&half), ..rig };
    let (kind, error) = refusal(&cut);
    assert_eq!(kind, ErrorKind::InvalidInput, "{error}");
    assert!(error.contains("the home") && error.contains("4096"), "{error}");
}

/// With another volume's home, an administrator who accepts the loss may read. That home is not written to.
#[test]
fn what_was_acknowledged_stays_readable_where_loss_is_accepted() {
    let (one, other) = (volume(1, 1), volume(2, 2));
    let mixed = Rig { home: other.home, ..one };
    assert!(refusal_of_loss(&mixed).contains("belongs to volume"));
    let accept = OpenOptions { accept_loss: true, ..OpenOptions::READ_ONLY };
    mixed.live_as(accept, |opened| async move {
        let life = opened.unwrap();
        assert_eq!(life.read(7).await.unwrap(), page(7, 1));
    });
}

/// The volume whose flash may have newer content than the home.
fn owner(rig: &Rig) -> Option<Pair> {
    let journal = rig.journal.clone();
    let owner = async move { Journal::<_, PageBuf>::owner_of(&journal).await };
    Virtual::new(Schedule::Fifo).run(owner).unwrap().unwrap()
}

/// The owner of the home of a new volume, after the volume was killed with a write that was not destaged, and after
/// the volume was destaged and closed.
fn owners(destage: &str) -> [Option<u128>; 3] {
    let rig = Rig::over(destage, 5, MemoryStore::new(PAGES * PAGE_BYTES as u64));
    let made = owner(&rig);
    rig.live(|life| async move {
        life.home.fail(Fails::Changes(ErrorKind::Io));
        life.write(5, 9).await.unwrap();
    });
    let killed = owner(&rig);
    rig.live(|life| async move {
        life.write_home().await.unwrap();
        life.volume.close().await.unwrap();
    });
    let closed = owner(&rig);
    [made, killed, closed].map(|owner| owner.map(|pair| pair.volume_id))
}

#[test]
fn a_home_belongs_to_a_volume_that_was_opened() {
    for destage in ["ordered", "dense"] {
        assert_eq!(owners(destage), [None, Some(5), Some(5)], "{destage}");
    }
}

#[test]
fn a_home_that_is_not_claimed_is_noticed() {
    let _planted = plant(Fault::HomeNotClaimed);
    assert_eq!(owners("ordered")[1], None);
}
