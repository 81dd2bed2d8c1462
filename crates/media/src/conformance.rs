//! What every [`ZoneMedia`] must do, as checks to run over any of them (feature `testing`).
//!
//! Implement [`ZoneFactory`] for the medium and let [`zone_conformance_tests!`] make the tests:
//!
//! ```ignore
//! tantalum_media::zone_conformance_tests!(MyFactory::new);
//! ```
use crate::zone::{AppendHeader, Body, ScannedAppend, SlotKind, Spare, ZoneMedia};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload, Rng, SlotNo, Version, ZoneNo};
use tantalum_runtime::{Runtime, Virtual};

/// Makes a medium, and makes it again over what survived.
///
/// The medium has at least 3 zones, in each of which 3 appends of the greatest size fit.
pub trait ZoneFactory {
    /// The medium under test.
    type Media: ZoneMedia<Page = PageBuf>;

    /// The executor that everything runs on.
    fn runtime(&self) -> &Virtual;

    /// Opens the medium: empty at first, later with what the last cut left.
    fn open(&mut self) -> Self::Media;

    /// Cuts power and decides what becomes of what was not durable. The checks drop all tasks before.
    fn cut(&mut self, rng: &mut Rng);

    /// Damages what is stored at `slot`, as decay does.
    fn decay(&mut self, slot: SlotNo);
}

/// Makes a `#[test]` of each check. `$make` takes a seed (`u64`) and returns a [`ZoneFactory`]
/// whose medium draws its delays from it.
#[macro_export]
macro_rules! zone_conformance_tests {
    ($make:expr) => {
        $crate::zone_conformance_tests!(@pass $make;
            append_sizes, meta_bodies, interleaved_zones, order_of_concurrent_appends,
            scan_from_offset, epochs_after_reset, peek_finds_the_first_header,
            reads_of_scattered_slots, durable_survives_a_cut, sync_makes_durable,
            decayed_page_is_dropped, cuts_at_random_moments);
        $crate::zone_conformance_tests!(@panic $make;
            append_without_reset, append_past_the_end, append_too_large, append_empty,
            spares_and_bodies_differ);
    };
    (@pass $make:expr; $($name:ident),*) => { $(
        #[test]
        fn $name() {
            $crate::conformance::$name($make);
        }
    )* };
    (@panic $make:expr; $($name:ident),*) => { $(
        #[test]
        #[should_panic]
        fn $name() {
            $crate::conformance::$name($make);
        }
    )* };
}

/// A page told from all others by `number`.
pub fn page(number: u64) -> PageBuf {
    let mut bytes = [0; PAGE_BYTES];
    Rng::new(number).fill(&mut bytes);
    PageBuf::copy_from(&bytes)
}

/// What an append writes: bodies and spares of the pages `first..first + count`.
pub fn batch(first: u64, count: u32) -> (Vec<Spare>, Vec<Body<PageBuf>>) {
    (first..first + u64::from(count))
        .map(|number| {
            let content = page(number);
            let spare = Spare {
                kind: SlotKind::Data,
                page: PageNo(number),
                version: Version(number + 1),
                checksum: content.checksum(),
            };
            (spare, Body::Data(content))
        })
        .unzip()
}

/// A header that differs from those of other batches.
pub fn header(epoch: u64, first: u64, count: u32) -> AppendHeader {
    AppendHeader {
        epoch,
        stream: (first % 5) as u8,
        durable: Version(first / 2),
        batch_first: Version(first + 1),
        batch_len: count,
    }
}

async fn append<M: ZoneMedia<Page = PageBuf>>(
    media: &M,
    zone: u32,
    epoch: u64,
    first: u64,
    count: u32,
    durable: bool,
) -> SlotNo {
    let (spares, bodies) = batch(first, count);
    let header = header(epoch, first, count);
    media.append(ZoneNo(zone), &header, &spares, &bodies, durable).await.expect("append")
}

fn run<F: ZoneFactory, T: 'static>(factory: &F, main: impl Future<Output = T> + 'static) -> T {
    factory.runtime().run(main).expect("no deadlock")
}

/// Checks that `found` is the whole append of `count` pages from `first` on.
fn assert_whole(found: &ScannedAppend, epoch: u64, first: u64, count: u32) {
    assert_eq!(found.header, header(epoch, first, count));
    let spares: Vec<_> = batch(first, count).0.into_iter().map(Some).collect();
    assert_eq!(found.spares, spares, "spares of the append of pages {first}+{count}");
}

/// Usable zones in order: retired ones are passed over.
fn usable<M: ZoneMedia>(media: &M) -> Vec<u32> {
    let retired = media.retired();
    assert!(retired.is_sorted());
    (0..media.geometry().zones).filter(|&zone| !retired.contains(&ZoneNo(zone))).collect()
}

fn opened<F: ZoneFactory>(factory: &mut F) -> (Rc<F::Media>, Vec<u32>) {
    let media = Rc::new(factory.open());
    let zones = usable(&*media);
    assert!(zones.len() >= 3, "the checks need 3 usable zones");
    (media, zones)
}

/// Every size of append comes back by read and by scan, and takes the slots it should.
pub fn append_sizes<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(1);
    let (media, zones) = opened(&mut factory);
    let geometry = media.geometry();
    assert!(geometry.append_slots(geometry.append_pages_max) * 3 <= geometry.slots_per_zone);
    run(&factory, async move {
        let zone = zones[1];
        let mut epoch = 0;
        let mut count = 1;
        while count <= geometry.append_pages_max {
            media.reset(ZoneNo(zone)).await.expect("reset");
            epoch += 1;
            let mut offset = 0;
            let mut written = Vec::new();
            while count <= geometry.append_pages_max
                && geometry.append_pages_fit(geometry.slots_per_zone - offset) >= count
            {
                let first = u64::from(count) * 1000;
                let slot = append(&*media, zone, epoch, first, count, count % 2 == 0).await;
                let first_offset = offset + geometry.append_overhead_slots;
                assert_eq!(slot, geometry.slot(ZoneNo(zone), first_offset));
                let slots: Vec<_> = (slot.0..slot.0 + count).map(SlotNo).collect();
                let mut pages = vec![PageBuf::zero(); count as usize];
                media.read(&slots, &mut pages).await.expect("read");
                for (number, page_read) in (first..).zip(&pages) {
                    assert_eq!(page_read, &page(number));
                }
                offset += geometry.append_slots(count);
                written.push((first_offset, offset, first, count));
                count += 1 + count / 7;
            }
            let found = media.scan(ZoneNo(zone), 0, None).await.expect("scan");
            assert_eq!(found.len(), written.len());
            for (found, (first_offset, end_offset, first, count)) in found.iter().zip(written) {
                assert_eq!((found.first_offset, found.end_offset), (first_offset, end_offset));
                assert_whole(found, epoch, first, count);
            }
        }
    });
}

/// The FTL's own bytes come back, also mixed with hosts' pages.
pub fn meta_bodies<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(2);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        let zone = ZoneNo(zones[0]);
        media.reset(zone).await.expect("reset");
        let (mut spares, mut bodies) = batch(10, 3);
        spares[1].kind = SlotKind::Record;
        bodies[1] = Body::Meta(page(11));
        spares[2].kind = SlotKind::Copy;
        let slot = media.append(zone, &header(1, 10, 3), &spares, &bodies, true).await.unwrap();
        assert_eq!(media.read_meta(SlotNo(slot.0 + 1)).await.unwrap(), page(11));
        let mut pages = [PageBuf::zero(), PageBuf::zero()];
        media.read(&[slot, SlotNo(slot.0 + 2)], &mut pages).await.unwrap();
        assert_eq!(pages, [page(10), page(12)]);
        let found = media.scan(zone, 0, None).await.unwrap();
        assert_eq!(found[0].spares, spares.into_iter().map(Some).collect::<Vec<_>>());
    });
}

/// Zones do not mix.
pub fn interleaved_zones<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(3);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        for &zone in &zones[..3] {
            media.reset(ZoneNo(zone)).await.expect("reset");
        }
        for round in 0..3 {
            for &zone in &zones[..3] {
                let first = u64::from(zone) * 100 + round * 10;
                append(&*media, zone, u64::from(zone) + 1, first, 2, false).await;
            }
        }
        for &zone in &zones[..3] {
            let found = media.scan(ZoneNo(zone), 0, None).await.unwrap();
            assert_eq!(found.len(), 3);
            for (round, found) in (0..).zip(&found) {
                let first = u64::from(zone) * 100 + round * 10;
                assert_whole(found, u64::from(zone) + 1, first, 2);
            }
        }
    });
}

/// Appends that are in flight together take their places in the order of their first polls.
pub fn order_of_concurrent_appends<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    for seed in 0..5 {
        let mut factory = make(seed);
        let (media, zones) = opened(&mut factory);
        let geometry = media.geometry();
        let runtime = factory.runtime().clone();
        run(&factory, async move {
            let zone = zones[0];
            media.reset(ZoneNo(zone)).await.unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = (0..6)
                .map(|number: u64| {
                    let (media, order) = (Rc::clone(&media), Rc::clone(&order));
                    runtime.spawn("append", async move {
                        order.borrow_mut().push(number);
                        append(&*media, zone, 1, number * 10, 1, number.is_multiple_of(2)).await
                    })
                })
                .collect();
            let mut slots = Vec::new();
            for task in tasks {
                slots.push(task.await);
            }
            let step = geometry.append_slots(1);
            for (place, &number) in (0..).zip(order.borrow().iter()) {
                let offset = place * step + geometry.append_overhead_slots;
                let expected = geometry.slot(ZoneNo(zone), offset);
                assert_eq!(slots[number as usize], expected, "seed {seed}");
            }
        });
    }
}

/// A scan can begin at any append.
pub fn scan_from_offset<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(4);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        let zone = ZoneNo(zones[2]);
        media.reset(zone).await.unwrap();
        for number in 0..4 {
            append(&*media, zone.0, 6, number * 10, 2, false).await;
        }
        let all = media.scan(zone, 0, None).await.unwrap();
        assert_eq!(all.len(), 4);
        for (index, append) in all.iter().enumerate() {
            for epoch in [None, Some(6)] {
                let rest = media.scan(zone, append.end_offset, epoch).await.unwrap();
                assert_eq!(rest, all[index + 1..], "behind append {index}, epoch {epoch:?}");
            }
        }
        assert_eq!(media.scan(zone, 0, Some(5)).await.unwrap(), []);
    });
}

/// What was appended before a reset is never returned along with what came after it.
pub fn epochs_after_reset<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(5);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        let zone = ZoneNo(zones[0]);
        media.reset(zone).await.unwrap();
        for number in 0..5 {
            append(&*media, zone.0, 1, number * 10, 2, false).await;
        }
        media.reset(zone).await.unwrap();
        append(&*media, zone.0, 2, 500, 1, false).await;
        let found = media.scan(zone, 0, None).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_whole(&found[0], 2, 500, 1);
        assert_eq!(media.scan(zone, found[0].end_offset, None).await.unwrap(), []);
    });
}

/// `peek` returns the header of the first append, or nothing.
pub fn peek_finds_the_first_header<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(6);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        let zone = ZoneNo(zones[1]);
        assert_eq!(media.peek(zone).await.unwrap(), None);
        assert_eq!(media.scan(zone, 0, None).await.unwrap(), []);
        media.reset(zone).await.unwrap();
        append(&*media, zone.0, 9, 70, 3, false).await;
        append(&*media, zone.0, 9, 80, 1, false).await;
        assert_eq!(media.peek(zone).await.unwrap(), Some(header(9, 70, 3)));
    });
}

/// A read takes slots in any order, from several zones, some twice.
pub fn reads_of_scattered_slots<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    let mut factory = make(7);
    let (media, zones) = opened(&mut factory);
    run(&factory, async move {
        let mut written = Vec::new();
        for &zone in &zones[..3] {
            media.reset(ZoneNo(zone)).await.unwrap();
            for number in 0..3 {
                let first = u64::from(zone) * 1000 + number * 100;
                let slot = append(&*media, zone, 1, first, 4, false).await;
                written.extend((0..4).map(|at| (SlotNo(slot.0 + at), first + u64::from(at))));
            }
        }
        let mut rng = Rng::new(7);
        for round in 0..20 {
            let mut wanted = written.clone();
            wanted.extend_from_slice(&written[..round]);
            rng.shuffle(&mut wanted);
            // Runs of neighbours among the scattered ones.
            wanted.extend_from_slice(&written[round..round + 8]);
            wanted.truncate(round * 3);
            let (slots, numbers): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
            let mut pages = vec![PageBuf::zero(); slots.len()];
            media.read(&slots, &mut pages).await.unwrap();
            let expected: Vec<_> = numbers.into_iter().map(page).collect();
            assert!(pages == expected, "round {round}");
        }
    });
}

/// A durable append survives the cut; one that is not durable is whole or holds no wrong page.
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

/// What had returned before a sync survives the cut after it.
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

/// Every spare that a scan vouches for is what was written under it.
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

/// A scan does not vouch for a page that decayed, and finds the appends around it.
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

/// Appends and syncs at random from several tasks, power cut at a random moment, opened again;
/// several times over the same zones. What was promised is there; nothing wrong is vouched for.
pub fn cuts_at_random_moments<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    for seed in 0..60 {
        let mut rng = Rng::split(seed, "cuts at random moments");
        let mut factory = make(seed);
        for epoch in 1..4 {
            cut_round(&mut factory, &mut rng, seed, epoch);
        }
    }
}

/// What one round wrote and what it was promised.
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
    // Half the zone each, since two may share it.
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

/// Panics: after opening, a zone is appended to only once it was reset.
pub fn append_without_reset<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        append(&*media, zone.0, 1, 0, 1, false).await;
    });
}

/// Panics: an append that does not fit in what is left of the zone.
pub fn append_past_the_end<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        for _ in 0..=media.geometry().slots_per_zone {
            append(&*media, zone.0, 1, 0, 1, false).await;
        }
    });
}

/// Panics: an append of more pages than the medium takes at once.
pub fn append_too_large<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        let count = media.geometry().append_pages_max + 1;
        append(&*media, zone.0, 1, 0, count, false).await;
    });
}

/// Panics: an append of nothing.
pub fn append_empty<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        append(&*media, zone.0, 1, 0, 0, false).await;
    });
}

/// Panics: more bodies than spares.
pub fn spares_and_bodies_differ<F: ZoneFactory>(make: impl Fn(u64) -> F) {
    misuse(make, |media, zone| async move {
        media.reset(zone).await.unwrap();
        let (spares, bodies) = batch(0, 3);
        let _ = media.append(zone, &header(1, 0, 3), &spares[..2], &bodies, false).await;
    });
}

fn misuse<F, M, Fut>(make: impl Fn(u64) -> F, misuse: M)
where
    F: ZoneFactory,
    M: FnOnce(Rc<F::Media>, ZoneNo) -> Fut,
    Fut: Future<Output = ()> + 'static,
{
    let mut factory = make(9);
    let (media, zones) = opened(&mut factory);
    run(&factory, misuse(media, ZoneNo(zones[0])));
}
