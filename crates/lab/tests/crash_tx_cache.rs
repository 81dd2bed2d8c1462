//! TxCache in the crash lab, over other media than NAND too. Its own crash tests, with transactions
//! side by side and cuts at its stores, are in `crates/ssd/tests/tx_cache_crash`.
use tantalum_base::Stamp;
use tantalum_lab::crash::subjects::TxCacheSubject;
use tantalum_lab::crash::{Cut, FileRig, NandRig, Rig, Scenario, Shape, dry_run, run};
use tantalum_media::Fate;

/// Every operation of the medium, with every fate; for a share of them a second cut in the recovery.
fn matrix<R: Rig>(transactions: bool, seed: u64, commands: u32) {
    let subject = TxCacheSubject { transactions };
    let shape = Shape { pages: 120, commands, pages_max: 6, transactions };
    let plain = Scenario { shape, seed, cut: None, cut_in_recovery: None };
    let dry = dry_run::<R, _>(&subject, &plain);
    assert_eq!(dry.violations, []);
    assert!(dry.coverage.checkpoints > 1 && dry.operations > 20, "{dry:?}");
    for after in 0..dry.operations {
        for fate in Fate::ALL {
            let scenario = Scenario { cut: Some(Cut { after, fate }), ..plain };
            let outcome = run::<R, _>(&subject, &scenario);
            assert_eq!(outcome.violations, [], "{scenario:?}");
            for inside in (0..outcome.recovery_operations).skip(after as usize % 9).step_by(9) {
                let cut_in_recovery = Some(Cut { after: inside, fate });
                let scenario = Scenario { cut_in_recovery, ..scenario };
                assert_eq!(run::<R, _>(&subject, &scenario).violations, [], "{scenario:?}");
            }
        }
    }
}

#[test]
fn nand() {
    matrix::<NandRig<Stamp>>(true, 1, 150);
}

#[test]
fn nand_without_transactions() {
    matrix::<NandRig<Stamp>>(false, 2, 110);
}

#[test]
fn file() {
    matrix::<FileRig>(true, 3, 90);
}
