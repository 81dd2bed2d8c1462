//! Typing mistakes: refused with helpful advice, before anything is done.
mod support;

use support::{good, refused, tantalum};

const TRACE: &str = "zipf:pages=1k,requests=500,writes=0.5";

/// The parser refuses `args` with messages that contain `said`.
fn refused_by_parser(args: &[&str], said: &[&str]) {
    let run = tantalum(args);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}: {}", run.err);
    said.iter().for_each(|said| assert!(run.err.contains(said), "{args:?}: {}", run.err));
}

#[test]
fn an_option_that_would_do_nothing_is_refused() {
    let cached = ["replay", TRACE, "--policy", "lru", "--size", "10"];
    for more in
        [&["--transactions"][..], &["--fresh"], &["--clients", "2"], &["--device-seed", "2"]]
    {
        refused_by_parser(&[&cached[..], more].concat(), &["--device <DEVICE,...>"]);
    }
    refused_by_parser(&[&cached[..], &["--cpu-ns", "5"]].concat(), &["--device <DEVICE,...>"]);
    let on_device = ["replay", TRACE, "--device", "bast"];
    refused_by_parser(&[&on_device[..], &["--cpu-ns", "5"]].concat(), &["--policy"]);
    refused_by_parser(&[&on_device[..], &["--timing"]].concat(), &["--policy"]);
    let served = ["serve", "v.toml", "--nbd", "unix:s", "--device-seed", "2"];
    refused_by_parser(&served, &["cannot be used with", "--device-seed"]);
}

#[test]
fn a_volume_that_is_taken_for_a_socket_is_told() {
    let told = refused(&["serve", "--socket", "v/VOLUME.toml"]);
    assert!(told.contains("tantalum serve v/VOLUME.toml --socket"), "{told}");
}

#[test]
fn numbers_that_cannot_be_are_refused_with_those_that_can() {
    let on_device = ["replay", TRACE, "--device", "bast", "--clients"];
    for clients in ["0", "65537", "4294967295", "many"] {
        refused_by_parser(&[&on_device[..], &[clients]].concat(), &["--clients", "1 to 65536"]);
    }
    let cached = ["replay", TRACE, "--policy", "lru", "--size"];
    refused_by_parser(
        &[&cached[..], &["10", "--threads", "0"]].concat(),
        &["--threads", "1 or more"],
    );
    for (size, said) in [
        ("99999999999TiB", "too large"),
        ("99999999999999999999", "too large"),
        ("500%", "more than 100%"),
        ("1.5", "not a whole number"),
        ("5XiB", "4096, 4k, 64MiB"),
    ] {
        let told = refused(&[&cached[..], &[size]].concat());
        assert!(told.contains(size) && told.contains(said), "{told}");
    }
}

#[test]
fn a_trace_that_is_none_is_told_from_a_generator_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.csv");
    std::fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    for command in [&["trace", "stat"][..], &["curve"]] {
        let told = refused(&[command, &[empty]].concat());
        assert!(told.contains("empty.csv is empty") && told.contains("--trace-format"), "{told}");
        // An empty file is a trace if the format is named.
        good(&[command, &[empty, "--trace-format", "page_csv"]].concat());
        let told = refused(&[command, &["zipff:pages=3"]].concat());
        assert!(
            told.contains("zipff:pages=3: ") || told.contains("\"zipff\" is not a generator"),
            "{told}"
        );
        assert!(told.contains("zipf, "), "{told}");
        let told = refused(&[command, &["nothere.csv"]].concat());
        assert!(told.contains("nothere.csv") && !told.contains("generator"), "{told}");
    }
}

#[test]
fn help_in_the_place_of_parameters_lists_them() {
    let told = good(&["replay", "--device", "wal:help"]);
    for parameter in [
        "wal takes: ",
        "capacity",
        "op (0 to 8, default 0.15)",
        "log (",
        "commit (pages or record,",
        "transactions (",
    ] {
        assert!(told.contains(parameter), "{told}");
    }
    let told = refused(&["trace", "stat", "zipf:help"]);
    assert!(told.contains("zipf takes: ") && told.contains("theta (0 to 4, default 1)"), "{told}");
    let told = good(&["replay", TRACE, "--policy", "clock:help"]);
    assert!(told.contains("clock takes: bits ("), "{told}");
}

#[test]
fn a_trace_larger_than_the_device_is_said_to_be_folded() {
    let trace = "scan:pages=600,requests=600,writes=1";
    let on = |device: &str, more: &[&str]| {
        let run = tantalum(&[&["replay", trace, "--device", device, "--fresh"], more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        run.err
    };
    for more in [&[][..], &["--policy", "lru", "--size", "10"]] {
        let told = on("bast:pages=599", more);
        assert!(told.contains("600 pages, the device has 599"), "{told}");
        assert!(!on("bast:pages=600", more).contains("warning"));
    }
    let larger = ["--policy", "lru", "--size", "10", "--page-size", "8KiB"];
    let told = on("bast:pages=1199", &larger);
    assert!(told.contains("1200 pages, the device has 1199"), "{told}");
    assert!(!on("bast:pages=1200", &larger).contains("warning"));
}

#[test]
fn a_second_volume_in_one_folder_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    good(&["create", &path("a.toml"), "--capacity", "4MiB"]);
    let told = refused(&["create", &path("b.toml"), "--capacity", "4MiB"]);
    assert!(told.contains("data.tantalum") && told.contains("its own folder"), "{told}");
    assert!(!folder.path().join("b.toml").exists());
    good(&["check", &path("a.toml")]);
    let told = refused(&["check", &path("data.tantalum")]);
    assert!(told.contains("data.tantalum") && told.contains("VOLUME.toml"), "{told}");
    let told = refused(&["share", &path("a.toml"), "1", "0", "0"]);
    assert!(told.contains("0 pages are not a range"), "{told}");
}

#[test]
fn a_new_volume_makes_its_folder_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    good(&["create", &path("vol/v.toml"), "--capacity", "4MiB"]);
    good(&["check", &path("vol/v.toml")]);
    let told = refused(&["create", &path("typo/vol/v.toml"), "--capacity", "4MiB"]);
    assert!(told.contains(&path("typo/vol")), "{told}");
    assert!(!folder.path().join("typo").exists());
}
