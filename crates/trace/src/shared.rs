//! Where the large real traces are that tests and benches use and the repository does not hold.
use std::path::{Path, PathBuf};

/// The file `name` (such as `traces/databases/tpcc-pg-logical.csv.zst`) in the folder that the
/// environment variable `TANTALUM_SHARED` names, or in `../shared` beside the repository. Where it
/// is absent, says so on the standard error.
pub fn find(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TANTALUM_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("{} is absent (set TANTALUM_SHARED to its folder)", path.display());
    None
}
