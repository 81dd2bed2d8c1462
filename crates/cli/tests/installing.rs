//! Installation: the program, and the files beside it.
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{good, refused, tantalum};
use tantalum_testing::{built, found, installed};

/// The commands in the help.
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
            "source {}; COMP_WORDS=({words}); COMP_CWORD={last}; _tantalum_any tantalum {current} ''; echo \"${{COMPREPLY[@]}}\"",
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

/// The folder of the build, if everything to install was built.
fn built() -> Option<PathBuf> {
    let built = built::folder();
    let all = ["libtantalum.so", "libtantalum.a", "libtantalum_sqlite.so"];
    let is_built = all.iter().all(|file| built.join(file).exists());
    found(is_built.then_some(built), "what scripts/test builds")
}

/// Runs a script of the repository.
fn script(name: &str, settings: &[(&str, &Path)]) -> Output {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let mut command = Command::new(scripts.join(name));
    command.envs(settings.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

/// Runs `program` and asserts that it worked.
fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const C_PROGRAM: &str = r#"
#include <stdio.h>
#include <tantalum.h>
int main(int count, char **words) {
    TantalumVolume *volume;
    if (count != 2 || tantalum_create(words[1], 4 << 20, 0) || tantalum_open(words[1], 0, &volume))
        return 1;
    puts("opened");
    return tantalum_close(volume);
}
"#;

#[test]
fn what_is_installed_is_found_by_those_who_look_for_it() {
    let Some(built) = built() else { return };
    let root = tempfile::tempdir().unwrap();
    // The installation refers to its final prefix: in pkg-config and in the unit.
    let prefix = root.path().join("opt/tantalum");
    let out = script("install", &[("BUILT", &built), ("PREFIX", &prefix)]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let at = |path: &str| prefix.join(path).to_str().unwrap().to_owned();
    assert_eq!(run(&at("bin/tantalum"), &["--version"]), good(&["--version"]));
    let unit = std::fs::read_to_string(at("lib/systemd/system/tantalum@.service")).unwrap();
    assert!(unit.contains(&format!("ExecStart={} serve ", at("bin/tantalum"))), "{unit}");
    for file in [
        "share/man/man1/tantalum-serve.1",
        "share/bash-completion/completions/tantalum",
        "share/zsh/site-functions/_tantalum",
        "share/fish/vendor_completions.d/tantalum.fish",
        "lib/libtantalum_sqlite.so",
        concat!(
            "lib/libtantalum.so.",
            env!("CARGO_PKG_VERSION_MAJOR"),
            ".",
            env!("CARGO_PKG_VERSION_MINOR")
        ),
        "lib/systemd/system/tantalum-nbd@.service",
        "share/doc/tantalum/LICENSE-MIT",
        "share/doc/tantalum/docs/sqlite.md",
        "share/doc/tantalum/docs/manual/README.md",
        "share/doc/tantalum/grafana-dashboard.json",
        "share/doc/tantalum/examples/double_write.c",
    ] {
        assert!(Path::new(&at(file)).exists(), "{file}");
    }
    if !installed(&["pkg-config", "cc"]) {
        return;
    }
    let program = root.path().join("program");
    let source = program.with_extension("c");
    std::fs::write(&source, C_PROGRAM).unwrap();
    let (program, source) = (program.to_str().unwrap(), source.to_str().unwrap());
    // The commands that the installation prints, for the program and for the example.
    let told = String::from_utf8_lossy(&out.stdout);
    let compile =
        told.lines().find_map(|line| line.strip_prefix("C programs: cc program.c ")).unwrap();
    for source in [&at("share/doc/tantalum/examples/double_write.c")[..], source] {
        run("sh", &["-ec", &format!("cc -o {program} {source} {compile}")]);
    }
    let volume = root.path().join("VOLUME.toml");
    assert_eq!(run(program, &[volume.to_str().unwrap()]), "opened\n");
}

#[test]
fn the_debian_package_says_what_it_needs_and_holds_what_runs() {
    let Some(built) = built() else { return };
    if !installed(&["dpkg-deb", "dpkg-shlibdeps"]) {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let fast = Path::new("-Zgzip -z1");
    let settings = [("BUILT", &*built), ("OUT", out.path()), ("COMPRESSION", fast)];
    let made = script("package", &settings);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let package = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let version = good(&["--version"]).split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(run("dpkg-deb", &["-f", &package, "Package"]), "tantalum\n");
    assert_eq!(run("dpkg-deb", &["-f", &package, "Version"]).trim(), version);
    assert!(run("dpkg-deb", &["-f", &package, "Depends"]).contains("libc6 (>="));
    let tree = out.path().join("tree");
    run("dpkg-deb", &["-x", &package, tree.to_str().unwrap()]);
    let installed = tree.join("usr/bin/tantalum");
    assert_eq!(run(installed.to_str().unwrap(), &["--version"]), good(&["--version"]));
    assert!(tree.join("usr/share/man/man1/tantalum.1.gz").exists());
    let unit = std::fs::read_to_string(tree.join("usr/lib/systemd/system/tantalum@.service"));
    assert!(unit.unwrap().contains("ExecStart=/usr/bin/tantalum serve "));
    assert!(tree.join("usr/lib/systemd/system/tantalum-nbd@.service").exists());
}

#[test]
fn nothing_is_installed_of_what_was_not_built() {
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().join("root");
    let out = script("install", &[("BUILT", empty.path()), ("DESTDIR", &root)]);
    assert!(!out.status.success() && !root.exists());
    assert!(String::from_utf8_lossy(&out.stderr).contains("make build"));
}

/// The help describes a command of another program with that program's own words.
#[test]
fn commands_of_other_programs_are_told_as_they_tell_themselves() {
    let help = good(&["--help"]);
    for name in ["demo", "replay", "curve", "advise", "trace", "crash", "repro"] {
        let own = good(&[name, "--help"]);
        let first = own.lines().next().expect("a line");
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        let told = line.expect(name).trim_start().trim_start_matches(name).trim();
        // A line of the list may be cut and continued in the next line.
        assert!(first.starts_with(told), "{name}: {told} / {first}");
        assert_eq!(good(&["help", name]), own, "{name}");
    }
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("tantalum");
    std::fs::copy(built::tantalum(), &alone).unwrap();
    let run =
        Command::new(&alone).args(["replay", "zipf:pages=10"]).env("PATH", "/nowhere").output();
    let run = run.unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{told}");
    assert!(told.contains("tantalum-lab") && told.contains("make build"), "{told}");
}

#[test]
fn bash_completes_an_option_of_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tantalum.bash");
    std::fs::write(&script, good(&["completions", "bash"])).unwrap();
    let program = format!(
        "source {}; COMP_WORDS=(tantalum replay --clie); COMP_CWORD=2; _tantalum_any tantalum --clie replay; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let run = Command::new("bash").args(["--norc", "-c", &program]).stdin(Stdio::null()).output();
    assert_eq!(String::from_utf8(run.expect("bash").stdout).unwrap().trim(), "--clients");
}
