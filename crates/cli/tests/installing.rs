//! What goes beside the program when it is installed: completions and manual pages.
mod support;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use support::{good, refused, tantalum};

/// The commands that the help lists.
fn commands() -> BTreeSet<String> {
    let help = good(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").expect("commands");
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().expect("a name").to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_shell_is_told_every_command() {
    assert!(commands().len() > 15, "{:?}", commands());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        for name in commands() {
            assert!(script.contains(&name), "{shell}: {name} is missing");
        }
        assert!(!script.contains("demo-child"), "{shell}: it is not for people");
    }
    let run = tantalum(&["completions", "dos"]);
    assert!(run.code == 2 && run.err.contains("bash"), "{}", run.err);
}

#[test]
fn bash_completes_a_command_and_an_option() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tantalum.bash");
    std::fs::write(&script, good(&["completions", "bash"])).unwrap();
    let complete = |line: &str| {
        let words = line.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let last = line.split(' ').count() - 1;
        let current = line.split(' ').next_back().expect("a word");
        let program = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={last}; _tantalum tantalum {current} ''; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let run =
            Command::new("bash").args(["--norc", "-c", &program]).stdin(Stdio::null()).output();
        String::from_utf8(run.expect("bash").stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("tantalum adv"), "advise");
    assert_eq!(complete("tantalum create --dura"), "--durability");
    assert_eq!(complete("tantalum completions zs"), "zsh");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    good(&["man-pages", pages.to_str().unwrap()]);
    for name in commands() {
        let page = std::fs::read_to_string(pages.join(format!("tantalum-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH NAME"), "{name}: {page}");
    }
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(read("tantalum.1").contains("tantalum\\-create"));
    assert!(read("tantalum-create.1").contains("\n  tantalum create vol/VOLUME.toml"));
    assert!(read("tantalum-trace-convert.1").contains(".SH OPTIONS"));
    assert!(!pages.join("tantalum-demo-child.1").exists(), "it is not for people");
    let file = pages.join("tantalum.1/below");
    assert!(refused(&["man-pages", file.to_str().unwrap()]).contains("tantalum.1"));
}
