//! Which pages are admitted to the flash, and which stay there.
use crate::support::media::{Device, Media};
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload};
use tantalum_cache::{Destage, TieredOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 900;
const HOUR_NS: u64 = 3_600_000_000_000;

/// Opens a cache with settings modified by `change`, and runs `work` with it.
fn with_cache<W, F>(change: impl Fn(&mut TieredOptions) + 'static, work: W)
where
    W: FnOnce(Virtual, Rc<Device>) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let runtime = Virtual::new(Schedule::Fifo);
    let mut media = Media::new(1, PAGES, Destage::Dense);
    media.format(&Virtual::new(Schedule::Fifo));
    let on = media.power_on(&runtime);
    let opened = media.open(&runtime, on, change);
    let of = runtime.clone();
    runtime.run(async move { work(of, opened.await.unwrap()).await }).unwrap();
    runtime.drop_tasks();
}

async fn read(device: &Device, pages: impl IntoIterator<Item = u64>) {
    for page in pages {
        device.read(PageNo(page), &mut [PageBuf::zero()], None).await.unwrap();
    }
}

fn held(device: &Device, pages: impl IntoIterator<Item = u64>) -> usize {
    pages.into_iter().filter(|page| device.drive().holds(PageNo(*page))).count()
}

#[test]
fn a_long_stream_of_reads_does_not_come_in() {
    let change = |options: &mut TieredOptions| options.stream_pages_max = 8;
    with_cache(change, |runtime, device| async move {
        read(&device, 100..160).await;
        read(&device, (200..400).step_by(9)).await;
        runtime.sleep(HOUR_NS).await;
        assert_eq!((held(&device, 100..108), held(&device, 108..160)), (8, 0));
        assert_eq!(held(&device, (200..400).step_by(9)), 23);
    });
}

#[test]
fn a_long_stream_of_writes_goes_first() {
    let change = |options: &mut TieredOptions| options.stream_pages_max = 8;
    with_cache(change, |runtime, device| async move {
        let page = |fill: u8| PageBuf::copy_from(&[fill; PAGE_BYTES]);
        for at in (0..80).step_by(5) {
            device.write(PageNo(500 + 3 * at), &[page(7)], None).await.unwrap();
        }
        for first in (0..160).step_by(4) {
            device.write(PageNo(first), &vec![page(1); 4], None).await.unwrap();
        }
        device.write_home().await.unwrap();
        let scattered = || (0..80).step_by(5).map(|at| 500 + 3 * at);
        assert_eq!(device.statistics().dirty_pages, 0);
        // Enough writes that zones are cleaned, which may evict clean pages that were not used.
        for count in 0..2000 {
            device.write(PageNo(800 + 3 * (count % 20)), &[page(2)], None).await.unwrap();
        }
        device.write_home().await.unwrap();
        let (kept, streamed) = (held(&device, scattered()), held(&device, 8..160));
        assert!(kept == 16 && streamed < 40, "{kept} of 16, {streamed} of 152 of the stream");
        runtime.sleep(1).await;
    });
}

#[test]
fn above_a_budget_of_wear_nothing_comes_in_but_what_hosts_write() {
    let day = 2400 * PAGE_BYTES as u64;
    let change = move |options: &mut TieredOptions| options.wear_bytes_per_day = day;
    with_cache(change, |runtime, device| async move {
        read(&device, (0..20).map(|at| at * 3)).await;
        runtime.sleep(1_000_000_000).await;
        assert_eq!(held(&device, (0..20).map(|at| at * 3)), 20, "less than an hour's share");
        for page in 600..900 {
            device.write(PageNo(page), &[PageBuf::zero()], None).await.unwrap();
        }
        read(&device, (100..120).map(|at| at * 3)).await;
        runtime.sleep(1_000_000_000).await;
        assert_eq!(held(&device, (100..120).map(|at| at * 3)), 0);
        runtime.sleep(24 * HOUR_NS).await;
        read(&device, (100..120).map(|at| at * 3)).await;
        runtime.sleep(1_000_000_000).await;
        assert_eq!(held(&device, (100..120).map(|at| at * 3)), 20, "a day later");
    });
}
