//! A medium that does not return pages: their content is not lost because of that, and the device keeps working.
use crate::support::unanswered::{ALL, NONE, SECOND_NS, World, on_a_file, on_flash, options};
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PageNo, PageRange, SlotNo, ZoneNo};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{CacheOptions, DumpOptions, FtlOptions};
use tantalum_media::{ErasedZones, SlotKind, Spare, ZoneMedia};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// One slot.
fn only(slot: SlotNo) -> std::ops::Range<SlotNo> {
    slot..SlotNo(slot.0 + 1)
}

/// Overwrites pages while no read is answered for a second; then the medium answers again. Returns the first wrong page
/// afterwards, and after the device is opened again.
fn silent_for_a_second<M: ZoneMedia>(
    world: impl Fn(&Virtual, u64) -> World<M>,
    options: FtlOptions,
    seed: u64,
) -> Option<String> {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let world = world(&runtime, seed);
    let rt = runtime.clone();
    let run = async move {
        let ftl = world.filled(options).await;
        world.overwrite(&ftl, 500, &[]).await.unwrap();
        world.media.leave_unanswered(ALL);
        let (media, device, clock) = (Rc::clone(&world.media), Rc::clone(&ftl), rt.clone());
        let well = rt.spawn("the medium gets well", async move {
            clock.sleep(SECOND_NS).await;
            let unreadable = device.statistics().pages_unreadable;
            media.leave_unanswered(NONE);
            unreadable
        });
        world.overwrite(&ftl, 1000, &[]).await.unwrap();
        let unreadable = well.await;
        rt.sleep(60 * SECOND_NS).await;
        ftl.validate();
        if let Some(wrong) = world.first_wrong(&ftl, &[]).await {
            return Some(wrong);
        }
        assert!(unreadable > 0, "seed {seed}: cleaning met no page that could not be read");
        let now = ftl.statistics();
        assert_eq!((now.pages_unreadable, now.zones_unreadable), (0, 0), "seed {seed}");
        world.overwrite(&ftl, 1000, &[]).await.unwrap();
        ftl.close().await.unwrap();
        let ftl = world.opened(options).await.unwrap();
        world.first_wrong(&ftl, &[]).await
    };
    runtime.run(run).unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"))
}

fn with_dump() -> FtlOptions {
    let geometry = on_flash(&Virtual::new(Schedule::Fifo), 0).media.geometry();
    let pages = options().pages;
    FtlOptions { dump: Some(DumpOptions::least(&geometry, pages, 8)), ..options() }
}

#[test]
fn an_error_that_passes_costs_no_page() {
    for seed in 0..10 {
        assert_eq!(silent_for_a_second(on_flash, options(), seed), None, "flash, seed {seed}");
        assert_eq!(silent_for_a_second(on_a_file, options(), seed), None, "file, seed {seed}");
    }
}

#[test]
fn an_error_that_passes_costs_no_page_of_a_device_with_a_dump() {
    for seed in 0..5 {
        assert_eq!(silent_for_a_second(on_flash, with_dump(), seed), None, "seed {seed}");
    }
}

#[test]
fn a_page_that_is_taken_for_lost_at_once_is_noticed() {
    assert_noticed(Fault::UnreadableTakenForLost, || silent_for_a_second(on_a_file, options(), 1));
}

/// The fate of the page that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Readable,
    Overwritten,
    Trimmed,
    KilledAndReadable,
}

/// The content of a page is wrong for long; then the medium has its old content again, and the device is opened.
/// Returns the problem with the page.
fn wrong_for_long() -> Option<String> {
    const PAGE: u64 = 77;
    let runtime = Virtual::new(Schedule::Fifo);
    let (rt, world) = (runtime.clone(), on_flash(&runtime, 3));
    let run = async move {
        let ftl = world.filled(options()).await;
        world.media.decay(world.slot_of(&ftl, PAGE).await);
        world.overwrite(&ftl, 3000, &[PAGE]).await.unwrap();
        rt.sleep(60 * SECOND_NS).await;
        world.overwrite(&ftl, 3000, &[PAGE]).await.unwrap();
        ftl.close().await.unwrap();
        let ftl = world.opened(options()).await.unwrap();
        world.read(&ftl, PAGE, PAGE).await
    };
    let read = runtime.run(run).unwrap();
    read.ok().map(|is_right| format!("it was lost, and reads as written: {is_right}"))
}

#[test]
fn lost_pages_stay_errors() {
    assert_noticed(Fault::LostPagesForgotten, wrong_for_long);
}

/// One slot is never answered: all others are served and cleaned, and its page is there when it answers.
fn one_slot<M: ZoneMedia>(world: World<M>, then: Then) {
    const PAGE: u64 = 123;
    let runtime = world.runtime.clone();
    let rt = runtime.clone();
    let run = async move {
        let ftl = world.filled(options()).await;
        let slot = world.slot_of(&ftl, PAGE).await;
        world.media.leave_unanswered(only(slot));
        let cleaned = ftl.statistics().zones_cleaned;
        world.overwrite(&ftl, 6000, &[PAGE]).await.unwrap();
        assert!(ftl.statistics().zones_cleaned > cleaned + 50, "cleaning goes on");
        let now = ftl.statistics();
        assert_eq!((now.pages_unreadable, now.zones_unreadable), (1, 1));
        // However long it takes: an I/O error implies nothing about the content.
        rt.sleep(100_000 * SECOND_NS).await;
        assert_eq!(ftl.statistics().pages_unreadable, 1);
        assert_eq!(world.read(&ftl, PAGE, PAGE).await.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(world.first_wrong(&ftl, &[PAGE]).await, None);
        ftl.validate();
        match then {
            Then::Readable => world.media.leave_unanswered(NONE),
            Then::Overwritten => world.write(&ftl, PAGE).await.unwrap(),
            Then::Trimmed => {
                ftl.trim(PageRange::new(PageNo(PAGE), 1), true).await.unwrap();
                world.note(PAGE, None);
            }
            Then::KilledAndReadable => {
                let options = FtlOptions { read_only: true, ..options() };
                match world.opened(options).await {
                    Ok(ftl) => assert_eq!(world.first_wrong(&ftl, &[PAGE]).await, None),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
                }
                world.media.leave_unanswered(NONE);
                let ftl = world.opened(options).await.unwrap();
                assert_eq!(world.first_wrong(&ftl, &[]).await, None);
                return;
            }
        }
        rt.sleep(31 * SECOND_NS).await;
        let now = ftl.statistics();
        assert_eq!((now.pages_unreadable, now.zones_unreadable), (0, 0), "{then:?}");
        assert_eq!(world.first_wrong(&ftl, &[]).await, None, "{then:?}");
        world.overwrite(&ftl, 3000, &[]).await.unwrap();
        world.media.leave_unanswered(NONE);
        ftl.close().await.unwrap();
        let ftl = world.opened(options()).await.unwrap();
        assert_eq!(world.first_wrong(&ftl, &[]).await, None, "{then:?}");
    };
    runtime.run(run).unwrap();
}

#[test]
fn a_page_that_cannot_be_read_for_long_keeps_its_place_and_the_device_goes_on() {
    let ends = [Then::Readable, Then::Overwritten, Then::Trimmed, Then::KilledAndReadable];
    for then in ends {
        one_slot(on_flash(&Virtual::new(Schedule::Fifo), 1), then);
        one_slot(on_a_file(&Virtual::new(Schedule::Fifo), 2), then);
    }
}

#[test]
fn a_wrong_content_is_lost_only_after_a_while() {
    const PAGE: u64 = 77;
    let runtime = Virtual::new(Schedule::Fifo);
    let (rt, world) = (runtime.clone(), on_flash(&runtime, 3));
    let run = async move {
        let ftl = world.filled(options()).await;
        world.media.decay(world.slot_of(&ftl, PAGE).await);
        while ftl.statistics().pages_unreadable == 0 {
            world.overwrite(&ftl, 1, &[PAGE]).await.unwrap();
        }
        rt.sleep(9 * SECOND_NS).await;
        assert_eq!(ftl.statistics().pages_unreadable, 1, "it may be readable yet");
        rt.sleep(10 * SECOND_NS).await;
        assert_eq!(ftl.statistics().pages_unreadable, 0, "it is lost, and its zone can be cleaned");
        ftl.validate();
        world.overwrite(&ftl, 3000, &[PAGE]).await.unwrap();
        for ftl in [Rc::clone(&ftl), world.opened(options()).await.unwrap()] {
            let read = world.read(&ftl, PAGE, PAGE).await;
            assert_eq!(read.unwrap_err().kind(), ErrorKind::Uncorrectable);
            assert_eq!(world.first_wrong(&ftl, &[PAGE]).await, None);
        }
    };
    runtime.run(run).unwrap();
}

#[test]
fn writers_wait_for_zones_that_cannot_be_read_and_are_refused_after_a_while() {
    for seed in 0..10 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (rt, world) = (runtime.clone(), on_a_file(&runtime, seed));
        let run = async move {
            let ftl = world.filled(options()).await;
            world.media.leave_unanswered(ALL);
            let mut began_ns = rt.now_ns();
            let refused = loop {
                match world.overwrite(&ftl, 1, &[]).await {
                    Ok(()) => began_ns = rt.now_ns(),
                    Err(error) => break error,
                }
            };
            assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "seed {seed}: {refused}");
            assert!(refused.to_string().contains("cannot be read now"), "{refused}");
            assert!(rt.now_ns() - began_ns > 3 * SECOND_NS, "it waited");
            let again_ns = rt.now_ns();
            let refused = world.overwrite(&ftl, 1, &[]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "seed {seed}: {refused}");
            assert!(rt.now_ns() - again_ns < SECOND_NS, "others need not wait as long again");
            ftl.validate();
            world.media.leave_unanswered(NONE);
            rt.sleep(31 * SECOND_NS).await;
            world.overwrite(&ftl, 2000, &[]).await.unwrap();
            assert_eq!(world.first_wrong(&ftl, &[]).await, None, "seed {seed}");
            assert_eq!(ftl.statistics().pages_unreadable, 0);
            ftl.validate();
            ftl.close().await.unwrap();
            let ftl = world.opened(options()).await.unwrap();
            assert_eq!(world.first_wrong(&ftl, &[]).await, None, "seed {seed}");
        };
        runtime.run(run).unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
    }
}

#[test]
fn nothing_is_lost_where_a_device_ends_while_pages_cannot_be_read() {
    for seed in 0..20 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (rt, world) = (runtime.clone(), Rc::new(on_a_file(&runtime, seed)));
        let used = Rc::clone(&world);
        let run = async move {
            let ftl = used.filled(options()).await;
            used.overwrite(&ftl, 300, &[]).await.unwrap();
            // Half of the medium: some zones are cleaned, others are not.
            used.media.leave_unanswered(SlotNo(0)..SlotNo(ALL.end.0 / 2));
            let ended = used.overwrite(&ftl, 50 + 20 * seed, &[]).await;
            assert!(ended.is_ok() || ended.unwrap_err().kind() == ErrorKind::OutOfSpace);
            rt.sleep(seed * SECOND_NS / 4).await;
        };
        runtime.run(run).unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
        runtime.drop_tasks();
        let run = async move {
            world.media.leave_unanswered(NONE);
            let ftl = world.opened(options()).await.unwrap();
            assert_eq!(world.first_wrong(&ftl, &[]).await, None, "seed {seed}");
        };
        runtime.run(run).unwrap();
    }
}

#[test]
fn pages_that_share_a_slot_are_kept_together() {
    const ORIGINAL: u64 = 50;
    const SHARED: u64 = 51;
    for world in [on_flash, on_flash] {
        let runtime = Virtual::new(Schedule::Fifo);
        let (rt, world) = (runtime.clone(), world(&runtime, 5));
        let run = async move {
            let ftl = world.filled(options()).await;
            let both = [ORIGINAL, SHARED];
            ftl.share(&[(PageNo(SHARED), PageNo(ORIGINAL))], true, || ()).await.unwrap();
            world.note(SHARED, Some(ORIGINAL));
            let slot = world.slot_of(&ftl, ORIGINAL).await;
            world.media.leave_unanswered(only(slot));
            world.overwrite(&ftl, 5000, &both).await.unwrap();
            assert_eq!(ftl.statistics().pages_unreadable, 2);
            world.write(&ftl, ORIGINAL).await.unwrap();
            rt.sleep(SECOND_NS).await;
            let now = ftl.statistics();
            assert_eq!((now.pages_unreadable, now.zones_unreadable), (1, 1), "one needs it");
            world.media.leave_unanswered(NONE);
            rt.sleep(31 * SECOND_NS).await;
            assert_eq!(ftl.statistics().pages_unreadable, 0);
            world.overwrite(&ftl, 3000, &both).await.unwrap();
            for ftl in [Rc::clone(&ftl), world.opened(options()).await.unwrap()] {
                assert!(world.read(&ftl, SHARED, ORIGINAL).await.unwrap());
                assert_eq!(world.first_wrong(&ftl, &[SHARED]).await, None);
            }
        };
        runtime.run(run).unwrap();
    }
}

#[test]
fn a_page_that_home_has_too_needs_no_reading() {
    const CLEAN: u64 = 60;
    const DIRTY: u64 = 61;
    let runtime = Virtual::new(Schedule::Fifo);
    let (rt, world) = (runtime.clone(), on_a_file(&runtime, 6));
    let run = async move {
        let cache = CacheOptions { dirty_pages_max: 360, kept_pages_max: 420, staging_pages: 0 };
        let options = FtlOptions { cache: Some(cache), ..FtlOptions::new(4000) };
        let ftl = world.filled(options).await;
        assert_eq!(ftl.mark_clean([PageNo(CLEAN)]), 1);
        let slots = [world.slot_of(&ftl, CLEAN).await, world.slot_of(&ftl, DIRTY).await];
        world.media.leave_unanswered(slots[0]..SlotNo(slots[1].0 + 1));
        world.overwrite(&ftl, 4000, &[CLEAN, DIRTY]).await.unwrap();
        assert!(ftl.at_home(PageNo(CLEAN)).is_some(), "cleaning lets it go");
        assert!(ftl.at_home(PageNo(DIRTY)).is_none(), "nobody else has it");
        let now = ftl.statistics();
        assert_eq!((now.pages_unreadable, now.zones_unreadable), (1, 1));
        assert_eq!(ftl.mark_clean([PageNo(DIRTY)]), 1);
        assert_eq!(ftl.statistics().zones_unreadable, 0, "home has it now");
        rt.sleep(31 * SECOND_NS).await;
        world.overwrite(&ftl, 2000, &[CLEAN, DIRTY]).await.unwrap();
        assert!(ftl.at_home(PageNo(DIRTY)).is_some(), "cleaning lets it go");
        ftl.validate();
        world.media.leave_unanswered(NONE);
        assert_eq!(world.first_wrong(&ftl, &[CLEAN, DIRTY]).await, None);
    };
    runtime.run(run).unwrap();
}

/// The slot of the only record on `media`.
async fn record_on(media: &impl ZoneMedia) -> Option<SlotNo> {
    let geometry = media.geometry();
    for zone in (0..geometry.zones).map(ZoneNo) {
        for append in media.scan_spares(zone).await.unwrap() {
            let mut spares = (append.first_offset..).zip(append.spares);
            let is_record =
                |spare: Option<Spare>| spare.is_some_and(|it| it.kind == SlotKind::Record);
            if let Some((offset, _)) = spares.find(|(_, spare)| is_record(*spare)) {
                return Some(geometry.slot(zone, offset));
            }
        }
    }
    None
}

#[test]
fn a_record_that_cannot_be_read_is_replaced_by_a_checkpoint() {
    const TRIMMED: u64 = 90;
    let runtime = Virtual::new(Schedule::Fifo);
    let (rt, world) = (runtime.clone(), on_flash(&runtime, 7));
    let run = async move {
        let options = FtlOptions { checkpoint_interval_slots: 1 << 40, ..options() };
        let ftl = world.filled(options).await;
        ftl.trim(PageRange::new(PageNo(TRIMMED), 1), true).await.unwrap();
        world.note(TRIMMED, None);
        let record = record_on(&*world.media).await.expect("a trim is a record");
        world.media.leave_unanswered(only(record));
        let checkpoints = ftl.statistics().checkpoints;
        world.overwrite(&ftl, 6000, &[TRIMMED]).await.unwrap();
        assert!(ftl.latched().is_none());
        assert!(ftl.statistics().checkpoints > checkpoints, "one takes the record's place");
        world.media.leave_unanswered(NONE);
        rt.sleep(SECOND_NS).await;
        ftl.validate();
        for ftl in [Rc::clone(&ftl), world.opened(options).await.unwrap()] {
            assert_eq!(world.first_wrong(&ftl, &[]).await, None);
        }
    };
    runtime.run(run).unwrap();
}

#[test]
fn an_opening_that_meets_an_error_is_refused_and_concludes_nothing() {
    for dumps in [false, true] {
        let runtime = Virtual::new(Schedule::Fifo);
        let world = Rc::new(on_flash(&runtime, 8));
        let used = Rc::clone(&world);
        let options = if dumps { with_dump() } else { options() };
        let options = FtlOptions { checkpoint_interval_slots: 400, ..options };
        let run = async move {
            let ftl = used.filled(options).await;
            for page in (0..40).step_by(4) {
                ftl.share(&[(PageNo(page), PageNo(page + 1))], true, || ()).await.unwrap();
                ftl.trim(PageRange::new(PageNo(page), 1), true).await.unwrap();
                used.note(page, None);
                used.overwrite(&ftl, 50, &[]).await.unwrap();
            }
            ftl
        };
        let ftl = runtime.run(run).unwrap();
        runtime.drop_tasks();
        let run = async move {
            if dumps {
                ftl.dump(&ErasedZones::new(world.window()), &[]).await.unwrap();
            }
            let options = FtlOptions { read_only: true, ..options };
            let before = world.media.reads();
            let ftl = world.opened(options).await.unwrap();
            let reads = world.media.reads() - before;
            assert_eq!(world.first_wrong(&ftl, &[]).await, None);
            assert!(reads > 3, "{reads} reads");
            for nth in 0..reads {
                world.media.interrupt_read(nth);
                match world.opened(options).await {
                    Ok(ftl) => {
                        assert_eq!(world.first_wrong(&ftl, &[]).await, None, "read {nth}");
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "read {nth}: {error}"),
                }
            }
        };
        runtime.run(run).unwrap();
    }
}
