//! Every store to NVRAM and every operation of the medium, with every fate.
use crate::tx_cache_crash::clients::Shape;
use crate::tx_cache_crash::rig::{At, Cut, FATES};
use crate::tx_cache_crash::scenario::{Outcome, Scenario, run};
use tantalum_models::TxCacheOptions;
use tantalum_models::tx_cache::HeaderRelease;

pub fn options(cache_pages: u32, extended_pages: u32) -> TxCacheOptions {
    TxCacheOptions {
        extended_pages,
        transactions_max: 4,
        headers: 4,
        write_pages_max: 3,
        free_frames: 2,
        write_backs_in_flight: 2,
        ..TxCacheOptions::new(cache_pages)
    }
}

pub fn small() -> Scenario {
    let shape = Shape {
        clients: 3,
        pages_per_client: 12,
        commands: 14,
        writes_max: 3,
        write_pages_max: 3,
        transactions: true,
    };
    Scenario { options: options(14, 8), shape, seed: 1, cut: None, cut_in_recovery: None }
}

/// Transactions of up to twice the page cache.
pub fn larger() -> Scenario {
    let shape = Shape {
        clients: 2,
        pages_per_client: 20,
        commands: 9,
        writes_max: 14,
        write_pages_max: 2,
        transactions: true,
    };
    Scenario { options: options(10, 24), shape, seed: 5, cut: None, cut_in_recovery: None }
}

/// All places at which a load with these numbers of stores and operations can be cut.
pub fn places(load: (u64, u64)) -> impl Iterator<Item = At> {
    (0..load.0).map(At::Store).chain((0..load.1).map(At::Operation))
}

fn check(scenario: &Scenario) -> Outcome {
    run(scenario).unwrap_or_else(|broken| panic!("{broken}\n{scenario:?}"))
}

/// The work of the recoveries of a matrix.
#[derive(Debug, Default)]
struct Coverage {
    cuts: u64,
    redone: u64,
    undone: u64,
    trims: u64,
}

impl Coverage {
    fn count(&mut self, outcome: &Outcome) {
        self.cuts += 1;
        self.redone += u64::from(outcome.report.redone);
        self.undone += u64::from(outcome.report.undone);
        self.trims += u64::from(outcome.report.trim_redone);
    }
}

/// Cuts at every place, with every fate; after every `inside_every`th cut, cuts again at every
/// place of the recovery.
fn matrix(plain: Scenario, inside_every: u64) -> (Outcome, Coverage) {
    let dry = check(&plain);
    let mut coverage = Coverage::default();
    for (number, at) in (0u64..).zip(places(dry.load)) {
        for (fate_number, fate) in (0u64..).zip(FATES) {
            let cut = Scenario { cut: Some(Cut { at, fate }), ..plain };
            let outcome = check(&cut);
            coverage.count(&outcome);
            if !(number * 3 + fate_number).is_multiple_of(inside_every) {
                continue;
            }
            for (inside, at) in places(outcome.recovery).enumerate() {
                let fate = FATES[inside % 3];
                let cut_in_recovery = Some(Cut { at, fate });
                coverage.count(&check(&Scenario { cut_in_recovery, ..cut }));
            }
        }
    }
    println!("{:?} stores and operations, {coverage:?}; {:?}", dry.load, dry.statistics);
    (dry, coverage)
}

#[test]
fn concurrent_transactions_plain_writes_aborts_and_trims() {
    let (dry, coverage) = matrix(small(), 11);
    let statistics = dry.statistics;
    assert!(statistics.commits > 2 && statistics.aborts > 0 && statistics.ftl.pages_trimmed > 0);
    assert!(statistics.pages_coalesced > 0 && statistics.pages_written_home > 0, "{statistics:?}");
    let Coverage { redone, undone, trims, .. } = coverage;
    assert!(redone > 100 && undone > 1000 && trims > 10, "{coverage:?}");
}

#[test]
fn transactions_larger_than_the_cache() {
    let (dry, coverage) = matrix(larger(), 11);
    let statistics = dry.statistics;
    assert!(statistics.pages_spilled > 10 && statistics.pages_copied_home > 4, "{statistics:?}");
    assert!(coverage.redone > 50 && coverage.undone > 500, "{coverage:?}");
}

#[test]
fn headers_released_when_mapped() {
    let mut plain = Scenario { seed: 3, ..small() };
    plain.options.header_release = HeaderRelease::Mapped;
    plain.shape.commands = 6;
    let (_, coverage) = matrix(plain, 31);
    assert!(coverage.redone > 0 && coverage.undone > 0, "{coverage:?}");
}

#[test]
fn cleaning_and_checkpoints_beside_it() {
    let mut plain = Scenario { seed: 7, ..small() };
    plain.shape.commands = 55;
    let (dry, _) = matrix(plain, 211);
    let ftl = dry.statistics.ftl;
    assert!(ftl.zones_cleaned > 3 && ftl.checkpoints > 3, "{ftl:?}");
}

#[test]
fn without_transactions() {
    let mut plain = Scenario { seed: 9, ..small() };
    plain.options.transactions_max = 0;
    plain.options.headers = 0;
    plain.options.extended_pages = 0;
    plain.shape.transactions = false;
    let (_, coverage) = matrix(plain, 31);
    assert!(coverage.redone > 0, "{coverage:?}");
}
