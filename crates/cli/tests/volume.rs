//! `tantalum stat`, `check` and `serve` from the user's view.
mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use support::nbd::{Client, EIO, PAGE_BYTES};
use support::server::Server;
use support::volume::{assert_tells, data_of, edit, on_ack_volume, volume};
use support::{good, refused, tantalum, text};
use tantalum::Volume;
use tantalum_base::{ErrorKind, PageBuf, PageNo};
use tantalum_testing::built;

#[test]
fn a_bad_configuration_is_told_with_its_place() {
    let (_folder, config) = volume();
    let original = fs::read_to_string(&config).unwrap();
    let zone = "# zone = \"8MiB\"";
    let capacity = "capacity = \"4MiB\"";
    for (from, to, told) in [
        ("[media]", "[media", "v.toml, line 13: "),
        (zone, "colour = 3", "v.toml, line 20: unknown field `colour`"),
        (zone, "zone = \"4KiB\"", "media.zone must be from 64KiB to 1GiB"),
        (zone, "zone = \"0MiB\"", "media.zone"),
        (capacity, "capacity = \"0MiB\"", "device.capacity"),
        (capacity, "capacity = \"5000\"", "needs a unit of bytes"),
        (capacity, "capacity = 4", "v.toml, line 32: "),
        ("path = \"data.tantalum\"", "", "media.path is needed"),
    ] {
        edit(&config, from, to);
        for command in ["create", "stat", "check"] {
            let message = refused(&[command, text(&config)]);
            assert_tells(&message, &["v.toml", told]);
        }
        fs::write(&config, &original).unwrap();
    }
    good(&["check", text(&config)]);
}

#[test]
fn a_configuration_that_contradicts_the_volume_is_refused() {
    let (_folder, config) = volume();
    let original = fs::read_to_string(&config).unwrap();
    for (from, to, told) in [
        (
            "capacity = \"4MiB\"",
            "capacity = \"5MiB\"",
            "device.capacity is 5242880 bytes, but the volume was created with 4194304",
        ),
        ("# zone = \"8MiB\"", "zone = \"64KiB\"", "media.zone or device.over_provisioning differs"),
        (
            "# over_provisioning = \"12%\"",
            "over_provisioning = \"100%\"",
            "over_provisioning differs",
        ),
    ] {
        edit(&config, from, to);
        assert_tells(&refused(&["stat", text(&config)]), &["v.toml", told]);
        fs::write(&config, &original).unwrap();
    }
    good(&["check", text(&config)]);
}

#[test]
fn the_data_lies_relative_to_the_configuration() {
    let (folder, config) = volume();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let moved = below.join("w.toml");
    fs::rename(&config, &moved).unwrap();
    let told = refused(&["stat", text(&moved)]);
    assert_tells(&told, &["below/data.tantalum does not exist", "tantalum create"]);
    edit(&moved, "data.tantalum", "../data.tantalum");
    good(&["check", text(&moved)]);
}

#[test]
fn a_second_opener_is_told_who_the_first_is() {
    let (_folder, config) = volume();
    let server = Server::start(&config);
    let pid = format!("pid {}", server.pid());
    for arguments in [
        vec!["check", text(&config)],
        vec!["create", text(&config)],
        vec!["create", text(&config), "--force"],
        vec!["serve", text(&config), "--nbd", "127.0.0.1:0"],
    ] {
        assert_tells(&refused(&arguments), &["data.tantalum", &pid]);
    }
    for arguments in [&["check", text(&config)][..], &["check", text(&config), "--accept-loss"]] {
        assert_tells(&refused(arguments), &["SIGTERM", "tantalum stat"]);
    }
    server.terminate();
    good(&["check", text(&config)]);
}

#[test]
fn damage_to_the_superblock_is_told_or_mended() {
    let (_folder, config) = volume();
    let data = fs::OpenOptions::new().read(true).write(true).open(data_of(&config)).unwrap();
    let mut copy = [0; 4096];
    data.read_exact_at(&mut copy, 4096).unwrap();

    for (at, told) in [(0, "first copy, byte 0"), (4096, "second copy, byte 4096")] {
        for damage in [[0; 4096], [0xa5; 4096]] {
            data.write_all_at(&damage, at).unwrap();
            for _ in 0..2 {
                let run = tantalum(&["check", text(&config)]);
                assert_eq!(run.code, 1, "{}", run.err);
                assert_tells(&run.out, &[told, "v.toml: damaged: 4.0 MiB", ", 1 problem\n"]);
                assert_tells(&run.out, &["to do: the superblock has two copies"]);
            }
            good(&["stat", text(&config)]);
            let server = Server::start(&config);
            assert_tells(&server.banner, &["superblock mended"]);
            server.terminate();
            assert_tells(&good(&["check", text(&config)]), &["sound"]);
        }
    }
    // Two intact copies that contradict each other: it is unknown which one is old.
    let (_other_folder, other) = volume();
    let mut stale = [0; 4096];
    fs::File::open(data_of(&other)).unwrap().read_exact_at(&mut stale, 0).unwrap();
    data.write_all_at(&stale, 0).unwrap();
    for command in [&["check"][..], &["stat"], &["serve", "--nbd", "127.0.0.1:0"]] {
        let run = tantalum(&[command, &[text(&config)]].concat());
        assert_eq!(run.code, 1, "{command:?}: {}{}", run.out, run.err);
        assert_tells(&(run.out + &run.err), &["v.toml", "contradict each other"]);
    }

    data.write_all_at(&[0xa5; 4096], 0).unwrap();
    data.write_all_at(b"damage", 4096 + 100).unwrap();
    let run = tantalum(&["stat", text(&config)]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert_tells(&run.err, &["v.toml", "the superblock is damaged"]);
    let run = tantalum(&["check", text(&config)]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert_tells(
        &run.out,
        &["first copy, byte 0: damaged", "second copy", "v.toml: damaged", "2 prob"],
    );
    assert_tells(&refused(&["create", text(&config)]), &["is a volume already"]);

    let mut newer = copy;
    newer[8] = 4;
    data.write_all_at(&newer, 0).unwrap();
    let told = refused(&["serve", text(&config), "--nbd", "127.0.0.1:0"]);
    assert_tells(&told, &["format version 4", "reads version 3"]);

    data.write_all_at(&copy, 0).unwrap();
    data.write_all_at(&copy, 4096).unwrap();
    good(&["check", text(&config)]);

    let whole = data.metadata().unwrap().len();
    for bytes in [whole - 4096, 1 << 20, 8192] {
        data.set_len(bytes).unwrap();
        assert_tells(&refused(&["check", text(&config)]), &["it was cut short"]);
    }
    data.set_len(100).unwrap();
    assert_tells(&refused(&["check", text(&config)]), &["too short to be a Tantalum volume"]);
}

#[test]
fn loss_that_is_accepted_is_told() {
    let (_folder, config) = on_ack_volume();
    let accept = || tantalum(&["check", text(&config), "--accept-loss"]);
    let run = accept();
    assert_eq!(run.code, 0, "{}", run.err);
    assert_tells(&run.out, &["given up: 0 changes", "v.toml: sound"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    (0..40).for_each(|page| client.write(page, &[0x45; PAGE_BYTES]));
    // Data in the log are not in a checkpoint.
    server.kill();
    let path = data_of(&config);
    let bytes = fs::read(&path).unwrap();
    let data = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let is_page = |slot: &usize| bytes[slot * PAGE_BYTES..][..PAGE_BYTES] == [0x45; PAGE_BYTES];
    let slots: Vec<usize> = (0..bytes.len() / PAGE_BYTES).filter(is_page).collect();
    // From the header of the tenth page to its content.
    let [from, to] = [slots[8] + 1, slots[9] + 1].map(|slot| (slot * PAGE_BYTES) as u64);
    data.write_all_at(&vec![0; (to - from) as usize], from).unwrap();
    let run = tantalum(&["check", text(&config)]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert_tells(
        &run.out,
        &["cannot be opened", "damaged", "to do: restore a copy", "--accept-loss"],
    );
    let run = accept();
    assert_tells(&run.out, &["given up: 1 changes", "v.toml: sound"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..40 {
        let byte = if page == 9 { 0 } else { 0x45 };
        assert_eq!(client.read(page, 1), Ok(vec![byte; PAGE_BYTES]), "page {page}");
    }
    server.terminate();
}

#[test]
fn a_damaged_page_is_an_error_and_never_wrong_bytes() {
    let (_folder, config) = volume();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..8u64 {
        client.write(page, &[0x40 + page as u8; PAGE_BYTES]);
    }
    server.terminate();
    let bytes = fs::read(data_of(&config)).unwrap();
    let damaged: Vec<usize> = (0..bytes.len() / PAGE_BYTES)
        .filter(|slot| bytes[slot * PAGE_BYTES..][..PAGE_BYTES].iter().all(|byte| *byte == 0x45))
        .collect();
    assert!(!damaged.is_empty());
    let data = fs::OpenOptions::new().write(true).open(data_of(&config)).unwrap();
    for slot in damaged {
        data.write_all_at(&[0x44], (slot * PAGE_BYTES + 1000) as u64).unwrap();
    }
    let check = tantalum(&["check", text(&config)]);
    assert_eq!(check.code, 1, "{}{}", check.out, check.err);
    assert_tells(&check.out, &["page 5: ", "v.toml: damaged: ", ", 1 problem\n"]);
    assert_tells(
        &check.out,
        &["to do: reads of a damaged page are errors until it is written again"],
    );
    // The verdict does not change if the output has no reader.
    let mut closed = Command::new(built::tantalum())
        .args(["check", text(&config)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(closed.stdout.take());
    assert_eq!(closed.wait().unwrap().code(), Some(1));

    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    assert_eq!(client.read(5, 1), Err(EIO));
    assert_eq!(client.read(0, 8), Err(EIO));
    assert_eq!(client.read(4, 1), Ok(vec![0x44; PAGE_BYTES]));
    assert_eq!(client.read(6, 1), Ok(vec![0x46; PAGE_BYTES]));
    client.write(5, &[0x55; PAGE_BYTES]);
    assert_eq!(client.read(5, 1), Ok(vec![0x55; PAGE_BYTES]));
    server.terminate();
    // The damaged data are obsolete now.
    let told = good(&["check", text(&config)]);
    let sound = "v.toml: sound, with damage to 1 place that is not in force: ";
    assert_tells(&told, &["(not in force: no content of the volume is concerned)", sound]);
}

#[test]
fn sigterm_leaves_nothing_to_replay_and_sigkill_loses_nothing() {
    let (_folder, config) = on_ack_volume();
    for round in 1..4u8 {
        let server = Server::start(&config);
        let mut client = Client::connect(&server.socket).unwrap();
        for page in 0..100 {
            client.write(page, &[round; PAGE_BYTES]);
        }
        let socket = server.socket.clone();
        server.terminate();
        assert!(!socket.exists(), "the socket is removed");
        let server = Server::start(&config);
        assert_eq!(server.replayed(), 0, "{}", server.banner);
        let mut client = Client::connect(&server.socket).unwrap();
        assert_eq!(client.read(99, 1), Ok(vec![round; PAGE_BYTES]));
        client.write(99, &[100 + round; PAGE_BYTES]);
        server.kill();
        // The socket that the killed server left behind does no harm.
        let server = Server::start(&config);
        assert!(server.replayed() > 0, "{}", server.banner);
        let mut client = Client::connect(&server.socket).unwrap();
        assert_eq!(client.read(99, 1), Ok(vec![100 + round; PAGE_BYTES]));
        assert_eq!(client.read(98, 1), Ok(vec![round; PAGE_BYTES]));
        server.terminate();
    }
}

#[test]
fn a_served_buffer_saves_reads_and_changes_no_promise() {
    let (_folder, config) = on_ack_volume();
    edit(&config, "# [buffer]", "[buffer]\nsize = \"256KiB\"\npolicy = \"sieve\"");
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..32 {
        client.write(page, &[page as u8; PAGE_BYTES]);
    }
    for _ in 0..3 {
        for page in 0..32 {
            assert_eq!(client.read(page, 1), Ok(vec![page as u8; PAGE_BYTES]));
        }
    }
    client.write(7, &[0x77; PAGE_BYTES]);
    server.kill();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for _ in 0..2 {
        assert_eq!(client.read(7, 1), Ok(vec![0x77; PAGE_BYTES]), "acknowledged before the kill");
    }
    client.write(7, &[0x78; PAGE_BYTES]);
    assert_eq!(client.read(7, 1), Ok(vec![0x78; PAGE_BYTES]));
    drop(client);
    let told = server.terminate();
    assert_tells(&told, &["buffer: 4 pages asked for, 75.0% hits, 1 read", "1 written through"]);
    let stat: serde_json::Value =
        serde_json::from_str(&good(&["stat", text(&config), "--format", "json"])).unwrap();
    let row = &stat["rows"][0];
    assert_eq!((&row["buffer_bytes"], &row["buffer_policy"]), (&262_144.into(), &"sieve".into()));
}

#[test]
fn serve_takes_as_many_connections_as_it_is_told_and_half_open_ones_lock_nobody_out() {
    let (_folder, config) = volume();
    let server = Server::start_as(&config, &["--connections-max", "2", "--handshakes-max", "1"]);
    let connect = || {
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream
    };
    let mut half_open = [connect(), connect()];
    let mut clients = [(); 2].map(|()| Client::connect(&server.socket).unwrap());
    for client in &mut clients {
        client.write(0, &[1; PAGE_BYTES]);
    }
    for stream in &mut half_open {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it gave way");
    }
    let mut third = UnixStream::connect(&server.socket).unwrap();
    assert_eq!(third.read(&mut [0]).unwrap(), 0, "nobody gives way who has finished negotiation");
    clients[0].write(1, &[2; PAGE_BYTES]);
    server.terminate();
    let address = format!("unix:{}", config.with_file_name("nbd.sock").display());
    let told = refused(&["serve", text(&config), "--nbd", &address, "--connections-max", "0"]);
    assert_tells(&told, &["connections_max"]);
}

/// The largest atomic write, as shown by `stat` and to an NBD client.
#[test]
fn the_size_of_an_atomic_write_is_told() {
    let (_folder, config) = volume();
    let stat: serde_json::Value =
        serde_json::from_str(&good(&["stat", text(&config), "--format", "json"])).unwrap();
    let pages = stat["rows"][0]["atomic_write_pages_max"].as_u64().unwrap();
    let server = Server::start(&config);
    let mut stream = UnixStream::connect(&server.socket).unwrap();
    // INFO of the export with its description.
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x06\0\0\0\x08\0\0\0\0\0\x01\0\x02").unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x02\0\0\0\0").unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    let bytes = format!("a write of up to {} bytes is all or nothing", pages * PAGE_BYTES as u64);
    assert_tells(&String::from_utf8_lossy(&told), &[&bytes]);
    // It is the size that the device accepts in one piece, and not more.
    server.terminate();
    let client = Volume::open(&config).unwrap();
    let content = |pages: u64| vec![PageBuf::copy_from(&[7; PAGE_BYTES]); pages as usize];
    client.write(PageNo(0), content(pages)).unwrap();
    let refused = client.write(PageNo(0), content(pages + 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
}

#[test]
fn serve_refuses_addresses_that_it_cannot_or_should_not_take() {
    let (folder, config) = volume();
    let file = format!("unix:{}", config.display());
    let long = format!("unix:{}/{}", folder.path().display(), "x".repeat(200));
    for (address, told) in [
        ("nowhere", "is not an address"),
        ("127.0.0.1:99999", "is not an address"),
        ("0.0.0.0:0", "--allow-remote"),
        ("192.0.2.1:10809", "--allow-remote"),
        (file.as_str(), "is not a socket"),
        (long.as_str(), "at most 107 bytes"),
        ("unix:/missing/folder/nbd.sock", "No such file"),
    ] {
        let message = refused(&["serve", text(&config), "--nbd", address]);
        assert_tells(&message, &[told]);
    }
    assert!(config.is_file(), "a file that is no socket stays");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let told = refused(&["serve", text(&config), "--nbd", &address]);
    assert_tells(&told, &[&address, "in use", "choose another address"]);
    let socket = folder.path().join("taken.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let told = refused(&["serve", text(&config), "--nbd", &format!("unix:{}", socket.display())]);
    assert_tells(&told, &["taken.sock", "in use"]);
    good(&["check", text(&config)]);
}

#[test]
fn serve_goes_on_where_nobody_reads_its_output() {
    let (_folder, config) = volume();
    let socket = config.with_file_name("nbd.sock");
    let mut child = Command::new(built::tantalum())
        .args(["serve", text(&config), "--nbd", &format!("unix:{}", socket.display())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    #[expect(clippy::disallowed_methods, reason = "waits for a process")]
    let connected = (0..500).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Client::connect(&socket).ok()
    });
    let read = connected.map(|mut client| client.read(0, 1));
    let pid = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let status = child.wait().unwrap();
    assert_eq!(read, Some(Ok(vec![0; PAGE_BYTES])));
    assert!(status.success(), "{status}");
}
