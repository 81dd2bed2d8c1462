use super::*;

#[test]
fn the_same_seed_gives_the_same_rows() {
    let run = |seed| {
        let mut rows = Vec::new();
        table1::run(Scale::Small, seed, &mut |_| {}, &mut rows).unwrap();
        rows
    };
    assert_eq!(run(3), run(3));
}
