//! What translation layers cost, side by side.
use tantalum_repro::Scale;
use tantalum_repro::personalities::personalities;

#[test]
fn finer_maps_cost_less_where_writes_are_small_and_nothing_where_they_are_in_order() {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let scale = if nightly { Scale::Full } else { Scale::Small };
    let mut rows = Vec::new();
    personalities(scale, 1, &mut |line| println!("{line}"), &mut rows).unwrap();
    let cost = |case: &str| {
        let row = rows.iter().find(|row| row.case == case && row.metric == "write amplification");
        row.unwrap_or_else(|| panic!("{case}")).measured
    };
    for layer in ["block-map", "bast:logs=16", "fast:logs=16", "dftl:cmt=4k", "page map"] {
        let sequential = cost(&format!("{layer}, sequential"));
        assert!(sequential < 1.1, "{layer}: {sequential}");
    }
    let uniform = |layer: &str| cost(&format!("{layer}, uniform"));
    let order = ["dftl:cmt=4k", "fast:logs=16", "bast:logs=16", "block-map"];
    for pair in order.windows(2) {
        let (finer, coarser) = (uniform(pair[0]), uniform(pair[1]));
        assert!(finer < coarser, "{pair:?}: {finer} and {coarser}");
    }
    assert!(uniform("dftl:cmt=4k") <= uniform("dftl:cmt=512"));
}
