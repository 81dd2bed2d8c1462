//! Appends that return out of order: a change that returns late is older than the mapped one, and
//! still counts.
use crate::support::{Zones, batch, format, recover, start, zones};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{PageNo, PageRange, Payload, Result, SlotNo, Stamp, ZoneNo};
use tantalum_ftl::fault_points::Fault;
use tantalum_ftl::{DumpOptions, Ftl, FtlOptions};
use tantalum_media::{AppendHeader, Body, ErasedZones, Spare, ZoneLayer, ZoneMedia};
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 100;
const ZONES: u32 = 60;

/// Delays the return of appends, and records what must not happen too early.
#[derive(Clone)]
struct Late(Rc<State>);

struct State {
    inner: Zones,
    /// The zone of each append.
    appends: RefCell<Vec<ZoneNo>>,
    /// Numbers of the appends that have not returned.
    held: RefCell<BTreeSet<u64>>,
    answered: WaitQueue,
    resets: RefCell<Vec<ZoneNo>>,
    synced: Cell<bool>,
}

impl Late {
    fn new(inner: Zones) -> Self {
        Late(Rc::new(State {
            inner,
            appends: RefCell::default(),
            held: RefCell::default(),
            answered: WaitQueue::new("the answer"),
            resets: RefCell::default(),
            synced: Cell::new(false),
        }))
    }

    /// Delays the return of the `nth` append from now, counted from 0; returns its number.
    fn hold(&self, nth: u64) -> u64 {
        let number = self.0.appends.borrow().len() as u64 + nth;
        self.0.held.borrow_mut().insert(number);
        number
    }

    /// Lets a delayed append return.
    fn answer(&self, append: u64) {
        assert!(self.0.appends.borrow().len() as u64 > append, "it is under way");
        self.0.held.borrow_mut().remove(&append);
        self.0.answered.wake_all();
    }
}

impl ZoneLayer for Late {
    type Inner = Zones;

    fn inner(&self) -> &Zones {
        &self.0.inner
    }

    async fn append(
        &self,
        zone: ZoneNo,
        header: &AppendHeader,
        spares: &[Spare],
        bodies: &[Body<Stamp>],
        durable: bool,
    ) -> Result<SlotNo> {
        let number = self.0.appends.borrow().len() as u64;
        self.0.appends.borrow_mut().push(zone);
        let slot = self.0.inner.append(zone, header, spares, bodies, durable).await;
        let is_answered = || !self.0.held.borrow().contains(&number);
        self.0.answered.until(|| is_answered().then_some(())).await;
        slot
    }

    async fn reset(&self, zone: ZoneNo) -> Result<()> {
        self.0.resets.borrow_mut().push(zone);
        self.0.inner.reset(zone).await
    }

    async fn sync(&self) -> Result<()> {
        self.0.synced.set(true);
        self.0.inner.sync().await
    }
}

fn options() -> FtlOptions {
    FtlOptions {
        checkpoint_interval_slots: 1 << 40,
        // So that there is always something to clean.
        cleaning_low_zones: ZONES,
        cleaning_high_zones: ZONES,
        ..FtlOptions::new(PAGES)
    }
}

async fn read(ftl: &Ftl<ErasedZones<Stamp>>, page: u64) -> Stamp {
    let mut out = [Stamp { page_plus_one: 0, count: 0 }];
    ftl.read(&[PageNo(page)], &mut out).await.unwrap();
    out[0]
}

/// A zone whose content was all replaced is reset only when the replacements are durable, even if
/// they returned before the content did.
#[test]
fn a_zone_waits_for_what_replaced_its_content_before_it_was_answered() {
    for by_trim in [false, true] {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = Late::new(zones(&runtime, ZONES));
        let rt = runtime.clone();
        let run = async move {
            let ftl = format(media.clone(), options()).await.unwrap();
            media.0.synced.set(false);
            // Both appends fill the zone.
            let held = [media.hold(0), media.hold(1)];
            let late = Rc::clone(&ftl);
            let late = rt.spawn("late", async move { late.write(&batch(0, 32, 1), true).await });
            rt.sleep(10_000_000).await;
            if by_trim {
                ftl.trim(PageRange::new(PageNo(0), 32), false).await.unwrap();
            } else {
                ftl.write(&batch(0, 32, 2), false).await.unwrap();
            }
            let zone = media.0.appends.borrow()[held[0] as usize];
            held.into_iter().for_each(|append| media.answer(append));
            late.await.unwrap();
            assert!(!media.0.synced.get() && !ftl.is_durable());
            start(&rt, &ftl);
            rt.sleep(100_000_000).await;
            ftl.validate();
            let reset = media.0.resets.borrow().contains(&zone);
            assert!(media.0.synced.get() && reset, "reset: {reset}, by a trim: {by_trim}");
        };
        runtime.run(run).unwrap();
    }
}

/// A device on which page 0 is written, with an append that returns late, during a share that
/// changes pages 0 and 1: it remaps one of them and writes the other one again. The share has not
/// returned.
async fn written_late_behind_a_share(
    rt: &Virtual,
    media: &Late,
    dump: bool,
) -> (Rc<Ftl<ErasedZones<Stamp>>>, u64) {
    let dump = dump.then(|| DumpOptions::least(&media.0.inner.geometry(), PAGES, 8));
    let options = FtlOptions { share_entries_max: Some(1), dump, ..FtlOptions::new(PAGES) };
    let ftl = format(media.clone(), options).await.unwrap();
    ftl.write(&batch(0, 16, 1), true).await.unwrap();
    let write = media.hold(0);
    let late = Rc::clone(&ftl);
    let late = rt.spawn("late", async move { late.write(&batch(0, 1, 2), true).await });
    rt.sleep(1).await;
    let share = media.hold(0);
    let sharing = Rc::clone(&ftl);
    let pairs = [(PageNo(0), PageNo(5)), (PageNo(1), PageNo(6))];
    rt.spawn("share", async move { sharing.share(&pairs, true, || ()).await });
    rt.sleep(10_000_000).await;
    media.answer(write);
    late.await.unwrap();
    (ftl, share)
}

#[test]
fn what_was_answered_late_is_seen_until_the_share_behind_it_is() {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = Late::new(zones(&runtime, ZONES));
    let rt = runtime.clone();
    let run = async move {
        let (ftl, share) = written_late_behind_a_share(&rt, &media, false).await;
        assert_eq!(read(&ftl, 0).await, Stamp::new(PageNo(0), 2), "the write has returned");
        media.answer(share);
        rt.sleep(10_000_000).await;
        assert_eq!(read(&ftl, 0).await, Stamp::new(PageNo(5), 1));
        ftl.validate();
    };
    runtime.run(run).unwrap();
}

/// Cuts power while the device is as `life` leaves it, dumps, and reads `page` after the reboot.
fn read_after_a_dump(
    page: u64,
    life: impl AsyncFnOnce(&Virtual, &Late) -> Rc<Ftl<ErasedZones<Stamp>>> + 'static,
) -> Stamp {
    let runtime = Virtual::new(Schedule::Fifo);
    let inner = zones(&runtime, ZONES);
    let media = Late::new(inner.reopen(runtime.clone()));
    let rt = runtime.clone();
    let ftl = runtime.run(async move { life(&rt, &media).await }).unwrap();
    runtime.drop_tasks();
    let (runtime, options) = (Virtual::new(Schedule::Fifo), *ftl.options());
    let media = ErasedZones::new(Late::new(inner.reopen(runtime.clone())));
    runtime.run(async move { ftl.dump(&media, &[]).await.map(|_| ()) }).unwrap().unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let media = Late::new(inner.reopen(runtime.clone()));
    let run = async move {
        let (ftl, report) = recover(media, options).await.unwrap();
        assert!(report.merged);
        ftl.validate();
        read(&ftl, page).await
    };
    runtime.run(run).unwrap()
}

#[test]
fn what_was_answered_late_is_dumped_where_the_share_behind_it_is_taken_back() {
    let found = read_after_a_dump(0, async |rt, media| {
        written_late_behind_a_share(rt, media, true).await.0
    });
    assert_eq!(found, Stamp::new(PageNo(0), 2), "the write has returned");
}

/// Cleaning copies a page during a share that writes it again. The share returns before an earlier
/// write does, and is undone with it.
#[test]
fn a_page_that_was_moved_before_a_share_was_answered_is_dumped_where_it_is() {
    let found = read_after_a_dump(1, async |rt, media| {
        let dump = Some(DumpOptions::least(&media.0.inner.geometry(), PAGES, 8));
        let options = FtlOptions { share_entries_max: Some(0), dump, ..options() };
        let ftl = format(media.clone(), options).await.unwrap();
        // A zone in which only page 1 is live.
        ftl.write(&batch(0, 16, 1), true).await.unwrap();
        ftl.write(&batch(16, 16, 1), true).await.unwrap();
        for first in [2, 16, 32] {
            ftl.write(&batch(first, 16, 2), true).await.unwrap();
        }
        ftl.write(&batch(0, 1, 2), true).await.unwrap();
        let writing = Rc::clone(&ftl);
        media.hold(0);
        rt.spawn("write", async move { writing.write(&batch(50, 1, 1), true).await });
        rt.sleep(1).await;
        let share = media.hold(0);
        let sharing = Rc::clone(&ftl);
        let pairs = [(PageNo(1), PageNo(20))];
        rt.spawn("share", async move { sharing.share(&pairs, true, || ()).await });
        rt.sleep(10_000_000).await;
        let cleaned = ftl.statistics().zones_cleaned;
        start(rt, &ftl);
        rt.sleep(100_000_000).await;
        assert!(ftl.statistics().pages_moved > 0 && ftl.statistics().zones_cleaned > cleaned);
        media.answer(share);
        rt.sleep(10_000_000).await;
        ftl
    });
    assert_eq!(found, Stamp::new(PageNo(1), 1), "nobody was told of the share");
}

/// Cuts power after the record of a batch that remaps page 0 and trims page 9 was answered, and before an earlier write
/// was; returns the problem.
fn dumped_by_halves() -> Option<String> {
    let found = [0, 9].map(|page| {
        read_after_a_dump(page, async move |rt, media| {
            let dump = Some(DumpOptions::least(&media.0.inner.geometry(), PAGES, 8));
            let options = FtlOptions { dump, ..FtlOptions::new(PAGES) };
            let ftl = format(media.clone(), options).await.unwrap();
            ftl.write(&batch(0, 16, 1), true).await.unwrap();
            media.hold(0);
            let writing = Rc::clone(&ftl);
            rt.spawn("write", async move { writing.write(&batch(50, 1, 1), true).await });
            rt.sleep(1).await;
            let sharing = Rc::clone(&ftl);
            let trims = [PageRange::new(PageNo(9), 1)];
            rt.spawn("share", async move {
                sharing.share_and_trim(&[(PageNo(0), PageNo(5))], &trims, true, || ()).await
            });
            rt.sleep(10_000_000).await;
            ftl
        })
    });
    let [first, trimmed] = found;
    let remapped = first == Stamp::new(PageNo(5), 1);
    let gone = trimmed == Stamp::zero();
    (remapped != gone).then(|| format!("{found:?}"))
}

#[test]
fn a_share_that_trims_is_dumped_as_a_whole() {
    assert_noticed(Fault::TrimsOutliveShares, dumped_by_halves);
}

/// A share that is in no log takes the content of a page from an earlier share, whose record has not been answered.
/// Returns the problem if power is cut then.
fn shared_from_what_is_not_durable() -> Option<String> {
    let acknowledged = Rc::new(Cell::new(false));
    let is_acknowledged = Rc::clone(&acknowledged);
    let found = read_after_a_dump(2, async move |rt, media| {
        let dump = Some(DumpOptions::least(&media.0.inner.geometry(), PAGES, 8));
        let options = FtlOptions { dump, ..FtlOptions::new(PAGES) };
        let ftl = format(media.clone(), options).await.unwrap();
        ftl.write(&batch(0, 16, 1), true).await.unwrap();
        media.hold(0);
        let first = Rc::clone(&ftl);
        let trims = [PageRange::new(PageNo(9), 1)];
        rt.spawn("first", async move {
            first.share_and_trim(&[(PageNo(0), PageNo(5))], &trims, true, || ()).await
        });
        rt.sleep(1).await;
        let second = Rc::clone(&ftl);
        rt.spawn("second", async move {
            second.share(&[(PageNo(2), PageNo(0))], true, || ()).await.unwrap();
            acknowledged.set(true);
        });
        rt.sleep(10_000_000).await;
        ftl
    });
    let before = Stamp::new(PageNo(2), 1);
    let lost = is_acknowledged.get() && found == before;
    let of_half = !is_acknowledged.get() && found != before;
    (lost || of_half).then(|| format!("page 2 is {found:?}, acknowledged: {is_acknowledged:?}"))
}

#[test]
fn a_share_waits_for_what_it_builds_on() {
    assert_noticed(Fault::UnwrittenNotAwaited, shared_from_what_is_not_durable);
}

/// A durable batch that changes nothing.
async fn nothing(ftl: &Ftl<ErasedZones<Stamp>>, by_share: bool) -> Result<()> {
    if by_share { ftl.share(&[], true, || ()).await } else { ftl.write(&[], true).await }
}

#[test]
fn a_durable_batch_of_nothing_makes_what_came_before_it_durable() {
    for by_share in [false, true] {
        let runtime = Virtual::new(Schedule::Fifo);
        let media = Late::new(zones(&runtime, ZONES));
        let run = async move {
            let ftl = format(media.clone(), options()).await.unwrap();
            media.0.synced.set(false);
            nothing(&ftl, by_share).await.unwrap();
            assert!(!media.0.synced.get(), "all was durable");
            ftl.write(&batch(0, 4, 1), false).await.unwrap();
            assert!(!ftl.is_durable());
            nothing(&ftl, by_share).await.unwrap();
            assert!(ftl.is_durable(), "by a share: {by_share}");
        };
        runtime.run(run).unwrap();
    }
}

/// Readers see a share before it has returned. A caller that finds nothing left to change, and makes that durable, must
/// not be answered before the share would survive a power cut. Returns the case in which it was.
fn answered_before_the_share(by_share: bool) -> Option<String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = Late::new(zones(&runtime, ZONES));
    let rt = runtime.clone();
    let run = async move {
        let ftl = format(media.clone(), options()).await.unwrap();
        ftl.write(&batch(0, 1, 1), true).await.unwrap();
        let held = media.hold(0);
        let sharing = Rc::clone(&ftl);
        let pairs = [(PageNo(1), PageNo(0))];
        let share = rt.spawn("share", async move { sharing.share(&pairs, true, || ()).await });
        rt.sleep(10_000_000).await;
        let one = |page| PageRange::new(PageNo(page), 1);
        assert_eq!(ftl.differences(one(1), one(0)), (vec![], vec![]));
        let again = Rc::clone(&ftl);
        let again = rt.spawn("nothing", async move {
            nothing(&again, by_share).await.unwrap();
            again.is_durable()
        });
        rt.sleep(10_000_000).await;
        media.answer(held);
        share.await.unwrap();
        (!again.await).then(|| format!("acknowledged too early, by a share: {by_share}"))
    };
    runtime.run(run).unwrap()
}

#[test]
fn a_durable_batch_of_nothing_waits_for_what_readers_see_already() {
    for by_share in [false, true] {
        assert_noticed(Fault::NothingAwaited, || answered_before_the_share(by_share));
    }
}
