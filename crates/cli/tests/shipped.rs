//! The program that these tests run, and kill, is the one that ships.
use std::path::Path;
use tantalum_testing::built;

/// Where `scripts/test` runs the tests, as CI does. `cargo test` alone has the program that cargo builds for tests.
#[test]
fn no_fault_can_be_planted_in_the_program_that_tests_run() {
    let is_shipped = std::env::var_os("TANTALUM_SHIPPED").is_some();
    assert_eq!(built::can_plant_faults(Path::new(built::tantalum())), !is_shipped);
    // Of the program beside this test it is known, so that what is looked for is there to be found.
    assert!(built::can_plant_faults(Path::new(env!("CARGO_BIN_EXE_tantalum"))));
}
