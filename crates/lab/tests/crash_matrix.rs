//! Cuts power at every media operation of a load, with every fate, and inside recovery too.
use tantalum_base::PageBuf;
use tantalum_base::Stamp;
use tantalum_lab::crash::subjects::SsdSubject;
use tantalum_lab::crash::{Coverage, Cut, FileRig, NandRig, Rig, Scenario, Shape, dry_run, run};
use tantalum_media::Fate;
use tantalum_ssd::CacheKind;

fn scenario(cache: CacheKind, seed: u64, commands: u32) -> Scenario {
    let transactions = cache != CacheKind::Volatile;
    let shape = Shape { pages: 120, commands, pages_max: 6, transactions };
    Scenario { shape, seed, cut: None, cut_in_recovery: None }
}

/// Every operation of the load, times every fate; for a share of them a second cut at every
/// operation of the recovery.
fn matrix<R: Rig>(cache: CacheKind, seed: u64, commands: u32) {
    let subject = SsdSubject { cache };
    let plain = scenario(cache, seed, commands);
    let dry = dry_run::<R, _>(&subject, &plain);
    assert_eq!(dry.violations, [], "without a cut: {plain:?}");
    let mut cuts = 0;
    for after in 0..dry.operations {
        for fate in Fate::ALL {
            let scenario = Scenario { cut: Some(Cut { after, fate }), ..plain };
            let outcome = run::<R, _>(&subject, &scenario);
            assert_eq!(outcome.violations, [], "{scenario:?}");
            cuts += 1;
            if after % 7 != 0 {
                continue;
            }
            for inside in 0..outcome.recovery_operations {
                let cut_in_recovery =
                    Some(Cut { after: inside, fate: Fate::ALL[(inside % 3) as usize] });
                let scenario = Scenario { cut_in_recovery, ..scenario };
                assert_eq!(run::<R, _>(&subject, &scenario).violations, [], "{scenario:?}");
                cuts += 1;
            }
        }
    }
    let Coverage { cleaned, checkpoints } = dry.coverage;
    println!(
        "{cache:?} seed {seed}: {} operations, {cleaned} zones cleaned, {checkpoints} checkpoints, {cuts} cuts",
        dry.operations
    );
    assert!(cuts > 100 && cleaned > 0 && checkpoints > 1, "the load must reach every part");
}

#[test]
fn nand_with_a_durable_cache() {
    matrix::<NandRig<Stamp>>(CacheKind::Durable, 1, 260);
}

#[test]
fn nand_written_through() {
    matrix::<NandRig<Stamp>>(CacheKind::WriteThrough, 2, 160);
}

#[test]
fn nand_with_an_ordered_cache() {
    matrix::<NandRig<Stamp>>(CacheKind::Ordered, 3, 200);
}

#[test]
fn nand_with_a_volatile_cache() {
    matrix::<NandRig<Stamp>>(CacheKind::Volatile, 7, 200);
}

#[test]
fn file_written_through() {
    matrix::<FileRig>(CacheKind::WriteThrough, 4, 160);
}

#[test]
fn file_with_an_ordered_cache() {
    matrix::<FileRig>(CacheKind::Ordered, 5, 200);
}

#[test]
fn nand_with_bytes() {
    matrix::<NandRig<PageBuf>>(CacheKind::WriteThrough, 6, 130);
}
