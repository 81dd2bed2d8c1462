//! `tantalum create` from the user's view.
mod support;

use std::fs;
use std::process::{Command, Stdio};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::volume::{assert_tells, data_of, edit, names, volume};
use support::{good, on_small_disk, refused, tantalum, text};
use tantalum_testing::built;

#[test]
fn create_without_a_configuration_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    assert_tells(&refused(&["create", text(&config)]), &["v.toml does not exist", "--capacity"]);
    for capacity in ["0", "0MiB", "4097.5B", "much", "1GiB\"", "9TiB"] {
        let told = refused(&["create", text(&config), "--capacity", capacity]);
        assert_tells(&told, &["capacity"]);
        assert!(!told.contains("line"), "the file is not the user's: {told}");
        assert!(names(folder.path()).is_empty(), "{capacity} left something behind");
    }
    let elsewhere = folder.path().join("missing/folder/v.toml");
    let told = refused(&["create", text(&elsewhere), "--capacity", "4MiB"]);
    assert_tells(&told, &["missing/folder", "make that first", "No such file"]);
}

#[test]
fn create_makes_what_stat_and_check_find_good() {
    let (folder, config) = volume();
    assert_eq!(names(folder.path()), ["data.tantalum", "v.toml"]);
    let stat: serde_json::Value =
        serde_json::from_str(&good(&["stat", text(&config), "--format", "json"])).unwrap();
    let row = &stat["rows"][0];
    assert_eq!(row["capacity_bytes"], 4 << 20);
    assert_eq!(row["durability"], "on_ack");
    assert_eq!(row["store_bytes"], fs::metadata(data_of(&config)).unwrap().len());
    assert_eq!((&row["mapped_bytes"], &row["replayed_at_open"]), (&0.into(), &0.into()));
    assert_tells(&good(&["check", text(&config)]), &["v.toml: sound: 4.0 MiB", "0 problems"]);
}

#[test]
fn sizes_that_are_no_multiples_of_a_page_are_rounded_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let create = ["create", text(&config), "--capacity", "5MB"];
    let told = good(&create);
    assert_tells(
        &told,
        &["v.toml: in whole pages of 4 KiB, device.capacity = \"5MB\" is 5,001,216 bytes\n"],
    );
    assert_tells(&refused(&create), &["is a volume already"]);
    edit(&config, "# cache = \"8MiB\"", "cache = \"9MB\"");
    let told = good(&[&create[..], &["--force"]].concat());
    assert_tells(&told, &["\"5MB\" is 5,001,216 bytes, device.cache = \"9MB\" is 9,003,008 bytes"]);
    let stat: serde_json::Value =
        serde_json::from_str(&good(&["stat", text(&config), "--format", "json"])).unwrap();
    assert_eq!(stat["rows"][0]["capacity_bytes"], 5_001_216);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(1220, &[7; PAGE_BYTES]);
    assert_eq!(client.read(1220, 1), Ok(vec![7; PAGE_BYTES]), "the last page");
    server.terminate();
    let even = folder.path().join("even/v.toml");
    assert!(!good(&["create", text(&even), "--capacity", "4MiB"]).contains("whole pages"));
}

#[test]
fn create_writes_what_it_is_told_and_says_what_it_allocates() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let create = ["create", text(&config), "--capacity", "32MiB"];
    for (more, told) in [
        (
            ["--durability", "sometimes"],
            "--durability: \"sometimes\" is not one of on_ack, on_flush",
        ),
        (["--cache", "0MiB"], "--cache: 0MiB is zero"),
        (["--cache", "1000"], "--cache: "),
        (["--cache", "5GiB"], "device.cache is over the limit of 4 GiB"),
        (["--buffer", "much"], "--buffer: "),
    ] {
        assert_tells(&refused(&[&create[..], &more].concat()), &[told]);
        assert!(names(folder.path()).is_empty(), "{more:?} left something behind");
    }
    let settings = ["--durability", "on_flush", "--cache", "1MiB", "--buffer", "2MiB"];
    let told = good(&[&create[..], &settings].concat());
    let bytes = fs::metadata(data_of(&config)).unwrap().len();
    let allocated =
        format!("data.tantalum: {:.1} MiB allocated\n", bytes as f64 / f64::from(1 << 20));
    assert_tells(&told, &[&allocated]);
    let written = fs::read_to_string(&config).unwrap();
    for line in ["durability = \"on_flush\"", "cache = \"1MiB\"", "size = \"2MiB\""] {
        assert!(written.lines().any(|written| written == line), "{line} is missing in {written}");
    }
    let stat: serde_json::Value =
        serde_json::from_str(&good(&["stat", text(&config), "--format", "json"])).unwrap();
    assert_eq!(stat["rows"][0]["durability"], "on_flush");
    for (more, told) in [
        (["--durability", "on_ack"], "says device.durability = \"on_flush\""),
        (["--cache", "8MiB"], "says device.cache = \"1MiB\""),
        (["--buffer", "64MiB"], "says buffer.size = \"2MiB\""),
    ] {
        assert_tells(
            &refused(&[&create[..], &more, &["--force"]].concat()),
            &[told, "change it there"],
        );
    }
    good(&[&create[..], &settings, &["--force"]].concat());

    let sparse = folder.path().join("sparse/v.toml");
    let told = good(&["create", text(&sparse), "--capacity", "1GiB", "--sparse"]);
    assert_tells(
        &told,
        &["sparse/data.tantalum: sparse, ", "GiB allocated, the rest as it is written"],
    );
    let (home, flash) = (folder.path().join("home"), folder.path().join("flash"));
    let tiered = folder.path().join("tiered/v.toml");
    let tiered = [
        "create",
        text(&tiered),
        "--capacity",
        "64MiB",
        "--home",
        text(&home),
        "--flash",
        text(&flash),
    ];
    let tiered = [&tiered[..], &["--flash-size", "64MiB", "--cache", "2MiB"]].concat();
    let both = tantalum(&[&tiered[..], &["--durability", "on_flush"]].concat());
    assert!(both.code == 2 && both.err.contains("--durability"), "{}", both.err);
    let told = good(&tiered);
    assert_tells(
        &told,
        &["/flash: ", "MiB allocated\n", "/home: sparse, 2.0 MiB of 64.0 MiB", "/home.journal: "],
    );
}

#[test]
fn the_smallest_volume_works() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4KiB"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for round in 0..400u64 {
        client.write(0, &[round as u8; PAGE_BYTES]);
    }
    assert_eq!(client.read(0, 1), Ok(vec![399u64 as u8; PAGE_BYTES]));
    server.terminate();
    good(&["check", text(&config)]);
}

#[test]
fn create_overwrites_only_by_force() {
    let (_folder, config) = volume();
    let before = fs::read(data_of(&config)).unwrap();
    assert_tells(&refused(&["create", text(&config)]), &["is a volume already", "--force"]);
    let told = refused(&["create", text(&config), "--capacity", "8MiB"]);
    assert_tells(&told, &["v.toml says device.capacity = \"4MiB\"", "tantalum resize", "8MiB`"]);
    let told = refused(&["create", text(&config), "--capacity", "8MiB", "--force"]);
    assert_tells(&told, &["v.toml says device.capacity = \"4MiB\"", "change it there"]);
    assert!(before == fs::read(data_of(&config)).unwrap(), "a refusal changes nothing");
    good(&["create", text(&config), "--capacity", "4MiB", "--force"]);
    assert!(before != fs::read(data_of(&config)).unwrap());

    fs::write(data_of(&config), "letters of a lifetime").unwrap();
    assert_tells(&refused(&["create", text(&config)]), &["is a file already", "--force"]);
    assert_eq!(fs::read(data_of(&config)).unwrap(), b"letters of a lifetime");
    let told = refused(&["stat", text(&config)]);
    assert_tells(&told, &["v.toml", "Tantalum volume"]);
    fs::write(data_of(&config), "").unwrap();
    good(&["create", text(&config)]);
    good(&["check", text(&config)]);
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let told = refused(&["create", text(&config), "--capacity", "8TiB"]);
    assert!(told.contains("no room for") || told.contains("too large"), "{told}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));

    // In a folder that does not exist.
    good(&["create", text(&config), "--capacity", "4MiB"]);
    edit(&config, "data.tantalum", "missing/data.tantalum");
    assert_tells(&refused(&["create", text(&config)]), &["missing/data.tantalum", "No such file"]);
    fs::remove_file(&config).unwrap();
    fs::remove_file(data_of(&config)).unwrap();

    let created = on_small_disk("4m", |small| {
        let config = small.join("v.toml");
        (tantalum(&["create", text(&config), "--capacity", "64MiB"]), names(small))
    });
    let Some((run, left)) = created else { return };
    assert_eq!(run.code, 2, "{}{}", run.out, run.err);
    assert_tells(&run.err, &["no room for ", " MiB at ", "data.tantalum", " free", "--capacity"]);
    assert!(!run.err.contains("creating") && !run.err.contains(" bytes"), "{}", run.err);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_creation_that_was_killed_is_no_volume_and_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let mut cut_short = 0;
    for turn in 0..24u64 {
        let mut child = Command::new(built::tantalum())
            .args(["create", text(&config), "--capacity", "24MiB"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "a process is to be killed at some time")]
        std::thread::sleep(std::time::Duration::from_micros(500 * turn * turn));
        child.kill().unwrap();
        child.wait().unwrap();
        let is_whole = data_of(&config).exists();
        cut_short += u32::from(!is_whole);
        if is_whole {
            good(&["check", text(&config)]);
            fs::remove_file(data_of(&config)).unwrap();
        } else if config.exists() {
            let told = refused(&["serve", text(&config), "--nbd", "127.0.0.1:0"]);
            assert_tells(&told, &["data.tantalum does not exist", "tantalum create"]);
        }
        if turn % 4 == 3 {
            good(&["create", text(&config), "--capacity", "24MiB"]);
            good(&["check", text(&config)]);
            assert_eq!(names(folder.path()), ["data.tantalum", "v.toml"]);
            fs::remove_file(data_of(&config)).unwrap();
            fs::remove_file(&config).unwrap();
        }
    }
    assert!(cut_short > 0, "no creation was caught in the middle");
}
