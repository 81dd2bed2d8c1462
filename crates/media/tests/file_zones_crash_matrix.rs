//! Cuts power at every single write and sync of a workload on file zones, with every fate.
//!
//! Not part of the crash lab, which checks pages of devices: this checks zones, appends and epochs.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Rng, ZoneNo};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::conformance::{batch, header};
use tantalum_media::{CutPlan, Fate, FileZones, FileZonesOptions, ScannedAppend, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

type Store = CrashStore<MemoryStore, Virtual>;
type Zones = FileZones<Store>;

const OPTIONS: FileZonesOptions =
    FileZonesOptions { volume_id: 5, first_byte: 4096, zones: 2, slots_per_zone: 64 };
const EPOCHS: u64 = 3;

/// The promises to the workload: epoch, zone and first page of each append.
#[derive(Default)]
struct Promised {
    returned: Vec<(u64, u32, u64)>,
    durable: Vec<(u64, u32, u64)>,
    // The epoch of the last reset of each zone.
    opened: [u64; 2],
}

fn pages_of(first: u64) -> u32 {
    1 + (first / 10 % 5) as u32
}

/// Opens both zones several times, fills them in part and syncs occasionally, until the cut.
async fn workload(zones: Rc<Zones>, promised: Rc<RefCell<Promised>>) {
    let mut first = 0;
    for epoch in 1..=EPOCHS {
        for zone in 0..2 {
            promised.borrow_mut().opened[zone as usize] = epoch;
            zones.reset(ZoneNo(zone)).await.unwrap();
            for number in 0..5 {
                first += 10;
                let count = pages_of(first);
                let (spares, bodies) = batch(first, count);
                let header = header(epoch, first, count);
                let durable = number == 3;
                let append = zones.append(ZoneNo(zone), &header, &spares, &bodies, durable).await;
                if append.is_err() {
                    return;
                }
                let mut promised = promised.borrow_mut();
                promised.returned.push((epoch, zone, first));
                if durable {
                    promised.durable.push((epoch, zone, first));
                }
            }
            let covered = promised.borrow().returned.clone();
            if zone == 0 {
                if zones.sync().await.is_err() {
                    return;
                }
                promised.borrow_mut().durable.extend(covered);
            }
        }
    }
}

fn open(runtime: &Virtual, memory: &MemoryStore) -> (Store, Rc<Zones>) {
    let store = CrashStore::new(runtime.clone(), memory.clone(), CrashOptions::default());
    (store.clone(), Rc::new(FileZones::new(store, OPTIONS).unwrap()))
}

fn check(found: &[ScannedAppend], promised: &Promised, zone: u32, case: &str) {
    for append in found {
        let first = append.header.batch_first.0 - 1;
        let (spares, _) = batch(first, pages_of(first));
        assert_eq!(append.spares.len(), spares.len(), "{case}");
        for (found, written) in append.spares.iter().zip(spares) {
            assert!(found.is_none_or(|found| found == written), "{case}: a wrong page");
        }
    }
    // The reset discarded the content of an earlier opening.
    let opened = promised.opened[zone as usize];
    for &(epoch, of_zone, first) in &promised.durable {
        if (epoch, of_zone) == (opened, zone) {
            let expected = header(epoch, first, pages_of(first));
            let kept = found.iter().find(|append| append.header == expected);
            let whole = kept.is_some_and(|kept| kept.spares.iter().all(Option::is_some));
            assert!(whole, "{case}: append of page {first} to zone {zone} is lost");
        }
    }
}

#[test]
fn every_operation_can_be_the_last() {
    let bytes = 4096 + u64::from(OPTIONS.zones * OPTIONS.slots_per_zone) * 4096;
    let mut after_operations = 0;
    loop {
        let mut cut = false;
        for fate in [Fate::Land, Fate::Vanish, Fate::Tear] {
            for style in [CutStyle::DropAll, CutStyle::LandAll, CutStyle::Random, CutStyle::TearAll]
            {
                let case = format!("operation {after_operations}, {fate:?}, {style:?}");
                let runtime = Virtual::new(Schedule::Fifo);
                let memory = MemoryStore::new(bytes);
                let (store, zones) = open(&runtime, &memory);
                store.plan_cut(CutPlan { after_operations, fate });
                let promised = Rc::new(RefCell::new(Promised::default()));
                runtime.run(workload(zones, Rc::clone(&promised))).unwrap();
                cut = store.is_cut();
                let mut rng = Rng::new(after_operations);
                runtime.run(async move { store.cut(&mut rng, style).await }).unwrap().unwrap();
                let (_, zones) = open(&runtime, &memory);
                for zone in 0..2 {
                    let zones = Rc::clone(&zones);
                    let scan = async move { zones.scan(ZoneNo(zone), 0, None).await.unwrap() };
                    check(&runtime.run(scan).unwrap(), &promised.borrow(), zone, &case);
                }
            }
        }
        if !cut {
            break;
        }
        after_operations += 1;
    }
    assert_eq!(after_operations, EPOCHS * 11, "appends and syncs of the whole workload");
}
