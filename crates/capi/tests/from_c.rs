//! C programs against the header and the library, with warnings as errors, and again under the
//! address sanitizer where the compiler has one. Skipped with a message where there is no compiler.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Links against `libtantalum.a`.
const STATIC: &[&str] = &["-l:libtantalum.a", "-lpthread", "-ldl", "-lm"];
/// Links against `libtantalum.so`.
const SHARED: &[&str] = &["-ltantalum", "-lpthread"];
const SANITIZER: &[&str] = &["-fsanitize=address", "-fno-omit-frame-pointer", "-g"];

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The libraries lie beside the test's binary.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".into())
}

fn has_compiler() -> bool {
    let there = Command::new(compiler()).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: no C compiler");
    }
    there
}

fn compile(source: &Path, program: &Path, options: &[&str], libraries_to_link: &[&str]) -> Output {
    let libraries = libraries();
    Command::new(compiler())
        .args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-I")
        .arg(crate_folder().join("include"))
        .arg(source)
        .arg("-L")
        .arg(&libraries)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(libraries_to_link)
        .arg("-o")
        .arg(program)
        .output()
        .unwrap()
}

/// Compiles `source` and runs it on a new volume; its output.
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
        eprintln!("skipped: the C compiler has no address sanitizer");
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

/// Out-of-bounds accesses, uses after a close, and what is never freed would be found here.
#[test]
fn the_sanitizer_finds_nothing() {
    if has_compiler() && has_sanitizer() {
        check_example(SANITIZER, STATIC);
        assert_eq!(run("tests/c/misuse.c", SANITIZER, STATIC), "0 failures\n");
    }
}

/// The header is C++ as well.
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
        eprintln!("skipped: no C++ compiler");
        return;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
