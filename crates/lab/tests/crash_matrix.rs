//! Cuts power at every operation of a load by several clients, with every fate, at every operation of
//! the recoveries behind it, and again in the next recovery. `TANTALUM_NIGHTLY=1` takes larger loads.
use tantalum_lab::crash::{CampaignOptions, Workload, campaign};

fn matrix(device: &str, media: &str, clients: u32, seed: u64) {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let commands = if nightly { 200 } else { 30 };
    let workload = format!("mixed:clients={clients},commands={commands}");
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(&workload).unwrap(),
        cuts: 0,
        exhaustive: true,
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
    assert!(done.cuts > 100 && done.cuts_in_recovery > 50);
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
fn nand_with_a_transactional_cache() {
    matrix("txcache", "nand", 3, 8);
}

#[test]
fn nand_with_a_cache_in_nvram_without_transactions() {
    matrix("nvcache", "nand", 2, 9);
}
