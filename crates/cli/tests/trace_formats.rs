//! Foreign traces through the command line: formats, volumes, page sizes, parts, statistics.
mod support;
use support::{good, refused, tantalum, text};

const ALIBABA: &str = "3,W,0,4096,1\n9,R,4096,8192,2\n3,R,8192,1,3\n9,W,0,512,4\n";

fn rows(args: &[&str]) -> Vec<serde_json::Value> {
    let out = good(&[args, &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    json["rows"].as_array().unwrap().clone()
}

#[test]
fn volumes_page_sizes_and_expansion() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("io.csv");
    std::fs::write(&path, ALIBABA).unwrap();
    let path = path.to_str().unwrap();
    let convert = |args: &[&str]| good(&[&["trace", "convert", path, "-"], args].concat());
    assert_eq!(convert(&[]), "op,page\nW,0\nR,4\nR,5\nR,2\nW,3\n");
    assert_eq!(convert(&["--trace-format", "alibaba"]), convert(&[]));
    assert_eq!(convert(&["--from", "alibaba"]), convert(&[]));
    assert_eq!(convert(&["--volume", "9"]), "op,page\nR,1\nR,2\nW,0\n");
    assert_eq!(convert(&["--expand", "first"]), "op,page\nW,0\nR,4\nR,2\nW,3\n");
    assert_eq!(convert(&["--page-size", "8KiB"]), "op,page\nW,0\nR,2\nR,3\nR,1\nW,2\n");
    assert_eq!(convert(&["--renumber"]), "op,page\nW,0\nR,1\nR,2\nR,3\nW,4\n");
    assert_eq!(convert(&["--to", "plain_text"]), "0\n4\n5\n2\n3\n");
    assert!(
        convert(&["--to", "csv:size=512"]).starts_with("time,obj_id,obj_size,op\n1,0,512,write")
    );
    assert_eq!(convert(&["--to", "block_csv", "--volume", "3"]).lines().count(), 3);

    // Data that no block event can hold are reported, in one line.
    let to = folder.path().join("blocks.csv");
    let blocks = ["trace", "convert", path, text(&to), "--to", "block_csv"];
    for (run, lines) in
        [(tantalum(&["trace", "stat", path, "--blocks"]), 1), (tantalum(&blocks), 2)]
    {
        let said = run.err.lines().filter(|line| line.contains("without times of the trace"));
        assert_eq!((run.code, said.count(), run.err.lines().count()), (0, 1, lines), "{}", run.err);
    }

    let stat = rows(&["trace", "stat", path, "--by-volume"]);
    let of = |key: &str| stat.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("requests"), [5, 2, 3]);
    assert_eq!(of("volume"), [serde_json::Value::Null, "3".into(), "9".into()]);
    assert_eq!(of("distinct_pages"), [5, 2, 3]);
    assert_eq!(of("sequential_share"), [0.4, 0.0, 0.333333]);

    let error = refused(&["trace", "stat", path, "--volume", "5"]);
    assert!(error.contains("no volume \"5\"; it has 3, 9"), "{error}");
    let error = refused(&["trace", "stat", path, "--trace-format", "mrs"]);
    assert!(error.contains("page_csv, block_csv") && error.contains("blkparse"), "{error}");
    let error = refused(&["trace", "stat", path, "--trace-format", "tencent"]);
    assert!(error.contains("io.csv:1: "), "{error}");
    for (option, value, said) in
        [("--page-size", "5000", "powers of two"), ("--expand", "some", "yes, no, first")]
    {
        let run = tantalum(&["trace", "stat", path, option, value]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains(said), "{}", run.err);
    }
}

#[test]
fn ids_of_text_are_counted_converted_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.csv");
    std::fs::write(&path, "# time, key, op\n1,user:7,get\n2,17,set\n3,user:7,get\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(rows(&["trace", "stat", path])[0]["distinct_pages"], 2);
    assert_eq!(good(&["trace", "convert", path, "-"]), "op,page\nR,0\nW,1\nR,0\n");
    let replayed = rows(&["replay", path, "--policy", "lru", "--size", "4"]);
    assert_eq!((&replayed[0]["requests"], &replayed[0]["misses"]), (&3.into(), &2.into()));
    let error = refused(&["trace", "stat", path, "--trace-format", "csv:ids=number"]);
    assert!(error.contains("keys.csv:2: ") && error.contains("csv:ids=text"), "{error}");
}

#[test]
fn objects_may_be_as_many_pages_as_they_need_and_what_is_left_out_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sized.csv");
    let lines = "time,obj_id,obj_size\n1,a,9000\n2,b,100\n3,a,9000\n4,c,4096\n5,a,9000\n";
    std::fs::write(&path, lines).unwrap();
    let path = text(&path);
    let report = |args: &[&str]| -> serde_json::Value {
        let out = good(&[args, &["--format", "json"]].concat());
        serde_json::from_str(&out).unwrap()
    };
    let replay = ["replay", path, "--policy", "lru", "--size", "16KiB"];
    let objects = report(&replay);
    assert_eq!(objects["dropped"], "times, sizes");
    assert_eq!(
        (&objects["trace_requests"], &objects["rows"][0]["requests"]),
        (&5.into(), &5.into())
    );
    let bytes = report(&[&replay[..], &["--objects", "as-pages"]].concat());
    assert_eq!(bytes["dropped"], "times");
    assert_eq!((&bytes["trace_requests"], &bytes["rows"][0]["requests"]), (&5.into(), &11.into()));
    assert_ne!(bytes["config"], objects["config"]);
    let table = good(&["trace", "stat", path]);
    assert!(table.contains("times, sizes (each object is one page; --objects as-pages"), "{table}");
    assert!(table.contains("trace_requests 5"), "{table}");
    let table = good(&["trace", "stat", path, "--objects", "as-pages"]);
    assert!(table.contains("5 requests of the trace ask for 11 pages"), "{table}");
    let to = folder.path().join("pages.csv");
    let run = tantalum(&["trace", "convert", path, text(&to), "--objects", "as-pages"]);
    assert!(run.err.contains("without times of the trace"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&to).unwrap().lines().count(), 12);
    // On a device, only traces that have bytes may have pages of another size.
    let device = ["replay", path, "--device", "durassd:capacity=64MiB", "--page-size", "8KiB"];
    let error = refused(&device);
    assert!(error.contains("--objects as-pages cuts objects that have sizes"), "{error}");
    good(&[&device[..], &["--objects", "as-pages"]].concat());
    let run = tantalum(&["trace", "stat", path, "--objects", "whole"]);
    assert!(run.code == 2 && run.err.contains("one-page, as-pages"), "{}", run.err);
}

#[test]
fn parts_of_traces_are_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "op,page\nR,1\nW,2\nC,\nR,3\nR,4\n").unwrap();
    let text = format!("concat:{}@50%+scan:pages=2,requests=9@1+{0}@75%..", path.display());
    assert_eq!(good(&["trace", "convert", &text, "-"]), "op,page\nR,1\nW,2\nC,\nR,1024\nR,4\n");
    let replayed = rows(&["replay", &text, "--policy", "lru", "--size", "4"]);
    assert_eq!((&replayed[0]["trace"], &replayed[0]["misses"]), (&"concat".into(), &4.into()));
    let over = path.to_str().unwrap();
    let error = refused(&["trace", "convert", &text, over]);
    assert!(error.contains("overwritten while it is read"), "{error}");
    let error = refused(&["trace", "stat", "concat:scan@5MiB"]);
    assert!(error.contains("TRACE@RANGE"), "{error}");
}

#[test]
fn generators_are_listed_and_written_in_any_page_format() {
    let list = good(&["trace", "generate", "--list"]);
    assert!(list.contains("cfdc_synthetic: ") && list.contains("scan_pages"), "{list}");
    let out = good(&["trace", "generate", "scan:pages=2,requests=3", "-", "--to", "plain_text"]);
    assert_eq!(out, "0\n1\n0\n");
    let error = refused(&["trace", "generate", "scan", "-", "--to", "block_csv"]);
    assert!(error.contains("generators make traces of pages"), "{error}");
    assert_eq!(tantalum(&["trace", "generate"]).code, 2);
}

#[test]
fn a_conversion_says_what_the_format_has_no_place_for() {
    let folder = tempfile::tempdir().unwrap();
    let from = "zipf:pages=50,requests=300,writes=0.5,commit=10,seed=3";
    let told = |format: &str| {
        let to = folder.path().join(format);
        let done = tantalum(&["trace", "convert", from, text(&to), "--to", format]);
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    let lis = told("lis");
    assert!(lis.contains("commit points") && lis.contains("that look like reads"), "{lis}");
    let csv = told("csv");
    assert!(csv.contains("without") && !csv.contains("look like reads"), "{csv}");
    assert!(!told("page_csv").contains("no place"), "nothing is lost");
}
