//! A check of an undamaged device during cleaning finds nothing.
use crate::support::{batch, format, start, zones};
use tantalum_base::{PageNo, Rng};
use tantalum_ftl::FtlOptions;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGES: u64 = 600;
const ZONES: u32 = 40;

#[test]
fn a_check_beside_cleaning_finds_no_problem_where_there_is_none() {
    let mut cleaned_meanwhile = 0;
    for seed in 0..8 {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let (media, rt) = (zones(&runtime, ZONES), runtime.clone());
        let life = async move {
            let options = FtlOptions {
                // So that there is always something to clean.
                cleaning_low_zones: ZONES,
                cleaning_high_zones: ZONES,
                ..FtlOptions::new(PAGES)
            };
            let ftl = format(media, options).await?;
            for first in (0..PAGES).step_by(10) {
                ftl.write(&batch(first, 10, 1), true).await?;
            }
            start(&rt, &ftl);
            let mut rng = Rng::split(seed, "load");
            let mut cleaned = 0;
            for count in 2..100 {
                let first = rng.below(PAGES - 16);
                ftl.write(&batch(first, 16, count), true).await?;
                if rng.chance(0.3) {
                    let left = rng.below(first + 1);
                    if left != first {
                        ftl.share(&[(PageNo(left), PageNo(first))], true, || {}).await?;
                    }
                }
                let before = ftl.statistics().zones_cleaned;
                let problems = ftl.check(|_, _| {}).await?;
                assert_eq!(problems, [], "seed {seed}, after batch {count}");
                cleaned += ftl.statistics().zones_cleaned - before;
            }
            Ok::<_, tantalum_base::Error>(cleaned)
        };
        cleaned_meanwhile += runtime.run(life).unwrap().unwrap();
        runtime.drop_tasks();
    }
    assert!(cleaned_meanwhile > 100, "{cleaned_meanwhile} zones were cleaned during checks");
}
