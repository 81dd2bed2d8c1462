//! Traces that were cut off, on the command line: every command reports it, and `trace convert --rescue` takes the
//! complete part.
mod support;
use std::path::Path;
use support::{good, refused, tantalum, text};

/// `pages` writes that do not repeat soon: otherwise the first block of a compressed file would contain most of them.
fn recording(pages: u64) -> String {
    let lines = (0..pages).map(|at| format!("W,{}\n", at * at % 1_000_003));
    std::iter::once("op,page\n".to_owned()).chain(lines).collect()
}

#[test]
fn every_command_tells_a_torn_last_line_and_rescue_leaves_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (torn, whole) = (at("torn.csv"), at("whole.csv"));
    std::fs::write(&torn, "op,page\nW,14235\nC,\nW,14").unwrap();
    for args in [
        &["trace", "stat", text(&torn)][..],
        &["trace", "convert", text(&torn), text(&whole)],
        &["replay", text(&torn), "--policy", "lru", "--size", "1"],
        &["curve", text(&torn)],
    ] {
        let error = refused(args);
        assert!(error.contains("torn.csv:4: ") && error.contains("--rescue"), "{error}");
    }
    assert!(!whole.exists(), "nothing unfinished is left");

    let run = tantalum(&["trace", "convert", "--rescue", text(&torn), text(&whole)]);
    assert_eq!(run.code, 1, "found wrong: {}", run.err);
    assert!(run.err.contains("cut off behind line 3"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&whole).unwrap(), "op,page\nW,14235\nC,\n");
    // From a complete trace nothing is omitted, and there is no error.
    assert_eq!(good(&["trace", "convert", "--rescue", text(&whole), "-"]).lines().count(), 3);
}

#[test]
fn rescue_takes_what_is_whole_out_of_what_was_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let plain = recording(100_000);
    std::fs::write(at("plain.csv"), &plain).unwrap();
    for packed in ["t.csv.zst", "t.csv.gz", "t.bin.zst"] {
        let (packed, cut, rescued) = (at(packed), at("cut"), at("rescued.csv"));
        let to = if packed.ends_with("t.bin.zst") { "page_binary" } else { "page_csv" };
        good(&["trace", "convert", text(&at("plain.csv")), text(&packed), "--to", to]);
        let bytes = std::fs::read(&packed).unwrap();
        std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
        let error = refused(&["trace", "stat", text(&cut)]);
        assert!(error.contains("cut off behind") && error.contains("--rescue"), "{error}");

        let run = tantalum(&["trace", "convert", "--rescue", text(&cut), text(&rescued)]);
        assert_eq!(run.code, 1, "{}", run.err);
        assert!(run.err.contains("cut off behind"), "{}", run.err);
        let taken = std::fs::read_to_string(&rescued).unwrap();
        assert!(plain.starts_with(&taken) && taken.ends_with('\n'), "the beginning of it");
        assert!(taken.lines().count() > 25_000, "{} lines of 100,000", taken.lines().count());
    }
}

/// Files are laid end to end, so such a trace is read twice.
#[test]
fn rescue_reads_bytes_in_volumes_too() {
    let folder = tempfile::tempdir().unwrap();
    let torn = folder.path().join("torn.csv");
    std::fs::write(&torn, "op,file_kind,offset,length\nW,db,0,8192\nW,wal,4096,4096\nF,wal")
        .unwrap();
    let convert = |to: &str| {
        let args = ["trace", "convert", "--rescue", text(&torn), "-", "--to", to];
        let run = tantalum(&args);
        assert_eq!(run.code, 1, "{}", run.err);
        assert_eq!(run.err.matches("cut off behind line 3").count(), 1, "{}", run.err);
        run.out
    };
    assert_eq!(convert("page_csv"), "op,page\nW,0\nW,1\nW,3\n");
    let lines = "op,file_kind,offset,length\nW,db,0,8192\nW,wal,4096,4096\n";
    assert_eq!(convert("block_csv"), lines);
}

#[test]
fn a_bad_line_is_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, out) = (folder.path().join("bad.csv"), folder.path().join("out.csv"));
    std::fs::write(&bad, "op,page\nX,1\nW,1").unwrap();
    let error = refused(&["trace", "convert", "--rescue", text(&bad), text(&out)]);
    assert!(error.contains("bad.csv:2: ") && !Path::exists(&out), "{error}");
}
