//! `tantalum resize` from the user's view.
mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::tiered::TieredVolume;
use support::volume::{assert_tells, data_of, edit, names, volume};
use support::{good, on_small_disk, refused, stat_row as row, tantalum, text};
use tantalum_testing::built;

const MIB: u64 = 1 << 20;

/// Writes `byte` to the pages from `first` on.
fn write(config: &Path, first: u64, pages: usize, byte: u8) {
    let server = Server::start(config);
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(first, &vec![byte; pages * PAGE_BYTES]);
    server.terminate();
}

/// Whether these pages contain `byte`, and the check succeeds.
fn holds(config: &Path, first: u64, pages: usize, byte: u8) -> bool {
    good(&["check", text(config)]);
    let server = Server::start(config);
    let mut client = Client::connect(&server.socket).unwrap();
    let held = client.read(first, pages).unwrap() == vec![byte; pages * PAGE_BYTES];
    server.terminate();
    held
}

fn capacity(config: &Path) -> u64 {
    row(config)["capacity_bytes"].as_u64().unwrap()
}

#[test]
fn a_volume_grows_and_keeps_what_it_has() {
    let (folder, config) = volume();
    write(&config, 0, 100, 5);
    let before = fs::read_to_string(&config).unwrap();
    let told = good(&["resize", text(&config), "16MiB"]);
    assert_tells(&told, &["16.0 MiB instead of 4.0 MiB", "zones of 1.0 MiB", "allocated"]);
    assert_eq!(capacity(&config), 16 * MIB);
    let after = fs::read_to_string(&config).unwrap();
    assert_eq!(after, before.replace("capacity = \"4MiB\"", "capacity = \"16MiB\""));
    assert_eq!(names(folder.path()), ["data.tantalum", "v.toml"]);
    let data = fs::metadata(data_of(&config)).unwrap();
    assert!(data.len() > 16 * MIB && data.blocks() * 512 >= data.len());
    assert!(holds(&config, 0, 100, 5));
    write(&config, 4000, 96, 6);
    assert!(holds(&config, 4000, 96, 6));
    // It can be repeated, and may name the present size.
    assert_tells(&good(&["resize", text(&config), "16MiB"]), &["the volume has 16.0 MiB already"]);
    let told = good(&["resize", text(&config), "20MB"]);
    assert_tells(&told, &["20MB is 20,000,768 bytes"]);
    assert!(holds(&config, 0, 100, 5));
    assert!(fs::read_to_string(&config).unwrap().contains("capacity = \"20MB\""));
    // A configuration that already has the new size, as a user may have written it.
    edit(&config, "20MB", "32MiB");
    assert_tells(&refused(&["stat", text(&config)]), &["`tantalum resize` makes it larger"]);
    good(&["resize", text(&config), "32MiB"]);
    assert_eq!(capacity(&config), 32 * MIB);
    assert!(holds(&config, 4000, 96, 6));
}

#[test]
fn what_cannot_be_resized_says_why_and_stays() {
    let (_folder, config) = volume();
    write(&config, 0, 10, 5);
    let server = Server::start(&config);
    let told = refused(&["resize", text(&config), "8MiB"]);
    assert_tells(&told, &["no process may have the volume open", "pid"]);
    server.terminate();
    for (size, told) in [
        ("2MiB", "a volume does not shrink"),
        ("9TiB", "over the limit of 8 TiB"),
        ("8TiB", "over the limit of 8 TiB"),
        ("12", "SIZE"),
        ("0MiB", "SIZE"),
    ] {
        assert_tells(&refused(&["resize", text(&config), size]), &[told]);
    }
    assert_eq!(capacity(&config), 4 * MIB);
    assert!(holds(&config, 0, 10, 5));
    let tiered = TieredVolume::new("ordered");
    let told = refused(&["resize", text(&tiered.config()), "512MiB"]);
    assert_tells(&told, &["a tiered volume does not grow", "tantalum detach"]);
    edit(&config, "type = \"file\"", "type = \"memory\"");
    assert_tells(&refused(&["resize", text(&config), "8MiB"]), &["in memory", "device.capacity"]);
}

#[test]
fn a_full_file_system_leaves_the_old_size() {
    let resized = on_small_disk("24m", |small| {
        let config = small.join("v.toml");
        good(&["create", text(&config), "--capacity", "4MiB"]);
        write(&config, 0, 10, 5);
        let bytes = fs::metadata(data_of(&config)).unwrap().len();
        let run = tantalum(&["resize", text(&config), "64MiB"]);
        let (left, says) = (fs::metadata(data_of(&config)).unwrap().len(), capacity(&config));
        (run, (left, says, holds(&config, 0, 10, 5)), bytes)
    });
    let Some((run, (left, says, is_there), bytes)) = resized else { return };
    assert_eq!(run.code, 2, "{}{}", run.out, run.err);
    assert_tells(&run.err, &["make room", "no room for ", " MiB at ", "data.tantalum", " free"]);
    assert_eq!((left, says, is_there), (bytes, 4 * MIB, true));
}

#[test]
fn a_sparse_volume_grows_without_taking_room() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "64MiB", "--sparse"]);
    assert_tells(&good(&["resize", text(&config), "4GiB"]), &["sparse", "allocated"]);
    let data = fs::metadata(data_of(&config)).unwrap();
    assert!(data.len() > 4 << 30 && data.blocks() * 512 < 64 * MIB, "{}", data.blocks());
    write(&config, (4 << 30) / PAGE_BYTES as u64 - 8, 8, 7);
    assert!(holds(&config, (4 << 30) / PAGE_BYTES as u64 - 8, 8, 7));
}

#[test]
fn a_kill_leaves_the_one_size_or_the_other() {
    let (folder, config) = volume();
    write(&config, 0, 200, 5);
    let (mut size_mib, mut between) = (4, 0);
    for turn in 0..24u64 {
        let wanted = (size_mib + 4).to_string() + "MiB";
        let mut child = Command::new(built::tantalum())
            .args(["resize", text(&config), &wanted])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "a process is to be killed at some time")]
        std::thread::sleep(std::time::Duration::from_micros(200 * turn * turn));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = capacity(&config) / MIB;
        assert!(found == size_mib || found == size_mib + 4, "turn {turn}: {found} MiB");
        // The configuration may not have the new size yet.
        between += u32::from(found > size_mib);
        assert!(holds(&config, 0, 200, 5), "turn {turn}");
        if turn % 3 == 2 {
            good(&["resize", text(&config), &wanted]);
            assert_eq!(capacity(&config) / MIB, size_mib + 4);
            assert!(fs::read_to_string(&config).unwrap().contains(&format!("\"{wanted}\"")));
            let left = names(folder.path());
            let expected = ["data.tantalum", "v.toml"].map(String::from);
            assert!(expected.iter().all(|name| left.contains(name)), "{left:?}");
        }
        size_mib = capacity(&config) / MIB;
    }
    println!("after {between} of 24 kills it had grown");
    good(&["check", text(&config)]);
}
