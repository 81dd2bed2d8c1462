//! Protections switched off one after another, and caught by the crash lab's own random lives: no
//! scenario is made for any of them. How many cuts each takes is printed.
//!
//! Not here: what no random life shows. No cut falls into a dump (`DumpFooterFirst`), and some take a rarer state than lives of this size reach; each of those has a
//! test of its own in `planted_faults.rs`, or beside the device.
use tantalum_ftl::planted::{Fault, plant};
use tantalum_lab::crash::{CampaignOptions, Workload, campaign, find};

/// Cuts of one device on one medium after which a fault counts as not caught.
const CUTS_MAX: u64 = 20_000;

/// Plants `fault` and runs random lives of each of `places`, a device and a medium, until a promise
/// is broken.
fn caught(fault: Fault, places: &[(&str, &str)]) {
    let mut before = 0;
    // Some need loads that are rare otherwise.
    let workload = match fault {
        Fault::NoVersionSkip => "mixed:commands=60",
        Fault::NoChecksum => "mixed:decay=1",
        _ => "mixed",
    };
    for (device, media) in places {
        let options = CampaignOptions {
            device: (*device).to_owned(),
            media: (*media).to_owned(),
            workload: Workload::parse(workload).unwrap(),
            cuts: CUTS_MAX,
            exhaustive: false,
            aged: false,
            seed: 7,
            violations_max: 1,
            shrink_tries: 0,
            threads: 1,
        };
        plant(Some(fault));
        let done = campaign(&options, &mut |_, _| {});
        plant(None);
        let done = done.unwrap();
        if let Some(found) = done.found.first() {
            let cuts = before + found.after_cuts;
            // And it is the fault that does it.
            let without = find(device, media).unwrap().live(&found.replay.life);
            assert_eq!(without.violations, [], "{fault:?}: {}", found.replay.text());
            println!("{fault:?}: {cuts} cuts, {device} on {media}: {}", found.violation);
            return;
        }
        before += done.cuts;
    }
    panic!("{fault:?} was not caught in {before} cuts");
}

macro_rules! caught {
    ($($name:ident: $fault:ident in $places:expr;)*) => {
        $(#[test]
        fn $name() {
            caught(Fault::$fault, &$places);
        })*
    };
}

const FILES: [(&str, &str); 2] = [("ssd:cache=ordered", "file"), ("ssd:cache=through", "file")];
const WRITTEN_THROUGH: [(&str, &str); 1] = [("ssd:cache=through", "file")];
const DURABLE: [(&str, &str); 2] = [("ssd:cache=durable", "file"), ("ssd:cache=durable", "nand")];
const TX_CACHE: [(&str, &str); 2] = [("txcache", "nand"), ("txcache", "file")];

caught! {
    half_batches: HalfBatches in FILES;
    versions_are_skipped: NoVersionSkip in FILES;
    footers_come_last: NoSyncBeforeFooter in FILES;
    copies_are_synced: NoSyncOfCopies in FILES;
    zones_are_declared: ZonesUndeclared in FILES;
    acknowledgements_wait: EarlyAcknowledgement in WRITTEN_THROUGH;
    a_close_writes_the_cache_back: CacheDroppedAtClose in FILES;
    shares_are_logged: SharesNotLogged in FILES;
    all_sharers_are_written_down: SharersLeftBehind in FILES;
    commit_flags_come_last: EarlyCommitFlag in TX_CACHE;
    uncommitted_pages_stay_away_from_home: UncommittedGoesHome in TX_CACHE;
    only_what_is_committed_is_redone: RedoUncommitted in TX_CACHE;
    what_is_committed_is_redone: NoRedo in TX_CACHE;
    old_versions_stay: OldVersionFreed in TX_CACHE;
    deltas_are_dumped: DeltasNotDumped in DURABLE;
    the_dump_area_is_cleared_late: DumpClearedEarly in DURABLE;
    a_replayed_dump_is_void: DumpNotMadeVoid in DURABLE;
    contents_are_checked: NoChecksum in WRITTEN_THROUGH;
}
