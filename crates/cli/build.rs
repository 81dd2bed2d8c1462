//! The version that `tantalum --version` tells: with the commit where the source is a git repository and git is
//! there, and without it elsewhere.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says the version to the compiler, and what to watch so that it stays true.
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

/// The version as it is told.
pub fn version(release: &str, commit: Option<&str>) -> String {
    commit.map_or(release.to_owned(), |commit| format!("{release} ({commit})"))
}

/// The commit that the repository at `root` is at. A folder somewhere inside of another repository, such as
/// an unpacked package, has none.
pub fn commit(root: &Path) -> Option<String> {
    if !root.join(".git").exists() {
        return None;
    }
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

/// Files that change with every commit and every checkout. One that does not exist would have this run at every
/// build, so it is not among them.
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
