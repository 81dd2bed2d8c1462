//! Devices as small and as full as the options allow, overwritten for long: no deadlock, no false
//! "out of space", every page correct. Then failing programs, resets and reads.
use crate::support::{format, recover, zones_of};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageNo, PageRange, Payload, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions, pages_max};
use tantalum_media::wrappers::{AppendFault, Faults, FaultsOptions};
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandOptions, NandTiming};
use tantalum_models::nand_zones::{NandZones, NandZonesOptions};
use tantalum_policy::CleaningSpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

type Zones = NandZones<Virtual, Stamp>;

fn zones(
    runtime: &Virtual,
    seed: u64,
    blocks: u32,
    pages_per_block: u32,
    spare: u32,
    faults: NandFaults,
) -> Zones {
    let geometry = NandGeometry {
        channels: 2,
        packages_per_channel: 1,
        planes_per_package: 1,
        blocks_per_plane: blocks,
        pages_per_block,
        page_bytes: 8192,
        spare_bytes: 128,
    };
    let timing = NandTiming {
        read_ns: 50_000,
        program_ns: 500_000,
        program_upper_ns: 500_000,
        erase_ns: 2_000_000,
        channel_bytes_per_second: 200_000_000,
    };
    let nand = Nand::new(&NandOptions { geometry, timing, faults, seed }).unwrap();
    let options = NandZonesOptions { spare_blocks_per_plane: spare, append_pages_max: 16 };
    NandZones::new(runtime.clone(), nand, options).unwrap()
}

#[derive(Clone, Copy, Debug)]
struct Load {
    seed: u64,
    writes: u64,
    batch_max: u64,
    clients: u64,
    skew: f64,
    sequential: bool,
    durable: f64,
    trims: f64,
    shares: f64,
}

fn stamp(page: u64, count: u64) -> Stamp {
    if count == 0 { Stamp::zero() } else { Stamp::new(PageNo(page), count) }
}

/// Random pairs of pages whose right pages have content.
fn pairs(rng: &mut Rng, known: &[(u64, u64)], len: u64) -> Vec<(u64, u64)> {
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for _ in 0..len {
        let (to, from) = (rng.below(known.len() as u64), rng.below(known.len() as u64));
        let is_free =
            pairs.iter().all(|(left, right)| *left != to && *right != to && *left != from);
        if to != from && known[from as usize].1 > 0 && is_free {
            pairs.push((to, from));
        }
    }
    pairs
}

/// Each client overwrites its own pages and checks them at the end.
fn overwrite<M: ZoneMedia<Page = Stamp>>(runtime: &Virtual, ftl: &Rc<Ftl<M>>, load: Load) {
    let cleaner = Rc::clone(ftl);
    runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
    let checkpointer = Rc::clone(ftl);
    runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
    let pages = ftl.options().pages;
    let share = pages / load.clients;
    let clients: Vec<_> = (0..load.clients)
        .map(|client| {
            let ftl = Rc::clone(ftl);
            runtime.spawn("client", async move {
                let first = client * share;
                let mut rng = Rng::split(load.seed, &format!("client {client}"));
                // For each page, the page whose content it holds, and the number of that write.
                let mut known = vec![(0, 0); share as usize];
                for count in 1..=share + load.writes {
                    let len = 1 + rng.below(load.batch_max.min(share));
                    let start = if load.sequential {
                        count * load.batch_max % (share - len + 1)
                    } else if rng.chance(load.skew) {
                        rng.below((share - len + 1).min(8))
                    } else {
                        rng.below(share - len + 1)
                    };
                    // First the device is filled.
                    let (start, len) = if count <= share { (count - 1, 1) } else { (start, len) };
                    let durable = rng.chance(load.durable);
                    if rng.chance(load.trims) {
                        ftl.trim(PageRange::new(PageNo(first + start), len), durable)
                            .await
                            .unwrap();
                        known[start as usize..(start + len) as usize].fill((0, 0));
                        continue;
                    }
                    if load.shares > 0.0 && count > share && rng.chance(load.shares) {
                        let pairs = pairs(&mut rng, &known, len);
                        let pair =
                            |(to, from): &(u64, u64)| (PageNo(first + to), PageNo(first + from));
                        let numbered: Vec<_> = pairs.iter().map(pair).collect();
                        ftl.share(&numbered, durable, || ())
                            .await
                            .unwrap_or_else(|error| panic!("{load:?} share {count}: {error:?}"));
                        for (to, from) in pairs {
                            known[to as usize] = known[from as usize];
                        }
                        continue;
                    }
                    let writes: Vec<_> = (start..start + len)
                        .map(|page| (PageNo(first + page), stamp(first + page, count)))
                        .collect();
                    ftl.write(&writes, durable)
                        .await
                        .unwrap_or_else(|error| panic!("{load:?} write {count}: {error:?}"));
                    (start..start + len)
                        .for_each(|page| known[page as usize] = (first + page, count));
                }
                for page in 0..share {
                    let mut out = [Stamp::zero()];
                    ftl.read(&[PageNo(first + page)], &mut out).await.unwrap();
                    let (of, count) = known[page as usize];
                    assert_eq!(out[0], stamp(of, count), "{load:?} page {page}");
                }
            })
        })
        .collect();
    let all = async move {
        for client in clients {
            client.await;
        }
    };
    runtime.run(all).unwrap_or_else(|deadlock| panic!("{load:?}: {deadlock}"));
    ftl.validate();
}

fn fill_and_overwrite(
    load: Load,
    blocks: u32,
    pages_per_block: u32,
    spare: u32,
    faults: NandFaults,
    spare_pages: u64,
) -> bool {
    let runtime = Virtual::new(Schedule::Shuffled(load.seed));
    let media = zones(&runtime, load.seed, blocks, pages_per_block, spare, faults);
    let pages =
        pages_max(&media.geometry(), media.retired().len() as u32).saturating_sub(spare_pages);
    if pages < 4 * load.clients {
        return false;
    }
    let mut rng = Rng::split(load.seed, "options");
    let options = FtlOptions {
        cleaning_low_zones: 1 + rng.below(2) as u32,
        cleaning_high_zones: 2 + rng.below(3) as u32,
        checkpoint_interval_slots: [100, 1000, 1 << 40][rng.below(3) as usize],
        share_entries_max: [None, None, Some(9)][rng.below(3) as usize],
        wear_spread_max: [2, 128][rng.below(2) as usize],
        cleaning: CleaningSpec::parse(CleaningSpec::NAMES[rng.below(4) as usize]).unwrap(),
        copies_with_writes: load.seed % 2 == 1,
        ..FtlOptions::new(pages)
    };
    let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
    // A batch must not be larger than its space.
    let load = Load { batch_max: load.batch_max.min(u64::from(ftl.batch_pages_max())), ..load };
    overwrite(&runtime, &ftl, load);
    true
}

fn random_load(seed: u64, rng: &mut Rng) -> Load {
    Load {
        seed,
        writes: 400,
        batch_max: 1 + rng.below(20),
        clients: 1 + rng.below(4),
        skew: [0.0, 0.5, 0.95][rng.below(3) as usize],
        sequential: rng.chance(0.25),
        durable: [0.0, 0.5, 1.0][rng.below(3) as usize],
        trims: [0.0, 0.05][rng.below(2) as usize],
        shares: 0.0,
    }
}

/// The same load, with shares.
fn random_shares(seed: u64, rng: &mut Rng) -> Load {
    let load = random_load(seed, rng);
    Load { shares: [0.1, 0.5, 0.9][rng.below(3) as usize], ..load }
}

#[test]
fn full_devices_are_overwritten_for_long() {
    let mut ran = 0;
    for seed in 0..150 {
        let mut rng = Rng::split(seed, "tiny");
        let load = random_load(seed, &mut rng);
        // From the fewest zones that offer any page.
        let blocks = 8 + rng.below(if seed % 10 == 0 { 120 } else { 8 }) as u32;
        let pages_per_block = 2 + rng.below(10) as u32;
        ran += u32::from(fill_and_overwrite(
            load,
            blocks,
            pages_per_block,
            0,
            NandFaults::default(),
            0,
        ));
    }
    assert!(ran > 60, "{ran}");
}

#[test]
fn full_devices_share_for_long() {
    let mut ran = 0;
    for seed in 0..150 {
        let mut rng = Rng::split(seed, "tiny shares");
        let load = random_shares(seed, &mut rng);
        let blocks = 9 + rng.below(if seed % 10 == 0 { 120 } else { 8 }) as u32;
        let pages_per_block = 2 + rng.below(10) as u32;
        let (none, faults) = (0, NandFaults::default());
        ran += u32::from(fill_and_overwrite(load, blocks, pages_per_block, 0, faults, none));
    }
    assert!(ran > 60, "{ran}");
}

#[test]
fn eight_zones_are_enough() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 5000 } else { 150 };
    let mut ran = 0;
    for seed in 0..seeds {
        let mut rng = Rng::split(seed, "eight");
        let load = random_load(seed, &mut rng);
        let pages_per_block = 2 + rng.below(14) as u32;
        ran += u32::from(fill_and_overwrite(load, 8, pages_per_block, 0, NandFaults::default(), 0));
    }
    assert!(ran > 60, "{ran}");
}

#[test]
fn failing_programs_lose_no_shares() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 4000 } else { 50 };
    for seed in 0..seeds {
        let mut rng = Rng::split(seed, "failing shares");
        let load = random_shares(seed, &mut rng);
        let faults = NandFaults { program_fail: 0.0005, ..NandFaults::default() };
        fill_and_overwrite(load, 26, 8, 4, faults, 192);
    }
}

#[test]
fn failing_programs_lose_nothing() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 4000 } else { 100 };
    for seed in 0..seeds {
        let mut rng = Rng::split(seed, "failing");
        let load = random_load(seed, &mut rng);
        let faults = NandFaults { program_fail: 0.0005, ..NandFaults::default() };
        fill_and_overwrite(load, 26, 8, 4, faults, 192);
    }
}

#[test]
fn zones_are_retired_until_the_device_is_out_of_space_and_says_so() {
    for seed in 0..10 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let inner = Rc::new(zones(&runtime, seed, 20, 8, 0, NandFaults::default()));
        let media = Faults::new(
            inner,
            FaultsOptions { seed, zone_retired: 0.01, ..FaultsOptions::default() },
        );
        let pages = pages_max(&media.geometry(), 0) - 32;
        let options = FtlOptions { checkpoint_interval_slots: 200, ..FtlOptions::new(pages) };
        let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
        let cleaner = Rc::clone(&ftl);
        runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
        let checkpointer = Rc::clone(&ftl);
        runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
        let device = Rc::clone(&ftl);
        let main = async move {
            let mut rng = Rng::new(seed);
            let mut known = vec![0; pages as usize];
            let mut error = None;
            for count in 1..20_000 {
                let page = rng.below(pages);
                match device.write(&[(PageNo(page), stamp(page, count))], true).await {
                    Ok(()) => known[page as usize] = count,
                    Err(full) => {
                        error = Some(full);
                        break;
                    }
                }
            }
            for page in 0..pages {
                let mut out = [Stamp::zero()];
                device.read(&[PageNo(page)], &mut out).await.unwrap();
                assert_eq!(out[0], stamp(page, known[page as usize]), "seed {seed} page {page}");
            }
            error
        };
        let error = runtime.run(main).unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
        if let Some(error) = error {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace, "seed {seed}: {error:?}");
        }
        ftl.validate();
    }
}

#[test]
fn a_page_that_decays_is_an_error_and_never_old_data() {
    let gone = Rc::new(Cell::new(0));
    for seed in 0..20 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let inner = Rc::new(zones(&runtime, seed, 16, 8, 0, NandFaults::default()));
        let options = FtlOptions { checkpoint_interval_slots: 200, ..FtlOptions::new(100) };
        let media = Faults::new(Rc::clone(&inner), FaultsOptions::default());
        let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
        ftl.start_tasks(&runtime);
        let (device, rt) = (Rc::clone(&ftl), runtime.clone());
        let bad = runtime.run(async move {
            let mut rng = Rng::new(seed);
            for count in 1..=2 {
                for page in 0..100 {
                    device.write(&[(PageNo(page), stamp(page, count))], true).await.unwrap();
                }
            }
            let bad = rng.below(100);
            zones_of::<Faults<Zones>>(&device).fail_read(0);
            let mut out = [Stamp::zero()];
            let read = device.read(&[PageNo(bad)], &mut out).await;
            assert_eq!(read.unwrap_err().kind(), ErrorKind::Uncorrectable);
            // Everything else is rewritten until every zone was cleaned.
            for count in 3..40 {
                for _ in 0..100 {
                    let page = (bad + 1 + rng.below(99)) % 100;
                    device.write(&[(PageNo(page), stamp(page, count))], true).await.unwrap();
                }
                let read = device.read(&[PageNo(bad)], &mut out).await;
                assert_eq!(read.unwrap_err().kind(), ErrorKind::Uncorrectable, "seed {seed}");
            }
            // A page that cleaning reached is read again for a while.
            rt.sleep(60_000_000_000).await;
            device.close().await.unwrap();
            bad
        });
        let bad = bad.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
        ftl.validate();
        runtime.drop_tasks();
        let runtime = Virtual::new(Schedule::Fifo);
        // The medium no longer fails; pages that were marked lost stay lost.
        let media = inner.reopen(runtime.clone());
        let gone = Rc::clone(&gone);
        let main = async move {
            let (ftl, _) = recover(media, options).await.unwrap();
            let mut out = [Stamp::zero()];
            // If cleaning did not reach the page, the mapping still points to its slot.
            match ftl.read(&[PageNo(bad)], &mut out).await {
                Ok(()) => assert_eq!(out[0], stamp(bad, 2), "seed {seed}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Uncorrectable, "seed {seed}");
                    gone.set(gone.get() + 1);
                }
            }
            ftl.write(&[(PageNo(bad), stamp(bad, 99))], true).await.unwrap();
            ftl.read(&[PageNo(bad)], &mut out).await.unwrap();
            assert_eq!(out[0], stamp(bad, 99));
        };
        runtime.run(main).unwrap();
    }
    assert!(gone.get() > 5, "cleaning met the page in {} of 20 runs", gone.get());
}

#[test]
fn programs_fail_at_every_place_in_turn() {
    // These include appends of hosts and cleaning, watermarks and checkpoints.
    for nth in 0..400 {
        let runtime = Virtual::new(Schedule::Shuffled(nth));
        let inner = Rc::new(zones(&runtime, nth, 16, 4, 0, NandFaults::default()));
        let options = FtlOptions { checkpoint_interval_slots: 100, ..FtlOptions::new(60) };
        let media = Faults::new(inner, FaultsOptions::default());
        let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
        for at in [nth, nth + 1, nth + 7] {
            zones_of::<Faults<Zones>>(&ftl).fail_append(at, AppendFault::ProgramFailed);
        }
        let load = Load {
            seed: nth,
            writes: 100,
            batch_max: 6,
            clients: 2,
            skew: 0.0,
            sequential: false,
            durable: 0.5,
            trims: 0.05,
            shares: 0.0,
        };
        overwrite(&runtime, &ftl, load);
    }
}

/// The smallest device loses power again and again, also during recovery, and never runs out of space.
#[test]
fn eight_zones_survive_power_cuts() {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 200 } else { 12 };
    for seed in 0..seeds {
        let mut rng = Rng::split(seed, "eight cuts");
        let pages_per_block = 2 + rng.below(10) as u32;
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let zones = zones(&runtime, seed, 8, pages_per_block, 0, NandFaults::default());
        let pages = pages_max(&zones.geometry(), 0);
        if pages < 2 {
            continue;
        }
        let nand = zones.nand().clone();
        let options = FtlOptions {
            checkpoint_interval_slots: 100,
            copies_with_writes: seed % 2 == 1,
            ..FtlOptions::new(pages)
        };
        let media = zones.reopen(runtime.clone());
        runtime.run(async move { format(media, options).await.map(|_| ()) }).unwrap().unwrap();
        let mut known = vec![0; pages as usize];
        let mut count = 0;
        for cycle in 0..40 {
            runtime.drop_tasks();
            nand.plan_cut(None);
            let runtime = Virtual::new(Schedule::Shuffled(seed + cycle));
            let media = zones.reopen(runtime.clone());
            let fate = Fate::ALL[rng.below(3) as usize];
            nand.plan_cut(Some(CutPlan { after_operations: rng.below(120), fate }));
            let cuts = nand.power_cuts();
            let recovered = runtime.run(async move { recover(media, options).await });
            if nand.power_cuts() > cuts {
                continue;
            }
            let (ftl, _) = recovered.unwrap().unwrap_or_else(|error| panic!("{seed}: {error:?}"));
            let cleaner = Rc::clone(&ftl);
            runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
            let checkpointer = Rc::clone(&ftl);
            runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            loop {
                count += 1;
                let (device, page) = (Rc::clone(&ftl), rng.below(pages));
                let before: u64 = known[page as usize];
                let write = async move {
                    let mut out = [Stamp::zero()];
                    device.read(&[PageNo(page)], &mut out).await?;
                    // A write that was cut may have landed; its page is written first now.
                    assert!(
                        before == u64::MAX || out[0] == stamp(page, before),
                        "seed {seed} cycle {cycle}: page {page} is {:?}, not {before}",
                        out[0]
                    );
                    device.write(&[(PageNo(page), stamp(page, count))], true).await
                };
                let ended = runtime.run(write);
                if nand.power_cuts() > cuts {
                    known[page as usize] = u64::MAX;
                    break;
                }
                let ended = ended.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
                ended.unwrap_or_else(|error| panic!("seed {seed} cycle {cycle}: {error:?}"));
                known[page as usize] = count;
            }
            runtime.drop_tasks();
        }
    }
}
