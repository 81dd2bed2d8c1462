//! Cuts power at every operation of a load by several clients, with every fate, at every operation of the
//! recoveries after it, and again in the next recovery; or makes every operation fail. `TANTALUM_NIGHTLY=1`
//! runs larger loads.
use tantalum_simulator::{Campaign, CampaignOptions, DEVICES, Exhaustive, Workload, campaign};

fn matrix(device: &str, media: &str, clients: u32, seed: u64) {
    let done = cut_everywhere(device, media, (clients, COMMANDS), seed, false);
    assert!(device != "txcache" || done.coverage.spilled > 0, "transactions outgrow the cache");
}

/// The same for a device whose commands consist of many operations each.
fn short_matrix(device: &str, media: &str, seed: u64) {
    cut_everywhere(device, media, (1, COMMANDS / 3), seed, false);
}

/// Number of commands of a load.
const COMMANDS: u32 = 30;

fn is_nightly() -> bool {
    std::env::var_os("TANTALUM_NIGHTLY").is_some()
}

fn cut_everywhere(
    device: &str,
    media: &str,
    (clients, commands): (u32, u32),
    seed: u64,
    aged: bool,
) -> Campaign {
    let load = (clients, commands);
    let done = everywhere(Exhaustive::Cuts, device, media, load, seed, aged);
    // FAST writes almost nothing during recovery.
    let recoveries = if device == "fast:logs=2" { 20 } else { 50 };
    assert!(done.cuts > 100 && done.cuts_in_recovery > recoveries);
    done
}

/// Every operation of a load on a device that is being cleaned, of the recovery after it and of the load after
/// that fails.
fn fail_everywhere(device: &str, media: &str, seed: u64) {
    let done = everywhere(Exhaustive::Errors, device, media, (1, COMMANDS / 3), seed, true);
    println!("{} errors", done.io_errors);
    // The life without an error has no failure. A retry may meet more than one.
    assert!(done.lives > 100 && done.io_errors + 1 >= done.lives);
}

fn everywhere(
    exhaustive: Exhaustive,
    device: &str,
    media: &str,
    (clients, commands): (u32, u32),
    seed: u64,
    aged: bool,
) -> Campaign {
    let commands = if is_nightly() { 200 } else { commands };
    let workload = format!("mixed:clients={clients},commands={commands}");
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(&workload).unwrap(),
        cuts: 0,
        exhaustive: Some(exhaustive),
        aged,
        seed,
        violations_max: 1,
        shrink_tries: 4000,
        threads: 1,
    };
    let done = campaign(&options, &mut |_, _| {}).unwrap();
    for found in &done.found {
        println!("{}\nreplay: {}", found.violation, found.replay.text());
    }
    assert!(done.found.is_empty(), "{device} on {media}, seed {seed}: a promise is broken");
    println!(
        "{device} on {media}: {} lives, {} cuts, {} in recoveries",
        done.lives, done.cuts, done.cuts_in_recovery
    );
    assert_eq!(done.undecided, 0);
    done
}

/// The same for a device that is full and cleaned all the time: cuts fall into cleaning.
fn aged_matrix(device: &str, media: &str, seed: u64) {
    let done = cut_everywhere(device, media, (1, COMMANDS), seed, true);
    // More than the aging of every life, each of which cleans about as much.
    println!("{:?} in {} lives", done.coverage, done.lives);
    assert!(done.coverage.cleaned > 12 * done.lives, "the load is cleaned, too");
}

#[test]
fn every_operation_of_a_tiered_device_fails() {
    fail_everywhere("tiered:destage=ordered", "file", 61);
    if is_nightly() {
        fail_everywhere("tiered:destage=ordered,mode=write-through", "file", 62);
        fail_everywhere("tiered:destage=dense", "file", 63);
        fail_everywhere("tiered:destage=ordered", "nand", 64);
    }
}

#[test]
fn every_operation_of_flash_fails() {
    fail_everywhere("ssd:cache=ordered,transactions=staged", "file", 66);
    if is_nightly() {
        fail_everywhere("ssd:cache=through", "file", 65);
        fail_everywhere("ssd:cache=durable", "nand", 67);
    }
}

#[test]
fn aged_nand_with_a_durable_cache() {
    aged_matrix("ssd:cache=durable", "nand", 21);
}

#[test]
fn aged_nand_written_through() {
    aged_matrix("ssd:cache=through", "nand", 22);
}

#[test]
fn aged_file_with_an_ordered_cache() {
    aged_matrix("ssd:cache=ordered", "file", 23);
}

#[test]
fn aged_file_cleaned_in_step_with_hosts() {
    aged_matrix("ssd:cache=through,cleaning=paced", "file", 37);
    aged_matrix("ssd:cache=ordered,cleaning=paced", "file", 38);
}

#[test]
fn aged_nand_with_a_log_block_a_block() {
    aged_matrix("bast:logs=2", "nand", 24);
}

#[test]
fn every_device_of_the_lab_is_cut_everywhere() {
    let here = include_str!("crash_matrix.rs");
    for device in DEVICES {
        assert!(here.contains(&format!("matrix({device:?}, ")), "{device} has no test here");
    }
}

#[test]
fn nand_with_a_durable_cache() {
    matrix("ssd:cache=durable", "nand", 3, 1);
}

#[test]
fn nand_written_through() {
    matrix("ssd:cache=through", "nand", 1, 2);
}

#[test]
fn nand_with_an_ordered_cache() {
    matrix("ssd:cache=ordered", "nand", 2, 3);
}

#[test]
fn nand_with_a_volatile_cache() {
    matrix("ssd:cache=volatile", "nand", 4, 4);
}

#[test]
fn file_written_through() {
    matrix("ssd:cache=through", "file", 3, 5);
}

#[test]
fn file_with_an_ordered_cache() {
    matrix("ssd:cache=ordered", "file", 2, 6);
}

#[test]
fn nand_with_bytes() {
    matrix("ssd:cache=through", "nand-bytes", 2, 7);
}

#[test]
fn nand_written_through_behind_a_buffer() {
    matrix("buffered:cache=through", "nand", 3, 10);
}

#[test]
fn nand_with_an_ordered_cache_behind_a_buffer() {
    matrix("buffered:cache=ordered", "nand", 2, 11);
}

#[test]
fn nand_over_a_home_in_epochs() {
    matrix("tiered:destage=ordered", "nand", 2, 25);
}

#[test]
fn file_with_staged_transactions() {
    matrix("ssd:cache=through,transactions=staged", "file", 2, 35);
    matrix("ssd:cache=ordered,transactions=staged", "file", 2, 36);
}

#[test]
fn file_over_a_home_in_epochs() {
    matrix("tiered:destage=ordered", "file", 2, 26);
}

#[test]
fn nand_over_a_home_that_is_awaited() {
    matrix("tiered:destage=ordered,mode=write-through", "nand", 2, 27);
}

#[test]
fn nand_over_a_home_track_by_track() {
    matrix("tiered:destage=dense", "nand", 2, 28);
}

#[test]
fn file_over_a_home_with_staged_transactions() {
    short_matrix("tiered:destage=ordered,transactions=staged", "file", 37);
    short_matrix("tiered:destage=ordered,mode=write-through,transactions=staged", "file", 38);
    short_matrix("tiered:destage=dense,transactions=staged", "file", 39);
}

#[test]
fn nand_with_a_transactional_cache() {
    matrix("txcache", "nand", 3, 8);
}

#[test]
fn nand_with_a_cache_in_nvram_without_transactions() {
    matrix("nvcache", "nand", 2, 9);
}

#[test]
fn nand_with_a_durable_cache_behind_a_buffer() {
    matrix("buffered:cache=durable", "nand", 3, 12);
}

#[test]
fn nand_with_a_redo_log() {
    matrix("wal", "nand", 2, 13);
    matrix("wal:commit=record", "nand", 2, 13);
}

#[test]
fn nand_with_cyclic_commits() {
    matrix("tx-flash", "nand", 3, 14);
}

#[test]
fn nand_with_an_atomic_log() {
    matrix("atomic-log", "nand", 3, 15);
}

#[test]
fn nand_mapped_by_blocks() {
    matrix("block-map", "nand", 2, 16);
}

#[test]
fn nand_with_a_log_block_a_block() {
    matrix("bast:logs=2", "nand", 2, 17);
}

#[test]
fn nand_with_shared_log_blocks() {
    matrix("fast:logs=2", "nand", 3, 18);
}

#[test]
fn nand_with_a_map_on_flash() {
    matrix("dftl:cmt=5", "nand", 2, 19);
}
