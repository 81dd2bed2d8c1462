//! Protections that are switched off one after another, and caught by the crash lab's own random lives: no scenario is made for any of
//! them. Prints the number of cuts that each needs.
//!
//! Not included: faults that no random life shows. No cut falls into a dump (`DumpFooterFirst`), and some faults need a rarer state than
//! lives of this size reach; each of those has a test of its own in `planted_faults.rs`, or beside the device.
use tantalum_base::fault_points::{FaultPoint, plant};
use tantalum_cache::fault_points::Fault as Cache;
use tantalum_ftl::fault_points::Fault as Log;
use tantalum_models::fault_points::Fault as Model;
use tantalum_simulator::{CampaignOptions, Workload, campaign, find};
use tantalum_ssd::fault_points::Fault as Device;

/// Number of cuts of one device on one medium after which a fault counts as not caught.
const CUTS_MAX: u64 = 20_000;

/// Plants `fault` and runs random lives of each of `places`, a device and a medium, until a promise is broken.
fn caught(fault: impl Into<FaultPoint>, places: &[(&str, &str)]) {
    let fault = fault.into();
    let mut before = 0;
    // Some faults need loads that are rare otherwise.
    let workload = match fault.name {
        "NoVersionSkip" => "mixed:commands=60",
        "NoChecksum" => "mixed:decay=1",
        "UnreadableTakenForLost" | "EpochWithoutUnreadable" => "mixed:passing=1",
        _ => "mixed",
    };
    for (device, media) in places {
        let options = CampaignOptions {
            device: (*device).to_owned(),
            media: (*media).to_owned(),
            workload: Workload::parse(workload).unwrap(),
            cuts: CUTS_MAX,
            exhaustive: None,
            aged: false,
            seed: 7,
            violations_max: 1,
            shrink_tries: 0,
            threads: 1,
        };
        let planted = plant(fault);
        let done = campaign(&options, &mut |_, _| {}).unwrap();
        drop(planted);
        if let Some(found) = done.found.first() {
            let cuts = before + found.after_cuts;
            // And the fault is the cause.
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
    ($($name:ident: $fault:path => $places:expr;)*) => {
        $(#[test]
        fn $name() {
            caught($fault, &$places);
        })*
    };
}

const FILES: [(&str, &str); 2] = [("ssd:cache=ordered", "file"), ("ssd:cache=through", "file")];
const STAGED: [(&str, &str); 1] = [("ssd:cache=through,transactions=staged", "file")];
const WRITTEN_THROUGH: [(&str, &str); 1] = [("ssd:cache=through", "file")];
const DURABLE: [(&str, &str); 2] = [("ssd:cache=durable", "file"), ("ssd:cache=durable", "nand")];
const OVER_HOME: [(&str, &str); 2] =
    [("tiered:destage=ordered", "nand"), ("tiered:destage=ordered", "file")];
const HOME_AWAITED: [(&str, &str); 1] = [("tiered:destage=ordered,mode=write-through", "nand")];
const TX_CACHE: [(&str, &str); 2] = [("txcache", "nand"), ("txcache", "file")];

caught! {
    half_batches: Log::HalfBatches => FILES;
    versions_are_skipped: Log::NoVersionSkip => FILES;
    footers_come_last: Log::NoSyncBeforeFooter => FILES;
    copies_are_synced: Log::NoSyncOfCopies => FILES;
    zones_are_declared: Log::ZonesUndeclared => FILES;
    acknowledgements_wait: Log::EarlyAcknowledgement => WRITTEN_THROUGH;
    a_close_writes_the_cache_back: Device::CacheDroppedAtClose => FILES;
    a_large_transaction_is_committed_as_one: Device::CommittedInParts => STAGED;
    what_is_staged_has_pages_of_its_own: Device::StagedPagesFree => STAGED;
    held_pages_are_closed_to_others: Device::HeldPagesOpen => WRITTEN_THROUGH;
    shares_are_logged: Log::SharesNotLogged => FILES;
    all_references_are_written: Log::ReferencesNotWritten => FILES;
    commit_flags_come_last: Model::EarlyCommitFlag => TX_CACHE;
    uncommitted_pages_stay_away_from_home: Model::UncommittedGoesHome => TX_CACHE;
    only_what_is_committed_is_redone: Model::RedoUncommitted => TX_CACHE;
    what_is_committed_is_redone: Model::NoRedo => TX_CACHE;
    held_pages_of_a_txcache_are_closed_to_others: Model::HeldPagesOpen => TX_CACHE;
    old_versions_stay: Model::OldVersionFreed => TX_CACHE;
    deltas_are_dumped: Log::DeltasNotDumped => DURABLE;
    the_dump_area_is_cleared_late: Log::DumpClearedEarly => DURABLE;
    a_replayed_dump_is_void: Log::DumpNotMadeVoid => DURABLE;
    contents_are_checked: Log::NoChecksum => WRITTEN_THROUGH;
    an_error_that_passes_is_no_loss: Log::UnreadableTakenForLost => FILES;
    an_epoch_lacks_no_unreadable_page: Cache::EpochWithoutUnreadable => OVER_HOME;
    an_epoch_is_durable_before_it_is_committed: Cache::NoSyncBeforeCommit => OVER_HOME;
    a_committed_epoch_is_given_up_first: Cache::CommittedWrittenOver => OVER_HOME;
    heads_are_written_in_turn: Cache::HeadsWrittenTogether => OVER_HOME;
    an_epoch_is_in_the_flash_first: Cache::EpochNotSettled => OVER_HOME;
    home_is_flushed_before_pages_are_clean: Cache::HomeNotFlushed => OVER_HOME;
    what_an_epoch_needs_is_preserved: Cache::PagesNotPreserved => OVER_HOME;
    later_changes_are_not_clean: Cache::LaterChangesClean => OVER_HOME;
    home_is_awaited: Cache::HomeNotAwaited => HOME_AWAITED;
    stale_pages_stay_out: Cache::StalePagesTakenIn => OVER_HOME;
}
