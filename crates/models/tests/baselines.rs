//! The baselines of TxCache keep their promises: power is cut at every media operation of a load by
//! three clients, with every fate, and inside recovery.
//!
//! The crash lab runs these devices too. Here there are also cuts at about every third operation of the
//! recovery, and the result of a scan of the medium is compared with that of the recovery.
use crate::support::baselines::{
    AtomicLog, Baseline, RedoLog, TxFlash, run, scan_against_recovery,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{Error, PageBuf, PageDevice, PageNo, Payload, Stamp};
use tantalum_ftl::FtlOptions;
use tantalum_ftl::fault_points::Fault as LogFault;
use tantalum_media::Fate;
use tantalum_models::baselines::{RedoLog as RedoLogDevice, WalCommit, WalOptions};
use tantalum_models::fault_points::Fault;
use tantalum_models::rig::{FileRig, NandRig, Rig};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

const COMMANDS: u32 = 40;

fn nightly() -> bool {
    std::env::var_os("TANTALUM_NIGHTLY").is_some()
}

/// Cuts at every `step`-th operation of the load, with alternating fates; in nightly runs at every
/// operation with every fate.
fn cut_everywhere<B: Baseline + 'static, R: Rig + 'static>(seed: u64, step: usize) {
    let step = if nightly() { 1 } else { step };
    let operations = run::<B, R>(seed, COMMANDS, None, None).unwrap();
    assert!(operations.load > 20, "{operations:?}");
    for after in (0..operations.load).step_by(step) {
        for (at, fate) in (0u64..).zip(Fate::ALL) {
            if nightly() || (after / step as u64) % 3 == at {
                run::<B, R>(seed, COMMANDS, Some((after, fate)), None)
                    .unwrap_or_else(|violation| panic!("cut at {after}, {fate:?}: {violation}"));
            }
        }
    }
}

/// Cuts in the recovery after a cut in the load.
fn cut_in_recovery<B: Baseline + 'static, R: Rig + 'static>(seed: u64, step: usize) {
    let step = if nightly() { 1 } else { step };
    let load = run::<B, R>(seed, COMMANDS, None, None).unwrap().load;
    for after in (5..load).step_by(step * 9) {
        let first = Some((after, Fate::ALL[(after % 3) as usize]));
        let recovery = run::<B, R>(seed, COMMANDS, first, None).unwrap().recovery;
        for again in (0..recovery).step_by(step) {
            let second = Some((again, Fate::ALL[(again % 3) as usize]));
            run::<B, R>(seed, COMMANDS, first, second)
                .unwrap_or_else(|violation| panic!("cut at {after}, then {again}: {violation}"));
        }
    }
}

#[test]
fn tx_flash_survives_every_cut() {
    cut_everywhere::<TxFlash, NandRig<Stamp>>(1, 2);
    cut_everywhere::<TxFlash, FileRig>(2, 5);
    cut_in_recovery::<TxFlash, NandRig<Stamp>>(3, 2);
}

#[test]
fn atomic_log_survives_every_cut() {
    cut_everywhere::<AtomicLog, NandRig<Stamp>>(4, 3);
    cut_in_recovery::<AtomicLog, FileRig>(5, 5);
}

#[test]
fn redo_log_survives_every_cut() {
    cut_everywhere::<RedoLog<false>, NandRig<Stamp>>(6, 1);
    cut_everywhere::<RedoLog<false>, NandRig<PageBuf>>(7, 7);
    cut_everywhere::<RedoLog<false>, FileRig>(8, 5);
}

#[test]
fn redo_log_with_commit_records_survives_every_cut() {
    cut_everywhere::<RedoLog<true>, NandRig<Stamp>>(6, 2);
    cut_everywhere::<RedoLog<true>, FileRig>(8, 7);
}

#[test]
fn redo_log_survives_cuts_in_recovery() {
    cut_in_recovery::<RedoLog<false>, NandRig<Stamp>>(9, 2);
    cut_in_recovery::<RedoLog<true>, NandRig<Stamp>>(9, 5);
    cut_in_recovery::<RedoLog<false>, FileRig>(10, 7);
}

#[test]
fn cycles_give_the_mapping_that_recovery_gives() {
    let mut broken = 0;
    for after in 0..60 {
        let fate = Fate::ALL[after as usize % 3];
        let found = scan_against_recovery::<NandRig<Stamp>>(11 + after, Some((2 + after, fate)));
        assert!(found.0 > 0 || after < 5, "{after}: nothing was committed");
        broken += found.1;
    }
    assert!(broken > 5, "no cut broke a cycle: {broken}");
}

/// A commit record must not queue behind a transaction that waits until the log is emptied: the log
/// is emptied only after the commits in progress have ended.
#[test]
fn a_full_log_lets_commits_under_way_end() {
    let slots = [WalCommit::Pages, WalCommit::Record].map(slots_of_many_commits);
    // A record takes a flash page of its own, which has two slots.
    assert_eq!(slots, [4 * 60 * 6, 4 * 60 * 8]);
}

/// Number of log slots used by four clients' commits of six pages each.
fn slots_of_many_commits(commit: WalCommit) -> u64 {
    let runtime = Virtual::new(Schedule::Fifo);
    let media = NandRig::<Stamp>::new(13).open(&runtime);
    let handle = runtime.clone();
    let ended = runtime.run(async move {
        let options = WalOptions { log_pages: 32, memory_pages: 0, transactions_max: 4, commit };
        let wal = RedoLogDevice::format(Rc::new(media), FtlOptions::new(24), options).await?;
        let wal = Rc::new(wal);
        wal.start(&handle);
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let wal = Rc::clone(&wal);
                handle.spawn("client", async move {
                    for count in 0..60 {
                        let tx = wal.begin().await?;
                        for page in (0..6).map(|page| PageNo(client * 6 + page)) {
                            wal.write(page, &[Stamp::new(page, count)], Some(tx)).await?;
                        }
                        wal.commit(tx).await?;
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        for client in clients {
            client.await?;
        }
        assert!(wal.statistics().pages_read_back > 0);
        let mut pages = [Stamp::zero(); 24];
        wal.read(PageNo(0), &mut pages, None).await?;
        assert!((0..24).zip(pages).all(|(page, stamp)| stamp == Stamp::new(PageNo(page), 59)));
        Ok::<_, Error>(wal.statistics().log_slots)
    });
    ended.unwrap().unwrap()
}

/// Whether any cut at every third operation is noticed.
fn is_noticed<B: Baseline + 'static>(seed: u64) -> bool {
    (0..80).step_by(3).any(|after| {
        let cut = Some((after, Fate::ALL[(after / 3 % 3) as usize]));
        let outcome = AssertUnwindSafe(|| run::<B, NandRig<Stamp>>(seed, COMMANDS, cut, None));
        !matches!(catch_unwind(outcome), Ok(Ok(_)))
    })
}

#[test]
fn what_is_switched_off_is_noticed() {
    assert!(!is_noticed::<RedoLog<false>>(12) && !is_noticed::<RedoLog<true>>(12));
    assert!(!is_noticed::<TxFlash>(12));
    for fault in [Fault::LogRedoesUncommitted, Fault::NumbersReused] {
        let _planted = plant(fault);
        assert!(is_noticed::<RedoLog<false>>(12), "{fault:?}");
        assert!(is_noticed::<RedoLog<true>>(12), "{fault:?}, with commit records");
    }
    // A broken cycle is accepted.
    let _planted = plant(LogFault::HalfBatches);
    assert!(is_noticed::<TxFlash>(12));
}
