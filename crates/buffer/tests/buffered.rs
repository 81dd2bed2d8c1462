//! A buffered device returns the same content as the device below.
mod support;

use std::cell::RefCell;
use std::rc::Rc;
use support::{FIFO, Memory, policy, run};
use tantalum_base::{ErrorKind, PageDevice, PageNo, PageRange, Rng, Stamp};
use tantalum_buffer::Buffered;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 100;

fn buffered(runtime: &Virtual, frames: u32, time_ns: u64) -> (Rc<Memory>, Rc<Buffered<Memory>>) {
    let device = Memory::new(runtime, PAGES, time_ns, 1);
    let lru = policy("lru", frames, PAGES);
    let buffered = Rc::new(Buffered::new(Rc::clone(&device), Some(lru)));
    (device, buffered)
}

async fn read(device: &impl PageDevice<Page = Stamp>, first: u64, pages: usize) -> Vec<u64> {
    let mut out = vec![Stamp::default(); pages];
    device.read(PageNo(first), &mut out, None).await.unwrap();
    out.iter().map(|stamp| stamp.count).collect()
}

async fn write(device: &impl PageDevice<Page = Stamp>, first: u64, counts: &[u64]) {
    let numbered = (first..).map(PageNo).zip(counts);
    let pages: Vec<Stamp> = numbered.map(|(page, count)| Stamp::new(page, *count)).collect();
    device.write(PageNo(first), &pages, None).await.unwrap();
}

#[test]
fn what_was_read_or_written_is_not_read_again() {
    run(FIFO, |runtime| async move {
        let (device, buffered) = buffered(&runtime, 50, 1000);
        assert_eq!(read(&*buffered, 0, 8).await, [0; 8]);
        assert_eq!(device.reads.get(), 1, "missing neighbours in one read");
        write(&*buffered, 2, &[5, 6]).await;
        write(&*buffered, 20, &[7]).await;
        assert_eq!((device.held(2).count, device.held(20).count), (5, 7), "writes go through");
        assert_eq!(read(&*buffered, 0, 8).await, [0, 0, 5, 6, 0, 0, 0, 0]);
        assert_eq!(read(&*buffered, 20, 1).await, [7]);
        assert_eq!(device.reads.get(), 1);
        assert_eq!(read(&*buffered, 6, 4).await, [0; 4]);
        assert_eq!(device.reads.get(), 2, "pages 8 and 9");
        let seen = buffered.statistics().unwrap();
        assert_eq!((seen.requests, seen.hits, seen.misses), (8 + 3 + 9 + 4, 2 + 9 + 2, 11));
        assert_eq!((seen.physical_reads, seen.device_reads), (10, 2));
        assert_eq!((seen.physical_writes, seen.device_writes), (3, 2));
        buffered.validate_cache();
    });
}

#[test]
fn reads_of_one_page_share_one_read_of_the_device() {
    run(Schedule::Shuffled(3), |runtime| async move {
        let (device, buffered) = buffered(&runtime, 50, 1000);
        let readers: Vec<_> = (0..8)
            .map(|at| {
                let buffered = Rc::clone(&buffered);
                runtime.spawn("reader", async move { read(&*buffered, at % 2, 4).await })
            })
            .collect();
        for reader in readers {
            assert_eq!(reader.await, [0; 4]);
        }
        assert!(device.reads.get() <= 2, "pages 0 to 3, and page 4");
        assert_eq!(buffered.statistics().unwrap().physical_reads, 5);
    });
}

#[test]
fn without_a_policy_all_passes_through() {
    run(FIFO, |runtime| async move {
        let device = Memory::new(&runtime, PAGES, 0, 1);
        let buffered = Buffered::new(Rc::clone(&device), None);
        write(&buffered, 0, &[1]).await;
        assert_eq!((read(&buffered, 0, 1).await, read(&buffered, 0, 1).await), (vec![1], vec![1]));
        buffered.flush().await.unwrap();
        assert_eq!((device.reads.get(), device.flushes.get()), (2, 1));
        assert_eq!((buffered.statistics(), buffered.capacity_pages()), (None, 0));
    });
}

#[test]
fn failures_are_told_and_nothing_of_them_is_cached() {
    run(FIFO, |runtime| async move {
        let (device, buffered) = buffered(&runtime, 50, 1000);
        write(&*buffered, 1, &[1]).await;
        device.bad_writes.borrow_mut().insert(2);
        let pages = [Stamp::new(PageNo(1), 9), Stamp::new(PageNo(2), 9)];
        let error = buffered.write(PageNo(1), &pages, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        device.bad_reads.borrow_mut().insert(1);
        let mut out = [Stamp::default()];
        let read_it = buffered.read(PageNo(1), &mut out, None).await;
        assert_eq!(read_it.unwrap_err().kind(), ErrorKind::Io, "it is not in the cache");
        device.bad_reads.borrow_mut().clear();
        assert_eq!(read(&*buffered, 1, 2).await, [1, 0]);
        assert_eq!(buffered.statistics().unwrap().read_failures, 1);
        let outside = buffered.read(PageNo(PAGES), &mut out, None).await;
        assert_eq!(outside.unwrap_err().kind(), ErrorKind::OutOfRange);
        let trim = buffered.trim(PageRange::new(PageNo(0), 10)).await;
        assert_eq!(trim.unwrap_err().kind(), ErrorKind::Unsupported);
        buffered.validate_cache();
    });
}

/// A command that ended, and when it was in flight.
#[derive(Clone, Copy, Debug)]
struct Done {
    page: u64,
    count: u64,
    begun_ns: u64,
    ended_ns: u64,
}

#[derive(Default)]
struct History {
    writes: Vec<Done>,
    reads: Vec<Done>,
    counts: u64,
}

/// Panics if a read returns content that was replaced before the read began.
fn check(history: &History) {
    for read in &history.reads {
        let of_page = || history.writes.iter().filter(|write| write.page == read.page);
        // Count 0 is the initial content.
        let shown = of_page().find(|write| write.count == read.count);
        let shown_ended_ns = shown.map_or(0, |write| write.ended_ns);
        assert!(shown.is_some() || read.count == 0, "{read:?} shows what nobody wrote");
        let replaced = of_page()
            .find(|later| later.begun_ns > shown_ended_ns && later.ended_ns < read.begun_ns);
        assert!(replaced.is_none(), "{read:?} shows {shown:?}, which {replaced:?} replaced");
    }
}

async fn client(
    runtime: Virtual,
    buffered: Rc<Buffered<Memory>>,
    history: Rc<RefCell<History>>,
    mut rng: Rng,
) {
    for _ in 0..60 {
        let first = rng.below(10);
        let pages = 1 + rng.below(3);
        let begun_ns = runtime.now_ns();
        let numbers = first..first + pages;
        if rng.chance(0.5) {
            let counts: Vec<u64> = {
                let mut history = history.borrow_mut();
                let before = history.counts;
                history.counts += pages;
                (before + 1..=before + pages).collect()
            };
            write(&*buffered, first, &counts).await;
            let ended_ns = runtime.now_ns();
            let done = numbers.zip(counts);
            let done = done.map(|(page, count)| Done { page, count, begun_ns, ended_ns });
            history.borrow_mut().writes.extend(done);
        } else {
            let counts = read(&*buffered, first, pages as usize).await;
            let ended_ns = runtime.now_ns();
            let done = numbers.zip(counts);
            let done = done.map(|(page, count)| Done { page, count, begun_ns, ended_ns });
            history.borrow_mut().reads.extend(done);
        }
        if rng.chance(0.3) {
            let pause_ns = rng.below(3000);
            runtime.sleep(pause_ns).await;
        }
    }
}

#[test]
fn reads_show_the_newest_content_beside_writes_in_any_order() {
    for seed in 0..400 {
        run(Schedule::Shuffled(seed), move |runtime| async move {
            let mut rng = Rng::split(seed, "buffered");
            let (device, buffered) = buffered(&runtime, 1 + rng.below(12) as u32, 1000);
            device.reorders.set(true);
            let history: Rc<RefCell<History>> = Rc::default();
            let clients: Vec<_> = (0..1 + rng.below(6))
                .map(|_| {
                    let (buffered, history) = (Rc::clone(&buffered), Rc::clone(&history));
                    let rng = Rng::new(rng.next_u64());
                    runtime.spawn("client", client(runtime.clone(), buffered, history, rng))
                })
                .collect();
            for client in clients {
                client.await;
            }
            check(&history.borrow());
            buffered.validate_cache();
            for page in 0..PAGES {
                let shown = read(&*buffered, page, 1).await;
                assert_eq!(shown, [device.held(page).count], "seed {seed}, page {page}");
            }
        });
    }
}
