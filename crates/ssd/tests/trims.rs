//! A trim and concurrent writers: they wait until it has its place in the log, and no longer.
use crate::devices::{Zones, run, ssd};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Stamp};
use tantalum_ftl::FtlOptions;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd};

const TRIMMED: PageRange = PageRange { first: PageNo(0), pages: 40 };

/// A device whose pages 0 to 7 hold content, some of it only in the cache.
async fn written(runtime: &Virtual, cache: CacheKind) -> Rc<Ssd<Zones>> {
    let device = ssd(runtime.clone(), cache, FtlOptions::new(160)).await.unwrap();
    for page in 0..8 {
        device.write(PageNo(page), &[Stamp::new(PageNo(page), 1)], None).await.unwrap();
    }
    device
}

#[test]
fn a_write_to_the_cache_does_not_wait_for_a_trim() {
    for seed in 0..8 {
        run(seed, move |runtime| async move {
            let device = written(&runtime, CacheKind::Ordered).await;
            let ended = Rc::new(RefCell::new(Vec::new()));
            let (trims, list) = (Rc::clone(&device), Rc::clone(&ended));
            let trim = runtime.spawn("trim", async move {
                trims.trim(TRIMMED).await.unwrap();
                list.borrow_mut().push("trim");
            });
            runtime.sleep(1_000).await;
            device.write(PageNo(50), &[Stamp::new(PageNo(50), 1)], None).await.unwrap();
            ended.borrow_mut().push("write");
            // In the trimmed range a write waits until the trim is in effect.
            device.write(PageNo(3), &[Stamp::new(PageNo(3), 2)], None).await.unwrap();
            trim.await;
            assert_eq!(*ended.borrow(), ["write", "trim"], "seed {seed}");
            let mut pages = [Stamp::zero(), Stamp::zero()];
            device.read(PageNo(3), &mut pages, None).await.unwrap();
            assert_eq!(pages, [Stamp::new(PageNo(3), 2), Stamp::zero()], "seed {seed}");
        });
    }
}

#[test]
fn a_write_through_goes_to_the_log_beside_a_trim() {
    for seed in 0..8 {
        run(seed, move |runtime| async move {
            let device = written(&runtime, CacheKind::WriteThrough).await;
            let before = device.statistics().ftl.host_appends;
            let trims = Rc::clone(&device);
            let trim = runtime.spawn("trim", async move { trims.trim(TRIMMED).await.unwrap() });
            let writes = Rc::clone(&device);
            let write = runtime.spawn("write", async move {
                writes.write(PageNo(50), &[Stamp::new(PageNo(50), 1)], None).await.unwrap();
            });
            trim.await;
            // Both were in flight when the first of them ended.
            assert_eq!(device.statistics().ftl.host_appends - before, 2, "seed {seed}");
            write.await;
            let mut page = [Stamp::zero()];
            device.read(PageNo(50), &mut page, None).await.unwrap();
            assert_eq!(page, [Stamp::new(PageNo(50), 1)]);
        });
    }
}
