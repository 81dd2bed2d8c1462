use super::super::shape::assert_shapes;
use super::*;

/// Reads of LinkBench are not held up by writes here, and where half of the operations of Couchbase read, fewer flush: `docs/devices/durassd.md` says what is odd about the paper's line.
const NOT_MET: &[&str] = &[
    "P99 of what reads is more than an order of magnitude lower in the best configuration than in the worst",
    "with barriers a batch of 100 is more than 20 times as fast as one of 1 (section 4.3.3)",
    "without barriers a batch of 100 is 2.1 to 2.6 times as fast as one of 1 (section 4.3.3)",
];

#[test]
fn the_tables_have_the_shape_of_the_papers() {
    let mut rows = Vec::new();
    run(Scale::Small, 1, &mut |_| {}, &mut rows).unwrap();
    assert_shapes(SHAPES, &rows, NOT_MET);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let run = |seed| {
        let mut rows = Vec::new();
        table1::run(Scale::Small, seed, &mut |_| {}, &mut rows).unwrap();
        rows
    };
    assert_eq!(run(3), run(3));
}
