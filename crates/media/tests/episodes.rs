//! Transient I/O errors of zones and stores: which operations fail and how long, and that failures change nothing.
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, Payload, Result, SlotNo, ZoneNo};
use tantalum_media::block_store::{self, CrashOptions, CrashStore, MemoryStore};
use tantalum_media::conformance::{batch, header, page};
use tantalum_media::wrappers::Flaky;
use tantalum_media::{
    BlockStore, CutPlan, Episode, Episodes, Fate, FileZones, FileZonesOptions, IoClass, Reach,
    ZoneMedia,
};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

type Zones = Flaky<FileZones<MemoryStore>, Virtual>;

/// Three zones of 16 slots. The first holds pages 0 to 5 in its slots from 1 on.
async fn zones(runtime: &Virtual) -> (Zones, Episodes<Virtual>) {
    let options =
        FileZonesOptions { volume_id: 1, first_byte: 65536, zones: 3, slots_per_zone: 16 };
    let zones = FileZones::new(MemoryStore::new(1 << 20), options).unwrap().with_anchors(0, 2);
    let episodes = Episodes::new(runtime.clone());
    let zones = Flaky::new(Rc::new(zones), episodes.clone());
    for zone in 0..2 {
        zones.reset(ZoneNo(zone)).await.unwrap();
    }
    append(&zones, 0, 0, 6).await.unwrap();
    (zones, episodes)
}

async fn append(zones: &Zones, zone: u32, first: u64, pages: u32) -> Result<SlotNo> {
    let (spares, bodies) = batch(first, pages);
    zones.append(ZoneNo(zone), &header(1, first, pages), &spares, &bodies, true).await
}

async fn read(zones: &impl ZoneMedia<Page = PageBuf>, slots: &[u32]) -> Result<Vec<PageBuf>> {
    let slots: Vec<SlotNo> = slots.iter().copied().map(SlotNo).collect();
    let mut out = vec![PageBuf::zero(); slots.len()];
    zones.read(&slots, &mut out).await.map(|()| out)
}

fn is_io<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Io)
}

fn run(test: impl AsyncFnOnce(Virtual) + 'static) {
    let runtime = Virtual::new(Schedule::Fifo);
    let clock = runtime.clone();
    runtime.run(async move { test(clock).await }).unwrap();
}

#[test]
fn each_class_of_zones_fails_alone_and_changes_nothing() {
    run(async |runtime| {
        for class in IoClass::ALL {
            let (zones, episodes) = zones(&runtime).await;
            let id = episodes.begin(Episode::of(&[class]));
            let mut meta = [PageBuf::zero()];
            let failed = [
                (IoClass::Read, is_io(read(&zones, &[1]).await)),
                (IoClass::Read, is_io(zones.read_meta_run(SlotNo(1), &mut meta).await)),
                (IoClass::Write, is_io(append(&zones, 1, 100, 2).await)),
                (IoClass::Write, is_io(zones.write_anchor(7, b"seven").await)),
                (IoClass::Sync, is_io(zones.sync().await)),
                (IoClass::Scan, is_io(zones.scan(ZoneNo(0), 0, None).await)),
                (IoClass::Scan, is_io(zones.scan_spares(ZoneNo(0)).await)),
                (IoClass::Scan, is_io(zones.peek(ZoneNo(0)).await)),
                (IoClass::Scan, is_io(zones.inspect(ZoneNo(0), 1).await)),
                (IoClass::Scan, is_io(zones.read_anchors().await)),
                (IoClass::Reset, is_io(zones.reset(ZoneNo(2)).await)),
            ];
            for (index, (of, failed)) in failed.into_iter().enumerate() {
                assert_eq!(failed, of == class, "operation {index}, while {class:?} fails");
            }
            episodes.end(id);

            assert_eq!(read(&zones, &[1]).await.unwrap(), [page(0)]);
            assert_eq!(zones.scan(ZoneNo(0), 0, None).await.unwrap().len(), 1);
            // A failed append took no slot and left no anchor. The next append in its zone would get that slot.
            let mut taken = 3;
            if class == IoClass::Write {
                assert!(is_io(append(&zones, 1, 200, 1).await));
                zones.reset(ZoneNo(1)).await.unwrap();
                taken = 0;
            }
            assert_eq!(append(&zones, 1, 200, 1).await.unwrap(), SlotNo(16 + taken + 1));
            let anchors = zones.read_anchors().await.unwrap();
            assert_eq!(anchors.is_empty(), class == IoClass::Write);
        }
    });
}

#[test]
fn an_episode_has_a_time() {
    run(async |runtime| {
        let (zones, episodes) = zones(&runtime).await;
        let begins_ns = runtime.now_ns() + 5_000_000;
        let time_ns = begins_ns..begins_ns + 2_000_000;
        episodes.begin(Episode::of(&[IoClass::Read]).during(time_ns));
        assert_eq!(read(&zones, &[1]).await.unwrap(), [page(0)]);
        runtime.sleep_until(begins_ns).await;
        let mut failures = 0;
        while is_io(read(&zones, &[1]).await) {
            failures += 1;
        }
        assert_eq!(failures, 20, "each takes 100 us");
        assert_eq!(runtime.now_ns(), begins_ns + 2_000_000);
        assert_eq!(read(&zones, &[1]).await.unwrap(), [page(0)]);
        assert_eq!((episodes.failed(IoClass::Read), episodes.failed(IoClass::Write)), (20, 0));
    });
}

#[test]
fn an_episode_has_a_number_of_operations_and_several_run_beside_each_other() {
    run(async |runtime| {
        let (zones, episodes) = zones(&runtime).await;
        episodes.begin(Episode::of(&[IoClass::Read]).operations(1..3));
        let behind = Reach::Range(5..100);
        episodes.begin(Episode::of(&[IoClass::Read]).reaching(behind).operations(0..1));
        let mut failed = Vec::new();
        for slot in [1, 1, 1, 1, 6, 6] {
            failed.push(is_io(read(&zones, &[slot]).await));
        }
        assert_eq!(failed, [false, true, true, false, true, false]);
        episodes.begin(Episode::of(&[IoClass::Read]));
        episodes.begin(Episode::of(&[IoClass::Read]));
        assert!(is_io(read(&zones, &[1]).await));
        episodes.end_all();
        assert_eq!(read(&zones, &[1]).await.unwrap(), [page(0)]);
        assert_eq!(episodes.failed(IoClass::Read), 4);
    });
}

#[test]
fn an_episode_reaches_slots_zones_or_a_member() {
    run(async |runtime| {
        let (zones, episodes) = zones(&runtime).await;
        let id = episodes.begin(Episode::of(&IoClass::ALL).reaching(Reach::Range(2..4)));
        assert_eq!(read(&zones, &[1, 4]).await.unwrap(), [page(0), page(3)]);
        assert!(is_io(read(&zones, &[1, 3]).await));
        let mut meta = [PageBuf::zero(), PageBuf::zero()];
        assert!(is_io(zones.read_meta_run(SlotNo(1), &mut meta).await));
        assert!(is_io(zones.peek(ZoneNo(0)).await) && is_io(append(&zones, 0, 50, 1).await));
        append(&zones, 1, 60, 1).await.unwrap();
        zones.write_anchor(1, b"one").await.unwrap();
        assert!(is_io(zones.sync().await), "a sync is of all");
        episodes.end(id);

        let member = Reach::Member { unit: 2, members: 2, member: 1 };
        episodes.begin(Episode::of(&[IoClass::Read]).reaching(member));
        let mut failed = Vec::new();
        for slot in 1..7 {
            failed.push(is_io(read(&zones, &[slot]).await));
        }
        assert_eq!(failed, [false, true, true, false, false, true]);
    });
}

#[test]
fn a_store_fails_by_bytes_and_keeps_what_it_had() {
    run(async |runtime| {
        let memory = MemoryStore::with_image(&[7; 65536]);
        let crash = CrashStore::new(runtime.clone(), memory.clone(), CrashOptions::default());
        let episodes = Episodes::new(runtime);
        let store = block_store::Flaky::new(crash.clone(), episodes.clone());
        let write = async |byte, durable| {
            let mut buf = store.buffer(8192);
            buf.fill(9);
            store.write(byte, buf, durable).await.map(drop)
        };
        write(32768, false).await.unwrap();
        let member = Reach::Member { unit: 4096, members: 4, member: 1 };
        episodes.begin(Episode::of(&IoClass::ALL).reaching(member));
        assert!(is_io(write(0, true).await) && is_io(store.zero(0, 65536).await));
        assert!(is_io(store.prepare(0, 65536).await) && is_io(store.sync().await));
        assert!(is_io(store.read(4096, store.buffer(4096)).await.map(drop)));
        assert_eq!((memory.image(), crash.operations()), (vec![7; 65536], 1));
        write(8192, true).await.unwrap();
        assert_eq!(store.read(8192, store.buffer(8192)).await.unwrap()[..], [9; 8192]);
        episodes.end_all();
        // The failed sync lost nothing.
        assert_eq!(store.read(32768, store.buffer(4096)).await.unwrap()[..], [9; 4096]);
        store.sync().await.unwrap();
        assert_eq!(memory.image()[32768..40960], [9; 8192]);
        assert_eq!(store.read(4096, store.buffer(4096)).await.unwrap()[..], [7; 4096]);
    });
}

#[test]
fn an_anchor_is_read_from_either_copy_and_missed_where_neither_can_be() {
    run(async |runtime| {
        let episodes = Episodes::new(runtime);
        let store = block_store::Flaky::new(MemoryStore::new(1 << 20), episodes.clone());
        let options =
            FileZonesOptions { volume_id: 1, first_byte: 65536, zones: 3, slots_per_zone: 16 };
        let zones = FileZones::new(store, options).unwrap().with_anchors(0, 2);
        let anchors = [(6, b"six".to_vec()), (7, b"seven".to_vec())];
        for (number, content) in &anchors {
            zones.write_anchor(*number, content).await.unwrap();
        }
        // Two places, followed by their copies.
        let fails = |place: u64| {
            let byte = place * PAGE_BYTES as u64;
            Episode::of(&[IoClass::Read]).reaching(Reach::Range(byte..byte + PAGE_BYTES as u64))
        };
        for place in 0..4 {
            let one = episodes.begin(fails(place));
            assert_eq!(zones.read_anchors().await.unwrap(), anchors, "without place {place}");
            let other = episodes.begin(fails((place + 2) % 4));
            let error = zones.read_anchors().await.unwrap_err();
            assert!(error.to_string().contains("neither copy of an anchor"), "{error}");
            assert_eq!(error.kind(), ErrorKind::Io, "it may pass, and nothing is lost");
            episodes.end(one);
            episodes.end(other);
        }
        assert_eq!(zones.read_anchors().await.unwrap(), anchors);
    });
}

/// A planned cut counts only operations that reach the medium.
#[test]
fn an_operation_that_fails_is_none_at_which_power_is_cut() {
    run(async |runtime| {
        let crash =
            CrashStore::new(runtime.clone(), MemoryStore::new(65536), CrashOptions::default());
        let episodes = Episodes::new(runtime);
        let store = block_store::Flaky::new(crash.clone(), episodes.clone());
        crash.plan_cut(CutPlan { after_operations: 0, fate: Fate::Land });
        episodes.begin(Episode::of(&[IoClass::Write]).operations(0..3));
        for _ in 0..3 {
            assert!(is_io(store.write(0, store.buffer(4096), true).await.map(drop)));
        }
        assert!(!crash.is_cut());
        let cut = store.write(0, store.buffer(4096), true).await.map(drop).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::PowerCut);
    });
}
