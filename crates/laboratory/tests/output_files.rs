//! Files that commands write: no input is lost, no two outputs are one file, and nothing appears under its name before
//! it is whole.
mod support;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use support::{command, file, good, names, ran, refused, text};
use tantalum_testing::rig::until;
use tempfile::TempDir;

const TRACE: &str = "op,page\nR,1\nW,2\nR,1\n";
const MAP: &str = "file_kind,first_offset,bytes,file\na,0,4096,x\n";

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).expect("the file")
}

#[test]
fn a_trace_is_not_written_over_itself_by_any_of_its_names() {
    let folder = folder();
    let trace = file(folder.path(), "t.csv", TRACE);
    let (hard, soft) = (folder.path().join("hard.csv"), folder.path().join("soft.csv"));
    fs::hard_link(&trace, &hard).unwrap();
    std::os::unix::fs::symlink(&trace, &soft).unwrap();
    let concat = format!("concat:{}@50%+zipf:pages=5", text(&trace));
    for out in [&trace, &hard, &soft] {
        for from in [text(&trace), &concat] {
            let told = refused(&["trace", "convert", from, text(out)]);
            assert!(told.contains("overwritten while it is read"), "{told}");
        }
        for option in ["--report", "--facts"] {
            let told = refused(&[
                "replay",
                text(&trace),
                "--policy",
                "lru",
                "--size",
                "1",
                option,
                text(out),
            ]);
            assert!(told.contains(option) && told.contains(text(out)), "{told}");
            refused(&["curve", text(&trace), "--size", "1", option, text(out)]);
            refused(&["trace", "stat", text(&trace), option, text(out)]);
            refused(&["advise", text(&trace), "--flash", "durassd", option, text(out)]);
        }
        assert_eq!(content(out), TRACE);
    }
}

/// The map of a block trace is read with it.
#[test]
fn a_map_is_an_input_too() {
    let folder = folder();
    let blocks = "op,file_kind,offset,length\nR,a,0,4096\nR,b,0,4096\n";
    let trace = file(folder.path(), "b.csv", blocks);
    let map = file(folder.path(), "b.map.csv", MAP);
    let told = refused(&["trace", "convert", text(&trace), text(&map)]);
    assert!(told.contains("overwritten while it is read"), "{told}");
    refused(&["trace", "stat", text(&trace), "--facts", text(&map)]);
    assert_eq!(content(&map), MAP);
}

#[test]
fn two_outputs_are_not_one_file() {
    let folder = folder();
    let (new, there) = (folder.path().join("x.out"), file(folder.path(), "there.out", ""));
    let also = folder.path().join("also.out");
    fs::hard_link(&there, &also).unwrap();
    let aside = folder.path().join("../").join(folder.path().file_name().unwrap()).join("x.out");
    for (facts, report) in [(&new, &new), (&new, &aside), (&there, &also)] {
        let told = refused(&[
            "curve",
            "zipf:pages=5,requests=9",
            "--facts",
            text(facts),
            "--report",
            text(report),
        ]);
        assert!(told.contains("--facts") && told.contains("--report"), "{told}");
    }
    assert_eq!(names(folder.path()), ["also.out", "there.out"]);
}

/// Any other data would be lost by a slip of the pen, such as a volume behind `stat --report`.
#[test]
fn only_a_page_is_replaced_by_a_page_and_only_facts_by_facts() {
    let folder = folder();
    let data = file(folder.path(), "data", "precious");
    let at = |name: &str| folder.path().join(name);
    let (page, facts) = (at("p.html"), at("f.json"));
    let run = |facts: &Path, page: &Path| {
        ["curve", "zipf:pages=5,requests=9", "--facts", text(facts), "--report", text(page)]
            .map(str::to_owned)
    };
    for _ in 0..2 {
        good(&run(&facts, &page).each_ref().map(String::as_str));
    }
    for bad in [run(&facts, &data), run(&data, &page), run(&page, &at("new"))] {
        let told = refused(&bad.each_ref().map(String::as_str));
        assert!(told.contains("exists and is not"), "{told}");
    }
    assert_eq!(content(&data), "precious");
    assert_eq!(names(folder.path()), ["data", "f.json", "p.html"]);
}

/// A run that fails leaves what was there.
#[test]
fn a_failed_conversion_leaves_the_file_that_was_there() {
    let folder = folder();
    let bad = file(folder.path(), "bad.csv", "op,page\nR,1\nX,2\n");
    let out = file(folder.path(), "out.csv", "precious");
    refused(&["trace", "convert", text(&bad), text(&out)]);
    assert_eq!(content(&out), "precious");
    let blocks = file(folder.path(), "blocks.csv", "op,file_kind,offset,length\nR,a,0,9\nX\n");
    refused(&["trace", "convert", text(&blocks), text(&out), "--to", "block_csv"]);
    assert_eq!(content(&out), "precious");
    assert_eq!(names(folder.path()), ["bad.csv", "blocks.csv", "out.csv"]);
}

#[test]
fn an_interrupted_trace_leaves_nothing_that_looks_whole() {
    let folder = folder();
    let endless = "zipf:pages=1k,requests=100000m";
    let out = folder.path().join("out.csv");
    for (verb, was_there) in
        [("generate", false), ("convert", false), ("generate", true), ("convert", true)]
    {
        let before = if was_there { vec!["out.csv".to_owned()] } else { Vec::new() };
        if was_there {
            fs::write(&out, "precious").unwrap();
        }
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            let mut words = command(&["trace", verb, endless, text(&out)]);
            let child = words.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            // The file appears, beside the other one if there is one, when the run has begun.
            until("the trace begins", || names(folder.path()).len() == before.len() + 1);
            let id = child.id().to_string();
            let sent = std::process::Command::new("kill").args(["-s", signal, &id]).status();
            assert!(sent.unwrap().success());
            let ran = ran(&child.wait_with_output().unwrap());
            assert_eq!(ran.code, code, "{}", ran.err);
            let told = if was_there { "out.csv is as before" } else { "out.csv was not written" };
            assert!(ran.err.contains(told), "{}", ran.err);
            assert_eq!(names(folder.path()), before);
            assert!(!was_there || content(&out) == "precious");
        }
    }
}

/// A link still leads to its file, and a replaced file keeps its permissions.
#[test]
fn a_conversion_goes_through_a_link_and_keeps_permissions() {
    let folder = folder();
    let real = file(folder.path(), "real.csv", "old");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    fs::set_permissions(&real, mode).unwrap();
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    good(&["trace", "generate", "scan:pages=3,requests=3", text(&link)]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(content(&real), "op,page\nR,0\nR,1\nR,2\n");
    assert_eq!(real.metadata().unwrap().mode() & 0o777, 0o640);
    // Devices and pipes are written to, not replaced.
    good(&["trace", "generate", "scan:pages=3,requests=3", "/dev/null"]);
    let out = good(&["trace", "generate", "scan:pages=3,requests=3", "/dev/stdout"]);
    assert_eq!(out, content(&real));
}

/// A message names the file of the user, not the one that was to get its name.
#[test]
fn a_file_that_cannot_be_made_is_named() {
    let told = refused(&["trace", "generate", "scan:pages=3", "/nowhere/out.csv"]);
    assert!(told.contains("/nowhere/out.csv") && !told.contains(".tantalum-"), "{told}");
}

/// Every output says which folder it lacks; a folder is no file.
#[test]
fn a_folder_that_is_missing_is_named() {
    let folder = folder();
    let into = folder.path().join("missing/out");
    let missing = format!("the folder {} does not exist", folder.path().join("missing").display());
    let scan = "scan:pages=3,requests=3";
    for words in [
        ["trace", "generate", scan, text(&into)].to_vec(),
        ["trace", "convert", scan, text(&into)].to_vec(),
        ["curve", scan, "--report", text(&into)].to_vec(),
        ["trace", "stat", scan, "--facts", text(&into)].to_vec(),
    ] {
        let told = refused(&words);
        assert!(told.contains(&missing), "{told}");
    }
    for verb in ["generate", "convert"] {
        let told = refused(&["trace", verb, scan, text(folder.path())]);
        assert!(told.contains("is a folder: name a file in it"), "{told}");
    }
    assert!(names(folder.path()).is_empty());
}
