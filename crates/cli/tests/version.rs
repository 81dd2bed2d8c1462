//! `tantalum --version`, and the build script that makes it.
#[path = "../build.rs"]
#[allow(dead_code, reason = "it is a program")]
mod build;
mod support;

use std::path::Path;
use std::process::Command;
use support::good;

fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
    assert!(git.output().expect("git").status.success(), "{args:?}");
}

#[test]
fn the_version_says_the_commit_that_was_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = build::commit(&root);
    let told = good(&["--version"]);
    let version = build::version(env!("CARGO_PKG_VERSION"), commit.as_deref());
    assert_eq!(told, format!("tantalum {version}\n"));
}

#[test]
fn a_source_without_a_repository_has_a_version_without_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("tantalum");
    std::fs::create_dir(&unpacked).unwrap();
    assert_eq!((build::commit(&unpacked), build::changed_by_commits(&unpacked)), (None, vec![]));
    assert_eq!(build::version("1.2.3", None), "1.2.3");
    if !tantalum_testing::installed(&["git"]) {
        return;
    }
    git(folder.path(), &["init"]);
    assert_eq!(build::commit(folder.path()), None, "there is no commit yet");
    git(folder.path(), &["commit", "--allow-empty", "-m", "First"]);
    assert_eq!(build::commit(&unpacked), None, "that of another project around it is not its own");
    let first = build::commit(folder.path()).expect("a commit");
    assert_eq!(build::version("1.2.3", Some(&first)), format!("1.2.3 ({first})"));
    let watched = build::changed_by_commits(folder.path());
    let state =
        || watched.iter().map(|path| std::fs::read(path).expect("it is there")).collect::<Vec<_>>();
    let before = state();
    git(folder.path(), &["commit", "--allow-empty", "-m", "Second"]);
    assert_ne!(build::commit(folder.path()), Some(first));
    assert!(state() != before, "what is watched changes with a commit: {watched:?}");
}
