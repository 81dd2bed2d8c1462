//! A journal that was not used for a while.
use crate::support::media::Media;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange};
use tantalum_cache::Destage;
use tantalum_cache::fault_points::Fault;
use tantalum_cache::journal::Journal;
use tantalum_media::BlockStore;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual, first as race};

const PAGES: u64 = 240;

/// Opens the cache with this `destage`, writes `fill` to pages from `first` on, trims the last
/// ones, and destages everything. With `cut_after_ns` power is cut this long after destaging began.
fn use_it(media: &mut Media, destage: Destage, first: u64, fill: u8, cut_after_ns: Option<u64>) {
    media.destage = destage;
    let runtime = Virtual::new(Schedule::Fifo);
    let on = media.power_on(&runtime);
    let opened = media.open(&runtime, on, |_| ());
    let clock = runtime.clone();
    let done = runtime.run(async move {
        let device = opened.await?;
        // The content of the journal is destaged first.
        clock.sleep(1_000_000_000).await;
        for page in first..first + 40 {
            device.write(PageNo(page), &[PageBuf::copy_from(&[fill; PAGE_BYTES])], None).await?;
        }
        device.trim(PageRange::new(PageNo(first + 40), 20)).await?;
        match cut_after_ns {
            Some(cut_after_ns) => {
                race(device.write_home(), clock.sleep(cut_after_ns)).await;
                Ok(())
            }
            None => {
                device.write_home().await?;
                device.close().await
            }
        }
    });
    done.unwrap().unwrap();
    media.power_off(&runtime);
}

fn new_journal(media: &Media) -> MemoryStore {
    let journal = MemoryStore::new(media.journal.bytes());
    let (store, pair) = (journal.clone(), media.pair());
    let format = |_| async move { Journal::<_, PageBuf>::format(store, pair, 64).await.map(drop) };
    Virtual::alone("format", format).unwrap();
    journal
}

/// The first page of the home that does not have the content written last.
fn wrong_page(media: &Media, wanted: impl Fn(u64) -> u8) -> Option<String> {
    let image = media.home.image();
    let found = |page: u64| image[page as usize * PAGE_BYTES];
    let wrong = (0..PAGES).find(|page| found(*page) != wanted(*page));
    wrong.map(|page| format!("page {page} is {}, not {}", found(page), wanted(page)))
}

/// Ordered, then dense for a while without the journal, then ordered again. With `cut_after_ns`
/// power is cut this long after destaging of the first epoch began.
fn there_and_back(cut_after_ns: Option<u64>) -> Option<String> {
    let mut media = Media::new(1, PAGES, Destage::Ordered);
    media.format(&Virtual::new(Schedule::Fifo));
    use_it(&mut media, Destage::Ordered, 0, 1, cut_after_ns);
    let aside = media.journal.clone();
    media.journal = new_journal(&media);
    use_it(&mut media, Destage::Dense, 20, 2, None);
    media.journal = aside;
    use_it(&mut media, Destage::Ordered, 120, 3, None);
    wrong_page(&media, |page| match page {
        0..20 => 1,
        20..60 => 2,
        120..160 => 3,
        _ => 0,
    })
}

#[test]
fn an_old_epoch_does_not_replace_what_went_home_without_a_journal() {
    assert_eq!(there_and_back(None), None);
}

/// Like [`there_and_back`], with power cuts at different moments.
fn cut_there_and_back() -> Option<String> {
    (0..6000).step_by(100).find_map(|after_us| there_and_back(Some(after_us * 1000)))
}

#[test]
fn an_epoch_that_was_cut_short_does_not_replace_it_either() {
    assert_eq!(cut_there_and_back(), None);
}

#[test]
fn an_epoch_that_replaces_what_is_clean_is_noticed() {
    assert_noticed(Fault::CleanPagesReplaced, cut_there_and_back);
}
