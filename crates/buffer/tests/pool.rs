//! What a pool does with one page, and where something goes wrong.
mod support;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use support::{FIFO, Memory, Recorded, policy, run};
use tantalum_base::{ErrorKind, PageNo, Result, Stamp};
use tantalum_buffer::{FlusherOptions, Guard, Intent, Pool, PoolOptions, PrefetchOptions};
use tantalum_policy::Physical;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual, yield_now};

type TestPool = Rc<Pool<Memory, Virtual>>;
type TestGuard = Guard<Memory, Virtual>;

const PAGES: u64 = 1000;

fn small(transit_frames: u32) -> PoolOptions {
    PoolOptions { transit_frames: Some(transit_frames), ..PoolOptions::default() }
}

fn lru(
    runtime: &Virtual,
    frames: u32,
    time_ns: u64,
    options: PoolOptions,
) -> (Rc<Memory>, TestPool) {
    let device = Memory::new(runtime, PAGES, time_ns, 1);
    let lru = policy("lru", frames, PAGES);
    let pool = Pool::new(Rc::clone(&device), runtime.clone(), lru, options).unwrap();
    pool.start();
    (device, pool)
}

async fn read(pool: &TestPool, page: u64) -> Result<Stamp> {
    let guard = pool.fix(PageNo(page), Intent::Read).await?;
    assert_eq!(guard.number(), PageNo(page));
    Ok(*guard.page())
}

async fn update(pool: &TestPool, page: u64, count: u64) -> Result<()> {
    let mut guard = pool.fix(PageNo(page), Intent::Update).await?;
    *guard.page_mut() = Stamp::new(PageNo(page), count);
    Ok(())
}

fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

async fn hold(pool: &TestPool, page: u64) -> TestGuard {
    pool.fix(PageNo(page), Intent::Read).await.unwrap()
}

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
fn whoever_waits_for_a_frame_gets_the_error_when_all_become_pinned() {
    run(FIFO, |runtime| async move {
        // Three frames: one page on its way out, the others pinned; who waits would wait for ever.
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
        // Pages 0 and 1 have left the policy and hold both transit frames.
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
        // Page 0 is being written now, or waits for it.
        let reads = device.reads.get();
        assert_eq!(read(&pool, 0).await.unwrap(), stamp(0, 5));
        // And page 1 is held while the policy lets it go.
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

/// Lets `future` begin, then drops it.
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
        // An updater that gives up waiting lets later readers in.
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
        // The device would write at once; so the flush is given up where it waits for its turn.
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
        // The device takes eight pages at once at the most.
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
        // Pages 0 and 1; then eight at a time.
        assert_eq!(device.reads.get(), 1 + 13);
        assert_eq!((seen.misses, seen.physical_reads), (100, 1 + 13 * 8));
        assert_eq!((seen.prefetched, seen.prefetch_hits, seen.rescues), (91, 86, 0));
        assert!(pool.is_resident(PageNo(104)) && !pool.is_resident(PageNo(105)));
        assert!(!pool.with_policy(|policy| policy.contains(PageNo(104))));
        pool.validate();
        // Pages that are read in no order make those go that nobody asked for.
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
