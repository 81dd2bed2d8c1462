//! Names and sizes on the command line: help, other spellings, and refusals that say what to do.
mod support;
use support::{file, good, lab, refused, text};

const TRACE: &str = "zipf:pages=50,requests=500,writes=0.3";

#[test]
fn help_needs_no_trace_and_is_no_error() {
    let told = good(&["replay", "--policy", "help"]);
    assert!(told.contains("lru, fifo") && told.contains("s3_fifo"), "{told}");
    let told = good(&["replay", "--policy", "lru_k:help"]);
    assert!(told.contains("lru_k takes: k (1 to 8, default 2)"), "{told}");
    assert!(good(&["replay", "--device", "help"]).contains("durassd"));
    assert!(good(&["advise", "--flash", "ssd-a:help"]).contains("capacity"));
}

#[test]
fn common_spellings_are_taken_and_a_slip_is_recognized() {
    let rows = |policy: &str| {
        let csv = good(&["replay", TRACE, "--policy", policy, "--size", "10", "--format", "csv"]);
        csv.lines().nth(1).expect("a row").to_owned()
    };
    for (given, name) in
        [("s3fifo", "s3_fifo"), ("wtinylfu", "w_tinylfu"), ("Belady", "opt"), ("LRU-K", "lru_k")]
    {
        assert_eq!(rows(given), rows(name), "{given}");
    }
    let told = refused(&["replay", TRACE, "--policy", "lur", "--size", "10"]);
    assert!(told.contains("did you mean \"lru\"?"), "{told}");
    let told = refused(&["replay", TRACE, "--device", "durasd"]);
    assert!(told.contains("did you mean \"durassd\"?"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.bin");
    good(&["trace", "convert", TRACE, text(&out), "--to", "oracleGeneral"]);
    let stat = good(&["trace", "stat", text(&out), "--trace-format", "oracleGeneral"]);
    assert!(stat.contains("500"), "{stat}");
}

#[test]
fn a_size_that_cannot_be_is_refused_with_the_limit_and_a_hint() {
    let of =
        |policy: &str, size: &str| refused(&["replay", TRACE, "--policy", policy, "--size", size]);
    let told = of("lru", "4294967294");
    assert!(told.contains("accepted: 1 to 536870912"), "{told}");
    let told = of("lru", "0.1");
    assert!(told.contains("10%"), "{told}");
    let told = of("lru", "-5");
    assert!(told.contains("\"-5\" is not a number with a unit"), "{told}");
    let told = refused(&["replay", TRACE, "--device", "ssd-a:capacity=10000TiB"]);
    assert!(told.contains("TiB") && told.contains("capacity is "), "{told}");
}

#[test]
fn an_empty_trace_is_said_to_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = file(folder.path(), "nothing.csv", "");
    let told = refused(&["trace", "stat", text(&nothing)]);
    assert!(told.contains("is empty: it has no requests"), "{told}");
    let header = file(folder.path(), "header.csv", "op,page\n");
    let told = refused(&["replay", text(&header), "--policy", "lru", "--size", "10%"]);
    assert!(told.contains("the trace has no requests"), "{told}");
    let told = refused(&["replay", text(&header), "--policy", "opt", "--size", "10"]);
    assert!(told.contains("no requests"), "{told}");
    let told = refused(&[
        "replay",
        TRACE,
        "--policy",
        "opt",
        "--size",
        "9",
        "--device",
        "durassd",
        "--clients",
        "4",
    ]);
    assert!(told.contains("--clients 4: policy opt"), "{told}");
    assert!(told.contains("leave --clients out, or name other policies"), "{told}");
    let device = ["--size", "9", "--device", "durassd", "--clients", "2"];
    let words = ["replay", "/nowhere", "--policy", "lru,cfdc:base=opt"];
    let told = refused(&[&words[..], &device].concat());
    assert!(told.contains("policy cfdc:base=opt"), "before the trace is read: {told}");
}

#[test]
fn every_output_about_a_trace_counts_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = "op,file_kind,offset,length\nR,a,0,8192\nW,b,0,4096\nF,a,0,0\nR,a,4096,4096\n";
    let trace = file(folder.path(), "b.csv", blocks);
    for more in [&["--blocks"][..], &[]] {
        let json = good(&[&["trace", "stat", text(&trace), "--format", "json"], more].concat());
        assert!(json.contains("\"trace_requests\": 3"), "{json}");
    }
}

/// A result can be told from that of other parameters, in every output about a trace.
#[test]
fn a_generated_trace_is_told_with_its_parameters() {
    let told = format!("\"workload\": \"{TRACE}\"");
    for words in [
        &["replay", TRACE, "--policy", "lru", "--size", "9"][..],
        &["replay", TRACE, "--device", "durassd", "--fresh"],
        &["curve", TRACE],
        &["trace", "stat", TRACE],
    ] {
        let json = good(&[words, &["--format", "json"]].concat());
        assert!(json.contains(&told) && json.contains("\"trace\": \"zipf\""), "{json}");
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "t.csv", "op,page\nR,1\n");
    let json = good(&["trace", "stat", text(&trace), "--format", "json"]);
    assert!(!json.contains("workload"), "{json}");
}

/// Truncations become no pages. Where bytes stay bytes, nothing is left out.
#[test]
fn truncations_that_are_left_out_are_told_with_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = "op,file_kind,offset,length\nW,a,0,8192\nT,a,0,0\nT,a,0,0\n";
    let trace = file(folder.path(), "b.csv", blocks);
    let to = |format| lab(&["trace", "convert", text(&trace), "-", "--to", format]);
    let ran = to("page_csv");
    assert!(
        ran.code == 0 && ran.err.contains("-: without 2 truncations of the trace"),
        "{}",
        ran.err
    );
    let ran = to("block_csv");
    assert!(ran.out == blocks && !ran.err.contains("without"), "{}", ran.err);
    let replay = ["replay", text(&trace), "--policy", "lru", "--size", "1"];
    let table = good(&replay);
    assert!(table.contains("left out of the trace: 2 truncations"), "{table}");
    let json = good(&[&replay[..], &["--format", "json"]].concat());
    assert!(json.contains("\"dropped\": \"truncations\""), "{json}");
}

/// The end of a name states the format, as in reading.
#[test]
fn a_converted_trace_has_the_format_and_the_compression_that_its_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    good(&["trace", "convert", "scan:pages=3,requests=3", text(&at("t.lis"))]);
    assert_eq!(std::fs::read_to_string(at("t.lis")).unwrap().lines().count(), 3);
    assert!(!std::fs::read_to_string(at("t.lis")).unwrap().contains("op,page"));
    good(&["trace", "convert", "scan:pages=3,requests=3", text(&at("t.lis")), "--to", "page_csv"]);
    assert!(std::fs::read_to_string(at("t.lis")).unwrap().contains("op,page"));
    good(&["trace", "generate", "scan:pages=3,requests=3", text(&at("t.oracleGeneral"))]);
    assert_eq!(at("t.oracleGeneral").metadata().unwrap().len(), 72);
    for name in ["t.parquet", "t.PARQUET.zst", "t.msr.gz"] {
        for verb in ["convert", "generate"] {
            let told = refused(&["trace", verb, "scan:pages=3", text(&at(name))]);
            assert!(told.contains("--to") && told.contains("page_csv, block_csv"), "{told}");
            assert!(!at(name).exists());
        }
    }
    for name in ["plain", "upper.CSV.gz", "packed.zst"] {
        good(&["trace", "generate", "scan:pages=3,requests=3", text(&at(name))]);
    }
    good(&[
        "trace",
        "generate",
        "scan:pages=3,requests=3",
        text(&at("t.parquet")),
        "--to",
        "page_csv",
    ]);
    for name in ["t.csv.bz2", "t.csv.xz"] {
        let told = refused(&["trace", "convert", "scan:pages=3", text(&at(name))]);
        assert!(told.contains(".zst") && told.contains(".gz"), "{told}");
        assert!(!at(name).exists());
    }
    let blocks = file(folder.path(), "b.csv", "op,file_kind,offset,length\nR,a,0,8192\n");
    let ran = lab(&["trace", "convert", text(&blocks), text(&at("p.bin")), "--to", "page_csv"]);
    assert!(ran.err.contains("1 event of 2 pages"), "{}", ran.err);
}
