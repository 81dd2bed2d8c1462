//! A pool with requests for single pages, and failures.
mod support;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use support::pools::{PAGES, hold, lru, read, small, stamp, update};
use support::{FIFO, Memory, Recorded, policy, run};
use tantalum_base::{ErrorKind, PageNo, Stamp};
use tantalum_buffer::{FlusherOptions, Intent, Pool, PoolOptions, PrefetchOptions};
use tantalum_policy::Physical;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, yield_now};

#[test]
fn requests_for_one_page_share_one_read() {
    run(Schedule::Shuffled(1), |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let pool = Rc::clone(&pool);
                runtime.spawn("reader", async move { read(&pool, 7).await.unwrap() })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await, Stamp::default());
        }
        let seen = pool.statistics();
        assert_eq!((device.reads.get(), seen.physical_reads), (1, 1));
        assert_eq!((seen.misses, seen.hits), (1, 9));
    });
}

#[test]
fn a_failed_read_reaches_all_who_wait_and_leaves_the_page_out() {
    run(Schedule::Shuffled(2), |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        device.bad_reads.borrow_mut().insert(7);
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let pool = Rc::clone(&pool);
                let update_it = async move {
                    match number % 2 {
                        0 => read(&pool, 7).await.map(drop),
                        _ => update(&pool, 7, 1).await,
                    }
                };
                runtime.spawn("reader", update_it)
            })
            .collect();
        for task in tasks {
            let error = task.await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("reading page 7"), "{error}");
        }
        assert_eq!((device.reads.get(), pool.statistics().read_failures), (1, 1));
        assert!(!pool.is_resident(PageNo(7)));
        assert!(!pool.with_policy(|policy| policy.contains(PageNo(7))));
        assert_eq!(pool.frames().free, pool.frames().total);
        pool.validate();
        device.bad_reads.borrow_mut().clear();
        assert_eq!(read(&pool, 7).await.unwrap(), Stamp::default());
        pool.flush().await.unwrap();
        assert_eq!(device.writes.get(), 0, "no update was done");
    });
}

/// A guard would make its own task wait here for ever.
#[test]
fn a_page_that_is_held_stays_and_anyone_may_change_it() {
    run(Schedule::Shuffled(3), |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        let held = pool.hold(PageNo(7)).await.unwrap();
        update(&pool, 7, 5).await.unwrap();
        let others = async || {
            for page in 100..120 {
                read(&pool, page).await.unwrap();
            }
        };
        others().await;
        let evicted = |page| !pool.with_policy(|policy| policy.contains(PageNo(page)));
        assert!(evicted(7) && pool.is_resident(PageNo(7)));
        let reads = device.reads.get();
        assert_eq!(pool.read_resident(held.number()), Some(stamp(7, 5)));
        assert_eq!(pool.read_resident(PageNo(200)), None);
        assert_eq!(device.reads.get(), reads);
        assert!(!evicted(7), "the policy has it again");
        pool.validate();
        drop(held);
        others().await;
        assert!(!pool.is_resident(PageNo(7)));
        pool.flush().await.unwrap();
        assert_eq!(device.held(7), stamp(7, 5));
    });
}

#[test]
fn a_frame_that_is_held_needs_no_read_to_be_overwritten() {
    run(Schedule::Shuffled(3), |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        let held = pool.hold_frame(PageNo(8)).await.unwrap();
        assert_eq!(pool.read_resident(PageNo(8)), None, "it has no content");
        let mut guard = pool.fix(PageNo(8), Intent::Overwrite).await.unwrap();
        *guard.page_mut() = stamp(8, 1);
        drop((guard, held));
        assert_eq!(pool.read_resident(PageNo(8)), Some(stamp(8, 1)));
        assert_eq!(device.reads.get(), 0);
        // One that is not overwritten is read by the next fix.
        drop(pool.hold_frame(PageNo(9)).await.unwrap());
        assert_eq!(read(&pool, 9).await.unwrap(), Stamp::default());
        assert_eq!(device.reads.get(), 1);
        pool.validate();
    });
}

#[test]
fn a_pool_full_of_pinned_frames_is_an_error_that_changes_nothing() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        let mut guards = Vec::new();
        for page in 0..6 {
            guards.push(hold(&pool, page).await);
        }
        let before = pool.statistics();
        let error = read(&pool, 6).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        assert!(error.to_string().contains("all 6 frames"), "{error}");
        assert_eq!(pool.statistics(), before);
        assert_eq!(device.reads.get(), 6);
        assert_eq!(read(&pool, 0).await.unwrap(), Stamp::default(), "who is there can be fixed");
        drop(guards.pop());
        assert_eq!(read(&pool, 6).await.unwrap(), Stamp::default());
        pool.validate();
    });
}

#[test]
fn however_many_read_at_once_each_waits_for_a_frame() {
    for seed in 0..20 {
        run(Schedule::Shuffled(seed), |runtime| async move {
            let (device, pool) = lru(&runtime, 4, 1000, small(2));
            // Guards keep five of the six frames for a while; the readers share one.
            let mut guards = Vec::new();
            for page in 0..5 {
                guards.push(hold(&pool, page).await);
            }
            let reader = |page| {
                let pool = Rc::clone(&pool);
                runtime.spawn("reader", async move { pool.read(PageNo(page)).await })
            };
            let readers: Vec<_> = (5..105).map(reader).collect();
            for reader in readers {
                assert_eq!(reader.await.unwrap(), Stamp::default());
            }
            assert_eq!(device.reads.get(), 105);
            pool.validate();
        });
    }
}

#[test]
fn whoever_waits_for_a_frame_gets_the_error_when_all_become_pinned() {
    run(FIFO, |runtime| async move {
        // Three frames: one page is being written, the others are pinned. A fix could wait forever.
        let (_, pool) = lru(&runtime, 2, 1000, small(1));
        update(&pool, 0, 1).await.unwrap();
        let _one = hold(&pool, 1).await;
        let _two = hold(&pool, 2).await;
        let waiting = Rc::clone(&pool);
        let waiter = runtime.spawn("waiter", async move { read(&waiting, 3).await });
        let _rescued = hold(&pool, 0).await;
        assert_eq!(waiter.await.unwrap_err().kind(), ErrorKind::OutOfSpace);
        pool.validate();
    });
}

#[test]
fn a_frame_is_taken_from_a_page_of_the_policy_where_all_others_are_pinned() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        let mut guards = Vec::new();
        for page in 0..2 {
            guards.push(hold(&pool, page).await);
        }
        for page in 2..6 {
            update(&pool, page, 1).await.unwrap();
        }
        // The policy has evicted pages 0 and 1, which hold both transit frames.
        pool.flush().await.unwrap();
        assert_eq!((pool.frames().free, pool.frames().pinned), (0, 2));
        update(&pool, 6, 1).await.unwrap();
        update(&pool, 7, 1).await.unwrap();
        assert!(pool.statistics().frames_taken > 0);
        pool.validate();
        for page in 2..8 {
            assert_eq!(read(&pool, page).await.unwrap(), stamp(page, 1), "page {page}");
        }
        drop(guards);
        pool.flush().await.unwrap();
        for page in 2..8 {
            assert_eq!(device.held(page), stamp(page, 1), "page {page}");
        }
        pool.validate();
    });
}

#[test]
fn a_page_on_its_way_out_is_rescued_without_a_read() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 2, 1_000_000, small(2));
        update(&pool, 0, 5).await.unwrap();
        read(&pool, 1).await.unwrap();
        let guard = hold(&pool, 1).await;
        read(&pool, 2).await.unwrap();
        // Page 0 is being written, or waits for that.
        let reads = device.reads.get();
        assert_eq!(read(&pool, 0).await.unwrap(), stamp(0, 5));
        // The policy evicts page 1 while it is pinned.
        read(&pool, 3).await.unwrap();
        assert!(pool.is_resident(PageNo(1)));
        assert!(!pool.with_policy(|policy| policy.contains(PageNo(1))));
        assert_eq!(read(&pool, 1).await.unwrap(), Stamp::default());
        drop(guard);
        assert_eq!(device.reads.get(), reads + 1, "page 3 alone");
        assert_eq!(pool.statistics().rescues, 2);
        pool.flush().await.unwrap();
        assert_eq!(device.held(0), stamp(0, 5), "the write-back is done all the same");
        assert_eq!(device.writes.get(), 1);
        pool.validate();
    });
}

#[test]
fn a_failed_write_back_leaves_the_page_dirty_and_the_flush_tells() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 2, 1000, small(3));
        device.bad_writes.borrow_mut().insert(0);
        update(&pool, 0, 1).await.unwrap();
        for page in 1..5 {
            read(&pool, page).await.unwrap();
        }
        assert_eq!(pool.statistics().write_failures, 1);
        assert_eq!(read(&pool, 0).await.unwrap(), stamp(0, 1), "it is still there");
        pool.validate();
        for _ in 0..2 {
            let error = pool.flush().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("from page 0"), "{error}");
            assert_eq!(device.flushes.get(), 0);
        }
        assert_eq!(pool.frames().dirty, 1);
        device.bad_writes.borrow_mut().clear();
        pool.flush().await.unwrap();
        assert_eq!((device.held(0), device.flushes.get()), (stamp(0, 1), 1));
        assert_eq!(pool.frames().dirty, 0);
        pool.validate();
    });
}

/// A fix that needs a frame may retry the write before the flush learns that it failed.
#[test]
fn a_flush_tells_of_a_failed_write_that_is_tried_again_meanwhile() {
    for seed in 0..100 {
        run(Schedule::Shuffled(seed), move |runtime| async move {
            let options = PoolOptions { writers: 1, ..small(1) };
            let (device, pool) = lru(&runtime, 3, 1, options);
            // Four frames: two pinned ones, one that the flush writes, and one that the writer
            // cannot write.
            let _pinned = [hold(&pool, 10).await, hold(&pool, 20).await];
            for page in [0, 5] {
                update(&pool, page, 1).await.unwrap();
            }
            device.bad_writes.borrow_mut().insert(5);
            let flushing = Rc::clone(&pool);
            let flush = runtime.spawn("flush", async move { flushing.flush().await });
            while pool.statistics().write_failures == 0 {
                runtime.sleep(1).await;
            }
            drop(read(&pool, 30).await);
            assert_eq!(flush.await.unwrap_err().kind(), ErrorKind::Io, "seed {seed}");
            pool.validate();
        });
    }
}

#[test]
fn where_nothing_can_be_written_a_fix_says_why_and_goes_on_later() {
    for writers in [0, 2] {
        run(FIFO, move |runtime| async move {
            let options = PoolOptions { writers, ..small(2) };
            let (device, pool) = lru(&runtime, 2, 1000, options);
            device.bad_writes.borrow_mut().extend(0..PAGES);
            for page in 0..4 {
                update(&pool, page, 1).await.unwrap();
            }
            let error = read(&pool, 9).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("no frame of the buffer"), "{error}");
            assert_eq!(read(&pool, 3).await.unwrap(), stamp(3, 1));
            pool.validate();
            device.bad_writes.borrow_mut().clear();
            assert_eq!(read(&pool, 9).await.unwrap(), Stamp::default());
            pool.flush().await.unwrap();
            for page in 0..4 {
                assert_eq!(device.held(page), stamp(page, 1));
            }
            pool.validate();
        });
    }
}

#[test]
fn readers_share_a_page_and_an_updater_has_it_alone() {
    run(FIFO, |runtime| async move {
        let (_, pool) = lru(&runtime, 4, 1000, small(2));
        let log = Rc::new(RefCell::new(Vec::new()));
        let (one, two) = (hold(&pool, 0).await, hold(&pool, 0).await);
        let spawn = |name: &'static str, intent: Intent| {
            let (pool, log, clock) = (Rc::clone(&pool), Rc::clone(&log), runtime.clone());
            runtime.spawn(name, async move {
                let guard = pool.fix(PageNo(0), intent).await.unwrap();
                log.borrow_mut().push(name);
                clock.sleep(10).await;
                drop(guard);
                log.borrow_mut().push("done");
            })
        };
        let updater = spawn("updater", Intent::Update);
        yield_now().await;
        let later = [spawn("reader", Intent::Read), spawn("reader", Intent::Read)];
        runtime.sleep(100).await;
        assert!(log.borrow().is_empty(), "the updater waits, the readers wait behind it");
        drop(one);
        runtime.sleep(100).await;
        assert!(log.borrow().is_empty());
        drop(two);
        updater.await;
        for reader in later {
            reader.await;
        }
        assert_eq!(*log.borrow(), ["updater", "done", "reader", "reader", "done", "done"]);
    });
}

/// Polls `future` once, then drops it.
async fn give_up<F: Future>(future: F) {
    let mut future = pin!(future);
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_fix_that_is_given_up_leaves_no_trace() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        give_up(pool.fix(PageNo(1), Intent::Read)).await;
        give_up(pool.fix(PageNo(2), Intent::Update)).await;
        assert_eq!(pool.frames().pinned, 0);
        assert_eq!(read(&pool, 1).await.unwrap(), Stamp::default());
        assert_eq!(read(&pool, 2).await.unwrap(), Stamp::default());
        // An updater that stops waiting lets later readers in.
        let guard = hold(&pool, 1).await;
        give_up(pool.fix(PageNo(1), Intent::Update)).await;
        assert_eq!(read(&pool, 1).await.unwrap(), Stamp::default());
        drop(guard);
        pool.flush().await.unwrap();
        assert_eq!((device.writes.get(), pool.with_policy(|policy| policy.dirty_pages())), (0, 0));
        pool.validate();
    });
}

#[test]
fn a_write_that_is_given_up_is_done_again() {
    run(FIFO, |runtime| async move {
        let options = PoolOptions { writers: 0, ..small(2) };
        let (device, pool) = lru(&runtime, 1, 0, options);
        update(&pool, 0, 1).await.unwrap();
        // The device would write at once, so the flush is dropped while it waits for its turn.
        let guard = pool.fix(PageNo(0), Intent::Update).await.unwrap();
        give_up(pool.flush()).await;
        drop(guard);
        pool.validate();
        assert_eq!(device.held(0), Stamp::default());
        pool.flush().await.unwrap();
        assert_eq!(device.held(0), stamp(0, 1));

        let (device, pool) = lru(&runtime, 1, 1000, options);
        update(&pool, 0, 1).await.unwrap();
        give_up(pool.flush()).await;
        assert_eq!((pool.frames().dirty, device.writes.get()), (1, 1));
        pool.validate();
    });
}

#[test]
fn an_update_that_changes_nothing_is_not_written() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 2, 1000, small(2));
        drop(pool.fix(PageNo(0), Intent::Update).await.unwrap());
        assert_eq!(pool.with_policy(|policy| policy.dirty_pages()), 0);
        for page in 1..5 {
            read(&pool, page).await.unwrap();
        }
        pool.flush().await.unwrap();
        assert_eq!((device.writes.get(), pool.statistics().write_backs), (0, 0));
        pool.validate();
    });
}

#[test]
fn an_overwrite_reads_nothing_and_one_that_is_not_done_changes_nothing() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 2, 1000, small(2));
        let mut guard = pool.fix(PageNo(0), Intent::Overwrite).await.unwrap();
        let reader = {
            let pool = Rc::clone(&pool);
            runtime.spawn("reader", async move { read(&pool, 0).await.unwrap() })
        };
        runtime.sleep(100).await;
        *guard.page_mut() = stamp(0, 3);
        drop(guard);
        assert_eq!(reader.await, stamp(0, 3));
        assert_eq!(device.reads.get(), 0);
        pool.flush().await.unwrap();
        for page in 1..5 {
            read(&pool, page).await.unwrap();
        }
        drop(pool.fix(PageNo(0), Intent::Overwrite).await.unwrap());
        assert_eq!(read(&pool, 0).await.unwrap(), stamp(0, 3), "what the device has");
        pool.validate();
    });
}

#[test]
fn a_failed_flush_of_the_device_is_told() {
    run(FIFO, |runtime| async move {
        let (device, pool) = lru(&runtime, 4, 1000, small(2));
        update(&pool, 0, 1).await.unwrap();
        device.flush_fails.set(true);
        assert_eq!(pool.flush().await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(device.held(0), stamp(0, 1));
    });
}

#[test]
fn policies_are_told_what_reads_and_writes_take() {
    run(FIFO, |runtime| async move {
        let device = Memory::new(&runtime, PAGES, 1000, 1);
        let recorded = Recorded::new(policy("lru", 4, PAGES));
        let measured = recorded.measured.clone();
        let options = PoolOptions::classic();
        let pool = Pool::new(device, runtime.clone(), Box::new(recorded), options).unwrap();
        let start_ns = runtime.now_ns();
        read(&pool, 0).await.unwrap();
        let read_ns = runtime.now_ns() - start_ns;
        for page in 1..6 {
            update(&pool, page, 1).await.unwrap();
        }
        let told = measured.lock().unwrap().clone();
        assert_eq!(told[0], (Physical::Read, read_ns));
        let count = |of| told.iter().filter(|(operation, _)| *operation == of).count() as u64;
        let seen = pool.statistics();
        assert_eq!(count(Physical::Read), seen.physical_reads);
        assert_eq!(count(Physical::Write), seen.physical_writes);
        assert!(seen.physical_writes > 0 && told.iter().all(|(_, time_ns)| *time_ns > 0));
    });
}

#[test]
fn arguments_are_checked() {
    run(FIFO, |runtime| async move {
        let (_, pool) = lru(&runtime, 4, 0, small(2));
        assert_eq!(read(&pool, PAGES).await.unwrap_err().kind(), ErrorKind::OutOfRange);
        let device = Rc::clone(pool.device());
        let bad = [
            PoolOptions { transit_frames: Some(0), ..PoolOptions::default() },
            PoolOptions { write_run_pages_max: 0, ..PoolOptions::default() },
            PoolOptions { cluster_pages: 0, ..PoolOptions::default() },
            PoolOptions { batch_pages: Some(0), ..PoolOptions::default() },
            PoolOptions { batch_pages: Some(2), writers: 0, ..PoolOptions::default() },
            PoolOptions { batch_pages: Some(2), ..small(3) },
            PoolOptions {
                prefetch: Some(PrefetchOptions { after_pages: 0, window_pages: 1 }),
                ..PoolOptions::default()
            },
            PoolOptions {
                flusher: Some(FlusherOptions { high: 0.1, low: 0.2, batch_pages: 1 }),
                ..PoolOptions::default()
            },
            PoolOptions {
                flusher: Some(FlusherOptions { high: 0.2, low: 0.1, batch_pages: 0 }),
                ..PoolOptions::default()
            },
        ];
        for options in bad {
            let lru = policy("lru", 4, PAGES);
            let made = Pool::new(Rc::clone(&device), runtime.clone(), lru, options);
            assert_eq!(made.err().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
        }
        assert_eq!(PoolOptions::default().transit_frames(100), 32);
        assert_eq!(PoolOptions::default().transit_frames(1600), 100);
    });
}

#[test]
fn batches_go_when_they_are_full_and_a_flush_waits_for_none() {
    run(FIFO, |runtime| async move {
        let options = PoolOptions { batch_pages: Some(3), writers: 1, ..small(6) };
        let (device, pool) = lru(&runtime, 4, 1000, options);
        for page in [30, 10, 20, 40, 0, 50] {
            update(&pool, page, 1).await.unwrap();
        }
        runtime.sleep(10_000).await;
        assert!(device.batches.borrow().is_empty(), "two pages were evicted, a batch has three");
        update(&pool, 60, 1).await.unwrap();
        runtime.sleep(10_000).await;
        assert_eq!(*device.batches.borrow(), [[30, 10, 20]], "in the order of their eviction");
        pool.flush().await.unwrap();
        assert_eq!(device.batches.borrow()[1..], [vec![0, 40, 50], vec![60]]);
        assert_eq!((device.writes.get(), pool.frames().dirty), (0, 0));
        for page in [0, 10, 20, 30, 40, 50, 60] {
            assert_eq!(device.held(page), stamp(page, 1));
        }
        pool.validate();
    });
}

#[test]
fn a_batch_that_is_not_full_goes_where_a_fix_waits_for_a_frame() {
    run(FIFO, |runtime| async move {
        let options = PoolOptions { batch_pages: Some(2), writers: 1, ..small(4) };
        let (device, pool) = lru(&runtime, 2, 1000, options);
        let mut held = Vec::new();
        for page in 0..5 {
            held.push(hold(&pool, page).await);
        }
        update(&pool, 5, 1).await.unwrap();
        // Five of the six frames are pinned; the other one has a dirty page and is needed.
        assert_eq!(read(&pool, 6).await.unwrap(), Stamp::default());
        assert_eq!(*device.batches.borrow(), [[5]]);
        pool.validate();
    });
}
