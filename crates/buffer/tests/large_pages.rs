//! Pages of several device pages: all parts are written, and all are read.
mod support;

use std::rc::Rc;
use support::{FIFO, Memory, policy, run};
use tantalum_base::{ErrorKind, PageNo, Stamp};
use tantalum_buffer::{Intent, LargePages, PageStore, Pool, PoolOptions};
use tantalum_runtime::{Runtime, Virtual};

const DEVICE_PAGES: u64 = 64;

type LargePool = Rc<Pool<LargePages<Memory>, Virtual>>;

/// A classic pool of four pages of `page_bytes` each.
fn pool_of(runtime: &Virtual, page_bytes: u32, time_ns: u64) -> (Rc<Memory>, LargePool) {
    let device = Memory::new(runtime, DEVICE_PAGES, time_ns, 1);
    let store = Rc::new(LargePages::new(Rc::clone(&device), page_bytes).unwrap());
    let lru = policy("lru", 4, store.pages());
    (device, Pool::new(store, runtime.clone(), lru, PoolOptions::classic()).unwrap())
}

/// A content in which every part differs from the other parts and from all other pages.
fn content(page: u64, parts: u64, count: u64) -> Rc<[Stamp]> {
    (page * parts..(page + 1) * parts).map(|part| Stamp::new(PageNo(part), count)).collect()
}

async fn update(pool: &LargePool, page: u64, content: Rc<[Stamp]>) {
    let mut guard = pool.fix(PageNo(page), Intent::Update).await.unwrap();
    *guard.page_mut() = content;
}

#[test]
fn every_part_of_a_page_is_written_and_read_in_one_command() {
    run(FIFO, |runtime| async move {
        for parts in [1u64, 2, 4, 8] {
            let (device, pool) = pool_of(&runtime, 4096 * parts as u32, 10);
            let pages = pool.device().pages();
            assert_eq!(pages, DEVICE_PAGES / parts);
            for page in 0..pages {
                update(&pool, page, content(page, parts, 7 + page)).await;
            }
            pool.flush().await.unwrap();
            let written: Vec<_> = (0..pages).map(|page| (page * parts, parts)).collect();
            assert_eq!(*device.log.borrow(), written, "a page, a command");
            for page in 0..DEVICE_PAGES {
                let right = Stamp::new(PageNo(page), 7 + page / parts);
                assert_eq!(device.held(page), right, "{parts} parts");
            }
            let before = device.reads.get();
            for page in 0..pages {
                let read = pool.read(PageNo(page)).await.unwrap();
                assert_eq!(read, content(page, parts, 7 + page));
            }
            assert_eq!(device.reads.get() - before, pages, "none of these was cached any more");
        }
    });
}

#[test]
fn a_failure_of_either_half_is_the_pages() {
    run(FIFO, |runtime| async move {
        for half in [6, 7] {
            let (device, pool) = pool_of(&runtime, 8192, 0);
            device.bad_reads.borrow_mut().insert(half);
            assert_eq!(pool.read(PageNo(3)).await.unwrap_err().kind(), ErrorKind::Io);
            assert!(pool.read(PageNo(2)).await.is_ok() && pool.read(PageNo(4)).await.is_ok());
            device.bad_reads.borrow_mut().clear();
            device.bad_writes.borrow_mut().insert(half);
            update(&pool, 3, content(3, 2, 9)).await;
            assert!(pool.flush().await.is_err(), "half {half} was not written");
            device.bad_writes.borrow_mut().clear();
            pool.flush().await.unwrap();
            assert_eq!([device.held(6), device.held(7)], content(3, 2, 9)[..]);
        }
    });
}

/// The device accepts eight pages in a write.
#[test]
fn a_page_longer_than_a_write_goes_in_writes_that_are_in_flight_together() {
    run(FIFO, |runtime| async move {
        // A write takes 1 to 1,000 ns, and so does the device's flush.
        let (device, pool) = pool_of(&runtime, 4096 * 20, 1000);
        assert_eq!((pool.device().pages(), pool.device().write_pages_max()), (3, 1));
        for count in 1..=20 {
            update(&pool, 1, content(1, 20, count)).await;
            device.log.borrow_mut().clear();
            let start_ns = runtime.now_ns();
            pool.flush().await.unwrap();
            assert_eq!(*device.log.borrow(), [(20, 8), (28, 8), (36, 4)]);
            // Sequential writes would take longer in half of the rounds.
            assert!(runtime.now_ns() - start_ns <= 2000, "{}", runtime.now_ns() - start_ns);
            let held: Vec<Stamp> = (20..40).map(|page| device.held(page)).collect();
            assert_eq!(held, content(1, 20, count)[..]);
        }
    });
}

#[test]
fn neighbours_and_batches_go_whole() {
    run(FIFO, |runtime| async move {
        let device = Memory::new(&runtime, DEVICE_PAGES, 0, 1);
        let store = LargePages::new(Rc::clone(&device), 8192).unwrap();
        assert_eq!(store.write_pages_max(), 4);
        let (three, four) = (content(3, 2, 1), content(4, 2, 2));
        store.write(PageNo(3), &[three.clone(), four.clone()]).await.unwrap();
        assert_eq!(*device.log.borrow(), [(6, 4)]);
        let mut read = [store.blank(), store.blank()];
        store.read(PageNo(3), &mut read).await.unwrap();
        assert_eq!(read, [three, four]);
        let (nine, one) = (content(9, 2, 3), content(1, 2, 4));
        let batch = vec![(PageNo(9), nine.clone()), (PageNo(1), one.clone())];
        store.write_batch(batch).await.unwrap();
        assert_eq!(*device.batches.borrow(), [[18, 19, 2, 3]]);
        assert_eq!([device.held(18), device.held(19)], nine[..]);
        assert_eq!([device.held(2), device.held(3)], one[..]);
    });
}

#[test]
fn pages_that_a_device_cannot_have_are_refused() {
    run(FIFO, |runtime| async move {
        let device = Memory::new(&runtime, DEVICE_PAGES, 0, 1);
        for (page_bytes, said) in [
            (0, "not a multiple of 4096"),
            (2048, "not a multiple of 4096"),
            (6000, "not a multiple of 4096"),
            (65 * 4096, "65 pages of the device, which has only 64"),
        ] {
            let refused = LargePages::new(Rc::clone(&device), page_bytes).err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            assert!(refused.to_string().contains(said), "{refused}");
        }
        assert_eq!(LargePages::new(device, 64 * 4096).ok().unwrap().pages(), 1);
    });
}
