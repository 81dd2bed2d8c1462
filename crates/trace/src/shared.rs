//! Finds the large real traces that tests and benches use, and that are not in the repository.
use std::path::{Path, PathBuf};

/// The file `name` (such as `traces/databases/tpcc-pg-logical.csv.zst`) in the folder that the environment variable
/// `TANTALUM_SHARED` names, or in `../shared` beside the repository. If it is absent, this is reported on the standard
/// error.
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
