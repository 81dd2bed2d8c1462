//! Random lives of every device of the crash lab, with several clients, cut at random operations and in
//! recoveries: a fixed, seeded number each time, many more with `TANTALUM_NIGHTLY=1`.
use tantalum_base::Stamp;
use tantalum_media::ZoneMedia;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_simulator::rig::LARGE_PAGES;
use tantalum_simulator::{
    Campaign, CampaignOptions, FileRig, NandRig, PROFILES, Rig, Size, Workload, campaign, find,
};

/// Runs this many verified cuts of `device` on `media`.
fn cuts(device: &str, media: &str, cuts: u64, seed: u64) -> Campaign {
    let done = cuts_of("mixed", device, media, cuts, seed);
    assert_eq!(done.undecided, 0);
    let Campaign { cuts, cuts_in_recovery, coverage, .. } = &done;
    // BAST writes almost nothing during recovery.
    let is_bast = device.starts_with("bast") || device == "mtron";
    let recoveries = if is_bast { 200 } else { 20 };
    assert!(*cuts_in_recovery * recoveries > *cuts);
    // Layers of earlier devices have no checkpoints; only DFTL's map is on flash.
    let has_checkpoints =
        !["block-map", "bast", "fast", "mtron"].iter().any(|name| device.starts_with(name));
    assert!(coverage.cleaned > 100, "the loads reach cleaning");
    assert!(device != "txcache" || coverage.spilled > 100, "transactions outgrow the cache");
    assert!(!has_checkpoints || coverage.checkpoints > 100, "the loads reach checkpoints");
    done
}

fn cuts_of(workload: &str, device: &str, media: &str, cuts: u64, seed: u64) -> Campaign {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let options = CampaignOptions {
        device: device.to_owned(),
        media: media.to_owned(),
        workload: Workload::parse(workload).unwrap(),
        cuts: if nightly { 50 * cuts } else { cuts },
        exhaustive: None,
        aged: false,
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
    assert!(*cuts >= options.cuts);
    done
}

#[test]
fn nand_with_a_durable_cache() {
    cuts("ssd:cache=durable", "nand", 8_000, 1);
}

#[test]
fn nand_written_through() {
    cuts("ssd:cache=through", "nand", 8_000, 2);
}

#[test]
fn nand_with_an_ordered_cache() {
    cuts("ssd:cache=ordered", "nand", 8_000, 3);
}

#[test]
fn nand_with_a_volatile_cache() {
    cuts("ssd:cache=volatile", "nand", 8_000, 4);
}

#[test]
fn nand_written_through_behind_a_buffer() {
    cuts("buffered:cache=through", "nand", 4_000, 11);
}

#[test]
fn file_with_an_ordered_cache_behind_a_buffer() {
    cuts("buffered:cache=ordered", "file", 2_500, 12);
}

#[test]
fn file_with_a_durable_cache() {
    cuts("ssd:cache=durable", "file", 2_500, 5);
}

#[test]
fn file_written_through() {
    cuts("ssd:cache=through", "file", 2_500, 6);
}

#[test]
fn file_with_an_ordered_cache() {
    cuts("ssd:cache=ordered", "file", 2_500, 7);
}

#[test]
fn file_with_a_volatile_cache() {
    cuts("ssd:cache=volatile", "file", 2_500, 8);
}

/// A cache over a home, which is rescued without the flash at each cut, if it promises anything in that
/// case.
fn tiered(settings: &str, media: &str, wanted: u64, seed: u64) {
    let done = cuts(&format!("tiered:{settings}"), media, wanted, seed);
    println!("{} homes rescued, {} of them newer", done.rescued, done.rescued_newer);
    let is_ordered = settings.contains("ordered");
    assert_eq!(done.rescued > 0, is_ordered);
    assert!(!is_ordered || done.rescued_newer * 5 > done.rescued, "pages go home meanwhile");
}

#[test]
fn file_cleaned_in_step_with_hosts() {
    cuts("ssd:cache=through,cleaning=paced", "file", 2_500, 37);
    cuts("ssd:cache=ordered,cleaning=paced", "file", 2_500, 38);
}

#[test]
fn nand_with_staged_transactions() {
    cuts("ssd:cache=through,transactions=staged", "nand", 2_500, 31);
    cuts("ssd:cache=ordered,transactions=staged", "nand-bytes", 2_500, 32);
}

#[test]
fn file_with_staged_transactions() {
    cuts("ssd:cache=through,transactions=staged", "file", 2_500, 33);
    cuts("ssd:cache=ordered,transactions=staged", "file", 2_500, 34);
}

#[test]
fn nand_over_a_home_in_epochs() {
    tiered("destage=ordered", "nand", 4_000, 41);
}

#[test]
fn nand_with_bytes_over_a_home_in_epochs() {
    tiered("destage=ordered", "nand-bytes", 2_000, 42);
}

#[test]
fn file_over_a_home_in_epochs() {
    tiered("destage=ordered", "file", 2_500, 43);
}

#[test]
fn nand_over_a_home_that_is_awaited() {
    tiered("destage=ordered,mode=write-through", "nand", 2_500, 44);
}

#[test]
fn file_over_a_home_that_is_awaited() {
    tiered("destage=ordered,mode=write-through", "file", 2_500, 45);
}

#[test]
fn nand_over_a_home_with_staged_transactions() {
    tiered("destage=ordered,transactions=staged", "nand", 2_000, 47);
    tiered("destage=ordered,mode=write-through,transactions=staged", "nand-bytes", 1_000, 48);
    tiered("destage=dense,transactions=staged", "nand", 2_000, 49);
}

#[test]
fn file_over_a_home_with_staged_transactions() {
    tiered("destage=ordered,transactions=staged", "file", 2_000, 50);
    tiered("destage=ordered,mode=write-through,transactions=staged", "file", 1_000, 51);
    tiered("destage=dense,transactions=staged", "file", 2_000, 52);
}

#[test]
fn nand_over_a_home_track_by_track() {
    tiered("destage=dense", "nand", 4_000, 46);
}

#[test]
fn file_over_a_home_track_by_track() {
    tiered("destage=dense", "file", 2_500, 47);
}

#[test]
fn nand_with_a_transactional_cache() {
    cuts("txcache", "nand", 8_000, 9);
}

#[test]
fn file_with_a_transactional_cache() {
    cuts("txcache", "file", 2_500, 10);
}

#[test]
fn nand_with_a_cache_in_nvram_without_transactions() {
    cuts("nvcache", "nand", 4_000, 11);
}

#[test]
fn file_with_a_cache_in_nvram_without_transactions() {
    cuts("nvcache", "file", 2_000, 12);
}

#[test]
fn nand_with_a_redo_log() {
    cuts("wal", "nand", 4_000, 13);
    cuts("wal:commit=record", "nand", 2_000, 13);
}

#[test]
fn file_with_a_redo_log() {
    cuts("wal", "file", 2_000, 14);
    cuts("wal:commit=record", "file", 1_000, 14);
}

#[test]
fn nand_with_cyclic_commits() {
    cuts("tx-flash", "nand", 4_000, 15);
}

#[test]
fn file_with_cyclic_commits() {
    cuts("tx-flash", "file", 2_000, 16);
}

#[test]
fn nand_with_an_atomic_log() {
    cuts("atomic-log", "nand", 4_000, 17);
}

#[test]
fn file_with_an_atomic_log() {
    cuts("atomic-log", "file", 2_000, 18);
}

#[test]
fn nand_mapped_by_blocks() {
    cuts("block-map", "nand", 4_000, 19);
}

#[test]
fn nand_with_a_log_block_a_block() {
    cuts("bast:logs=2", "nand", 4_000, 20);
}

#[test]
fn nand_with_shared_log_blocks() {
    cuts("fast:logs=2", "nand", 4_000, 21);
}

#[test]
fn nand_with_a_map_on_flash() {
    cuts("dftl:cmt=5", "nand", 4_000, 22);
}

/// Lives in which slots are damaged as they are read: pages are errors, few openings are refused, and
/// nothing else happens.
fn decays(device: &str, media: &str, seed: u64) {
    let done = cuts_of("mixed:decay=1", device, media, 3_000, seed);
    println!("{} slots decayed, {} openings refused", done.decayed, done.refused);
    assert!(done.decayed * 10 > done.lives, "the medium is damaged");
    // If many contents are lost at once not all combinations are tried.
    assert!(done.undecided * 100 < done.lives, "{} checks were given up", done.undecided);
    assert!(done.refused > 0 && done.refused * 3 < done.lives, "most devices stay in use");
}

#[test]
fn nand_that_decays() {
    decays("ssd:cache=durable", "nand", 31);
    decays("ssd:cache=through", "nand", 32);
    decays("ssd:cache=volatile", "nand", 33);
    decays("atomic-log", "nand", 34);
    decays("tx-flash", "nand", 35);
}

#[test]
fn files_that_decay() {
    decays("ssd:cache=durable", "file", 36);
    decays("ssd:cache=ordered", "file", 37);
    decays("buffered:cache=through", "file", 38);
    decays("txcache", "file", 39);
    decays("nvcache", "file", 40);
}

#[test]
fn devices_of_the_papers() {
    for (device, seed) in PROFILES.iter().zip(50..) {
        cuts(device, "nand", 2_000, seed);
    }
    cuts(
        "durassd:barrier=on,flush=write-back,cleaning=d-choices:3,wear_spread=2",
        "nand",
        2_000,
        60,
    );
    cuts("ssd-b:storage-cache=off", "nand", 2_000, 61);
}

/// With a given size, and the profile's own array and cache.
#[test]
fn a_durassd_as_it_is_asked_for() {
    let workload = "mixed:commands=100,pages=32,power_ons=6";
    let done = cuts_of(workload, "durassd:pages=3000,op=0.1,cache=64", "nand", 100, 62);
    assert!(done.coverage.checkpoints > 0);
}

/// Number of zones in a page of the zone table (`docs/format.md`).
const ZONES_IN_A_PAGE: u32 = 169;

#[test]
fn a_campaign_has_lives_on_large_media() {
    fn zones<R: Rig>() -> u32 {
        R::of_size(1, Size::Large, 0).open(&Virtual::new(Schedule::Fifo)).geometry().zones
    }
    assert!(zones::<FileRig>() > ZONES_IN_A_PAGE);
    assert!(zones::<NandRig<Stamp>>() > ZONES_IN_A_PAGE);
    let mut cleaned = 0;
    for (device, media) in [
        ("ssd:cache=through", "file"),
        ("ssd:cache=ordered", "file"),
        ("ssd:cache=durable", "nand"),
        ("ssd:cache=volatile", "nand"),
        ("txcache", "nand"),
        ("tx-flash", "file"),
    ] {
        let done = cuts_of("mixed", device, media, 100, 1);
        assert!(done.lives_large > 0, "{device} on {media}");
        let lives = find(device, media).unwrap();
        let limits = lives.limits(LARGE_PAGES).unwrap();
        let life = Workload::parse("mixed").unwrap().life(&limits, 1).unwrap();
        let outcome = lives.live(&life);
        assert_eq!((outcome.violations, outcome.undecided), (vec![], 0), "{device} on {media}");
        println!("{device} on {media}: {:?}", outcome.coverage);
        assert!(outcome.coverage.checkpoints > 2, "{device} on {media}");
        cleaned += outcome.coverage.cleaned;
    }
    assert!(cleaned > 10);
}
