//! Slots of the extended cache that the medium cannot read.
use crate::tx_cache::support::{Device, Zones, device_on, options, zones};
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Payload, Result, Stamp};
use tantalum_media::wrappers::{Faults, FaultsOptions};
use tantalum_models::TxCacheOptions;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

/// Number of pages in a transaction: more than there are frames, so that some go to the extended
/// cache.
const LARGE: u64 = 30;

/// The medium, which can be told to fail.
fn faults(device: &Device) -> &Faults<Zones> {
    device.ftl().media().downcast_ref().expect("the zones can fail")
}

fn large() -> TxCacheOptions {
    TxCacheOptions { extended_pages: 32, ..options(16) }
}

/// Runs `test` on a device whose pages were all written once and are home.
fn run<F, T>(test: F)
where
    F: FnOnce(Rc<Device>) -> T + 'static,
    T: Future<Output = Result<()>> + 'static,
{
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let session = async move {
        let media = Faults::new(Rc::new(zones(&handle)), FaultsOptions::default());
        let device = device_on(&handle, media, large()).await;
        write_large(&device, 1).await?;
        device.close().await?;
        test(device).await
    };
    runtime.run(session).unwrap().unwrap();
    runtime.drop_tasks();
}

async fn write_large(device: &Device, count: u64) -> Result<()> {
    let tx = device.begin().await?;
    for page in (0..LARGE).map(PageNo) {
        device.write(page, &[Stamp::new(page, count)], Some(tx)).await?;
    }
    device.commit(tx).await
}

/// The pages whose reads fail; all others must have this count.
async fn errors(device: &Device, count: u64) -> Vec<PageNo> {
    let mut errors = Vec::new();
    for page in (0..LARGE).map(PageNo) {
        let mut out = [Stamp::zero()];
        match device.read(page, &mut out, None).await {
            Ok(()) => assert_eq!(out[0], Stamp::new(page, count), "page {page}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Uncorrectable, "{error}");
                errors.push(page);
            }
        }
    }
    errors
}

/// The extended cache loses some pages of a committed transaction: those of the `nth` reads of the
/// write-back. Exactly these pages become errors; the device continues to work, also after it is opened
/// again.
fn loses(nth: &'static [u64], trims: bool) {
    run(move |device| async move {
        nth.iter().for_each(|nth| faults(&device).fail_read(*nth));
        write_large(&device, 2).await?;
        // Everything that can be written home is.
        device.close().await?;
        device.validate_cache();
        assert_eq!(device.statistics().pages_lost, nth.len() as u64);
        let lost = errors(&device, 2).await;
        assert_eq!(lost.len(), nth.len(), "{lost:?}");
        // All headers are free, and all slots except the lost ones.
        for _ in 0..large().transactions_max {
            device.begin().await?;
        }
        device.close().await?;
        assert_eq!(errors(&device, 2).await, lost);
        for page in lost {
            match trims {
                true => device.trim(PageRange::new(page, 1)).await?,
                false => device.write(page, &[Stamp::new(page, 2)], None).await?,
            }
            let mut out = [Stamp::new(page, 9)];
            device.read(page, &mut out, None).await?;
            let expected = if trims { Stamp::zero() } else { Stamp::new(page, 2) };
            assert_eq!(out[0], expected);
        }
        device.validate_cache();
        // Its slots can be used again: the largest transaction finds room many times.
        for count in 3..20 {
            write_large(&device, count).await?;
            device.validate_cache();
            assert!(errors(&device, count).await.is_empty());
        }
        device.close().await?;
        device.validate_cache();
        Ok(())
    });
}

#[test]
fn pages_that_the_extended_cache_loses_are_errors_and_the_device_serves_on() {
    for trims in [false, true] {
        loses(&[0], trims);
        loses(&[3], trims);
        loses(&[0, 1, 2], trims);
    }
}

/// As before, in an open transaction: the pages that it wrote there are errors for it, and after the
/// commit for all.
#[test]
fn what_an_open_transaction_lost_is_an_error_to_it_until_it_writes_it_again() {
    run(move |device| async move {
        for again in [false, true] {
            let tx = device.begin().await?;
            for page in (0..LARGE).map(PageNo) {
                device.write(page, &[Stamp::new(page, 2)], Some(tx)).await?;
            }
            faults(&device).fail_read(0);
            let (mut lost, mut out) = (Vec::new(), [Stamp::zero()]);
            for page in (0..LARGE).map(PageNo) {
                match device.read(page, &mut out, Some(tx)).await {
                    Ok(()) => assert_eq!(out[0], Stamp::new(page, 2)),
                    Err(_) => lost.push(page),
                }
            }
            assert_eq!(lost.len(), 1, "{lost:?}");
            if again {
                device.write(lost[0], &[Stamp::new(lost[0], 2)], Some(tx)).await?;
                lost.clear();
            }
            device.commit(tx).await?;
            device.validate_cache();
            assert_eq!(errors(&device, 2).await, lost);
            device.close().await?;
            device.validate_cache();
            assert_eq!(errors(&device, 2).await, lost);
        }
        Ok(())
    });
}
