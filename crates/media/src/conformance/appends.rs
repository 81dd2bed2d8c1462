//! Appended content is read and scanned in its order and its zone.
use super::{ZoneFactory, append, assert_whole, batch, header, opened, page, run};
use crate::zone::{Body, SlotKind, ZoneMedia};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageBuf, Payload, Rng, SlotNo, ZoneNo};
use tantalum_runtime::Runtime;

/// Reads and scans return appends of every size, and each append occupies the expected slots.
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

/// FTL metadata is returned, also if mixed with host pages.
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

/// Alternating appends to several zones each stay in their own zone.
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

/// Appends in flight together get their places in the order of their first polls.
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

/// A scan can start at any append.
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

/// Content from before a reset is never returned together with content from after it.
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

/// `peek` returns the header of the first append, or `None`.
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

/// A read accepts slots in any order, from several zones, and with duplicates.
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
            // Add runs of adjacent slots to the scattered ones.
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
