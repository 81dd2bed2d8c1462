//! C programs against the header and the library, with warnings as errors, and again under the
//! address sanitizer if the compiler has one. Skipped with a message if there is no compiler.
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;
use tantalum_local::{Place, Server, ServerOptions};
use tantalum_runtime::LifeCycle;
use tantalum_runtime::live::{LiveOptions, remote, spawn_thread};
use tantalum_testing::{built, skip};
use tantalum_volume::config::{NewSettings, write_new};
use tantalum_volume::{OpenOptions, create_volume, open_volume};

/// Links against `libtantalum.a`.
const STATIC: &[&str] = &["-l:libtantalum.a", "-lpthread", "-ldl", "-lm"];
/// Links against `libtantalum.so`, which the loader finds by the name of its interface's version.
const SHARED: &[&str] = &["-ltantalum", "-lpthread"];
const LOADED_AS: &str = concat!(
    "libtantalum.so.",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);
const SANITIZER: &[&str] = &["-fsanitize=address", "-fno-omit-frame-pointer", "-g"];

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the libraries as shipped.
fn libraries() -> PathBuf {
    let folder = built::folder();
    assert!(folder.join("libtantalum.a").is_file(), "build them: cargo build -p tantalum-capi");
    folder
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".into())
}

fn has_compiler() -> bool {
    let there = Command::new(compiler()).arg("--version").output().is_ok();
    if !there {
        skip("cc");
    }
    there
}

/// Compiles `source` into `program`, which finds the shared library in its own folder.
fn compile(source: &Path, program: &Path, options: &[&str], libraries_to_link: &[&str]) -> Output {
    let libraries = libraries();
    let loaded = program.with_file_name(LOADED_AS);
    if !loaded.exists() {
        std::os::unix::fs::symlink(libraries.join("libtantalum.so"), loaded).unwrap();
    }
    Command::new(compiler())
        .args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-I")
        .arg(crate_folder().join("include"))
        .arg(source)
        .arg("-L")
        .arg(&libraries)
        .arg("-Wl,-rpath,$ORIGIN")
        .args(libraries_to_link)
        .arg("-o")
        .arg(program)
        .output()
        .unwrap()
}

/// Compiles `source`, runs it on a new volume, and returns its output.
fn run(source: &str, options: &[&str], libraries_to_link: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let compiled = compile(&crate_folder().join(source), &program, options, libraries_to_link);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let out = Command::new(program).arg(folder.path().join("volume.toml")).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{source} {options:?}: {} {told}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

fn check_example(options: &[&str], libraries_to_link: &[&str]) {
    let told = run("examples/double_write.c", options, libraries_to_link);
    assert!(told.starts_with("2048 pages of 4096 bytes\n"), "{told}");
    assert!(told.contains("\nshared\n"), "{told}");
    assert!(told.contains("out of range: "), "{told}");
}

fn has_sanitizer() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = folder.path().join("empty");
    let there = compile(&source, &program, SANITIZER, &[]).status.success()
        && Command::new(program).status().is_ok_and(|status| status.success());
    if !there {
        skip("address sanitizer");
    }
    there
}

#[test]
fn the_example_runs() {
    if has_compiler() {
        check_example(&[], STATIC);
        check_example(&[], SHARED);
    }
}

#[test]
fn wrong_calls_are_errors() {
    if has_compiler() {
        assert_eq!(run("tests/c/misuse.c", &[], STATIC), "0 failures\n");
    }
}

#[test]
fn a_forked_child_has_no_part_in_its_parents_volume() {
    if has_compiler() {
        assert_eq!(run("tests/c/fork.c", &[], STATIC), "0 failures\n");
        assert_eq!(run("tests/c/fork.c", &[], SHARED), "0 failures\n");
    }
}

/// Serves a new volume while `test` runs.
fn while_served(test: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume.toml");
    let config = write_new(&path, "16MiB", &NewSettings::default()).unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (stop, mut stopped) = remote::channel::<()>("the end of the test", 1);
    let server = spawn_thread("server", LiveOptions::default(), move |live| async move {
        create_volume(&live, &config, false).await.unwrap();
        let (volume, _) = open_volume(&live, &config, OpenOptions::default()).await.unwrap();
        let (_place, listener) = Place::claim(&live, &config.path, None).unwrap();
        let changes = Rc::clone(volume.changes());
        let server = Server::new(Rc::clone(&volume), changes, ServerOptions::default());
        ready.send(()).unwrap();
        let stopped = async { stopped.recv().await.unwrap_or_default() };
        server.serve(&live, listener, stopped).await.unwrap();
        volume.close().await.unwrap();
    });
    is_ready.recv().unwrap();
    test(&path);
    drop(stop);
    server.unwrap().join().unwrap();
}

#[test]
fn several_programs_use_a_served_volume() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let compiled = compile(&crate_folder().join("tests/c/shared.c"), &program, &[], STATIC);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    while_served(|volume| {
        let start = |what: &[&str]| {
            let mut command = Command::new(&program);
            command.arg(what[0]).arg(volume).args(&what[1..]).stdout(Stdio::piped());
            command.spawn().unwrap()
        };
        let mut held = start(&["hold"]);
        let mut said = String::new();
        BufReader::new(held.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n");
        for mut writer in [start(&["write", "10"]), start(&["write", "1000"])] {
            assert!(writer.wait().unwrap().success());
        }
        held.kill().unwrap();
        held.wait().unwrap();
        for first in ["10", "1000"] {
            assert!(start(&["check", first]).wait().unwrap().success());
        }
    });
}

/// Finds out-of-bounds accesses, uses after a close, and leaks.
#[test]
fn the_sanitizer_finds_nothing() {
    if has_compiler() && has_sanitizer() {
        check_example(SANITIZER, STATIC);
        assert_eq!(run("tests/c/misuse.c", SANITIZER, STATIC), "0 failures\n");
    }
}

/// The header is also valid C++.
#[test]
fn the_header_is_read_by_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("reader.cpp");
    let text = "#include \"tantalum.h\"\nint main() { return tantalum_close(nullptr); }\n";
    std::fs::write(&source, text).unwrap();
    let Ok(out) = Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .arg(crate_folder().join("include"))
        .arg(source)
        .output()
    else {
        return skip("c++");
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
