//! Random lives of every device of the crash lab, with several clients, cut at random operations
//! and in recoveries: a fixed, seeded share each time, many more with `TANTALUM_NIGHTLY=1`.
use tantalum_lab::crash::{Campaign, CampaignOptions, Workload, campaign};

/// Runs so many verified cuts of `device` on `media`.
fn cuts(device: &str, media: &str, cuts: u64, seed: u64) -> Campaign {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse("mixed").unwrap(),
        cuts: if nightly { 20 * cuts } else { cuts },
        exhaustive: false,
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
    let Campaign { cuts, cuts_in_recovery, coverage, commands, .. } = &done;
    println!(
        "{device} on {media}: {cuts} cuts, {cuts_in_recovery} in recoveries, {commands} commands, {coverage:?}"
    );
    assert!(*cuts >= options.cuts && *cuts_in_recovery * 20 > *cuts);
    assert!(coverage.cleaned > 100 && coverage.checkpoints > 100, "the loads reach every part");
    done
}

#[test]
fn nand_with_a_durable_cache() {
    cuts("ssd:cache=durable", "nand", 20_000, 1);
}

#[test]
fn nand_written_through() {
    cuts("ssd:cache=through", "nand", 20_000, 2);
}

#[test]
fn nand_with_an_ordered_cache() {
    cuts("ssd:cache=ordered", "nand", 20_000, 3);
}

#[test]
fn nand_with_a_volatile_cache() {
    cuts("ssd:cache=volatile", "nand", 20_000, 4);
}

#[test]
fn nand_written_through_behind_a_buffer() {
    cuts("buffered:cache=through", "nand", 10_000, 11);
}

#[test]
fn file_with_an_ordered_cache_behind_a_buffer() {
    cuts("buffered:cache=ordered", "file", 5_000, 12);
}

#[test]
fn file_with_a_durable_cache() {
    cuts("ssd:cache=durable", "file", 5_000, 5);
}

#[test]
fn file_written_through() {
    cuts("ssd:cache=through", "file", 5_000, 6);
}

#[test]
fn file_with_an_ordered_cache() {
    cuts("ssd:cache=ordered", "file", 5_000, 7);
}

#[test]
fn file_with_a_volatile_cache() {
    cuts("ssd:cache=volatile", "file", 5_000, 8);
}

#[test]
fn nand_with_a_transactional_cache() {
    cuts("txcache", "nand", 20_000, 9);
}

#[test]
fn file_with_a_transactional_cache() {
    cuts("txcache", "file", 5_000, 10);
}
