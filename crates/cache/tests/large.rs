//! Transactions that outgrow their memory, on a cache over a home: their staged pages, and the room
//! that these need.
use crate::support::history::{content, count_of};
use crate::support::media::{Device, Media};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, TxId};
use tantalum_cache::fault_points::Fault;
use tantalum_cache::journal::{Journal, apply};
use tantalum_cache::{Destage, Image, Mode};
use tantalum_media::block_store::MemoryStore;
use tantalum_models::rig::{FileRig, Rig, Size};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

const PAGES: u64 = 900;
/// Additional zones of the flash, compared with other tests.
const MORE_ZONES: u32 = 24;

/// Media on which a few hundred pages may be dirty.
fn media(destage: Destage) -> Media {
    let mut media = Media::new(1, PAGES, destage);
    media.flash = FileRig::of_size(1, Size::Small, MORE_ZONES);
    media.journal = MemoryStore::new((1 << 20) + 1500 * PAGE_BYTES as u64);
    media
}

/// Opens a cache that destages only on request, and runs `work` with it and the home.
fn with_cache<T: 'static, F>(
    destage: Destage,
    work: impl FnOnce(Virtual, Rc<Device>, MemoryStore) -> F + 'static,
) -> T
where
    F: Future<Output = T> + 'static,
{
    let mut media = media(destage);
    media.format(&Virtual::new(Schedule::Fifo));
    opened(&mut media, work)
}

/// The same on existing media.
fn opened<T: 'static, F>(
    media: &mut Media,
    work: impl FnOnce(Virtual, Rc<Device>, MemoryStore) -> F + 'static,
) -> T
where
    F: Future<Output = T> + 'static,
{
    let runtime = Virtual::new(Schedule::Fifo);
    let on = media.power_on(&runtime);
    let opened = media.open(&runtime, on, |options| options.destage_after_ns = u64::MAX / 4);
    let (of, home) = (runtime.clone(), media.home.clone());
    let done = runtime.run(async move { work(of, opened.await.unwrap(), home).await }).unwrap();
    media.power_off(&runtime);
    done
}

/// Writes `count` to each of `pages`.
async fn write(
    device: &Device,
    pages: std::ops::Range<u64>,
    count: u64,
    tx: Option<TxId>,
) -> Result<()> {
    for page in pages {
        device.write(PageNo(page), &[content(page, count)], tx).await?;
    }
    Ok(())
}

async fn read(device: &Device, page: u64) -> Option<u64> {
    let mut out = [PageBuf::zero()];
    device.read(PageNo(page), &mut out, None).await.unwrap();
    count_of(page, &out[0][..])
}

/// The content of the pages on the home.
fn at_home(home: &MemoryStore, pages: std::ops::Range<u64>) -> Vec<Option<u64>> {
    let image = home.image();
    pages.map(|page| count_of(page, &image[page as usize * PAGE_BYTES..][..PAGE_BYTES])).collect()
}

#[test]
fn what_waits_for_its_commit_stays_away_from_home_and_all_of_it_goes_there_then() {
    for destage in [Destage::Ordered, Destage::Dense] {
        with_cache(destage, |_, device, home| async move {
            write(&device, 0..20, 1, None).await.unwrap();
            let tx = device.begin().await.unwrap();
            write(&device, 10..70, 2, Some(tx)).await.unwrap();
            assert!(device.drive().ftl().staged_pages().count() > 40, "it outgrew its memory");
            assert_eq!(device.statistics().dirty_pages, 20, "nothing of it is dirty");
            device.write_home().await.unwrap();
            assert_eq!(device.statistics().dirty_pages, 0);
            assert_eq!(at_home(&home, 0..70), [[Some(1); 20].as_slice(), &[Some(0); 50]].concat());
            device.commit(tx).await.unwrap();
            device.validate();
            assert_eq!(device.statistics().dirty_pages, 60);
            assert_eq!((read(&device, 9).await, read(&device, 69).await), (Some(1), Some(2)));
            device.write_home().await.unwrap();
            assert_eq!(device.statistics().dirty_pages, 0);
            assert_eq!(at_home(&home, 0..70), [[Some(1); 10].as_slice(), &[Some(2); 60]].concat());
            device.validate();
        });
    }
}

#[test]
fn a_commit_is_acknowledged_when_home_has_it_where_that_is_promised() {
    for destage in [Destage::Ordered, Destage::Dense] {
        let mut media = media(destage);
        media.format(&Virtual::new(Schedule::Fifo));
        let (journal, pair) = (media.journal.clone(), media.pair());
        opened(&mut media, move |_, device, home| async move {
            device.set_mode(Mode::WriteThrough).await.unwrap();
            let tx = device.begin().await.unwrap();
            write(&device, 0..60, 1, Some(tx)).await.unwrap();
            device.commit(tx).await.unwrap();
            // The flash is lost at this moment.
            let copy = |store: &MemoryStore| MemoryStore::with_image(&store.image());
            let (journal, home) = (copy(&journal), copy(&home));
            let (journal, _) = Journal::<_, PageBuf>::open(journal, pair, 0).await.unwrap();
            apply(&journal, &Image::new(home.clone(), PAGES).unwrap(), 4).await.unwrap();
            assert_eq!(at_home(&home, 0..60), [Some(1); 60]);
        });
    }
}

/// Fills the room for pages newer than on the home with open transactions. Returns the first error:
/// another writer could not continue, or these transactions did not fail.
fn fill_with_transactions() -> Option<String> {
    with_cache(Destage::Ordered, |_, device, _| async move {
        // Dirty pages make room.
        write(&device, 300..450, 1, None).await.unwrap();
        let most = device.options().staged_pages_max;
        let mut open = Vec::new();
        let mut refused = None;
        // More than all of them together have memory for.
        for first in (0..2 * most).step_by(30) {
            let tx = device.begin().await.unwrap();
            open.push(tx);
            if let Err(error) = write(&device, first..first + 30, 2, Some(tx)).await {
                refused = Some(error);
                break;
            }
        }
        let Some(refused) = refused else { return Some("nothing is refused".to_owned()) };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        assert!(refused.to_string().contains("home.dirty_max"), "{refused}");
        assert!(device.drive().ftl().staged_pages().count() as u64 > most - 30);
        // Others find room, as their pages are destaged.
        for round in 3..6 {
            write(&device, 800..900, round, None).await.unwrap();
        }
        let last = open.pop().unwrap();
        device.abort(last).await.unwrap();
        for tx in open {
            device.commit(tx).await.unwrap();
        }
        device.write_home().await.unwrap();
        device.validate();
        assert_eq!(device.drive().ftl().staged_pages().count(), 0);
        let statistics = device.statistics();
        (statistics.home_errors > 0).then(|| format!("{statistics:?}"))
    })
}

#[test]
fn what_there_is_no_room_for_is_refused_and_leaves_room_for_others() {
    assert_eq!(fill_with_transactions(), None);
}

#[test]
fn transactions_that_take_all_room_are_noticed() {
    assert_noticed(Fault::StagedWithoutRoom, fill_with_transactions);
}

#[test]
fn what_a_cut_leaves_of_an_open_transaction_is_given_up() {
    let mut media = media(Destage::Ordered);
    media.format(&Virtual::new(Schedule::Fifo));
    opened(&mut media, |_, device, _| async move {
        write(&device, 0..100, 1, None).await.unwrap();
        let tx = device.begin().await.unwrap();
        write(&device, 50..120, 2, Some(tx)).await.unwrap();
        assert!(device.drive().ftl().staged_pages().count() > 50);
    });
    opened(&mut media, |_, device, home| async move {
        for page in 0..120 {
            assert_eq!(read(&device, page).await, Some(u64::from(page < 100)), "page {page}");
        }
        let tx = device.begin().await.unwrap();
        write(&device, 0..130, 3, Some(tx)).await.unwrap();
        device.commit(tx).await.unwrap();
        assert_eq!(device.drive().ftl().staged_pages().count(), 0);
        device.write_home().await.unwrap();
        assert_eq!(at_home(&home, 0..130), [Some(3); 130]);
    });
}

/// Commits a large transaction while older contents of its pages are destaged, in each round at a
/// later moment. Returns the first round after which the home lacks part of it in the end.
fn commit_while_pages_go_home(destage: Destage) -> Option<String> {
    with_cache(destage, |runtime, device, home| async move {
        for round in 1..300 {
            write(&device, 0..20, 2 * round, None).await.unwrap();
            let tx = device.begin().await.unwrap();
            write(&device, 0..30, 2 * round + 1, Some(tx)).await.unwrap();
            // A trim is in force when its record is in the log; until then no part of the commit is
            // visible.
            write(&device, 30..31, 0, Some(tx)).await.unwrap();
            let going = Rc::clone(&device);
            let going = runtime.spawn("going home", async move { going.write_home().await });
            runtime.sleep(round * 13_000).await;
            device.commit(tx).await.unwrap();
            going.await.unwrap();
            for (page, found) in (0..).zip(at_home(&home, 0..30)) {
                if device.drive().is_clean(PageNo(page)) && found != Some(2 * round + 1) {
                    return Some(format!(
                        "round {round}: page {page} is clean, and home has {found:?}"
                    ));
                }
            }
            device.write_home().await.unwrap();
            if at_home(&home, 0..30) != [Some(2 * round + 1); 30] {
                return Some(format!("round {round}: {:?}", at_home(&home, 0..30)));
            }
        }
        None
    })
}

#[test]
fn a_commit_goes_home_whatever_of_its_pages_is_on_its_way_there() {
    for destage in [Destage::Ordered, Destage::Dense] {
        assert_eq!(commit_while_pages_go_home(destage), None, "{destage:?}");
    }
}

#[test]
fn pages_that_count_as_clean_before_their_commit_is_seen_are_noticed() {
    let commit = || commit_while_pages_go_home(Destage::Dense);
    assert_noticed(tantalum_ftl::fault_points::Fault::UnseenSharesClean, commit);
}
