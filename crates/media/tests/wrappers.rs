//! Each wrapper has its effect on zones, and changes nothing else.
#[path = "support/forwarding.rs"]
mod forwarding;

use forwarding::{Asked, forwards};
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageBuf, PageNo, Payload, Rng, SlotNo, Stamp, Version, ZoneNo};
use tantalum_media::wrappers::{
    AppendFault, Checker, Faults, FaultsOptions, Flaky, ReadOnly, Recorder, Throttle,
    ThrottleOptions, UntilCut, ZoneWindow,
};
use tantalum_media::zone::{AppendHeader, Body, SlotKind, Spare, ZoneMedia};
use tantalum_media::{Episodes, ErasedZones};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

fn zones(seed: u64, program_fail: f64) -> (Virtual, Rc<NandZones<Virtual, Stamp>>) {
    let runtime = Virtual::new(Schedule::Fifo);
    let nand = Nand::new(&NandOptions {
        geometry: NandGeometry {
            channels: 2,
            packages_per_channel: 1,
            planes_per_package: 1,
            blocks_per_plane: 6,
            pages_per_block: 8,
            page_bytes: 8192,
            spare_bytes: 0,
        },
        timing: NandTiming {
            read_ns: 50_000,
            program_ns: 500_000,
            program_upper_ns: 500_000,
            erase_ns: 2_000_000,
            channel_bytes_per_second: 400_000_000,
        },
        faults: NandFaults { program_fail, ..NandFaults::default() },
        seed,
    });
    let options = NandZonesOptions { spare_blocks_per_plane: 2, append_pages_max: 8 };
    let zones = NandZones::new(runtime.clone(), nand.unwrap(), options);
    (runtime, Rc::new(zones.unwrap()))
}

fn flawless() -> (Virtual, Rc<NandZones<Virtual, Stamp>>) {
    zones(1, 0.0)
}

fn pages(first: u64, count: u64) -> (Vec<Spare>, Vec<Body<Stamp>>) {
    (first..first + count)
        .map(|number| {
            let body = Body::Data(Stamp::new(PageNo(number), 1));
            let checksum = body.checksum();
            let version = Version(number + 1);
            (Spare { kind: SlotKind::Data, page: PageNo(number), version, checksum }, body)
        })
        .unzip()
}

async fn append<M: ZoneMedia<Page = Stamp>>(
    media: &M,
    zone: u32,
    epoch: u64,
    count: u64,
) -> tantalum_base::Result<SlotNo> {
    let (spares, bodies) = pages(0, count);
    let header = AppendHeader { epoch, ..AppendHeader::default() };
    media.append(ZoneNo(zone), &header, &spares, &bodies, true).await
}

async fn read_one<M: ZoneMedia<Page = Stamp>>(
    media: &M,
    slot: SlotNo,
) -> tantalum_base::Result<Stamp> {
    let mut out = [Stamp::zero()];
    media.read(&[slot], &mut out).await.map(|()| out[0])
}

#[test]
fn chosen_operations_fail() {
    let (runtime, zones) = flawless();
    runtime
        .run(async move {
            let faults = Faults::new(Rc::clone(&zones), FaultsOptions::default());
            faults.reset(ZoneNo(0)).await.unwrap();
            faults.fail_append(1, AppendFault::Io);
            faults.fail_append(2, AppendFault::ProgramFailed);
            faults.fail_append(3, AppendFault::Corrupt(1));
            faults.fail_read(1);
            faults.fail_reset(1);
            assert_eq!(append(&faults, 0, 1, 2).await.unwrap(), SlotNo(0));
            assert_eq!(append(&faults, 0, 1, 2).await.unwrap_err().kind(), ErrorKind::Io);
            let error = append(&faults, 0, 1, 2).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ProgramFailed);
            let corrupt = append(&faults, 0, 1, 2).await.unwrap();
            assert_eq!(corrupt, SlotNo(4), "the failed append used its place up");
            let found = faults.scan(ZoneNo(0), 0, None).await.unwrap();
            let whole: Vec<Vec<bool>> = found
                .iter()
                .map(|append| append.spares.iter().map(Option::is_some).collect())
                .collect();
            assert_eq!(whole, [vec![true, true], vec![false, false], vec![true, false]]);

            assert_eq!(read_one(&faults, SlotNo(0)).await.unwrap(), Stamp::new(PageNo(0), 1));
            let torn = read_one(&faults, SlotNo(0)).await.unwrap_err();
            assert_eq!(torn.kind(), ErrorKind::Uncorrectable);
            assert!(read_one(&faults, SlotNo(0)).await.is_err(), "it stays so");
            assert_ne!(read_one(&faults, SlotNo(5)).await.unwrap(), Stamp::new(PageNo(1), 1));

            faults.reset(ZoneNo(0)).await.unwrap();
            append(&faults, 0, 2, 1).await.unwrap();
            read_one(&faults, SlotNo(0)).await.unwrap();
            let error = faults.reset(ZoneNo(2)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ZoneRetired);
            assert_eq!(faults.retired(), [ZoneNo(2)]);
        })
        .unwrap();
}

#[test]
fn a_throttle_adds_latency_and_shares_bandwidth() {
    let (runtime, zones) = flawless();
    let clock = runtime.clone();
    runtime
        .run(async move {
            let options = ThrottleOptions {
                append_latency_ns: 10_000_000,
                sync_latency_ns: 7,
                bytes_per_second: 4096 * 1_000,
                ..ThrottleOptions::default()
            };
            let throttle = Rc::new(Throttle::new(clock.clone(), zones, options));
            throttle.reset(ZoneNo(0)).await.unwrap();
            throttle.sync().await.unwrap();
            assert_eq!(clock.now_ns(), 7);
            let handles: Vec<_> = (0..2)
                .map(|_| {
                    let throttle = Rc::clone(&throttle);
                    clock.spawn("append", async move { append(&*throttle, 0, 1, 2).await })
                })
                .collect();
            for (number, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.await.unwrap(), SlotNo(number as u32 * 2));
                // A page takes a millisecond.
                assert_eq!(clock.now_ns(), 7 + 2_000_000 * (number as u64 + 1) + 10_000_000);
            }
        })
        .unwrap();
}

/// Runs random work on a failing medium; returns the recorded operations.
fn recorded(seed: u64) -> (u64, u64, Vec<String>) {
    let (runtime, zones) = zones(seed, 0.02);
    let recorder = Rc::new(Recorder::new(zones, 8));
    let checker = Checker::new(Rc::clone(&recorder));
    runtime
        .run(async move {
            let mut rng = Rng::split(seed, "workload");
            let mut epoch = 0;
            for _ in 0..40 {
                let zone = rng.below(4) as u32;
                if checker.reset(ZoneNo(zone)).await.is_err() {
                    continue;
                }
                epoch += 1;
                let mut full = false;
                while !full {
                    let count = 1 + rng.below(8);
                    let Ok(slot) = append(&checker, zone, epoch, count).await else { break };
                    read_one(&checker, SlotNo(slot.0 + count as u32 - 1)).await.unwrap();
                    full = checker.geometry().offset_of(slot) >= 16;
                }
                checker.scan(ZoneNo(zone), 0, None).await.unwrap();
            }
        })
        .unwrap();
    (recorder.count(), recorder.hash(), recorder.take())
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    let first = recorded(5);
    assert_eq!(first, recorded(5));
    assert!(first.0 > 100 && first.2.len() == 8);
    assert_ne!(first.1, recorded(6).1);
}

fn check(work: impl AsyncFnOnce(&Checker<NandZones<Virtual, Stamp>>) + 'static) {
    let (runtime, zones) = flawless();
    runtime.run(async move { work(&Checker::new(zones)).await }).unwrap();
}

#[test]
#[should_panic(expected = "was not reset")]
fn the_checker_wants_a_reset_first() {
    check(async |checker| drop(append(checker, 0, 1, 1).await));
}

#[test]
#[should_panic(expected = "append up to offset 40 of zone#0")]
fn the_checker_knows_the_end_of_a_zone() {
    check(async |checker| {
        checker.reset(ZoneNo(0)).await.unwrap();
        for _ in 0..5 {
            append(checker, 0, 1, 7).await.unwrap();
        }
    });
}

#[test]
#[should_panic(expected = "where nothing is")]
fn the_checker_refuses_reads_of_padding() {
    check(async |checker| {
        checker.reset(ZoneNo(0)).await.unwrap();
        append(checker, 0, 1, 1).await.unwrap();
        drop(read_one(checker, SlotNo(1)).await);
    });
}

#[test]
#[should_panic(expected = "epoch 1 of an append")]
fn the_checker_wants_epochs_to_grow() {
    check(async |checker| {
        for _ in 0..2 {
            checker.reset(ZoneNo(0)).await.unwrap();
            append(checker, 0, 1, 1).await.unwrap();
        }
    });
}

#[test]
#[should_panic(expected = "checksum of")]
fn the_checker_compares_checksums() {
    check(async |checker| {
        checker.reset(ZoneNo(0)).await.unwrap();
        let (spares, _) = pages(0, 1);
        let body = [Body::Meta(PageBuf::zero())];
        drop(checker.append(ZoneNo(0), &AppendHeader::default(), &spares, &body, true).await);
    });
}

/// A layer that overrides nothing.
struct Bare(Rc<Asked>);

impl tantalum_media::ZoneLayer for Bare {
    type Inner = Asked;

    fn inner(&self) -> &Asked {
        &self.0
    }
}

#[test]
fn every_method_of_a_wrapper_asks_the_same_of_its_medium() {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    runtime
        .run(async move {
            let asked = Rc::new(Asked::default());
            let inner = || Rc::clone(&asked);
            forwards(Bare(inner()), &asked, &[]).await;
            forwards(ErasedZones::shared(inner()), &asked, &[]).await;
            forwards(Faults::new(inner(), FaultsOptions::default()), &asked, &[]).await;
            forwards(Flaky::new(inner(), Episodes::new(clock.clone())), &asked, &[]).await;
            forwards(Recorder::new(inner(), 1), &asked, &[]).await;
            forwards(Throttle::new(clock, inner(), ThrottleOptions::default()), &asked, &[]).await;
            forwards(Checker::new(inner()), &asked, &[]).await;
            forwards(UntilCut::new(Bare(inner()), || false), &asked, &[]).await;
            let changes =
                ["reset", "give_room_back", "append", "sync", "persist_mapping", "write_anchor"];
            forwards(ReadOnly::new(inner()), &asked, &changes).await;
            let of_the_whole = ["anchors", "write_anchor", "read_anchors", "inspect_anchors"];
            forwards(ZoneWindow::new(inner(), 0..4).unwrap(), &asked, &of_the_whole).await;
        })
        .unwrap();
}
