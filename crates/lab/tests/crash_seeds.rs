//! Random loads, cut at random operations, for every kind of cache: a fixed share of seeds each
//! time, many more with `TANTALUM_NIGHTLY=1`.
use tantalum_base::{Rng, Stamp};
use tantalum_lab::crash::subjects::SsdSubject;
use tantalum_lab::crash::{Cut, FileRig, NandRig, Rig, Scenario, Shape, dry_run, run};
use tantalum_media::Fate;
use tantalum_ssd::CacheKind;

/// Cuts in the load of one seed.
const CUTS: u64 = 12;

fn scenario(cache: CacheKind, seed: u64) -> Scenario {
    let mut rng = Rng::split(seed, "shapes");
    let pages_max = 1 + rng.below(10) as u32;
    let shape = Shape {
        pages: 30 + rng.below(91),
        commands: 40 + rng.below(200) as u32,
        pages_max,
        transactions: cache != CacheKind::Volatile,
    };
    Scenario { shape, seed, cut: None, cut_in_recovery: None }
}

/// Some cuts for each seed, half of them with a second one inside the recovery.
fn seeds<R: Rig>(cache: CacheKind, count: u64) {
    let subject = SsdSubject { cache };
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let seeds = 0..if nightly { 100 * count } else { count };
    println!("{cache:?}: seeds {seeds:?}");
    let (mut cleaned, mut cuts) = (0, 0);
    for seed in seeds {
        let plain = scenario(cache, seed);
        let dry = dry_run::<R, _>(&subject, &plain);
        assert_eq!(dry.violations, [], "without a cut: {plain:?}");
        cleaned += dry.coverage.cleaned;
        let mut rng = Rng::split(seed, "cuts");
        for number in 0..CUTS {
            let cut = |rng: &mut Rng, operations| {
                Some(Cut { after: rng.below(operations), fate: Fate::ALL[rng.below(3) as usize] })
            };
            let mut scenario = Scenario { cut: cut(&mut rng, dry.operations.max(1)), ..plain };
            if number % 2 == 1 {
                scenario.cut_in_recovery = cut(&mut rng, 12);
            }
            let outcome = run::<R, _>(&subject, &scenario);
            assert_eq!(outcome.violations, [], "{scenario:?}");
            cuts += 1;
        }
    }
    println!("{cache:?}: {cuts} cuts, {cleaned} zones cleaned");
    assert!(cleaned > 0, "some loads reach cleaning");
}

#[test]
fn nand_with_a_durable_cache() {
    seeds::<NandRig<Stamp>>(CacheKind::Durable, 100);
}

#[test]
fn nand_written_through() {
    seeds::<NandRig<Stamp>>(CacheKind::WriteThrough, 100);
}

#[test]
fn nand_with_an_ordered_cache() {
    seeds::<NandRig<Stamp>>(CacheKind::Ordered, 100);
}

#[test]
fn nand_with_a_volatile_cache() {
    seeds::<NandRig<Stamp>>(CacheKind::Volatile, 100);
}

#[test]
fn file_with_a_durable_cache() {
    seeds::<FileRig>(CacheKind::Durable, 40);
}

#[test]
fn file_written_through() {
    seeds::<FileRig>(CacheKind::WriteThrough, 40);
}

#[test]
fn file_with_an_ordered_cache() {
    seeds::<FileRig>(CacheKind::Ordered, 40);
}

#[test]
fn file_with_a_volatile_cache() {
    seeds::<FileRig>(CacheKind::Volatile, 40);
}
