//! The content after power cuts and decay.
use super::{ZoneFactory, append, assert_whole, header, opened, page, run};
use crate::zone::{ScannedAppend, ZoneMedia};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageBuf, PageNo, Payload, Rng, SlotNo, Version, ZoneNo};
use tantalum_runtime::Runtime;

/// A durable append survives the cut. One that is not durable is whole, or holds no wrong page.
pub fn durable_survives_a_cut<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    for seed in 0..10 {
        let mut factory = make(seed);
        let (media, zones) = opened(&mut factory);
        let zone = ZoneNo(zones[0]);
        run(&factory, async move {
            media.reset(zone).await.unwrap();
            append(&*media, zone.0, 1, 0, 2, true).await;
            append(&*media, zone.0, 1, 10, 2, false).await;
            append(&*media, zone.0, 1, 20, 2, true).await;
        });
        factory.runtime().drop_tasks();
        factory.cut(&mut Rng::new(seed));
        let (media, _) = opened(&mut factory);
        let found = run(&factory, async move { media.scan(zone, 0, None).await.unwrap() });
        for first in [0, 20] {
            let kept = found.iter().find(|found| found.header == header(1, first, 2));
            assert_whole(kept.unwrap_or_else(|| panic!("seed {seed}: {first} lost")), 1, first, 2);
        }
        assert_true_spares(&found, seed);
    }
}

/// Appends that returned before a sync survive a cut after it.
pub fn sync_makes_durable<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    for seed in 0..10 {
        let mut factory = make(seed);
        let (media, zones) = opened(&mut factory);
        let zones = [ZoneNo(zones[0]), ZoneNo(zones[1])];
        run(&factory, async move {
            for zone in zones {
                media.reset(zone).await.unwrap();
                append(&*media, zone.0, 1, u64::from(zone.0) * 100, 3, false).await;
            }
            media.sync().await.unwrap();
            append(&*media, zones[0].0, 1, 7000, 3, false).await;
        });
        factory.runtime().drop_tasks();
        factory.cut(&mut Rng::new(seed));
        let (media, _) = opened(&mut factory);
        for zone in zones {
            let media = Rc::clone(&media);
            let found = run(&factory, async move { media.scan(zone, 0, None).await.unwrap() });
            assert_whole(&found[0], 1, u64::from(zone.0) * 100, 3);
            assert_true_spares(&found, seed);
        }
    }
}

/// Checks that every spare of a scan matches the write to its slot.
fn assert_true_spares(found: &[ScannedAppend], seed: u64) {
    for append in found {
        let first = append.header.batch_first.0 - 1;
        assert_eq!(append.spares.len() as u32, append.header.batch_len, "seed {seed}");
        for (number, spare) in (first..).zip(&append.spares) {
            let Some(spare) = spare else { continue };
            assert_eq!((spare.page, spare.version), (PageNo(number), Version(number + 1)));
            assert_eq!(spare.checksum, page(number).checksum(), "seed {seed}");
        }
    }
}

/// A scan returns no spare for a decayed page, and finds the appends around it.
pub fn decayed_page_is_dropped<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(8);
    let (media, zones) = opened(&mut factory);
    let zone = ZoneNo(zones[0]);
    let geometry = media.geometry();
    let count = geometry.append_pages_max.min(6);
    let written = Rc::clone(&media);
    let slot = run(&factory, async move {
        written.reset(zone).await.unwrap();
        append(&*written, zone.0, 1, 0, count, true).await;
        let slot = append(&*written, zone.0, 1, 100, count, true).await;
        append(&*written, zone.0, 1, 200, count, true).await;
        slot
    });
    let decayed = SlotNo(slot.0 + count - 1);
    factory.decay(decayed);
    run(&factory, async move {
        let found = media.scan(zone, 0, None).await.unwrap();
        assert_whole(&found[0], 1, 0, count);
        assert_whole(found.last().unwrap(), 1, 200, count);
        let hit = found.iter().find(|found| found.header == header(1, 100, count));
        assert!(hit.is_none_or(|hit| hit.spares[count as usize - 1].is_none()));
        let mut out = [PageBuf::zero()];
        let read = media.read(&[decayed], &mut out).await;
        assert!(read.is_err() || out[0] != page(100 + u64::from(count) - 1));
    });
}

/// Random appends and syncs from several tasks, then a power cut at a random moment and a reopening, several times
/// over the same zones. All promised content must be there, and no spare may be wrong.
pub fn cuts_at_random_moments<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    for seed in 0..60 {
        let mut rng = Rng::split(seed, "cuts at random moments");
        let mut factory = make(seed);
        for epoch in 1..4 {
            cut_round(&mut factory, &mut rng, seed, epoch);
        }
    }
}

/// The appends of one round that returned, and those that must survive.
#[derive(Default)]
struct Log {
    // Each append as zone, first page and count.
    returned: Vec<(u32, u64, u32)>,
    promised: Vec<(u32, u64, u32)>,
    next_page: u64,
}

fn cut_round<F: ZoneFactory>(factory: &mut F, rng: &mut Rng, seed: u64, epoch: u64) {
    let (media, zones) = opened(factory);
    for &zone in &zones[..2] {
        let media = Rc::clone(&media);
        run(factory, async move { media.reset(ZoneNo(zone)).await.expect("reset") });
    }
    let log = Rc::new(RefCell::new(Log { next_page: epoch << 32, ..Log::default() }));
    for worker in 0..3 {
        let (media, log, zone) = (Rc::clone(&media), Rc::clone(&log), zones[worker % 2]);
        let rng = Rng::new(rng.next_u64());
        let work = append_at_random(media, log, zone, epoch, rng);
        factory.runtime().spawn("worker", work);
    }
    let until = factory.runtime().sleep(1 + rng.below(20_000_000));
    run(factory, until);
    factory.runtime().drop_tasks();
    factory.cut(rng);
    let (media, _) = opened(factory);
    for &zone in &zones[..2] {
        let media = Rc::clone(&media);
        let found = run(factory, async move { media.scan(ZoneNo(zone), 0, None).await.unwrap() });
        assert_true_spares(&found, seed);
        for &(_, first, count) in log.borrow().promised.iter().filter(|kept| kept.0 == zone) {
            let kept = found.iter().find(|found| found.header == header(epoch, first, count));
            let Some(kept) = kept else {
                panic!("seed {seed}, epoch {epoch}: promised append {first}+{count} is lost")
            };
            assert_whole(kept, epoch, first, count);
        }
    }
}

async fn append_at_random<M: ZoneMedia<Page = PageBuf>>(
    media: Rc<M>,
    log: Rc<RefCell<Log>>,
    zone: u32,
    epoch: u64,
    mut rng: Rng,
) {
    let geometry = media.geometry();
    // Each task uses half of the zone, because two tasks may share one.
    let mut left = geometry.slots_per_zone / 2;
    loop {
        if rng.chance(0.2) {
            let covered = log.borrow().returned.clone();
            media.sync().await.unwrap();
            log.borrow_mut().promised.extend(covered);
        }
        let fits = geometry.append_pages_fit(left);
        if fits == 0 {
            return;
        }
        let count = 1 + rng.below(u64::from(fits.min(6))) as u32;
        left -= geometry.append_slots(count);
        let first = log.borrow().next_page;
        log.borrow_mut().next_page += u64::from(count);
        let durable = rng.chance(0.3);
        append(&*media, zone, epoch, first, count, durable).await;
        let mut log = log.borrow_mut();
        log.returned.push((zone, first, count));
        if durable {
            log.promised.push((zone, first, count));
        }
    }
}
