//! What each wrapper adds to zones, and that it changes nothing else.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageBuf, PageNo, Payload, Rng, SlotNo, Stamp, Version, ZoneNo};
use tantalum_media::wrappers::*;
use tantalum_media::zone::{
    AppendHeader, Body, ScannedAppend, SlotKind, Spare, ZoneGeometry, ZoneMedia,
};
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

/// Random work on a medium with failures; what was recorded.
fn recorded(seed: u64) -> (u64, u64, Vec<Recorded>) {
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

/// Counts what is asked of it, method by method, and has something of its own to say to each.
#[derive(Default)]
struct Asked(RefCell<Vec<&'static str>>);

impl Asked {
    fn note(&self, method: &'static str) {
        self.0.borrow_mut().push(method);
    }
}

const ASKED: [&str; 12] = [
    "append",
    "read",
    "read_with_spares",
    "read_meta",
    "scan",
    "scan_spares",
    "peek",
    "reset",
    "sync",
    "persist_mapping",
    "write_anchor",
    "read_anchors",
];

impl ZoneMedia for Asked {
    type Page = Stamp;

    const READS_SPARES: bool = true;

    fn geometry(&self) -> ZoneGeometry {
        ZoneGeometry {
            zones: 4,
            slots_per_zone: 8,
            append_unit_slots: 1,
            append_overhead_slots: 0,
            append_pages_max: 4,
        }
    }

    fn retired(&self) -> Vec<ZoneNo> {
        vec![ZoneNo(3)]
    }

    async fn append(
        &self,
        _zone: ZoneNo,
        _header: &AppendHeader,
        _spares: &[Spare],
        _bodies: &[Body<Stamp>],
        _durable: bool,
    ) -> tantalum_base::Result<SlotNo> {
        self.note("append");
        Ok(SlotNo(0))
    }

    async fn read(&self, _slots: &[SlotNo], _out: &mut [Stamp]) -> tantalum_base::Result<()> {
        self.note("read");
        Ok(())
    }

    async fn read_with_spares(
        &self,
        _slots: &[SlotNo],
        _out: &mut [Stamp],
        _spares: &mut [Option<Spare>],
    ) -> tantalum_base::Result<()> {
        self.note("read_with_spares");
        Ok(())
    }

    async fn read_meta(&self, _slot: SlotNo) -> tantalum_base::Result<PageBuf> {
        self.note("read_meta");
        Ok(PageBuf::zero())
    }

    async fn scan(
        &self,
        _zone: ZoneNo,
        _from_offset: u32,
        _epoch: Option<u64>,
    ) -> tantalum_base::Result<Vec<ScannedAppend>> {
        self.note("scan");
        Ok(Vec::new())
    }

    async fn scan_spares(&self, _zone: ZoneNo) -> tantalum_base::Result<Vec<ScannedAppend>> {
        self.note("scan_spares");
        Ok(Vec::new())
    }

    async fn peek(&self, _zone: ZoneNo) -> tantalum_base::Result<Option<AppendHeader>> {
        self.note("peek");
        Ok(None)
    }

    fn anchors(&self) -> u32 {
        9
    }

    async fn write_anchor(&self, _number: u64, _content: &[u8]) -> tantalum_base::Result<()> {
        self.note("write_anchor");
        Ok(())
    }

    async fn read_anchors(&self) -> tantalum_base::Result<Vec<(u64, Vec<u8>)>> {
        self.note("read_anchors");
        Ok(Vec::new())
    }

    async fn reset(&self, _zone: ZoneNo) -> tantalum_base::Result<()> {
        self.note("reset");
        Ok(())
    }

    async fn sync(&self) -> tantalum_base::Result<()> {
        self.note("sync");
        Ok(())
    }

    async fn persist_mapping(&self) -> tantalum_base::Result<()> {
        self.note("persist_mapping");
        Ok(())
    }
}

/// Calls each method of a wrapper once: the medium underneath is asked the same, and nothing else.
async fn forwards_all<M: ZoneMedia<Page = Stamp>>(wrapper: M, asked: &Asked) {
    forwards(wrapper, asked, true).await;
}

async fn forwards<M: ZoneMedia<Page = Stamp>>(wrapper: M, asked: &Asked, anchors: bool) {
    assert!(M::READS_SPARES);
    assert_eq!(wrapper.geometry(), asked.geometry());
    assert_eq!(wrapper.retired(), asked.retired());
    wrapper.reset(ZoneNo(0)).await.unwrap();
    assert_eq!(append(&wrapper, 0, 1, 1).await.unwrap(), SlotNo(0));
    let (mut out, mut spares) = ([Stamp::zero()], [None]);
    wrapper.read(&[SlotNo(0)], &mut out).await.unwrap();
    wrapper.read_with_spares(&[SlotNo(0)], &mut out, &mut spares).await.unwrap();
    wrapper.read_meta(SlotNo(0)).await.unwrap();
    wrapper.scan(ZoneNo(0), 0, None).await.unwrap();
    wrapper.scan_spares(ZoneNo(0)).await.unwrap();
    wrapper.peek(ZoneNo(0)).await.unwrap();
    wrapper.sync().await.unwrap();
    wrapper.persist_mapping().await.unwrap();
    assert_eq!(wrapper.anchors() > 0, anchors);
    if anchors {
        wrapper.write_anchor(1, &[]).await.unwrap();
        wrapper.read_anchors().await.unwrap();
    }
    let mut found = asked.0.take();
    let mut expected = ASKED.to_vec();
    expected.retain(|method| anchors || !method.contains("anchor"));
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn every_method_of_a_wrapper_asks_the_same_of_its_medium() {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    runtime
        .run(async move {
            let asked = Rc::new(Asked::default());
            let inner = || Rc::clone(&asked);
            forwards_all(Faults::new(inner(), FaultsOptions::default()), &asked).await;
            forwards_all(Recorder::new(inner(), 1), &asked).await;
            let throttle = Throttle::new(clock, inner(), ThrottleOptions::default());
            forwards_all(throttle, &asked).await;
            forwards_all(Checker::new(inner()), &asked).await;
            forwards(ZoneWindow::new(inner(), 0..4).unwrap(), &asked, false).await;
        })
        .unwrap();
}
