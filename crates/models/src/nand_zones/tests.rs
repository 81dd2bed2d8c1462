use super::*;
use crate::nand::{BlockAddr, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_base::{PageNo, Stamp, Version};
use tantalum_media::cut::{CutPlan, Fate};
use tantalum_media::zone::SlotKind;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

type Zones = NandZones<Virtual, Stamp>;

/// Two channels of two planes; 8 KiB pages that take 100 ns to transfer; 4 zones of 32 slots.
fn options() -> NandOptions {
    NandOptions {
        geometry: NandGeometry {
            channels: 2,
            packages_per_channel: 1,
            planes_per_package: 2,
            blocks_per_plane: 6,
            pages_per_block: 4,
            page_bytes: 8192,
            spare_bytes: 0,
        },
        timing: NandTiming {
            read_ns: 30,
            program_ns: 1_000,
            program_upper_ns: 1_000,
            erase_ns: 5_000,
            channel_bytes_per_second: 81_920_000_000,
        },
        faults: NandFaults::default(),
        seed: 1,
    }
}

fn zones() -> (Virtual, Rc<Zones>) {
    zones_with(&options())
}

fn zones_with(options: &NandOptions) -> (Virtual, Rc<Zones>) {
    let runtime = Virtual::new(Schedule::Fifo);
    let nand = Nand::new(options).unwrap();
    let zones_options = NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 16 };
    let zones = Rc::new(NandZones::new(runtime.clone(), nand, zones_options).unwrap());
    reset_all(&runtime, &zones);
    (runtime, zones)
}

/// Takes no time, since all blocks are erased.
fn reset_all(runtime: &Virtual, zones: &Rc<Zones>) {
    let zones = Rc::clone(zones);
    runtime
        .run(async move {
            for zone in 0..zones.geometry().zones {
                // The reset of a zone with too many bad blocks fails.
                drop(zones.reset(ZoneNo(zone)).await);
            }
        })
        .unwrap();
}

fn pages(first: u64, count: u64) -> (Vec<Spare>, Vec<Body<Stamp>>) {
    (first..first + count)
        .map(|number| {
            let body = Body::Data(Stamp::new(PageNo(number), number + 100));
            let checksum = body.checksum();
            let version = Version(number + 1);
            (Spare { kind: SlotKind::Data, page: PageNo(number), version, checksum }, body)
        })
        .unzip()
}

fn header(epoch: u64) -> AppendHeader {
    AppendHeader { epoch, stream: 1, durable: Version(9), ..AppendHeader::default() }
}

async fn append(zones: &Zones, zone: u32, first: u64, count: u64) -> Result<SlotNo> {
    let (spares, bodies) = pages(first, count);
    zones.append(ZoneNo(zone), &header(7), &spares, &bodies, true).await
}

async fn read(zones: &Zones, slots: &[u32]) -> Result<Vec<Stamp>> {
    let slots: Vec<SlotNo> = slots.iter().map(|slot| SlotNo(*slot)).collect();
    let mut out = vec![Stamp::zero(); slots.len()];
    zones.read(&slots, &mut out).await.map(|()| out)
}

#[test]
fn the_shape_follows_from_the_array() {
    let (_, zones) = zones();
    let expected = ZoneGeometry {
        zones: 4,
        slots_per_zone: 32,
        append_unit_slots: 2,
        append_overhead_slots: 0,
        append_pages_max: 16,
    };
    assert_eq!(zones.geometry(), expected);
}

#[test]
fn appends_spread_over_the_planes_and_take_their_time() {
    let (runtime, zones) = zones();
    let clock = runtime.clone();
    runtime
        .run(async move {
            // Four flash pages: two on each channel, the second transferred after the first.
            assert_eq!(append(&zones, 0, 0, 8).await.unwrap(), SlotNo(0));
            assert_eq!(clock.now_ns(), 1_200);
            // One and a half pages, on planes 0 and 1; the rest is padding.
            assert_eq!(append(&zones, 0, 8, 3).await.unwrap(), SlotNo(8));
            assert_eq!(clock.now_ns(), 2_300);
            assert_eq!(append(&zones, 1, 11, 1).await.unwrap(), SlotNo(32));
            assert_eq!(clock.now_ns(), 3_400);
            // Two slots of one flash page: 30 to sense, 100 to transfer. One slot of another page at the same
            // time, on another channel, takes as long.
            let out = read(&zones, &[0, 1, 10]).await.unwrap();
            let expected = [0, 1, 10].map(|page| Stamp::new(PageNo(page), page + 100));
            assert_eq!(out, expected);
            assert_eq!(clock.now_ns(), 3_530);
            read(&zones, &[10]).await.unwrap();
            assert_eq!(clock.now_ns(), 3_660, "half of a flash page is read as long as all of it");
            zones.reset(ZoneNo(0)).await.unwrap();
            assert_eq!(clock.now_ns(), 8_660);
            assert_eq!(read(&zones, &[0]).await.unwrap_err().kind(), ErrorKind::Corrupt);
            let start_ns = clock.now_ns();
            zones.reset(ZoneNo(0)).await.unwrap();
            zones.sync().await.unwrap();
            assert_eq!(clock.now_ns(), start_ns, "erased already, and durable");
            assert_eq!(zones.nand().counters().erases, 4);
        })
        .unwrap();
}

#[test]
fn appends_to_one_zone_fly_together() {
    let (runtime, zones) = zones();
    let clock = runtime.clone();
    runtime
        .run(async move {
            let handles: Vec<_> = (0..2)
                .map(|number| {
                    let zones = Rc::clone(&zones);
                    clock.spawn("append", async move { append(&zones, 0, number, 1).await })
                })
                .collect();
            for (number, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.await.unwrap(), SlotNo(number as u32 * 2));
            }
            assert_eq!(clock.now_ns(), 1_100, "planes 0 and 1 lie on two channels");
        })
        .unwrap();
}

#[test]
fn a_scan_finds_what_was_appended() {
    let (runtime, zones) = zones();
    runtime
        .run(async move {
            append(&zones, 2, 0, 3).await.unwrap();
            append(&zones, 2, 3, 2).await.unwrap();
            let found = zones.scan(ZoneNo(2), 0, None).await.unwrap();
            let spares = |first, count| pages(first, count).0.into_iter().map(Some).collect();
            let first = ScannedAppend {
                header: header(7),
                first_offset: 0,
                end_offset: 4,
                spares: spares(0, 3),
                damaged: Vec::new(),
            };
            let second = ScannedAppend {
                header: header(7),
                first_offset: 4,
                end_offset: 6,
                spares: spares(3, 2),
                damaged: Vec::new(),
            };
            assert_eq!(found, [first, second.clone()]);
            assert_eq!(zones.scan(ZoneNo(2), 4, None).await.unwrap(), [second]);
            assert_eq!(zones.scan(ZoneNo(2), 0, Some(8)).await.unwrap(), []);
            assert_eq!(zones.peek(ZoneNo(2)).await.unwrap(), Some(header(7)));
            assert_eq!(zones.peek(ZoneNo(1)).await.unwrap(), None);
            // Content that does not match its spare.
            let (mut spares, bodies) = pages(5, 2);
            spares[1].checksum ^= 1;
            let meta = Body::Meta(PageBuf::zero());
            zones.append(ZoneNo(2), &header(7), &spares, &bodies, true).await.unwrap();
            let found = zones.scan(ZoneNo(2), 6, None).await.unwrap();
            assert_eq!(found[0].spares, [Some(spares[0]), None]);
            let spare = Spare {
                kind: SlotKind::Record,
                page: PageNo(0),
                version: Version(1),
                checksum: meta.checksum(),
            };
            let slot = zones.append(ZoneNo(2), &header(7), &[spare], &[meta], true).await.unwrap();
            assert_eq!(zones.read_meta(slot).await.unwrap(), PageBuf::zero());
            assert_eq!(read(&zones, &[slot.0]).await.unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(zones.read_meta(SlotNo(64)).await.unwrap_err().kind(), ErrorKind::Corrupt);
        })
        .unwrap();
}

#[test]
fn a_read_brings_the_spares() {
    let (runtime, zones) = zones();
    runtime
        .run(async move {
            append(&zones, 1, 0, 4).await.unwrap();
            let slots = [SlotNo(33), SlotNo(32), SlotNo(35)];
            let (mut out, mut spares) = ([Stamp::zero(); 3], [None; 3]);
            zones.read_with_spares(&slots, &mut out, &mut spares).await.unwrap();
            let (written, bodies) = pages(0, 4);
            for ((slot, out), spare) in slots.iter().zip(out).zip(spares) {
                let at = slot.index() - 32;
                assert_eq!((Body::Data(out), spare), (bodies[at].clone(), Some(written[at])));
            }
        })
        .unwrap();
}

#[test]
fn a_failed_block_is_replaced_at_the_reset() {
    let (runtime, zones) = zones();
    runtime
        .run(async move {
            zones.nand().fail_program(5);
            append(&zones, 0, 0, 8).await.unwrap();
            let error = append(&zones, 0, 8, 8).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ProgramFailed);
            // Earlier content stays readable, and so do the undamaged pages of the failed append.
            assert_eq!(read(&zones, &[2]).await.unwrap(), [Stamp::new(PageNo(1 + 1), 102)]);
            assert_eq!(read(&zones, &[10]).await.unwrap_err().kind(), ErrorKind::Uncorrectable);
            let found = zones.scan(ZoneNo(0), 8, None).await.unwrap();
            let whole: Vec<bool> = found[0].spares.iter().map(Option::is_some).collect();
            assert_eq!(whole, [true, true, false, false, true, true, true, true]);
            zones.reset(ZoneNo(0)).await.unwrap();
            assert_eq!(zones.spare_blocks_min(), 1);
            append(&zones, 0, 0, 16).await.unwrap();
            append(&zones, 0, 16, 16).await.unwrap();
            assert_eq!(read(&zones, &[18]).await.unwrap(), [Stamp::new(PageNo(18), 118)]);
        })
        .unwrap();
}

#[test]
fn a_zone_retires_when_a_plane_has_no_spare_block_left() {
    let (runtime, zones) = zones();
    runtime
        .run(async move {
            append(&zones, 1, 0, 2).await.unwrap();
            // Only plane 0 needs an erase. It and two replacements fail (the replacements have
            // never been used, so they need none).
            for round in 0..2 {
                zones.nand().fail_erase(0);
                zones.reset(ZoneNo(1)).await.unwrap();
                append(&zones, 1, round, 2).await.unwrap();
            }
            zones.nand().fail_erase(0);
            let error = zones.reset(ZoneNo(1)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ZoneRetired);
            assert_eq!(zones.retired(), [ZoneNo(1)]);
            assert_eq!(zones.reset(ZoneNo(1)).await.unwrap_err().kind(), ErrorKind::ZoneRetired);
            assert_eq!(zones.peek(ZoneNo(1)).await.unwrap(), None);
            // Its blocks in the other planes replace bad ones there.
            let table = zones.table.borrow();
            let left: Vec<u32> = (0..4).map(|plane| table.spare_blocks(plane)).collect();
            assert_eq!(left, [0, 3, 3, 3]);
        })
        .unwrap();
}

#[test]
fn bad_blocks_from_the_factory_are_passed_over() {
    let mut options = options();
    options.geometry.blocks_per_plane = 40;
    options.faults.factory_bad = 0.1;
    let (_, zones) = zones_with(&options);
    let table = zones.table.borrow();
    let retired = zones.retired();
    assert!(!retired.is_empty() && retired.len() < 12, "retired: {retired:?}");
    for zone in (0..38).map(ZoneNo).filter(|zone| !retired.contains(zone)) {
        for plane in 0..4 {
            let BlockAddr { block, .. } = table.block(zone, plane);
            assert!(!zones.nand().is_bad(BlockAddr { plane, block }));
        }
    }
}

/// Cuts at mutation `after_operations` of a small workload. Returns the zones after it.
fn cut(after_operations: u64, fate: Fate) -> (Virtual, Rc<Zones>) {
    let (runtime, zones) = zones();
    let mutations = zones.nand().mutations();
    zones.nand().plan_cut(Some(CutPlan { after_operations, fate }));
    let worker = Rc::clone(&zones);
    runtime
        .run(async move {
            let result = async {
                append(&worker, 0, 0, 4).await?;
                append(&worker, 0, 4, 4).await?;
                worker.reset(ZoneNo(0)).await
            }
            .await;
            assert_eq!(result.unwrap_err().kind(), ErrorKind::PowerCut);
            assert_eq!(worker.sync().await.unwrap_err().kind(), ErrorKind::PowerCut);
            let error = append(&worker, 1, 0, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PowerCut);
        })
        .unwrap();
    assert_eq!(zones.nand().mutations() - mutations, after_operations + 1);
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = Rc::new(zones.reopen(runtime.clone()));
    (runtime, zones)
}

fn scan(runtime: &Virtual, zones: &Rc<Zones>) -> Vec<(u32, Vec<bool>)> {
    let zones = Rc::clone(zones);
    runtime
        .run(async move {
            let found = zones.scan(ZoneNo(0), 0, None).await.unwrap();
            found
                .into_iter()
                .map(|append| {
                    (append.first_offset, append.spares.iter().map(Option::is_some).collect())
                })
                .collect()
        })
        .unwrap()
}

#[test]
fn a_cut_append_lands_vanishes_or_tears() {
    let whole = |first| (first, vec![true; 4]);
    for (fate, expected) in [
        (Fate::Land, vec![whole(0), whole(4)]),
        (Fate::Vanish, vec![whole(0)]),
        (Fate::Tear, vec![whole(0)]),
    ] {
        let (runtime, zones) = cut(1, fate);
        assert_eq!(scan(&runtime, &zones), expected, "{fate:?}");
    }
    for (fate, expected) in
        [(Fate::Land, vec![whole(0)]), (Fate::Vanish, vec![]), (Fate::Tear, vec![])]
    {
        let (runtime, zones) = cut(0, fate);
        assert_eq!(scan(&runtime, &zones), expected, "{fate:?}");
    }
}

#[test]
fn a_cut_reset_brings_everything_back_or_nothing() {
    let both = vec![(0, vec![true; 4]), (4, vec![true; 4])];
    for (fate, expected) in [(Fate::Land, vec![]), (Fate::Vanish, both), (Fate::Tear, vec![])] {
        let (runtime, zones) = cut(2, fate);
        assert_eq!(scan(&runtime, &zones), expected, "{fate:?}");
        runtime
            .run(async move {
                zones.reset(ZoneNo(0)).await.unwrap();
                append(&zones, 0, 0, 16).await.unwrap();
                assert_eq!(zones.scan(ZoneNo(0), 0, None).await.unwrap().len(), 1);
            })
            .unwrap();
    }
}

#[test]
fn a_reset_can_be_undone_in_part() {
    let (runtime, zones) = zones();
    let worker = Rc::clone(&zones);
    let sleeper = runtime.clone();
    runtime
        .run(async move {
            append(&worker, 0, 0, 8).await.unwrap();
            let _unfinished = {
                let worker = Rc::clone(&worker);
                sleeper.spawn("reset", async move { worker.reset(ZoneNo(0)).await })
            };
            sleeper.sleep(2_000).await;
        })
        .unwrap();
    zones.nand().power_cut(runtime.now_ns(), |info| match info.at.block.plane {
        0 => Fate::Land,
        1 => Fate::Tear,
        _ => Fate::Vanish,
    });
    runtime.drop_tasks();
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = Rc::new(zones.reopen(runtime.clone()));
    let spares = vec![false, false, false, false, true, true, true, true];
    assert_eq!(scan(&runtime, &zones), [(0, spares)]);
}

#[test]
#[should_panic(expected = "needs a reset: true")]
fn what_holds_anything_is_sealed_after_reopening() {
    let (runtime, zones) = cut(1, Fate::Land);
    let _ = runtime.run(async move { append(&zones, 0, 0, 1).await });
}

#[test]
fn an_operation_in_flight_at_an_outer_cut_answers_power_cut() {
    let (runtime, zones) = zones();
    let worker = Rc::clone(&zones);
    let handle = runtime.spawn("append", async move { append(&worker, 0, 0, 1).await });
    let (sleeper, nand) = (runtime.clone(), zones.nand().clone());
    let result = runtime.run(async move {
        sleeper.sleep(500).await;
        nand.power_cut(sleeper.now_ns(), |_| Fate::Land);
        handle.await
    });
    assert_eq!(result.unwrap().unwrap_err().kind(), ErrorKind::PowerCut);
}
