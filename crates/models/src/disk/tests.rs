use super::geometry::Geometry;
use super::mechanics::Mechanics;
use super::*;
use std::rc::Rc;
use tantalum_base::{Durability, PageDevice, PageNo, PageRange, Payload, Rng, Stamp};
use tantalum_media::cut::Fate;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

const OPTIONS: DiskOptions = DiskOptions {
    pages: 1_000_000,
    rotation_ns: 4_000_000,
    zones: 8,
    heads: 4,
    outer_bytes_per_second: 171_000_000,
    inner_bytes_per_second: 112_000_000,
    seek_track_ns: 200_000,
    seek_average_ns: 3_400_000,
    write_settle_ns: 500_000,
    overhead_ns: 300_000,
    queue_depth: 32,
    cache_pages: 0,
};

fn stamp(page: u64, count: u64) -> Stamp {
    Stamp::new(PageNo(page), count)
}

fn open(runtime: &Virtual, options: DiskOptions, on: &Platters<Stamp>) -> Rc<Disk<Virtual, Stamp>> {
    let disk = Rc::new(Disk::new(runtime.clone(), options, on.clone()).unwrap());
    disk.start(runtime);
    disk
}

/// Mean time of an access while `clients` accesses are always in the queue.
fn mean_access_ns(options: DiskOptions, write: bool, clients: u64) -> u64 {
    let runtime = Virtual::new(Schedule::Fifo);
    let disk = open(&runtime, options, &Platters::default());
    let each = 4_000 / clients;
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let disk = Rc::clone(&disk);
            let mut rng = Rng::split(client, "places");
            runtime.spawn("client", async move {
                for count in 0..each {
                    let page = rng.below(OPTIONS.pages);
                    if write {
                        disk.write(PageNo(page), &[stamp(page, count)], None).await.unwrap();
                    } else {
                        disk.read(PageNo(page), &mut [Stamp::zero()], None).await.unwrap();
                    }
                }
            })
        })
        .collect();
    let all = async move {
        for task in tasks {
            task.await;
        }
    };
    runtime.run(all).unwrap();
    let mean_ns = runtime.now_ns() / (each * clients);
    runtime.drop_tasks();
    mean_ns
}

#[test]
fn pages_follow_each_other_along_tracks_cylinders_and_zones() {
    let geometry = Geometry::new(&OPTIONS).unwrap();
    let places: Vec<_> = (0..OPTIONS.pages).map(|page| geometry.place(page)).collect();
    assert!(places.windows(2).all(|two| two[0].cylinder <= two[1].cylinder));
    assert!(places.windows(2).all(|two| two[0].page_ns <= two[1].page_ns));
    let last = places[places.len() - 1];
    assert!(u64::from(last.cylinder) < geometry.cylinders());
    assert!(u64::from(last.cylinder) > geometry.cylinders() * 95 / 100);
    // 4 KiB at 171 and at 112 MB/s.
    assert!(places[0].page_ns.abs_diff(23_953) < 200, "{:?}", places[0]);
    assert!(last.page_ns.abs_diff(36_571) < 300, "{last:?}");
}

#[test]
fn the_average_seek_is_as_given() {
    let mechanics = Mechanics::new(&OPTIONS).unwrap();
    let cylinders = mechanics.geometry.cylinders();
    let mut rng = Rng::new(1);
    let seeks: Vec<u64> = (0..100_000)
        .map(|_| {
            let (from, to) = (rng.below(cylinders), rng.below(cylinders));
            mechanics.seek_ns(from.abs_diff(to) as u32)
        })
        .collect();
    let mean = seeks.iter().sum::<u64>() as f64 / seeks.len() as f64;
    assert!((mean / 3_400_000.0 - 1.0).abs() < 0.02, "{mean}");
    assert_eq!(mechanics.seek_ns(0), 0);
    assert!(mechanics.seek_ns(1).abs_diff(200_000) < 400_000);
}

#[test]
fn one_access_takes_seek_half_a_turn_and_overhead() {
    // 3.4 ms of seek, 2 of rotation, 0.3 of overhead, 0.03 of transfer; a write half a ms more.
    let (read_ns, write_ns) = (mean_access_ns(OPTIONS, false, 1), mean_access_ns(OPTIONS, true, 1));
    assert!(read_ns.abs_diff(5_730_000) < 200_000, "{read_ns}");
    assert!(write_ns.abs_diff(6_230_000) < 200_000, "{write_ns}");
}

#[test]
fn an_arm_that_does_not_move_does_not_settle() {
    let mechanics = Mechanics::new(&OPTIONS).unwrap();
    let place = |page| mechanics.geometry.place(page);
    let ns = |to, write| mechanics.positioning_ns(0, place(0).cylinder, &place(to), write);
    assert_eq!(ns(100, true), ns(100, false));
    assert!(
        ns(100, true).abs_diff(100 * place(0).page_ns) < 5_000,
        "it waits for the page to come"
    );
    assert!((0..1000).any(|page| ns(500_000 + page, true) > ns(500_000 + page, false)));
}

#[test]
fn a_longer_queue_gives_shorter_ways() {
    let means = [1, 4, 16, 32].map(|clients| mean_access_ns(OPTIONS, false, clients));
    assert!(means.windows(2).all(|two| two[1] * 10 < two[0] * 9), "{means:?}");
    let blind = DiskOptions { queue_depth: 1, ..OPTIONS };
    assert!(mean_access_ns(blind, false, 32).abs_diff(means[0]) < means[0] / 20);
}

#[test]
fn a_full_cache_is_written_in_the_nearest_order_too() {
    // The cache holds many queues' worth. Time before a run can be chosen does not count as being
    // passed over.
    let options = DiskOptions { cache_pages: 1_000, queue_depth: 16, ..OPTIONS };
    let queued = DiskOptions { queue_depth: 16, ..OPTIONS };
    let (cached_ns, queued_ns) =
        (mean_access_ns(options, true, 1), mean_access_ns(queued, true, 16));
    // A quarter of the 4,000 writes is still in the cache at the end.
    assert!(cached_ns.abs_diff(queued_ns / 4 * 3) < queued_ns / 10, "{cached_ns} {queued_ns}");
}

#[test]
fn a_command_far_away_is_not_passed_over_for_ever() {
    let runtime = Virtual::new(Schedule::Fifo);
    let disk = open(&runtime, OPTIONS, &Platters::default());
    // Fifty clients stay on the outermost cylinders; the far read is never the nearest.
    for client in 0..50 {
        let disk = Rc::clone(&disk);
        let mut rng = Rng::split(client, "near");
        drop(runtime.spawn("near", async move {
            loop {
                let page = PageNo(rng.below(600));
                disk.read(page, &mut [Stamp::zero()], None).await.unwrap();
            }
        }));
    }
    let far = Rc::clone(&disk);
    let read = async move {
        far.read(PageNo(OPTIONS.pages - 1), &mut [Stamp::zero()], None).await.unwrap();
    };
    runtime.run(read).unwrap();
    let reads = disk.statistics().reads;
    assert!((200..600).contains(&reads), "{reads} reads first");
    runtime.drop_tasks();
}

#[test]
fn a_cached_write_is_fast_volatile_and_safe_behind_a_flush() {
    let options = DiskOptions { cache_pages: 64, ..OPTIONS };
    let (runtime, platters) = (Virtual::new(Schedule::Fifo), Platters::default());
    let disk = open(&runtime, options, &platters);
    assert_eq!(disk.limits().durability, Durability::Volatile);
    let writer = Rc::clone(&disk);
    let clock = runtime.clone();
    let load = async move {
        for page in [7, 800_000, 9] {
            writer.write(PageNo(page), &[stamp(page, 1)], None).await.unwrap();
        }
        assert_eq!(clock.now_ns(), 0, "three acknowledged at once");
        let mut read = [Stamp::zero()];
        writer.read(PageNo(9), &mut read, None).await.unwrap();
        assert_eq!((read[0], clock.now_ns()), (stamp(9, 1), 0), "read from the cache");
        writer.flush().await.unwrap();
        assert!(clock.now_ns() > 3_000_000);
        // More than the cache has room for: the arm must write some back.
        for page in 0..200 {
            writer.write(PageNo(page * 5_000), &[stamp(page * 5_000, 2)], None).await.unwrap();
        }
        writer.write(PageNo(7), &[stamp(7, 3)], None).await.unwrap();
    };
    runtime.run(load).unwrap();
    runtime.drop_tasks();
    platters.power_cut(Fate::Vanish);
    for (page, count) in [(7, 1), (800_000, 1), (9, 1)] {
        let found = platters.get(PageNo(page));
        let newer = found == stamp(page, 2) || found == stamp(page, 3);
        assert!(found == stamp(page, count) || newer, "{page}: {found:?}");
    }
    let lost = (0..200).filter(|at| platters.get(PageNo(at * 5_000)) != stamp(at * 5_000, 2));
    let lost = lost.count();
    assert!((1..=64).contains(&lost), "{lost} of the cache's pages are lost, and no others");
}

#[test]
fn without_a_cache_a_write_is_there_when_it_is_acknowledged_and_a_cut_may_tear_the_next() {
    let (runtime, platters) = (Virtual::new(Schedule::Fifo), Platters::default());
    let disk = open(&runtime, OPTIONS, &platters);
    assert_eq!(disk.limits().durability, Durability::OnAck);
    let old = [stamp(4, 1), stamp(5, 1), stamp(6, 1)];
    let (writer, clock) = (Rc::clone(&disk), runtime.clone());
    let load = async move {
        writer.write(PageNo(4), &old, None).await.unwrap();
        let at_ns = clock.now_ns();
        let again = Rc::clone(&writer);
        let new = [stamp(4, 2), stamp(5, 2), stamp(6, 2)];
        drop(clock.spawn("next", async move { again.write(PageNo(4), &new, None).await }));
        clock.sleep_until(at_ns + 1_000).await;
    };
    runtime.run(load).unwrap();
    runtime.drop_tasks();
    assert_eq!([4, 5, 6].map(|page| platters.get(PageNo(page))), old);
    platters.power_cut(Fate::Tear);
    let found = [4, 5, 6].map(|page| platters.get(PageNo(page)));
    assert_eq!(found, [stamp(4, 2), stamp(5, 2).torn(), stamp(6, 1)]);
}

#[test]
fn what_is_read_is_what_was_written_last() {
    for cache_pages in [0, 16] {
        let runtime = Virtual::new(Schedule::Shuffled(3));
        let options = DiskOptions { pages: 300, cache_pages, ..OPTIONS };
        let disk = open(&runtime, options, &Platters::default());
        let device = Rc::clone(&disk);
        let load = async move {
            let mut rng = Rng::new(9);
            let mut model = vec![Stamp::zero(); 300];
            for count in 1..2_000 {
                let first = rng.below(296);
                let pages = 1 + rng.below(4);
                let range = PageRange::new(PageNo(first), pages);
                let slots = first as usize..(first + pages) as usize;
                match rng.below(8) {
                    0 => {
                        device.trim(range).await.unwrap();
                        model[slots].fill(Stamp::zero());
                    }
                    1 => device.flush().await.unwrap(),
                    2..5 => {
                        let contents: Vec<Stamp> =
                            range.iter().map(|page| Stamp::new(page, count)).collect();
                        device.write(range.first, &contents, None).await.unwrap();
                        model[slots].copy_from_slice(&contents);
                    }
                    _ => {
                        let mut read = vec![Stamp::zero(); pages as usize];
                        device.read(range.first, &mut read, None).await.unwrap();
                        assert_eq!(read, model[slots], "{count}");
                    }
                }
            }
        };
        runtime.run(load).unwrap();
        runtime.drop_tasks();
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for options in [
        DiskOptions { heads: 0, ..OPTIONS },
        DiskOptions { queue_depth: 0, ..OPTIONS },
        DiskOptions { inner_bytes_per_second: 200_000_000, ..OPTIONS },
        DiskOptions { outer_bytes_per_second: 1_000, inner_bytes_per_second: 1_000, ..OPTIONS },
        DiskOptions { seek_track_ns: 4_000_000, ..OPTIONS },
    ] {
        let disk = Disk::new(Virtual::new(Schedule::Fifo), options, Platters::<Stamp>::default());
        assert!(disk.is_err(), "{options:?}");
    }
}
