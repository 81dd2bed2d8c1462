//! Checks that every fault point that a crate declares is planted by a test, and that
//! docs/durability-tests.md or docs/crash-lab.md names that test. A new point does not compile until
//! it is in a `match` here.
use std::path::Path;
use tantalum_base::fault_points::FaultPoint;
use tantalum_cache::fault_points::Fault as Cache;
use tantalum_ftl::fault_points::Fault as Log;
use tantalum_hosts::fault_points::Fault as Host;
use tantalum_local::fault_points::Fault as Server;
use tantalum_media::fault_points::Fault as Medium;
use tantalum_models::fault_points::Fault as Model;
use tantalum_runtime::fault_points::Fault as Executor;
use tantalum_ssd::fault_points::Fault as Device;
use tantalum_volume::fault_points::Fault as Volume;

const BY_CHANCE: &str = "crates/simulator/tests/planted_by_chance.rs";
const CACHE: &str = "crates/ftl/tests/cache.rs";
const CLAIM: &str = "crates/cache/tests/claim.rs";
const CALLERS: &str = "crates/tantalum/tests/callers.rs";
const CLOSING: &str = "crates/ftl/tests/closing.rs";
const CHECKED: &str = "crates/ftl/tests/checked/mod.rs";
const MAPPING_LOG: &str = "crates/ftl/src/dump/mapping_log.rs";
const DAMAGE: &str = "crates/simulator/tests/crash_damage.rs";
const EVERYWHERE: &str = "crates/ftl/tests/damage_everywhere.rs";
const GIVEN_UP: &str = "crates/simulator/tests/given_up/main.rs";
const LATE: &str = "crates/ftl/tests/late_answers.rs";
const LOG: &str = "crates/ftl/tests/planted_faults.rs";
const DEVICE: &str = "crates/ssd/tests/planted_faults.rs";
const PACING: &str = "crates/volume/tests/pacing.rs";
const PLANTED: &str = "crates/simulator/tests/planted_faults.rs";
const REGRESSIONS: &str = "crates/simulator/tests/crash_regressions.rs";
const READS: &str = "crates/models/tests/reads/mod.rs";
const ROOM: &str = "crates/ftl/tests/room.rs";
const TX_CACHE: &str = "crates/models/tests/tx_cache_crash/planted.rs";
const UNREADABLE: &str = "crates/ftl/tests/unreadable.rs";

/// A file, and the test in it that fails if the protection is off.
type Test = (&'static str, &'static str);

fn of_the_log(fault: Log) -> Test {
    match fault {
        Log::HalfBatches => (LOG, "half_batches"),
        Log::NoVersionSkip => (LOG, "versions_are_skipped"),
        Log::NoCopyRank => (LOG, "the_latest_copy_counts"),
        Log::NoSyncBeforeFooter => (LOG, "a_footer_comes_last"),
        Log::NoWaitForReplacements => (LOG, "replacements_are_waited_for"),
        Log::NoSyncOfCopies => (LOG, "copies_are_synced"),
        Log::NoWatermark => (LOG, "watermarks_are_written_down"),
        Log::DeadVersionsUnlisted => (EVERYWHERE, "what_is_switched_off_is_noticed"),
        Log::GoneUnlisted => (CACHE, "what_was_let_go_is_listed"),
        Log::ForgottenPagesTaken => (CACHE, "copies_of_what_went_home_since_are_not_taken"),
        Log::ZonesUndeclared => (BY_CHANCE, "zones_are_declared"),
        Log::UncoveredTakenForClean => {
            (CLOSING, "what_is_acknowledged_while_a_device_is_closed_is_there_afterwards")
        }
        Log::CopiesNotTakenBack => {
            (DAMAGE, "copies_that_a_sync_dropped_and_that_are_read_are_noticed")
        }
        Log::FlushLeavesGaps => (LOG, "flushes_leave_no_gaps"),
        Log::NothingAwaited => {
            (LATE, "a_durable_batch_of_nothing_waits_for_what_readers_see_already")
        }
        Log::NoWaitForReaders => (READS, "readers_that_are_not_waited_for_are_noticed"),
        Log::SharesSeenByHalves => (READS, "shares_seen_by_halves_are_noticed"),
        Log::NoChecksum => (LOG, "contents_are_checked"),
        Log::EarlyAcknowledgement => (PLANTED, "acknowledgements_wait_on_files"),
        Log::OwnPagesUnchecked => ("crates/ftl/tests/damage.rs", "own_pages_are_checked"),
        Log::LostPagesForgotten => (UNREADABLE, "lost_pages_stay_errors"),
        Log::UnreadableTakenForLost => {
            (UNREADABLE, "a_page_that_is_taken_for_lost_at_once_is_noticed")
        }
        Log::LaterChangesOutlive => {
            (REGRESSIONS, "no_change_outlives_acknowledged_ones_that_could_not_be_written")
        }
        Log::DamageTakenForEnd => (PLANTED, "damage_is_not_the_end_of_the_log"),
        Log::RoomGivenBackEarly => {
            (ROOM, "a_zone_gives_its_room_back_when_no_checkpoint_in_force_names_it")
        }
        Log::SharesNotLogged => (LOG, "shares_are_logged"),
        Log::UnwrittenForgotten => (DEVICE, "shares_are_dumped"),
        Log::UnwrittenNotAwaited => (LATE, "a_share_waits_for_what_it_builds_on"),
        Log::TrimsOutliveShares => (LATE, "a_share_that_trims_is_dumped_as_a_whole"),
        Log::CopiesKeptAtPowerLoss => {
            (MAPPING_LOG, "copies_of_an_unfinished_cleaning_are_taken_back")
        }
        Log::ReferencesNotWritten => (LOG, "all_references_are_written"),
        Log::CopiesOfUndurableShares => (LOG, "copies_wait_for_their_shares"),
        Log::WritesBehindUnfinishedCopies => (LOG, "hosts_write_behind_finished_copies_alone"),
        Log::GivenUpMidway => (GIVEN_UP, "commands_that_stop_midway_are_noticed"),
        Log::DumpFooterFirst => (DEVICE, "a_dumps_footer_comes_last"),
        Log::DeltasNotDumped => (DEVICE, "changed_mapping_entries_are_dumped"),
        Log::NoDeltaLimit => (DEVICE, "changed_mapping_entries_are_held_to_the_energy"),
        Log::DumpClearedEarly => (DEVICE, "a_dump_stays_until_it_is_written_back"),
        Log::DumpNotMadeVoid => (BY_CHANCE, "a_replayed_dump_is_void"),
        Log::CleaningUnpaced => (PACING, "cleaning_that_takes_the_disk_for_itself_is_noticed"),
        Log::HomeAheadUnnoticed => {
            (REGRESSIONS, "a_cache_that_does_not_see_that_home_is_ahead_is_noticed")
        }
        Log::UnseenSharesClean => (
            "crates/cache/tests/large.rs",
            "pages_that_count_as_clean_before_their_commit_is_seen_are_noticed",
        ),
        Log::OldContentUnchecked => (CHECKED, "a_check_of_what_is_in_force_alone_is_noticed"),
        Log::LeftoversTakenForDamage => {
            (CHECKED, "leftovers_that_are_taken_for_damage_are_noticed")
        }
        Log::RunsNotToldApart => (CHECKED, "runs_that_are_not_told_apart_are_noticed"),
        Log::FramesOverNewer => {
            (DAMAGE, "frames_that_are_written_back_over_newer_content_are_noticed")
        }
    }
}

fn of_the_cache(fault: Cache) -> Test {
    const JOURNAL: &str = "crates/cache/tests/planted_faults.rs";
    const TIERED: &str = "crates/cache/tests/crash.rs";
    const OLD_JOURNAL: &str = "crates/cache/tests/old_journal.rs";
    const FLASH_PAGES: &str = "crates/volume/tests/tiered/flash_pages.rs";
    const PASSING: &str = "crates/volume/tests/tiered/passing.rs";
    const PAIRS: &str = "crates/volume/tests/tiered/pairs.rs";
    const LARGE: &str = "crates/cache/tests/large.rs";
    const TRIMS: &str = "crates/cache/tests/trims.rs";
    match fault {
        Cache::NoSyncBeforeCommit => (JOURNAL, "an_epoch_is_durable_before_it_is_committed"),
        Cache::CommittedWrittenOver => (JOURNAL, "an_epoch_is_given_up_before_it_is_written_over"),
        Cache::HeadsWrittenTogether => {
            (JOURNAL, "one_copy_of_the_head_is_durable_before_the_other_is_touched")
        }
        Cache::IndexUnchecked => (JOURNAL, "an_index_is_compared_with_what_was_committed"),
        Cache::ContentsUnchecked => (JOURNAL, "contents_that_are_read_back_are_checked"),
        Cache::LaterChangesClean => {
            (TIERED, "what_changes_while_an_epoch_is_written_down_is_dirty_after_a_kill")
        }
        Cache::UnreadPagesClean => {
            (FLASH_PAGES, "pages_that_an_epoch_could_not_read_never_count_as_clean")
        }
        Cache::EpochWithoutUnreadable => {
            (PASSING, "no_epoch_is_committed_without_a_page_that_cannot_be_read")
        }
        Cache::EpochNotSettled => (TIERED, "an_epoch_is_in_the_flash_before_home_knows_of_it"),
        Cache::PagesNotPreserved => (TIERED, "what_an_epoch_needs_is_preserved"),
        Cache::HomeNotFlushed => (TIERED, "pages_are_clean_when_home_has_them_for_good"),
        Cache::TrimsUnlimited => (TRIMS, "more_ranges_than_the_journal_has_room_for_are_noticed"),
        Cache::HomeNotCaughtUp => {
            (REGRESSIONS, "a_cache_that_reads_a_home_before_it_has_its_epoch_is_noticed")
        }
        Cache::ClaimNotJournaled => (CLAIM, "a_claim_that_was_not_journaled_is_noticed"),
        Cache::ClaimToggled => (CLAIM, "a_claim_that_is_toggled_is_noticed"),
        Cache::TrimsUnclaimed => (CLAIM, "a_trim_that_does_not_know_of_the_claim_is_noticed"),
        Cache::ClaimNotChecked => (CLAIM, "a_home_that_somebody_wrote_over_is_refused"),
        Cache::ChangesUnnoticed => (PAIRS, "a_plain_home_that_somebody_changed_is_refused"),
        Cache::HomeNotClaimed => (PAIRS, "a_home_that_is_not_claimed_is_noticed"),
        Cache::HomeNotForetold => {
            (REGRESSIONS, "pages_that_go_home_one_by_one_without_a_word_are_noticed")
        }
        Cache::RefusedWritesGoHome => (REGRESSIONS, "no_page_goes_home_that_the_flash_refused"),
        Cache::CleanPagesReplaced => {
            (OLD_JOURNAL, "an_epoch_that_replaces_what_is_clean_is_noticed")
        }
        Cache::HomeNotAwaited => (TIERED, "what_home_should_have_is_not_acknowledged_before"),
        Cache::StagedWithoutRoom => (LARGE, "transactions_that_take_all_room_are_noticed"),
        Cache::StalePagesTakenIn => (TIERED, "what_changed_since_it_was_read_does_not_come_in"),
    }
}

fn of_the_device(fault: Device) -> Test {
    match fault {
        Device::CacheDroppedAtClose => (BY_CHANCE, "a_close_writes_the_cache_back"),
        Device::CommittedInParts => (BY_CHANCE, "a_large_transaction_is_committed_as_one"),
        Device::ClonedInParts => ("crates/volume/tests/clone.rs", "a_clone_in_parts_is_noticed"),
        Device::StagedPagesFree => (BY_CHANCE, "what_is_staged_has_pages_of_its_own"),
        Device::FailedTakenForSettled => {
            (REGRESSIONS, "no_epoch_has_a_write_that_the_flash_refused")
        }
        Device::HeldPagesOpen => (BY_CHANCE, "held_pages_are_closed_to_others"),
    }
}

fn of_a_volume(fault: Volume) -> Test {
    const PAIRS: &str = "crates/volume/tests/tiered/pairs.rs";
    const RESIZE: &str = "crates/volume/tests/resize.rs";
    match fault {
        Volume::GrownCopiesTogether => (RESIZE, "copies_that_are_written_together_are_noticed"),
        Volume::GrownOverStaged => (RESIZE, "pages_that_were_staged_and_stay_are_noticed"),
        Volume::RescuedHomeUnwatched => {
            (PAIRS, "a_flash_that_comes_back_is_refused_where_its_home_was_used_since")
        }
        Volume::StoresNotAskedFirst => {
            ("crates/volume/tests/tiered/places.rs", "a_home_in_use_leaves_the_flash_as_it_was")
        }
        Volume::UnclaimedHomeTaken => (
            PAIRS,
            "a_flash_that_comes_back_without_the_journal_is_refused_where_its_home_was_used_since",
        ),
        Volume::UnseenClaimIgnored => (
            "crates/volume/tests/tiered/unseen_claim.rs",
            "a_claim_that_cannot_be_seen_is_found_by_a_page",
        ),
    }
}

fn of_a_medium(fault: Medium) -> Test {
    match fault {
        Medium::OthersNotAsked => (
            "crates/media/src/block_store/opening/tests.rs",
            "what_is_mounted_is_opened_to_be_read_alone",
        ),
    }
}

fn of_an_executor(fault: Executor) -> Test {
    match fault {
        Executor::ExecutorKeptWhileWaiting => {
            (CALLERS, "an_executor_that_a_waiting_caller_keeps_is_noticed")
        }
    }
}

fn of_a_host(fault: Host) -> Test {
    const STORE: &str = "crates/hosts/tests/docstore.rs";
    const ROWS: &str = "crates/hosts/tests/double_write.rs";
    const WAL: &str = "crates/hosts/tests/wal_engine.rs";
    const DAMAGE: &str = "crates/hosts/tests/log_damage.rs";
    match fault {
        Host::NoFlushBeforeHeader
        | Host::NoFlushAfterHeader
        | Host::NoFlushBeforeSwitch
        | Host::NoFlushBeforeDeletion
        | Host::SharesCutShort
        | Host::SharesSeenBeforeTheHeader => (STORE, "each_protection_left_out_is_noticed"),
        Host::NoFlushBetweenDirectories => {
            (STORE, "a_directory_that_is_not_durable_in_time_is_noticed")
        }
        Host::NoCatchUp => (STORE, "a_compaction_that_does_not_catch_up_is_noticed"),
        Host::NoWaitForReaders => {
            ("crates/hosts/tests/docstore_load.rs", "a_file_is_deleted_when_nobody_reads_it")
        }
        Host::NoWholePages => (WAL, "changes_of_a_page_that_may_be_torn_are_noticed"),
        Host::WholePagesTooLate => (WAL, "whole_pages_that_come_after_the_checkpoint_are_noticed"),
        Host::ReplacedPagesRead => {
            (WAL, "pages_that_are_read_before_they_are_replaced_are_noticed")
        }
        Host::NoFlushBeforeCheckpoint => (WAL, "a_checkpoint_of_homes_that_may_be_lost_is_noticed"),
        Host::PagesBeforeLog | Host::NoFlushAfterLog => {
            (ROWS, "a_log_that_is_not_durable_in_time_is_noticed")
        }
        Host::GroupsCutShort => (ROWS, "transactions_in_pieces_are_noticed"),
        Host::NoWaitForLogRoom => (
            "crates/hosts/tests/double_write_load.rs",
            "a_log_that_is_written_over_too_early_is_noticed",
        ),
        Host::NoFlushBeforeHomes | Host::NoFlushAfterHomes => {
            (ROWS, "a_double_write_that_is_not_durable_in_time_is_noticed")
        }
        Host::NoFlushAfterCheckpoint => (ROWS, "checkpoints_that_are_written_together_are_noticed"),
        Host::NoFlushBeforeRecovery => (ROWS, "a_recovery_from_what_may_still_be_lost_is_noticed"),
        Host::ChecksumsIgnored => (ROWS, "a_torn_page_that_passes_for_whole_is_noticed"),
        Host::LostWritesIgnored => (ROWS, "a_write_that_a_device_has_lost_is_noticed"),
        Host::RecordsAnywhere => {
            ("crates/hosts/tests/records.rs", "no_record_is_read_from_the_middle_of_another_one")
        }
        Host::LogDamageTakenForItsEnd => {
            (DAMAGE, "a_damaged_block_that_is_taken_for_the_end_is_noticed")
        }
        Host::NewerPagesTaken => (DAMAGE, "a_page_with_changes_that_the_log_has_lost_is_an_error"),
        Host::OpeningGoesOn => {
            ("crates/hosts/tests/opening_given_up.rs", "an_opening_that_writes_on_is_noticed")
        }
    }
}

fn of_a_server(fault: Server) -> Test {
    const DEATHS: &str = "crates/local/src/tests/deaths.rs";
    match fault {
        Server::LocksOutliveClients => (DEATHS, "locks_end_with_who_holds_them"),
        Server::TransactionsOutliveClients => (DEATHS, "transactions_end_with_who_began_them"),
        Server::LocksFreeBeforeRequestsEnd => {
            (DEATHS, "what_was_asked_for_is_over_before_the_locks_are_free")
        }
        Server::ChangesUntold => (
            "crates/local/src/tests/changes.rs",
            "a_reader_never_takes_for_current_what_another_client_changed",
        ),
        Server::NobodyWaitsForLocks => (
            "crates/local/src/tests/locks.rs",
            "clients_that_commit_without_a_pause_have_their_turns",
        ),
    }
}

fn of_a_model(fault: Model) -> Test {
    match fault {
        Model::ChangesOvertake => (READS, "changes_that_overtake_are_noticed"),
        Model::LogRedoesUncommitted | Model::NumbersReused => {
            ("crates/models/tests/baselines.rs", "what_is_switched_off_is_noticed")
        }
        Model::LogDamageForgotten => {
            ("crates/models/tests/redo_log.rs", "a_commit_that_decayed_is_not_forgotten")
        }
        Model::LogUnchecked => {
            ("crates/models/tests/redo_log.rs", "a_page_of_the_log_that_decays_is_an_error")
        }
        Model::BlocksUnchecked => (
            "crates/models/tests/personality/geometries.rs",
            "a_mixed_up_page_is_an_error_and_a_failed_program_latches",
        ),
        Model::AnyCopyCounts => (
            "crates/models/tests/personality/cuts.rs",
            "recovery_that_does_not_look_for_the_newest_is_noticed",
        ),
        Model::EarlyCommitFlag => (TX_CACHE, "the_commit_flag_comes_after_the_last_page"),
        Model::UncommittedGoesHome => (TX_CACHE, "uncommitted_pages_stay_away_from_home"),
        Model::RedoUncommitted => (TX_CACHE, "what_is_not_committed_is_rolled_back"),
        Model::NoRedo => (TX_CACHE, "what_is_committed_is_rolled_forward"),
        Model::OldVersionFreed => (TX_CACHE, "old_versions_are_kept_until_the_commit"),
        Model::ControlOvertakes => {
            ("crates/models/tests/tx_cache/order.rs", "commits_that_overtake_are_noticed")
        }
        Model::HeldPagesOpen => (BY_CHANCE, "held_pages_of_a_txcache_are_closed_to_others"),
    }
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The body of a test: of its function, or the line of the macro that makes such functions.
fn body<'a>(source: &'a str, test: &str) -> Option<&'a str> {
    let start = [
        format!("\n#[test]\nfn {test}() {{"),
        format!("\n    #[test]\n    fn {test}() {{"),
        format!("\n    {test}: "),
    ];
    let (start, end) =
        start.iter().zip(["\n}\n", "\n    }\n", ";\n"]).find_map(|(start, end)| {
            let start = source.find(start)? + start.len();
            Some((start, start + source[start..].find(end)?))
        })?;
    Some(&source[start..end])
}

#[test]
fn every_fault_point_is_planted_by_a_test_that_the_docs_name() {
    let docs = read("docs/durability-tests.md") + &read("docs/crash-lab.md");
    let log = Log::ALL.iter().map(|&fault| (FaultPoint::from(fault), of_the_log(fault)));
    let device = Device::ALL.iter().map(|&fault| (fault.into(), of_the_device(fault)));
    let model = Model::ALL.iter().map(|&fault| (fault.into(), of_a_model(fault)));
    let executor = Executor::ALL.iter().map(|&fault| (fault.into(), of_an_executor(fault)));
    let cache = Cache::ALL.iter().map(|&fault| (fault.into(), of_the_cache(fault)));
    let volume = Volume::ALL.iter().map(|&fault| (fault.into(), of_a_volume(fault)));
    let medium = Medium::ALL.iter().map(|&fault| (fault.into(), of_a_medium(fault)));
    let server = Server::ALL.iter().map(|&fault| (fault.into(), of_a_server(fault)));
    let host = Host::ALL.iter().map(|&fault| (fault.into(), of_a_host(fault)));
    let all = log.chain(device).chain(model).chain(executor).chain(cache);
    let all = all.chain(volume).chain(server).chain(host).chain(medium);
    for (fault, (path, test)) in all {
        let source = read(path);
        let body = body(&source, test).unwrap_or_else(|| panic!("no test {test} in {path}"));
        let plants = body.lines().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.split(|c: char| !c.is_alphanumeric()).any(|word| word == fault.name)
        });
        assert!(plants, "{path}::{test} does not plant {fault:?}");
        let named = docs.contains(&format!("`{path}::{test}`"))
            || docs.contains(&format!("`{path}`, `{}`", fault.name));
        assert!(
            named,
            "no row of docs/durability-tests.md says that {path}::{test} plants {fault:?}"
        );
    }
}
