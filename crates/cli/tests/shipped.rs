//! The program that these tests run and kill is the one that ships.
use std::path::Path;
use tantalum_testing::built;

/// This applies to `scripts/test`, which CI runs. `cargo test` alone uses the program that cargo builds for tests.
#[test]
fn no_fault_can_be_planted_in_the_program_that_tests_run() {
    let is_shipped = std::env::var_os("TANTALUM_SHIPPED").is_some();
    assert_eq!(built::can_plant_faults(Path::new(built::tantalum())), !is_shipped);
    // Faults can be planted in the program beside this test, which shows that the check works.
    assert!(built::can_plant_faults(Path::new(env!("CARGO_BIN_EXE_tantalum"))));
}
