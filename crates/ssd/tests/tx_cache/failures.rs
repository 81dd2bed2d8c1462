//! A medium that fails, and commands that are given up.
use crate::support::{PAGES, options, read, run, stamp, write};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{ErrorKind, PageDevice, PageNo, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{FileZones, FileZonesOptions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_ssd::{TxCache, TxCacheOptions};

/// Sizes of the zones; their pages are bytes, as those of any real medium.
const ZONES: FileZonesOptions =
    FileZonesOptions { volume_id: 1, first_byte: 0, zones: 30, slots_per_zone: 16 };

fn content(count: u8) -> tantalum_base::PageBuf {
    tantalum_base::PageBuf::copy_from(&[count; tantalum_base::PAGE_BYTES])
}

/// The `nth` append from now on fails; writes in transactions, small or larger than the cache, go
/// on until one is refused.
fn fails_at(nth: u64, large: bool) {
    let options = TxCacheOptions { extended_pages: 40, ..options(16) };
    let ftl_options = FtlOptions::new(PAGES + 40);
    let store = MemoryStore::new(30 * 16 * 4096);
    let zones = FileZones::new(store.clone(), ZONES).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let (nvram, committed) = runtime
        .run(async move {
            let zones = Faults::new(Rc::new(zones), FaultsOptions::default());
            let ftl = Ftl::format(zones, ftl_options).await.unwrap();
            let device = Rc::new(TxCache::new(handle, Rc::clone(&ftl), options).unwrap());
            device.start();
            ftl.media().fail_append(nth, AppendFault::Io);
            let mut committed = 0u8;
            let refused = 'load: loop {
                let tx = match device.begin().await {
                    Ok(tx) => tx,
                    Err(error) => break error,
                };
                let pages = if large { 30 } else { 3 };
                for page in 0..pages {
                    let page = PageNo((u64::from(committed) * 3 + page) % PAGES);
                    if let Err(error) =
                        device.write(page, &[content(committed + 1)], Some(tx)).await
                    {
                        device.abort(tx).await.unwrap();
                        break 'load error;
                    }
                }
                match device.commit(tx).await {
                    Ok(()) => committed += 1,
                    Err(error) => {
                        device.abort(tx).await.unwrap();
                        break error;
                    }
                }
            };
            assert_eq!(refused.kind(), ErrorKind::Latched, "{refused}");
            assert!(
                refused.to_string().contains("injected"),
                "the first failure is told: {refused}"
            );
            for result in [
                device.write(PageNo(0), &[content(9)], None).await,
                device.flush().await,
                device.begin().await.map(drop),
                device.close().await,
            ] {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Latched);
            }
            (device.nvram(), committed)
        })
        .unwrap();
    runtime.drop_tasks();
    assert!(committed > 0 || large);
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    runtime
        .run(async move {
            let zones = FileZones::new(store, ZONES).unwrap();
            let (ftl, _) = Ftl::recover(zones, ftl_options).await.unwrap();
            let (device, _) = TxCache::recover(handle, ftl, options, nvram).await.unwrap();
            device.validate();
            let mut expected = vec![0; PAGES as usize];
            for commit in 0..u64::from(committed) {
                for page in 0..if large { 30 } else { 3 } {
                    expected[((commit * 3 + page) % PAGES) as usize] = commit as u8 + 1;
                }
            }
            for (page, count) in (0..).map(PageNo).zip(expected) {
                let mut out = [content(255)];
                device.read(page, &mut out, None).await.unwrap();
                assert!(out[0] == content(count), "page {page} is not of commit {count}");
            }
        })
        .unwrap();
    runtime.drop_tasks();
}

#[test]
fn a_failed_write_back_latches_and_loses_nothing() {
    (0..8).for_each(|nth| fails_at(nth, false));
}

#[test]
fn a_failed_move_to_the_extended_cache_latches_and_loses_nothing() {
    (0..8).for_each(|nth| fails_at(nth, true));
}

/// Polls `future` once and gives it up.
async fn give_up<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

#[test]
fn commands_that_are_given_up_while_they_wait_leave_nothing() {
    run(Schedule::Fifo, options(16), |_, device| async move {
        for page in 100..130 {
            write(&device, page, 1, None).await;
        }
        let (a, b) = (device.begin().await.unwrap(), device.begin().await.unwrap());
        for page in 0..12 {
            write(&device, page, 1, Some(a)).await;
        }
        // The cache is full of uncommitted pages: this one waits for the extended cache.
        let waiting = give_up(device.write(PageNo(20), &[stamp(20, 1)], Some(b))).await;
        assert!(waiting.is_none());
        {
            // Page 100 is at home: reading it takes a while, and the commit waits for it.
            let mut out = [Stamp::default()];
            let mut reading = pin!(device.read(PageNo(100), &mut out, Some(a)));
            let pending = std::future::poll_fn(|context| {
                Poll::Ready(reading.as_mut().poll(context).is_pending())
            });
            assert!(pending.await);
            assert!(give_up(device.commit(a)).await.is_none());
            assert!(give_up(device.abort(a)).await.is_none());
        }
        device.validate();
        write(&device, 21, 2, Some(b)).await;
        assert_eq!(read(&device, 20, Some(b)).await, 0);
        device.commit(b).await.unwrap();
        device.commit(a).await.unwrap();
        assert_eq!([read(&device, 11, None).await, read(&device, 21, None).await], [1, 2]);
        device.close().await.unwrap();
        device.validate();
    });
}
