//! Runs experiments concurrently, on several cores.
use tantalum_base::{ErrorKind, Result};
use tantalum_replay::side_by_side::side_by_side;
use tantalum_replay::work::Work;

use super::{Experiment, Row, Scale};

/// The result of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its rows; if it is incomplete, those that were measured by then.
    pub rows: Vec<Row>,
    /// Whether these are all rows: false if runs were requested to end ([`tantalum_runtime::supervision`]).
    pub is_whole: bool,
}

/// Called with the case of an experiment that is about to be measured, and with `None` when the experiment ended.
pub type Watch<'a> = &'a (dyn Fn(&Experiment, Option<&str>) + Sync);

/// Measures `experiments`, up to `threads` of them at a time; the results, in the same order, do not depend on that number.
/// Some experiments use all cores themselves, for runs that use few other resources.
///
/// # Errors
/// The first error of the experiments, in the order in which they start; all of them run.
pub fn measure_all(
    experiments: &[Experiment],
    scale: Scale,
    seed: u64,
    threads: usize,
    watch: Watch<'_>,
) -> Result<Vec<Measured>> {
    // The longest ones first, so that no core waits for one of them at the end.
    let mut order: Vec<usize> = (0..experiments.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(experiments[at].full_seconds));
    let measured = side_by_side(&order, threads, &Work::default(), |&at| {
        let experiment = &experiments[at];
        let measured = measure(experiment, scale, seed, watch);
        watch(experiment, None);
        measured
    })?;
    let mut in_order = vec![Measured::default(); experiments.len()];
    for (at, measured) in order.into_iter().zip(measured) {
        in_order[at] = measured.unwrap_or_default();
    }
    Ok(in_order)
}

fn measure(experiment: &Experiment, scale: Scale, seed: u64, watch: Watch<'_>) -> Result<Measured> {
    let mut rows = Vec::new();
    let run = (experiment.run)(scale, seed, &mut |case| watch(experiment, Some(case)), &mut rows);
    let is_whole = match run {
        Err(error) if error.kind() == ErrorKind::Interrupted => false,
        run => run.map(|()| true)?,
    };
    Ok(Measured { rows, is_whole })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    fn row(name: &'static str, seed: u64) -> Row {
        Row::new(name, "case", ("rate", "IOPS"), None, seed as f64)
    }

    fn experiment(name: &'static str, full_seconds: u32, run: Run) -> Experiment {
        let (shapes, not_met_small) = (&[], &[]);
        Experiment { name, title: name, run, shapes, not_met_small, full_seconds }
    }

    type Run = fn(Scale, u64, crate::Progress, &mut Vec<Row>) -> Result<()>;

    #[test]
    fn what_takes_longest_begins_first_and_the_order_of_the_outcome_is_that_of_the_experiments() {
        let experiments = [
            experiment("short", 1, |_, seed, progress, rows| {
                progress("one");
                rows.push(row("short", seed));
                Ok(())
            }),
            experiment("cut", 3, |_, seed, progress, rows| {
                progress("two");
                rows.push(row("cut", seed));
                Err(tantalum_base::Error::new(ErrorKind::Interrupted, "interrupted"))
            }),
            experiment("middle", 2, |_, seed, progress, rows| {
                progress("three");
                rows.extend([row("middle", seed), row("middle", seed + 1)]);
                Ok(())
            }),
        ];
        let begun = Mutex::new(Vec::new());
        let watch = |experiment: &Experiment, case: Option<&str>| {
            let told = (experiment.name, case.map(str::to_owned));
            begun.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        };
        let one = measure_all(&experiments, Scale::Small, 7, 1, &watch).unwrap();
        let names: Vec<&str> = one.iter().map(|measured| measured.rows[0].figure).collect();
        assert_eq!(names, ["short", "cut", "middle"]);
        assert_eq!(one.iter().map(|it| it.is_whole).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(one[2].rows, [row("middle", 7), row("middle", 8)]);
        let of = |name, case: &str| [(name, Some(case.to_owned())), (name, None)];
        let expected = [of("cut", "two"), of("middle", "three"), of("short", "one")].concat();
        assert_eq!(begun.into_inner().unwrap(), expected);
        let three = measure_all(&experiments, Scale::Small, 7, 3, &|_, _| ()).unwrap();
        assert_eq!(three, one);
    }

    #[test]
    fn an_experiment_that_fails_is_an_error() {
        let fails = experiment("fails", 1, |_, _, _, _| {
            Err(tantalum_base::Error::new(ErrorKind::Corrupt, "page 7"))
        });
        let error = measure_all(&[fails], Scale::Small, 1, 2, &|_, _| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
