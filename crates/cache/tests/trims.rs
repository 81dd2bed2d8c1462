//! Trims of a cache that destages in epochs.
use crate::support::media::{Device, Media};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange};
use tantalum_cache::Destage;
use tantalum_cache::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

/// Half of them are trimmed: more ranges than the whole journal has room for.
const PAGES: u64 = 72_000;
/// Room for the contents of all pages that may be dirty, and for few index pages.
const JOURNAL_PAGES: u64 = 100;

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; PAGE_BYTES])
}

/// Trims every other page, as fast as the cache allows, besides some writes; returns the first
/// error of the home or of the trims.
async fn trim_every_other_page(runtime: Virtual, device: Rc<Device>) -> Option<String> {
    for first in (0..PAGES).step_by(200) {
        device.write(PageNo(first + 1), &[page(1)], None).await.ok()?;
    }
    let trims = (0..4).map(|client| {
        let (device, pages) = (Rc::clone(&device), (2 * client..PAGES).step_by(8));
        runtime.spawn("trims", async move {
            for page in pages {
                device.trim(PageRange::new(PageNo(page), 1)).await?;
            }
            Ok::<_, tantalum_base::Error>(())
        })
    });
    for trimmed in trims.collect::<Vec<_>>() {
        if let Err(error) = trimmed.await {
            return Some(error.to_string());
        }
    }
    if let Err(error) = device.write_home().await {
        return Some(error.to_string());
    }
    let statistics = device.statistics();
    (statistics.home_errors > 0).then(|| format!("{statistics:?}"))
}

fn scattered_trims() -> Option<String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let mut media = Media::new(1, PAGES, Destage::Ordered);
    media.journal = MemoryStore::new((1 << 20) + JOURNAL_PAGES * PAGE_BYTES as u64);
    media.home = MemoryStore::with_image(&vec![9; PAGES as usize * PAGE_BYTES]);
    media.format(&Virtual::new(Schedule::Fifo));
    let on = media.power_on(&runtime);
    // Rounds run only if a task needs room.
    let opened = media.open(&runtime, on, |options| {
        options.destage_after_ns = u64::MAX / 4;
        options.journal_batch_pages = 256;
    });
    let of = runtime.clone();
    let failed = runtime.run(async move {
        let device = opened.await.unwrap();
        let failed = trim_every_other_page(of, Rc::clone(&device)).await;
        device.close().await.unwrap();
        failed
    });
    runtime.drop_tasks();
    if let Ok(None) = failed {
        let image = media.home.image();
        for at in 0..PAGES {
            let wanted = if at % 2 == 0 {
                0
            } else if at % 200 == 1 {
                1
            } else {
                9
            };
            assert_eq!(image[at as usize * PAGE_BYTES], wanted, "page {at}");
        }
    }
    failed.unwrap()
}

#[test]
fn scattered_trims_wait_for_room_in_the_journal() {
    assert_eq!(scattered_trims(), None);
}

#[test]
fn more_ranges_than_the_journal_has_room_for_are_noticed() {
    assert_noticed(Fault::TrimsUnlimited, scattered_trims);
}
