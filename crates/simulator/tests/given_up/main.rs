//! Commands that are given up: their future is dropped after one poll, after two, and so on until it
//! ends by itself. Whichever was dropped, the device continues to work. The change is there as a whole
//! or not at all, both now and after a power cut. Nothing stays reserved for it: turns, slots of the
//! queue, transactions, room for changed entries.
mod life;
mod operation;

use life::{Case, live};
use operation::Operation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tantalum_base::Stamp;
use tantalum_base::fault_points::plant;
use tantalum_ftl::fault_points::Fault;
use tantalum_models::baselines::{Clustering, WalCommit};
use tantalum_models::personality::PersonalitySpec;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_simulator::{Subject, Tested, subjects};
use tantalum_ssd::CacheKind;

/// Number of polls after which every operation has ended.
const POLLS_MAX: u32 = 400;

/// Number of task orders, and of moments of the cut, for each poll.
fn lives_a_poll() -> u64 {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 100 } else { 6 }
}

/// Gives every operation of `subject` up at each of its polls.
fn at_every_poll<K: Tested<Stamp>>(subject: &Subject<K>) {
    let mut lives = 0;
    for (number, operation) in (0..).zip(Operation::ALL) {
        for (cuts, queue) in [(false, false), (false, true), (true, false), (true, true)] {
            let (mut ended, mut polls) = (false, 0);
            while !ended && polls < POLLS_MAX {
                (ended, polls) = (true, polls + 1);
                for nth in 0..lives_a_poll() {
                    let seed = 1_000_000 * number + 1000 * u64::from(polls) + nth;
                    let schedule = match nth {
                        0 => Schedule::Fifo,
                        _ => Schedule::Shuffled(seed),
                    };
                    // From immediately to the time at which everything that began is done.
                    let cut_after_ns = cuts.then_some(nth % 6 * 250_000);
                    let case = Case { operation, polls, cut_after_ns, queue, schedule, seed };
                    lives += 1;
                    ended &= live(subject, case);
                }
            }
            assert!(ended, "{operation:?} waits for ever");
        }
    }
    println!("{}: {lives} lives", subject.text);
}

fn ssd(cache: CacheKind) {
    at_every_poll(&subjects::ssd(cache));
}

#[test]
fn durable_cache() {
    ssd(CacheKind::Durable);
}

#[test]
fn written_through() {
    ssd(CacheKind::WriteThrough);
}

#[test]
fn ordered_cache() {
    ssd(CacheKind::Ordered);
}

#[test]
fn volatile_cache() {
    ssd(CacheKind::Volatile);
}

#[test]
fn behind_a_buffer() {
    for cache in [CacheKind::Durable, CacheKind::WriteThrough, CacheKind::Ordered] {
        at_every_poll(&subjects::buffered(cache));
    }
}

#[test]
fn transactional_cache() {
    at_every_poll(&subjects::tx_cache(true));
    at_every_poll(&subjects::tx_cache(false));
}

#[test]
fn redo_log() {
    at_every_poll(&subjects::wal(WalCommit::Pages));
    at_every_poll(&subjects::wal(WalCommit::Record));
}

#[test]
fn shadow_pages() {
    at_every_poll(&subjects::shadow(Clustering::Cycles));
    at_every_poll(&subjects::shadow(Clustering::LogFlags));
}

fn personality(name: &str) {
    at_every_poll(&subjects::personality(PersonalitySpec::parse(name).unwrap()));
}

#[test]
fn block_map() {
    personality("block-map");
}

#[test]
fn log_block_a_block() {
    personality("bast:logs=2");
}

#[test]
fn shared_log_blocks() {
    personality("fast:logs=2");
}

#[test]
fn map_on_flash() {
    personality("dftl:cmt=5");
}

#[test]
fn commands_that_stop_midway_are_noticed() {
    let _planted = plant(Fault::GivenUpMidway);
    let noticed = |check: &dyn Fn()| catch_unwind(AssertUnwindSafe(check)).is_err();
    let through = subjects::ssd(CacheKind::WriteThrough);
    let durable = subjects::ssd(CacheKind::Durable);
    let shadow = subjects::shadow(Clustering::Cycles);
    let bast = subjects::personality(PersonalitySpec::Bast { logs: 2 });
    let found = [
        noticed(&|| at_every_poll(&through)),
        noticed(&|| at_every_poll(&durable)),
        noticed(&|| at_every_poll(&subjects::wal(WalCommit::Pages))),
        noticed(&|| at_every_poll(&shadow)),
        noticed(&|| at_every_poll(&bast)),
    ];
    assert_eq!(found, [true; 5]);
}
