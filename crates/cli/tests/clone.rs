//! `tantalum clone` and `tantalum trim` from the user's view: a snapshot is made while the volume is served, read,
//! copied out, and dropped.
mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::nbd::{Client, PAGE_BYTES};
use support::server::{Server, run};
use support::volume::{assert_tells, volume};
use support::{good, refused, stat_row as row, text};
use tantalum_base::Rng;
use tantalum_testing::installed;

/// Pages of half a volume.
const HALF: u64 = 512;

/// The content of `page` after write number `count`; every fifth page has none.
fn content(page: u64, count: u8) -> [u8; PAGE_BYTES] {
    let held = page % 5 != 2;
    std::array::from_fn(|at| if held { (page as usize + at / 512) as u8 ^ count } else { 0 })
}

/// Serves `on_ack`, so that acknowledged writes are on the volume, for tests that count its pages or kill the server.
fn served(config: &Path) -> Server {
    Server::start_as(config, &["--durability", "on_ack"])
}

fn write_lower(client: &mut Client, count: u8) {
    let held: Vec<u64> = (0..HALF).filter(|page| page % 5 != 2).collect();
    for run in held.chunk_by(|page, next| page + 1 == *next) {
        let pages: Vec<u8> = run.iter().flat_map(|page| content(*page, count)).collect();
        client.write(run[0], &pages);
    }
}

fn lower(count: u8) -> Vec<u8> {
    (0..HALF).flat_map(|page| content(page, count)).collect()
}

fn read_half(client: &mut Client, first: u64) -> Vec<u8> {
    (first..first + HALF).step_by(64).flat_map(|at| client.read(at, 64).unwrap()).collect()
}

#[test]
fn a_snapshot_is_made_read_and_dropped_while_the_volume_is_served() {
    let (_folder, config) = volume();
    let server = served(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    write_lower(&mut client, 7);
    let mapped = row(&config)["mapped_bytes"].as_u64().unwrap();
    let told = good(&["clone", text(&config)]);
    assert_tells(&told, &["2.0 MiB", "from byte 2097152 on", "clone of"]);
    // A client that did not get the answer requests it again, and gets it.
    assert_eq!(good(&["clone", text(&config)]), told);
    let stat = row(&config);
    assert_eq!(stat["mapped_bytes"].as_u64().unwrap(), 2 * mapped);
    assert_eq!(stat["shared_slots"].as_u64().unwrap() * PAGE_BYTES as u64, mapped);
    write_lower(&mut client, 9);
    assert!(read_half(&mut client, HALF) == lower(7));
    assert!(read_half(&mut client, 0) == lower(9));
    // Existing content is replaced only on request.
    assert_tells(&refused(&["clone", text(&config)]), &["page 512 holds something", "--replace"]);
    assert!(read_half(&mut client, HALF) == lower(7));
    good(&["clone", text(&config), "--replace"]);
    assert!(read_half(&mut client, HALF) == lower(9));
    server.kill();
    let server = served(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    assert!(read_half(&mut client, HALF) == lower(9));
    let told = good(&["trim", text(&config), "2MiB", "2MiB"]);
    assert_tells(&told, &["2.0 MiB", "given up"]);
    assert!(read_half(&mut client, HALF) == [0; HALF as usize * PAGE_BYTES]);
    let stat = row(&config);
    assert_eq!((&stat["mapped_bytes"], &stat["shared_slots"]), (&mapped.into(), &0.into()));
    server.terminate();
    // A part of the volume, while it is not served.
    good(&["clone", text(&config), "600", "0", "100"]);
    good(&["trim", text(&config), "600", "50"]);
    let kept = row(&config)["mapped_bytes"].as_u64().unwrap() - mapped;
    assert_eq!(kept, 40 * PAGE_BYTES as u64);
    good(&["check", text(&config)]);
}

#[test]
fn a_clone_is_copied_out_by_its_place() {
    if !installed(&["nbdcopy", "qemu-img", "nbdinfo"]) {
        return;
    }
    let (folder, config) = volume();
    let server = served(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    write_lower(&mut client, 3);
    good(&["clone", text(&config)]);
    write_lower(&mut client, 4);
    let part = format!("nbd+unix:///@2MiB+2MiB?socket={}", server.socket.display());
    let [copy, other] = ["copy.img", "other.img"].map(|name| folder.path().join(name));
    run("nbdcopy", &[&part, text(&copy)]);
    assert!(std::fs::read(&copy).unwrap() == lower(3), "by nbdcopy");
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &part, text(&other)]);
    assert!(std::fs::read(&other).unwrap() == lower(3), "by qemu-img");
    assert_eq!(run("nbdinfo", &["--size", &part]).trim(), "2097152");
    let beyond = part.replace("@2MiB+2MiB", "@2MiB+3MiB");
    // Without this variable, the client reports only that there is no such export.
    let mut asking = Command::new("nbdinfo");
    let refused = asking.env("LIBNBD_DEBUG", "1").arg(&beyond).output().unwrap();
    assert!(!refused.status.success());
    assert_tells(
        &String::from_utf8_lossy(&refused.stderr),
        &["the part is past the end of the export"],
    );
    server.terminate();
}

#[test]
fn what_cannot_be_cloned_is_refused() {
    let (_folder, config) = volume();
    for (arguments, told) in [
        (&["600", "0", "500"][..], "past the end"),
        (&["100", "0", "101"], "overlap"),
        (&["100", "0", "0"], "LEN: 0 pages are not a range"),
        (&["100", "x", "1"], "B: "),
    ] {
        let refusal = refused(&[&["clone", text(&config)], arguments].concat());
        assert!(refusal.contains(told), "{arguments:?}: {refusal}");
    }
    assert_tells(&refused(&["trim", text(&config), "1000", "25"]), &["past the end"]);
    let stat = row(&config);
    assert_eq!(stat["mapped_bytes"], 0);
}

/// Kills the server during repeated clones: the clone is that of one round or of the previous one.
#[test]
fn a_kill_leaves_all_of_a_clone_or_what_was_there() {
    let (_folder, config) = volume();
    let mut known = None;
    for round in 1..=8 {
        let server = served(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        write_lower(&mut client, round);
        let mut asking = UnixStream::connect(config.with_file_name("v.toml.control")).unwrap();
        asking.write_all(b"clone-over\n").unwrap();
        #[expect(clippy::disallowed_methods, reason = "a process is to be killed at some time")]
        std::thread::sleep(Duration::from_micros(Rng::new(round.into()).below(6000)));
        server.kill();
        let mut answer = String::new();
        // The connection to a killed server may end with an error.
        let _ = asking.read_to_string(&mut answer);
        let server = served(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        assert!(read_half(&mut client, 0) == lower(round), "round {round}: the source");
        let found = read_half(&mut client, HALF);
        let is_there = found == lower(round);
        println!("round {round}: there {is_there}, answered {answer:?}");
        if is_there {
            known = Some(round);
        } else {
            assert!(!answer.starts_with("done"), "round {round}: an acknowledged clone is gone");
            let before = known.map_or_else(|| vec![0; found.len()], lower);
            assert!(found == before, "round {round}: there is a part of a clone");
        }
        server.terminate();
    }
    good(&["check", text(&config)]);
}
