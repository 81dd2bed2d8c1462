//! The version that `tantalum --version` prints: with the commit if the source is a git repository and git is
//! installed, without it otherwise.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Passes the version to the compiler, with the files whose changes require a new one.
#[allow(dead_code, reason = "a test of its parts has no use for the whole")]
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = version(env!("CARGO_PKG_VERSION"), commit(&root).as_deref());
    println!("cargo::rustc-env=TANTALUM_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
    for path in changed_by_commits(&root) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The version as text.
pub fn version(release: &str, commit: Option<&str>) -> String {
    commit.map_or(release.to_owned(), |commit| format!("{release} ({commit})"))
}

/// The commit checked out at `root`. A folder inside of another repository, such as an unpacked package, has none.
pub fn commit(root: &Path) -> Option<String> {
    if !root.join(".git").exists() {
        return None;
    }
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

/// Files that change with every commit and every checkout. Missing files are left out, as they would make this run at
/// every build.
pub fn changed_by_commits(root: &Path) -> Vec<PathBuf> {
    if commit(root).is_none() {
        return Vec::new();
    }
    let mut names = vec!["HEAD".to_owned(), "logs/HEAD".to_owned(), "packed-refs".to_owned()];
    names.extend(git(root, &["symbolic-ref", "--quiet", "HEAD"]));
    let paths = names.iter().filter_map(|name| git(root, &["rev-parse", "--git-path", name]));
    paths.map(|path| root.join(path)).filter(|path| path.exists()).collect()
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
