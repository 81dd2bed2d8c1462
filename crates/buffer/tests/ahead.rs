//! A pool beyond single requests: runs of neighbours, the flusher, prefetching.
mod support;

use std::rc::Rc;
use support::pools::{PAGES, lru, read, small, stamp, update};
use support::{FIFO, run};
use tantalum_base::{PageNo, Stamp};
use tantalum_buffer::{FlusherOptions, Intent, PoolOptions, PrefetchOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, yield_now};

#[test]
fn adjacent_pages_are_written_together_up_to_the_limits() {
    run(FIFO, |runtime| async move {
        let options = PoolOptions { write_run_pages_max: 5, ..small(8) };
        let (device, pool) = lru(&runtime, 64, 1000, options);
        for page in [9, 3, 4, 20, 8, 7, 6, 5, 11] {
            update(&pool, page, 1).await.unwrap();
        }
        pool.flush().await.unwrap();
        assert_eq!(*device.log.borrow(), [(3, 5), (8, 2), (11, 1), (20, 1)]);
        let seen = pool.statistics();
        assert_eq!((seen.physical_writes, seen.device_writes), (9, 4));
        assert_eq!(seen.cluster_switches, 2, "pages 3 to 11, then 20");
        // The device accepts at most eight pages at once.
        let (device, pool) = lru(&runtime, 64, 1000, small(8));
        for page in 0..20 {
            update(&pool, page, 1).await.unwrap();
        }
        pool.flush().await.unwrap();
        assert_eq!(*device.log.borrow(), [(0, 8), (8, 8), (16, 4)]);
    });
}

#[test]
fn what_is_updated_while_it_is_written_is_written_again() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1_000_000, small(2));
        update(&pool, 0, 1).await.unwrap();
        let flush = {
            let pool = Rc::clone(&pool);
            runtime.spawn("flush", async move { pool.flush().await })
        };
        while device.writes.get() == 0 {
            yield_now().await;
        }
        // The updater does not wait for the device.
        let before_ns = runtime.now_ns();
        update(&pool, 0, 2).await.unwrap();
        assert_eq!(runtime.now_ns(), before_ns);
        pool.flush().await.unwrap();
        flush.await.unwrap();
        assert_eq!((device.held(0), device.writes.get()), (stamp(0, 2), 2));
        pool.validate();
    });
}

#[test]
fn the_flusher_keeps_between_its_watermarks() {
    for writers in [0, 3] {
        run(Schedule::Shuffled(6), move |runtime| async move {
            let flusher = FlusherOptions { high: 0.5, low: 0.25, batch_pages: 4 };
            let options = PoolOptions { writers, flusher: Some(flusher), ..small(16) };
            let (device, pool) = lru(&runtime, 40, 1000, options);
            for page in 0..20 {
                update(&pool, page, 1).await.unwrap();
            }
            runtime.sleep(1_000_000).await;
            assert_eq!(device.writes.get(), 0, "at the watermark, not above it");
            update(&pool, 20, 1).await.unwrap();
            runtime.sleep(1_000_000).await;
            let seen = pool.statistics();
            assert_eq!((seen.flusher_writes, seen.physical_writes, seen.write_backs), (12, 12, 0));
            assert_eq!(pool.frames().dirty, 9);
            assert_eq!(pool.with_policy(|policy| policy.dirty_pages()), 9);
            assert_eq!(device.held(0), stamp(0, 1), "the oldest first");
            assert_eq!(device.held(20), Stamp::default());
            pool.validate();
            pool.close().await.unwrap();
            assert_eq!(device.held(20), stamp(20, 1));
        });
    }
}

#[test]
fn a_flusher_whose_pages_are_held_waits_without_spinning() {
    run(FIFO, |runtime| async move {
        let flusher = FlusherOptions { high: 0.2, low: 0.0, batch_pages: 4 };
        let options = PoolOptions { flusher: Some(flusher), ..small(16) };
        let (device, pool) = lru(&runtime, 10, 1000, options);
        update(&pool, 0, 1).await.unwrap();
        update(&pool, 1, 1).await.unwrap();
        let mut zero = pool.fix(PageNo(0), Intent::Update).await.unwrap();
        let mut one = pool.fix(PageNo(1), Intent::Update).await.unwrap();
        let mut two = pool.fix(PageNo(2), Intent::Update).await.unwrap();
        *two.page_mut() = stamp(2, 2);
        drop(two);
        runtime.sleep(1_000_000).await;
        assert_eq!(pool.frames().dirty, 2, "page 2 alone could be written");
        *zero.page_mut() = stamp(0, 2);
        *one.page_mut() = stamp(1, 2);
        drop((zero, one));
        runtime.sleep(1_000_000).await;
        assert_eq!((device.held(0), device.held(1)), (stamp(0, 2), stamp(1, 2)));
        pool.validate();
    });
}

fn prefetching() -> PoolOptions {
    PoolOptions {
        prefetch: Some(PrefetchOptions { after_pages: 2, window_pages: 7 }),
        ..PoolOptions::default()
    }
}

#[test]
fn sequences_are_read_ahead() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 20, 1000, prefetching());
        for page in 0..100 {
            assert_eq!(read(&pool, page).await.unwrap(), Stamp::default());
        }
        let seen = pool.statistics();
        // Pages 0 and 1, then eight pages at a time.
        assert_eq!(device.reads.get(), 1 + 13);
        assert_eq!((seen.misses, seen.physical_reads), (100, 1 + 13 * 8));
        assert_eq!((seen.prefetched, seen.prefetch_hits, seen.rescues), (91, 86, 0));
        assert!(pool.is_resident(PageNo(104)) && !pool.is_resident(PageNo(105)));
        assert!(!pool.with_policy(|policy| policy.contains(PageNo(104))));
        pool.validate();
        // Random reads displace prefetched pages that were never requested.
        for page in 0..60 {
            let page = 200 + page * 17 % 600;
            update(&pool, page, 1).await.unwrap();
        }
        pool.flush().await.unwrap();
        assert_eq!(pool.statistics().prefetched, 91);
        pool.validate();
    });
}

#[test]
fn a_page_that_fails_in_a_window_fails_nobody_else() {
    for after_pages in [1, 2] {
        run(FIFO, move |runtime| async move {
            let prefetch = Some(PrefetchOptions { after_pages, window_pages: 7 });
            let options = PoolOptions { prefetch, ..PoolOptions::default() };
            let (device, pool) = lru(&runtime, 20, 1000, options);
            device.bad_reads.borrow_mut().insert(5);
            for page in 0..20 {
                let got = read(&pool, page).await;
                assert_eq!(got.is_err(), page == 5, "page {page}");
                pool.validate();
            }
            assert_eq!(pool.statistics().read_failures, 1, "that of page 5 alone");
        });
    }
}

#[test]
fn memory_does_not_grow_with_the_requests() {
    run(Schedule::Shuffled(9), |runtime| async move {
        let options = PoolOptions {
            flusher: Some(FlusherOptions { high: 0.5, low: 0.2, batch_pages: 16 }),
            ..prefetching()
        };
        let (_, pool) = lru(&runtime, 100, 1000, options);
        let mut warm = 0;
        for turn in 0..20 {
            let clients: Vec<_> = (0..8)
                .map(|client| {
                    let pool = Rc::clone(&pool);
                    let client = client + 8 * turn;
                    runtime.spawn("client", async move {
                        for step in 0..200 {
                            let page =
                                (client * 31 + step * if client % 2 == 0 { 1 } else { 37 }) % PAGES;
                            match step % 3 {
                                0 => update(&pool, page, step).await.unwrap(),
                                _ => drop(read(&pool, page).await.unwrap()),
                            }
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await;
            }
            pool.flush().await.unwrap();
            if turn == 4 {
                warm = pool.memory_bytes();
            }
        }
        assert_eq!(pool.memory_bytes(), warm);
    });
}
