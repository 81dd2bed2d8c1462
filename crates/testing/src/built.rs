//! The results of the build: the program `tantalum`, and its folders.
//!
//! `cargo test` builds the program with the features that tests need; one of them allows planting faults. If `TANTALUM_SHIPPED`
//! names a folder, tests run the program there instead, from a build without these features, as users get it. `scripts/test`
//! makes it.
use crate::skip::is_ci;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder of the build's programs: `target/debug`; the tests are in its `deps`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a name");
    test.ancestors().nth(2).expect("it is in deps").to_path_buf()
}

/// The folder of the programs and libraries that tests run and install.
///
/// # Panics
/// Under CI, if `TANTALUM_SHIPPED` is not set: the shipped programs must be tested there.
pub fn folder() -> PathBuf {
    match std::env::var_os("TANTALUM_SHIPPED") {
        Some(folder) => PathBuf::from(folder),
        None if is_ci() => panic!(
            "TANTALUM_SHIPPED is not set, so that the program that ships is not tested: use scripts/test"
        ),
        None => profile_folder(),
    }
}

/// The program `tantalum` in [`folder`].
pub fn tantalum() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = folder().join("tantalum");
        assert!(program.is_file(), "{} is not built", program.display());
        program.to_str().expect("UTF-8").to_owned()
    })
}

/// Whether faults can be planted in `program`, a program or test of a build that has its symbols.
pub fn can_plant_faults(program: &Path) -> bool {
    let bytes = std::fs::read(program).expect("the program can be read");
    // A part of the symbol names of code compiled only for this, with any name mangling.
    let part = b"fault_points6switch";
    bytes.windows(part.len()).any(|window| window == part)
}

/// A new folder on the disk of the build, or in the folder `BENCH_DIR`: a temporary folder is often in memory, where a sync costs
/// nothing.
pub fn disk_folder() -> tempfile::TempDir {
    let parent = std::env::var_os("BENCH_DIR")
        .map_or_else(|| profile_folder().join("../tmp"), PathBuf::from);
    std::fs::create_dir_all(&parent).expect("a folder for folders");
    let parent = parent.canonicalize().expect("it is there");
    tempfile::tempdir_in(parent).expect("a folder")
}
