//! All experiments. These are tests beside the library and not inside it, which would compile every experiment once more.
use tantalum_repro::{EXPERIMENTS, Experiment, Scale, surprises};

/// Shapes that belong to no paper are asserted at the full scale too, without exceptions. The small scale is `tantalum repro all
/// --quick`.
#[test]
fn closed_forms_and_layers_hold_at_the_full_scale() {
    if std::env::var_os("TANTALUM_NIGHTLY").is_none() {
        return;
    }
    for name in ["cleaning", "layers"] {
        let experiment = &Experiment::by_name(name).unwrap()[0];
        let mut rows = Vec::new();
        (experiment.run)(Scale::Full, 1, &mut |case| println!("{case}"), &mut rows).unwrap();
        assert_eq!(surprises(experiment.shapes, &rows, &[]), []);
    }
}

#[test]
fn what_is_listed_as_not_met_is_a_shape() {
    for Experiment { name, shapes, not_met_small, .. } in EXPERIMENTS {
        let is_one = |claim: &&&str| shapes.iter().any(|shape| shape.claim == **claim);
        let others: Vec<_> = not_met_small.iter().filter(|claim| !is_one(claim)).collect();
        assert!(others.is_empty(), "{name}: {others:#?}");
    }
}

#[test]
fn no_two_shapes_of_an_experiment_say_the_same() {
    for experiment in EXPERIMENTS {
        let mut claims: Vec<&str> = experiment.shapes.iter().map(|shape| shape.claim).collect();
        claims.sort_unstable();
        assert!(claims.is_sorted_by(|a, b| a < b), "{}: {claims:#?}", experiment.name);
    }
}
