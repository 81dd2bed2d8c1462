//! Tests that are skipped because something is missing. In a manual run this prints a line on the standard error. Under CI (if
//! the environment has `CI`) it is a failure, so that a test that never runs is noticed, unless `.ci/may-lack` names the
//! missing thing and the reason.
use std::process::{Command, Stdio};

/// The list of things that may be missing under CI: lines `name | reason`.
const MAY_LACK: &str = include_str!("../../../.ci/may-lack");

/// Reports that the caller, which must return now, is skipped because `lacking` is missing: a program's name as in
/// `scripts/deps`, or one of the names in `.ci/may-lack`.
///
/// # Panics
/// Under CI, if the list does not allow it.
pub fn skip(lacking: &str) {
    match allowed(MAY_LACK, lacking) {
        Some(reason) => eprintln!("skipped: no {lacking} ({reason})"),
        None if is_ci() => panic!(
            "skipped under CI: no {lacking}; let scripts/deps install it, or say in .ci/may-lack why it may be lacking"
        ),
        None => eprintln!("skipped: no {lacking}"),
    }
}

/// Returns `found`; [`skip`]s if it is `None`.
pub fn found<T>(found: Option<T>, lacking: &str) -> Option<T> {
    if found.is_none() {
        skip(lacking);
    }
    found
}

/// Whether all `programs` can be run; [`skip`]s for the first that cannot.
pub fn installed(programs: &[&str]) -> bool {
    let lacking = programs.iter().find(|program| !is_in_path(program));
    lacking.inspect(|program| skip(program)).is_none()
}

/// Whether this process runs as root; [`skip`]s if it does not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("root");
    }
    is_root
}

/// Whether loop devices are available, which only root can use; [`skip`]s if not.
pub fn can_loop() -> bool {
    let free = || Command::new("losetup").arg("-f").stdout(Stdio::null()).status();
    if !is_root() || !installed(&["losetup"]) {
        return false;
    }
    let can_loop = free().is_ok_and(|status| status.success());
    if !can_loop {
        skip("loop devices");
    }
    can_loop
}

/// Whether the environment indicates a CI run.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

fn is_in_path(program: &str) -> bool {
    let is_there = |path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    std::env::var_os("PATH").is_some_and(is_there)
}

/// The reason for which `list` allows that `lacking` is missing.
fn allowed<'a>(list: &'a str, lacking: &str) -> Option<&'a str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let mut rows = lines.filter_map(|line| line.split_once('|'));
    rows.find(|(name, _)| name.trim() == lacking).map(|(_, reason)| reason.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_list_names_is_allowed_and_nothing_else() {
        let list = "# nbdkit | a comment\nublk     | the kernel has none\n\nfio|\n";
        assert_eq!(allowed(list, "ublk"), Some("the kernel has none"));
        assert_eq!(allowed(list, "nbdkit"), None);
        assert_eq!(allowed(list, "ublksrv"), None);
        assert_eq!(allowed(list, "fio"), Some(""));
    }

    #[test]
    fn every_line_of_the_list_has_a_name_and_a_reason() {
        for line in MAY_LACK.lines().filter(|line| !line.starts_with('#')) {
            let (name, reason) = line.split_once('|').expect(line);
            assert!(!name.trim().is_empty() && reason.trim().len() > 20, "{line}");
        }
    }

    /// Runs with and without CI, each time in a process of its own.
    #[test]
    fn lacking_something_fails_under_ci_alone() {
        let run = |ci: Option<&str>| {
            let mut child = Command::new(std::env::current_exe().expect("a name"));
            child.args(["--ignored", "--exact", "skip::tests::child"]).stderr(Stdio::null());
            match ci {
                Some(value) => child.env("CI", value),
                None => child.env_remove("CI"),
            };
            child.stdout(Stdio::null()).status().expect("it starts").success()
        };
        assert!(run(None) && run(Some("")));
        assert!(!run(Some("true")));
    }

    #[test]
    #[ignore = "the process that lacking_something_fails_under_ci_alone starts"]
    fn child() {
        assert!(!installed(&["sh", "a program that nobody has"]));
    }
}
