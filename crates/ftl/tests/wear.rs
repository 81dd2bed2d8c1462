//! Static wear levelling: with hot and cold parts the spread of resets stays within the bound, at
//! little cost; without it the spread is large.
use crate::support::format;
use std::rc::Rc;
use tantalum_base::{PageNo, Payload, Rng, Stamp};
use tantalum_ftl::{FtlOptions, FtlStatistics};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 1600;
/// A tenth of the device: the only pages written after it was filled.
const HOT_PAGES: u64 = 160;

fn media(runtime: &Virtual, seed: u64) -> NandZones<Virtual, Stamp> {
    let geometry = NandGeometry {
        channels: 1,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: 64,
        pages_per_block: 32,
        page_bytes: 4096,
        spare_bytes: 64,
    };
    let timing = NandTiming {
        read_ns: 50_000,
        program_ns: 500_000,
        program_upper_ns: 500_000,
        erase_ns: 2_000_000,
        channel_bytes_per_second: 200_000_000,
    };
    let faults = NandFaults::default();
    let nand = Nand::new(&NandOptions { geometry, timing, faults, seed }).unwrap();
    NandZones::new(runtime.clone(), nand, NandZonesOptions::default()).unwrap()
}

/// Fills the device, then writes its hot part `rounds` times, one page at a time.
fn hot_and_cold(wear_spread_max: u32, rounds: u64, seed: u64) -> FtlStatistics {
    let runtime = Virtual::new(Schedule::Shuffled(seed));
    let media = media(&runtime, seed);
    let options = FtlOptions { wear_spread_max, ..FtlOptions::new(PAGES) };
    let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
    let cleaner = Rc::clone(&ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(&ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let device = Rc::clone(&ftl);
    let load = async move {
        let mut rng = Rng::split(seed, "hot");
        let mut counts = vec![1; PAGES as usize];
        for page in (0..PAGES).map(PageNo) {
            device.write(&[(page, Stamp::new(page, 1))], false).await.unwrap();
        }
        for count in 2..2 + rounds * HOT_PAGES {
            let page = PageNo(rng.below(HOT_PAGES));
            device.write(&[(page, Stamp::new(page, count))], false).await.unwrap();
            counts[page.index()] = count;
        }
        for (page, count) in (0..).map(PageNo).zip(counts) {
            let mut out = [Stamp::zero()];
            device.read(&[page], &mut out).await.unwrap();
            assert_eq!(out[0], Stamp::new(page, count));
        }
    };
    runtime.run(load).unwrap_or_else(|deadlock| panic!("{deadlock}"));
    ftl.validate();
    ftl.statistics()
}

fn spread(statistics: &FtlStatistics) -> u32 {
    let (least, most) = statistics.zone_resets_min_max;
    most - least
}

#[test]
fn cold_zones_give_way_and_the_spread_stays_under_the_bound() {
    let bound = 16;
    let with = hot_and_cold(bound, 300, 1);
    let without = hot_and_cold(u32::MAX, 300, 1);
    // While a zone is being moved, the hot zones are reset further, so it lags by a few more.
    assert!(spread(&with) <= bound + 4, "{with:?}");
    assert!(spread(&without) > 4 * bound, "{without:?}");
    assert!(with.zones_levelled > 0 && without.zones_levelled == 0);
    let cost = with.write_amplification() / without.write_amplification() - 1.0;
    println!(
        "resets {:?} with, {:?} without; write amplification {:.3} and {:.3}: {:+.1} %",
        with.zone_resets_min_max,
        without.zone_resets_min_max,
        with.write_amplification(),
        without.write_amplification(),
        100.0 * cost
    );
    assert!(cost < 0.12, "{cost}");
}

#[test]
fn a_wide_bound_costs_little() {
    let with = hot_and_cold(64, 900, 2);
    let without = hot_and_cold(u32::MAX, 900, 2);
    assert!(spread(&with) <= 64 + 4, "{with:?}");
    let cost = with.write_amplification() / without.write_amplification() - 1.0;
    println!(
        "resets {:?} with, {:?} without; write amplification {:.3} and {:.3}: {:+.1} %",
        with.zone_resets_min_max,
        without.zone_resets_min_max,
        with.write_amplification(),
        without.write_amplification(),
        100.0 * cost
    );
    assert!(cost < 0.04, "{cost}");
}
