//! Errors during opening, or during a rescue: the operation is refused, without any conclusion or change.
use super::failing::{Failing, Fails};
use super::rig::{Life, PAGES, Rig, page};
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf};
use tantalum_cache::journal::{Journal, Pair};
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_volume::{OpenOptions, TieredStores, rescue};

const BLOCK: u64 = PAGE_BYTES as u64;

/// Number of pages that were written.
const WRITTEN: u64 = 120;

/// Home has version 1 of all pages, and the flash version 2 of the first half; with epochs, the journal has an epoch of
/// these.
async fn fill(life: Life) {
    for number in 0..WRITTEN {
        life.write(number, 1).await.unwrap();
    }
    life.write_home().await.unwrap();
    life.home.fail(Fails::Changes(ErrorKind::Io));
    for number in 0..WRITTEN / 2 {
        life.write(number, 2).await.unwrap();
    }
    life.sleep_s(1).await;
}

fn images(rig: &Rig) -> [Vec<u8>; 3] {
    [&rig.flash, &rig.home, &rig.journal].map(MemoryStore::image)
}

/// Opens the volume while stores fail as set up by `fail`; returns the error.
fn refused(rig: &Rig, options: OpenOptions, fail: impl FnOnce(&TieredStores<Failing>)) -> String {
    let error = rig.live_over(options, fail, |opened| async move { opened.err() });
    let error = error.expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    error.to_string()
}

async fn is_whole(life: Life) {
    for number in 0..WRITTEN {
        let count = if number < WRITTEN / 2 { 2 } else { 1 };
        assert_eq!(life.read(number).await.unwrap(), page(number, count));
    }
    life.write_home().await.unwrap();
}

#[test]
fn what_opening_cannot_read_refuses_it_and_changes_nothing() {
    let journal_reads = [(0, BLOCK), (512 << 10, (512 << 10) + BLOCK), (0, u64::MAX)];
    for destage in ["ordered", "dense"] {
        for read_only in [false, true] {
            let rig = Rig::new(destage);
            rig.live(fill);
            let before = images(&rig);
            let options = OpenOptions { read_only, ..OpenOptions::default() };
            for (from, to) in journal_reads {
                let told = refused(&rig, options, |stores| {
                    stores.journal.as_ref().unwrap().fail(Fails::ReadsOf(from, to));
                });
                assert!(told.contains("journal"), "{told}");
            }
            // The copies of the superblock, and everything else.
            for (from, to) in [(0, BLOCK), (BLOCK, 2 * BLOCK), (2 * BLOCK, u64::MAX)] {
                refused(&rig, options, |stores| stores.flash.fail(Fails::ReadsOf(from, to)));
            }
            assert!(images(&rig) == before, "{destage}, read-only: {read_only}");
            // Without epochs nothing records after a kill which pages are clean and could be compared.
            if destage == "ordered" {
                refused(&rig, options, |stores| stores.home.fail(Fails::Reads));
                // The flash may have a new checkpoint.
                assert!(images(&rig)[1..] == before[1..], "read-only: {read_only}");
            }
            rig.live(is_whole);
        }
    }
}

/// The index of a committed epoch, and the epoch's contents.
#[test]
fn an_epoch_that_cannot_be_read_is_no_epoch_that_is_not_there() {
    let rig = Rig::new("ordered");
    rig.live(fill);
    let index = (1 << 20) + WRITTEN / 2 * BLOCK;
    let before = images(&rig);
    refused(&rig, OpenOptions::default(), |stores| {
        stores.journal.as_ref().unwrap().fail(Fails::ReadsOf(index, index + BLOCK));
    });
    assert!(images(&rig) == before);
    // Its contents are read later: they stay there until they can be read.
    let contents = Fails::ReadsOf(1 << 20, index);
    let fail =
        move |stores: &TieredStores<Failing>| stores.journal.as_ref().unwrap().fail(contents);
    rig.live_over(OpenOptions::default(), fail, |opened| async move {
        let life = opened.unwrap();
        life.write(0, 2).await.unwrap();
        life.sleep_s(60).await;
        assert!(life.statistics().home_failure.is_some());
        life.journal.as_ref().unwrap().fail(Fails::Nothing);
        is_whole(life).await;
    });
}

#[test]
fn a_rescue_that_cannot_read_is_refused_and_may_be_repeated() {
    let rig = Rig::new("ordered");
    rig.live(fill);
    let [home, journal] = rig.left();
    let whole = (1 << 20) + WRITTEN / 2 * BLOCK;
    for (from, to) in [(0, BLOCK), (512 << 10, 600 << 10), (1 << 20, whole), (whole, u64::MAX)] {
        let (home, journal) = (home.clone(), journal.clone());
        let refused = Virtual::alone("rescue", |runtime| {
            let failing = Failing::new(&runtime, journal);
            failing.fail(Fails::ReadsOf(from, to));
            rescue(failing, Failing::new(&runtime, home))
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Io, "{from} to {to}");
    }
    let image = Rig::rescued([home, journal]);
    for (number, bytes) in (0..WRITTEN).zip(image.chunks(PAGE_BYTES)) {
        let count = if number < WRITTEN / 2 { 2 } else { 1 };
        assert!(*bytes == page(number, count)[..], "page {number}");
    }
}

/// There may be an older journal header that would count beside the new one.
#[test]
fn no_journal_is_made_where_it_cannot_be_known_what_is_there() {
    let memory = MemoryStore::new((1 << 20) + 100 * BLOCK);
    let pair = Pair { volume_id: 5, pages: PAGES };
    let runtime = Virtual::new(Schedule::Fifo);
    let store = Failing::new(&runtime, memory.clone());
    runtime
        .run(async move {
            let made = Journal::<_, PageBuf>::format(store.clone(), pair, 0).await;
            made.unwrap();
            let before = memory.image();
            store.fail(Fails::ReadsOf(0, BLOCK));
            let other = Pair { volume_id: 6, pages: PAGES };
            let made = Journal::<_, PageBuf>::format(store.clone(), other, 0).await;
            assert_eq!(made.err().map(|error| error.kind()), Some(ErrorKind::Io));
            assert!(memory.image() == before && store.bytes() == memory.bytes());
        })
        .unwrap();
}
