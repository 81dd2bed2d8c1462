//! Runs every target with its seeds and with random inputs made from them. `TANTALUM_FUZZ_SECONDS` lets each run for that long, as
//! in the nightly run; otherwise their number is fixed here. An input for which a target fails is kept in a file, whose name is
//! printed.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};
use tantalum_base::Rng;
use tantalum_fuzzing::{TARGETS, mutated};

const CASES: u64 = 400;
/// Most seeds that are tried without a time.
const SEEDS_MAX: usize = 1600;

/// Bytes of memory that all targets together may ask for: far more than they need, and far less than a number of 32 bits can say.
const MEMORY_BYTES: u64 = 6 << 30;

/// Limits the memory of this process: an allocation out of proportion ends it.
fn limit_memory() {
    let maximum = getrlimit(Resource::As).maximum;
    let current = Some(maximum.map_or(MEMORY_BYTES, |most| most.min(MEMORY_BYTES)));
    let limit = Rlimit { current, maximum };
    setrlimit(Resource::As, limit).expect("a lower limit");
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the target called `name`.
#[expect(
    clippy::disallowed_methods,
    reason = "goes on for a time that is asked for; nothing depends on it"
)]
fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("its name");
    limit_memory();
    let seed = setting("PROPTEST_RNG_SEED").unwrap_or(1);
    let (began, seconds) =
        (Instant::now(), setting("TANTALUM_FUZZ_SECONDS").map(Duration::from_secs));
    let seeds = (target.seeds)();
    let mut rng = Rng::split(seed, name);
    let mut cases = 0;
    let mut given = |input: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
            let kept = std::env::temp_dir().join(format!("tantalum-{name}-{seed}-{cases}"));
            std::fs::write(&kept, input).expect("room for the input");
            eprintln!("{name}, seed {seed}, case {cases}: {}", kept.display());
            resume_unwind(panic);
        }
        cases += 1;
    };
    // A volume is made and opened for each change of its structures.
    let is_slow = name.ends_with("_structures");
    let (cases_max, seeds_max) =
        if is_slow { (CASES / 8, SEEDS_MAX / 20) } else { (CASES, SEEDS_MAX) };
    // Without a time, a share of them, another one for each seed.
    let step = if seconds.is_some() { 1 } else { seeds.len().div_ceil(seeds_max) };
    seeds.iter().skip(seed as usize % step).step_by(step).for_each(|input| given(input));
    let mut made = 0;
    while seconds.map_or(made < cases_max, |seconds| began.elapsed() < seconds) {
        given(&mutated(&seeds, &mut rng));
        made += 1;
    }
    println!("{name}: seed {seed}, {} seeds, {made} cases", seeds.len());
}

macro_rules! fuzzed {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                fuzz(stringify!($name));
            }
        )+

        #[test]
        fn every_target_has_its_test_and_its_file() {
            let mut names = TARGETS.map(|target| target.name).to_vec();
            names.sort_unstable();
            let mut tested = vec![$(stringify!($name)),+];
            tested.sort_unstable();
            assert_eq!(tested, names);
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
            let files = std::fs::read_dir(folder).expect("the folder of cargo fuzz");
            let mut files: Vec<String> = files
                .map(|file| file.expect("a file").file_name().to_string_lossy().replace(".rs", ""))
                .collect();
            files.sort_unstable();
            assert_eq!(files, names);
        }
    };
}

fuzzed!(
    traces nbd_options nbd_requests tls_options tls_handshake tls_records local volume_toml superblock log_headers tiered_volume
    flash_structures staged_structures ordered_structures dense_structures unclaimed_structures claiming_structures dump_structures
);
