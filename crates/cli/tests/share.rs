//! `tantalum share` from the user's view.
mod support;

use std::path::{Path, PathBuf};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::volume::edit;
use support::{good, refused, stat_row as row, text};
use tempfile::TempDir;

/// A volume of 4 MiB whose pages 0 to 7 contain the bytes 0x40 to 0x47.
fn volume() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..8u64 {
        client.write(page, &[0x40 + page as u8; PAGE_BYTES]);
    }
    server.terminate();
    (folder, config)
}

#[test]
fn pages_take_the_content_of_others_and_keep_it() {
    let (_folder, config) = volume();
    let told = good(&["share", text(&config), "100", "0", "4"]);
    assert!(told.contains("v.toml") && told.contains("16.0 KiB"), "{told}");
    // Positions and lengths in bytes, too.
    good(&["share", text(&config), "800KiB", "16KiB", "4"]);
    let stat = row(&config);
    assert_eq!((&stat["shared_slots"], &stat["shared_entries"]), (&8.into(), &8.into()));
    assert!(stat["shared_bytes"].as_u64().unwrap() > 0);
    assert_eq!(stat["mapped_bytes"], 16 * PAGE_BYTES as u64);
    let server = Server::start_as(&config, &["--durability", "on_ack"]);
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(1, &[1; PAGE_BYTES]);
    client.write(102, &[2; PAGE_BYTES]);
    // After the kill, recovery must restore the shared pages.
    server.kill();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    let expected = [(0, 0x40), (1, 1), (100, 0x40), (101, 0x41), (102, 2), (103, 0x43)];
    for (page, byte) in expected.into_iter().chain((200..204).zip(0x44..)) {
        assert_eq!(client.read(page, 1).unwrap(), [byte; PAGE_BYTES], "page {page}");
    }
    server.terminate();
    good(&["check", text(&config)]);
}

#[test]
fn what_is_refused_changes_nothing_served_or_not() {
    let (_folder, config) = volume();
    // The number in `stat` fits into one share.
    let most = row(&config)["share_pairs_max"].as_u64().unwrap();
    assert!((1024 / 25..1024 / 2).contains(&most), "{most}");
    for is_served in [false, true] {
        let server = is_served.then(|| Server::start(&config));
        refuse_all(&config, most);
        assert_eq!(row(&config)["mapped_bytes"], 8 * PAGE_BYTES as u64);
        drop(server.map(Server::terminate));
    }
}

fn refuse_all(config: &Path, most: u64) {
    let parts = 4096u64.div_ceil(most);
    let [two, three, more] = [2 * most, 3 * most, most + 7].map(|pages| pages.to_string());
    for (arguments, told) in [
        (["2", "0", "4"], "overlap".to_owned()),
        (["100", "6", "4"], "page 8 has no content to share".to_owned()),
        (["1022", "0", "4"], "past the end".to_owned()),
        (["100", "0", "4k"], format!("over the limit of {most}; use {parts} shares")),
        (["700", "0", &three], format!("up to A {} B {two} LEN {most}", 700 + 2 * most)),
        (["700", "0", &two], format!("up to A {} B {most} LEN {most}", 700 + most)),
        (["300", "0", &more], format!("up to A {} B {most} LEN 7", 300 + most)),
        (["100", "0", "0"], "LEN: 0 pages are not a range".to_owned()),
        (["100", "0", "10%"], "LEN: 10% is neither a count of pages".to_owned()),
        (["100B", "0", "1"], "A: 100B is not a multiple of 4096".to_owned()),
        (["100", "zero", "1"], "B: ".to_owned()),
    ] {
        let refusal = refused(&["share", text(config), arguments[0], arguments[1], arguments[2]]);
        assert!(refusal.contains(&told), "{arguments:?}: {refusal}");
    }
}

/// This also works if the server has read the old content before, and has it in its buffer.
#[test]
fn the_server_of_a_volume_shares_and_its_clients_see_it() {
    let (_folder, config) = volume();
    for buffer in ["", "[buffer]\nsize = \"1MiB\"\n"] {
        edit(&config, "# Memory above the device", &format!("{buffer}# Memory above the device"));
        let server = Server::start(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        client.trim(100, 4);
        assert_eq!(client.read(100, 4).unwrap(), [0; 4 * PAGE_BYTES]);
        let told = good(&["share", text(&config), "100", "0", "4"]);
        assert!(told.contains("pages 100") && told.contains("4 slots"), "{told}");
        for page in 0..4 {
            let held = client.read(100 + page, 1).unwrap();
            assert_eq!(held, [0x40 + page as u8; PAGE_BYTES], "page {page} with {buffer:?}");
        }
        let mut other = Client::connect(&server.socket).unwrap();
        assert_eq!(other.read(103, 1).unwrap(), [0x43; PAGE_BYTES]);
        // Acknowledged shares survive.
        server.kill();
        let server = Server::start(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        assert_eq!(client.read(102, 1).unwrap(), [0x42; PAGE_BYTES]);
        // A read-only server refuses to share.
        server.terminate();
        let server = Server::start_read_only(&config, config.with_file_name("read.sock"));
        assert!(refused(&["share", text(&config), "100", "0", "1"]).contains("pid"));
        server.terminate();
    }
}
