//! Power cuts of the real server. It serves a volume on a file system that passes requests on and records them. From
//! that journal, images are made of possible contents of a disk after a power cut; each is opened and compared with the
//! replies to clients.
//!
//! ```text
//! passthrough   the file system               load      clients of the server
//! recorder      records, injects failures     history   the clients' requests and replies
//! journal       the requests, in order        rig       a volume, its server, its lives
//! disk          a disk at a cut, from the journal
//! cuts          images of cuts, opened and explained
//! sqlite        the same with SQLite in this process
//! ```
//! Without FUSE, these tests are skipped with a message. `TANTALUM_NIGHTLY=1` makes many more images.
#[path = "../support/mod.rs"]
mod support;

mod cuts;
mod disk;
mod history;
mod journal;
mod load;
mod passthrough;
mod recorder;
mod rig;
mod sqlite;

use cuts::{Cuts, kept};
use disk::Honesty;
use history::Durability;
use recorder::{Failing, Failure};
use rig::{Engine, Rig, served, under_load};
use std::sync::atomic::Ordering;
use support::tantalum;

/// Number of images for each kind of server.
fn images() -> usize {
    if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 1500 } else { 80 }
}

/// Several lives under load, then images of cuts anywhere in them.
fn survives(engine: Engine, durability: Durability, seed: u64) {
    if let Some(rig) = Rig::new(engine, durability) {
        lives_and_is_cut(&rig, &format!("{engine:?}-{durability:?}"), seed);
    }
}

fn lives_and_is_cut(rig: &Rig, name: &str, seed: u64) {
    let durability = rig.durability();
    let load = rig.load(seed);
    rig.live(&load, 5, 150);
    let journal = rig.recorder().journal();
    let history = load.history();
    let cuts = Cuts { seed, images: images(), from: rig.created_at, honesty: Honesty::Honest };
    let keep = kept(name);
    let outcome = cuts.make(&journal, &history, durability, Some(&keep));
    println!(
        "{name}, seed {seed}: {} changes acknowledged, {} requests; of {} images {} \
         met something in the air",
        history.acknowledged(),
        journal.requests.len(),
        cuts.images,
        outcome.met_pending
    );
    let violations = outcome.violations;
    assert!(
        violations.is_empty(),
        "seed {seed}: {violations:#?}; the first is in {}",
        keep.display()
    );
    assert!(outcome.met_pending > cuts.images / 4, "few cuts met something in the air");
}

#[test]
fn on_ack_by_the_ring() {
    survives(Engine::Ring, Durability::OnAck, 1);
}

#[test]
fn on_ack_by_threads() {
    survives(Engine::Threads, Durability::OnAck, 2);
}

#[test]
fn on_flush_by_the_ring() {
    survives(Engine::Ring, Durability::OnFlush, 3);
}

#[test]
fn on_flush_by_threads() {
    survives(Engine::Threads, Durability::OnFlush, 4);
}

/// Flushed changes survive even if the user has not chosen a durability.
#[test]
fn a_volume_that_says_nothing_keeps_what_nbd_clients_flush() {
    if let Some(rig) = Rig::silent(Engine::Ring) {
        lives_and_is_cut(&rig, "silent", 7);
    }
}

/// The foundation of the tests above: a disk that acknowledges syncs without doing them is detected, and so is a server
/// that does not request what it promises.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    for (durability, seed) in [(Durability::OnAck, 5), (Durability::OnFlush, 6)] {
        let Some(rig) = Rig::new(Engine::Ring, durability) else { return };
        let load = rig.load(seed);
        rig.live(&load, 2, 200);
        let journal = rig.recorder().journal();
        let history = load.history();
        let mut lies = vec![Honesty::LiesOnceIn(1, seed)];
        if durability == Durability::OnAck {
            // The next flush repairs a lie about a flush, so only some of these lies are detected, by chance.
            lies.extend([Honesty::LiesOnceIn(4, seed), Honesty::ForgetsDurable]);
        }
        for honesty in lies {
            let cuts = Cuts { seed, images: 40, from: rig.created_at, honesty };
            let violations = cuts.make(&journal, &history, durability, None).violations;
            println!("{durability:?}, {honesty:?}: {} of 40 images broken", violations.len());
            assert!(!violations.is_empty(), "{durability:?}, {honesty:?}: nothing is seen");
        }
    }
}

/// Requests of a running server fail, at several places. The server refuses changes that it cannot keep, refuses all
/// changes from then on, and still answers reads. Whether the power is cut or the server is killed afterwards, nothing
/// acknowledged is lost once the file system is healthy again.
fn keeps_what_it_acknowledged(
    engine: Engine,
    durability: Durability,
    of: Failing,
    error: fuser::Errno,
) {
    let mut refused = 0;
    for (turn, after) in [0, 3, 10, 40].into_iter().enumerate() {
        let seed = 100 + turn as u64;
        let Some(rig) = Rig::new(engine, durability) else { return };
        let load = rig.load(seed);
        rig.live(&load, 1, 40);
        let server = rig.serve();
        rig.explain(&load, &server, 1);
        let from = rig.recorder().position();
        rig.recorder().fail(Some(Failure { of, after, error }));
        let enough = load.answered.load(Ordering::Relaxed) + 300;
        under_load(&load, &server.socket, 1, enough, || false, || ());
        let refused_now = load.refused.load(Ordering::Relaxed);
        println!(
            "{engine:?}, {durability:?}, {of:?} {after}: {} failed, {refused_now} refused",
            rig.recorder().failures()
        );
        refused += refused_now;
        let behind = load.done_behind_a_refusal.load(Ordering::Relaxed);
        assert_eq!(behind, 0, "seed {seed}: changes behind one that was refused are done");
        served(&server).unwrap_or_else(|error| panic!("seed {seed}: reads do not go on: {error}"));
        server.kill();
        rig.recorder().fail(None);
        {
            let (journal, history) = (rig.recorder().journal(), load.history());
            let cuts = Cuts { seed, images: 10, from, honesty: Honesty::Honest };
            let violations = cuts.make(&journal, &history, durability, None).violations;
            assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        }
        let server = rig.serve();
        rig.explain(&load, &server, 2);
        server.terminate();
    }
    assert!(refused > 0, "no failure was noticed");
}

#[test]
fn on_ack_a_write_that_fails() {
    let error = fuser::Errno::EIO;
    keeps_what_it_acknowledged(Engine::Ring, Durability::OnAck, Failing::Write, error);
}

#[test]
fn on_flush_a_write_that_fails() {
    let error = fuser::Errno::EIO;
    keeps_what_it_acknowledged(Engine::Threads, Durability::OnFlush, Failing::Write, error);
}

#[test]
fn on_flush_a_sync_that_fails() {
    let error = fuser::Errno::EIO;
    keeps_what_it_acknowledged(Engine::Ring, Durability::OnFlush, Failing::Sync, error);
}

#[test]
fn on_ack_a_file_system_without_room() {
    let error = fuser::Errno::ENOSPC;
    keeps_what_it_acknowledged(Engine::Threads, Durability::OnAck, Failing::EveryWrite, error);
}

#[test]
fn on_flush_a_file_system_without_room() {
    let error = fuser::Errno::ENOSPC;
    keeps_what_it_acknowledged(Engine::Ring, Durability::OnFlush, Failing::EveryWrite, error);
}

/// A failing read affects only its own request: neither later reads of clients nor the result of an opening in which it
/// occurs.
#[test]
fn reads_that_fail() {
    let error = fuser::Errno::EIO;
    let failure = |of, after| Some(Failure { of, after, error });
    let (seed, durability) = (200, Durability::OnAck);
    let Some(rig) = Rig::new(Engine::Ring, durability) else { return };
    let load = rig.load(seed);
    let mut refused = 0;
    for (life, after) in (0..).zip([0, 1, 2, 5, 11, 20, 30, 45, 60, 80, 100, 130]) {
        rig.live(&load, 1, 30);
        rig.recorder().fail(failure(Failing::Read, after));
        let opened = tantalum(&["check", rig.config().to_str().unwrap()]);
        println!("read {after} of a check fails: {}, {}", opened.code, opened.err.trim());
        refused += u64::from(opened.code != 0);
        rig.recorder().fail(None);
        let server = rig.serve();
        rig.explain(&load, &server, life);
        rig.recorder().fail(failure(Failing::EveryRead, 0));
        let failed = served(&server);
        assert!(failed.is_err(), "seed {seed}: reads that failed were answered");
        rig.recorder().fail(None);
        rig.explain(&load, &server, life);
        server.kill();
    }
    assert!(refused > 0, "no opening met a read that failed");
}
