//! Slots a second that zones over simulated NAND append, by size of the append, and single reads.
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;
use tantalum_base::{PageNo, Payload, Rng, SlotNo, Stamp, Version, ZoneNo};
use tantalum_media::{AppendHeader, Body, SlotKind, Spare, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Appends in flight together.
const TASKS: u32 = 4;

type Zones = NandZones<Virtual, Stamp>;

fn zones(runtime: &Virtual) -> Rc<Zones> {
    let nand = Nand::new(&NandOptions {
        geometry: NandGeometry {
            channels: 8,
            packages_per_channel: 4,
            planes_per_package: 2,
            blocks_per_plane: 16,
            pages_per_block: 128,
            page_bytes: 8192,
            spare_bytes: 512,
        },
        timing: NandTiming {
            read_ns: 50_000,
            program_ns: 900_000,
            program_upper_ns: 900_000,
            erase_ns: 2_000_000,
            channel_bytes_per_second: 400_000_000,
        },
        faults: NandFaults::default(),
        seed: 1,
    });
    let nand = nand.expect("the shape makes sense");
    let zones = NandZones::new(runtime.clone(), nand, NandZonesOptions::default());
    Rc::new(zones.expect("the options make sense"))
}

/// Fills zone after zone of its own with appends of `pages` pages, `slots` slots in all.
async fn fill(zones: Rc<Zones>, task: u32, pages: u32, slots: u32) {
    let geometry = zones.geometry();
    let (spares, bodies): (Vec<Spare>, Vec<Body<Stamp>>) = (0..u64::from(pages))
        .map(|page| {
            let content = Stamp::new(PageNo(page), 1);
            let checksum = content.checksum();
            let version = Version(page + 1);
            (
                Spare { kind: SlotKind::Data, page: PageNo(page), version, checksum },
                Body::Data(content),
            )
        })
        .unzip();
    let zone = ZoneNo(task);
    let mut header = AppendHeader { epoch: 1, ..AppendHeader::default() };
    let mut free_slots = 0;
    for _ in 0..slots / pages {
        if free_slots < pages {
            zones.reset(zone).await.expect("no erase fails");
            header.epoch += 1;
            free_slots = geometry.slots_per_zone;
        }
        free_slots -= geometry.append_slots(pages);
        let slot = zones.append(zone, &header, &spares, &bodies, true).await;
        black_box(slot.expect("no program fails"));
    }
}

fn appends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("nand_append");
    let slots = 1 << 18;
    group.throughput(Throughput::Elements(u64::from(slots)));
    group.sample_size(10);
    for pages in [2, 8, 32, 64] {
        group.bench_function(BenchmarkId::from_parameter(pages), |bencher| {
            let runtime = Virtual::new(Schedule::Fifo);
            let zones = zones(&runtime);
            bencher.iter(|| {
                let zones = Rc::clone(&zones);
                let spawner = runtime.clone();
                let filled = runtime.run(async move {
                    let tasks: Vec<_> = (0..TASKS)
                        .map(|task| {
                            let work = fill(Rc::clone(&zones), task, pages, slots / TASKS);
                            spawner.spawn("fill", work)
                        })
                        .collect();
                    for task in tasks {
                        task.await;
                    }
                });
                filled.expect("no deadlock");
            });
        });
    }
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("nand_read");
    let runtime = Virtual::new(Schedule::Fifo);
    let zones = zones(&runtime);
    let slots = zones.geometry().slots_per_zone;
    runtime.run(fill(Rc::clone(&zones), 0, 64, slots)).expect("no deadlock");
    let reads = 1 << 14;
    group.throughput(Throughput::Elements(reads));
    group.sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(1), |bencher| {
        bencher.iter(|| {
            let zones = Rc::clone(&zones);
            let done = runtime.run(async move {
                let mut rng = Rng::new(1);
                let mut out = [Stamp::zero()];
                for _ in 0..reads {
                    let slot = SlotNo(rng.below(u64::from(slots)) as u32);
                    zones.read(&[slot], &mut out).await.expect("no page decays");
                    black_box(&out);
                }
            });
            done.expect("no deadlock");
        });
    });
    group.finish();
}

criterion_group!(benches, appends, reads);
criterion_main!(benches);
