//! A medium that fails.
use crate::tx_cache::support::{PAGES, options};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions};
use tantalum_models::{TxCache, TxCacheOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

/// Sizes of the zones. Their pages are bytes, as on any real medium.
const ZONES: FileZonesOptions =
    FileZonesOptions { volume_id: 1, first_byte: 0, zones: 30, slots_per_zone: 16 };

fn content(count: u8) -> tantalum_base::PageBuf {
    tantalum_base::PageBuf::copy_from(&[count; tantalum_base::PAGE_BYTES])
}

/// The `nth` append from now on fails. Writes in transactions, small or larger than the cache,
/// continue until one is refused.
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
            let ftl = Ftl::format(ErasedZones::new(zones), ftl_options).await.unwrap();
            let device = Rc::new(TxCache::new(handle.clone(), Rc::clone(&ftl), options).unwrap());
            device.start(&handle);
            let faults = ftl.media().downcast_ref::<Faults<FileZones<MemoryStore>>>();
            faults.expect("the zones can fail").fail_append(nth, AppendFault::Io);
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
                        let ended = device.abort(tx).await.unwrap_err();
                        assert_eq!(ended.kind(), ErrorKind::UnknownTransaction);
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
            let (ftl, _) = Ftl::recover(ErasedZones::new(zones), ftl_options).await.unwrap();
            let (device, _) = TxCache::recover(handle, ftl, options, nvram).await.unwrap();
            device.validate_cache();
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
