use super::super::shape::assert_shapes;
use super::*;

/// docs/hosts.md says why.
const NOT_MET: &[&str] = &[
    "SHARE does more than two times as many transactions as with the double write, at any size of buffer and page",
];

#[test]
fn the_figures_have_the_shape_of_the_papers() {
    let mut rows = Vec::new();
    run(Scale::Small, 1, &mut |_| {}, &mut rows).unwrap();
    assert_shapes(SHAPES, &rows, NOT_MET);
    // Each ratio that the text states of Couchbase's throughput and writes is met within half to double.
    let ratios = |row: &&Row| row.figure.starts_with("Figure 7") || row.figure == "Figure 8";
    for row in rows.iter().filter(ratios).filter(|row| row.paper.is_some()) {
        assert!(row.ratio().is_some_and(|ratio| (0.5..=2.0).contains(&ratio)), "{row:?}");
    }
    let more_than = |times: f64| {
        move |row: &&Row| row.case.ends_with("SHARE over DWB-On") && row.measured > times
    };
    let times = rows.iter().filter(|row| ["Figure 5a", "Figure 5b"].contains(&row.figure));
    assert!(times.filter(more_than(1.7)).count() == 6, "{rows:?}");
}
