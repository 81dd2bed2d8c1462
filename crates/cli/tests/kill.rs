//! Real clients of `tantalum serve` on a file, and SIGKILL in the middle of a load.
//!
//! A kill is not a power cut: data that the kernel has received survives. The tests show that the server acknowledges
//! no data that it still holds alone, and that the volume it leaves behind can be opened.
mod support;

use std::path::{Path, PathBuf};
use support::good;
use support::kill_history::History;
use support::kill_load::{Load, Pulse, content, numbers, write_and_kill};
use support::nbd::{Client, Command};
use support::server::{Server, run};
use tantalum_base::Rng;
use tantalum_testing::installed;
use tempfile::TempDir;

const PAGES: u64 = 1024;

fn volume(capacity: &str, durability: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let path = config.to_str().unwrap();
    good(&["create", path, "--capacity", capacity]);
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("# durability = \"on_ack\"", &format!("durability = \"{durability}\""));
    std::fs::write(&config, text).unwrap();
    (folder, config)
}

fn check(config: &Path) {
    good(&["check", config.to_str().unwrap()]);
}

/// The content of each page of the volume, as write numbers.
fn all_numbers(server: &Server) -> Vec<u64> {
    let mut client = Client::connect(&server.socket).unwrap();
    (0..PAGES).step_by(64).flat_map(|first| numbers(&mut client, first, 64)).collect()
}

#[test]
fn on_ack_a_killed_server_loses_nothing_acknowledged_and_splits_nothing() {
    let (_folder, config) = volume("4MiB", "on_ack");
    let mut history = History::new(PAGES);
    for seed in 1..=6 {
        let target = 1 + Rng::new(seed).below(700);
        println!("seed {seed}: killed after {target} acknowledgements");
        let pulse = Pulse::default();
        let load = Load { pages: PAGES, connections: 3, in_flight: 4 };
        let server = Server::start(&config);
        let socket = server.socket.clone();
        let done = write_and_kill(load, &socket, seed, &pulse, || {
            pulse.wait_for(target);
            server.kill();
        });
        let server = Server::start(&config);
        let found = all_numbers(&server);
        for changes in done {
            history.settle(changes, pulse.tick(), |page| found[page as usize]);
        }
        let expected = history.expected();
        let wrong: Vec<_> =
            (0..PAGES as usize).filter(|page| found[*page] != expected[*page]).collect();
        assert!(
            wrong.is_empty(),
            "seed {seed}: page {} holds {:#x}, not {:#x} ({} such pages)",
            wrong[0],
            found[wrong[0]],
            expected[wrong[0]],
            wrong.len()
        );
        // Every second time, the next load begins on a recovered volume, not a closed one.
        if seed % 2 == 0 { drop(server.terminate()) } else { server.kill() }
    }
    check(&config);
}

#[test]
fn on_flush_a_killed_server_keeps_a_prefix_and_all_before_the_flush() {
    let (_folder, config) = volume("4MiB", "on_flush");
    let mut before = vec![0; PAGES as usize];
    let mut number = 0;
    for seed in 1..=5 {
        let mut rng = Rng::new(seed);
        let target = 1 + rng.below(3000);
        println!("seed {seed}: killed after {target} acknowledgements");
        let server = Server::start(&config);
        let socket = server.socket.clone();
        let pulse = Pulse::default();
        let first_number = number + 1;
        // With one request at a time, the order of acknowledgement is that of the numbers.
        let (writes, flushed) = std::thread::scope(|scope| {
            let (socket, pulse, rng) = (&socket, &pulse, &mut rng);
            let load = scope.spawn(move || ordered_load(socket, rng, first_number, pulse));
            pulse.wait_for(target);
            server.kill();
            load.join().unwrap()
        });
        number += writes.len() as u64;
        let server = Server::start(&config);
        let found = all_numbers(&server);
        let last = found.iter().copied().max().unwrap().max(flushed);
        let mut expected = before.clone();
        for change in writes.iter().filter(|change| change.number <= last) {
            expected[change.first as usize..][..change.pages as usize].fill(change.number);
        }
        println!("  {} writes, flushed to {flushed}, found to {last}", writes.len());
        for page in 0..PAGES as usize {
            assert_eq!(found[page], expected[page], "seed {seed}, page {page}, prefix to {last}");
        }
        server.terminate();
        before = found;
    }
    check(&config);
}

/// A write of a few pages.
struct Write {
    first: u64,
    pages: u64,
    number: u64,
}

/// Writes, with occasional flushes. Returns all writes issued, and the last one covered by a completed flush.
fn ordered_load(
    socket: &Path,
    rng: &mut Rng,
    first_number: u64,
    pulse: &Pulse,
) -> (Vec<Write>, u64) {
    let mut client = Client::connect(socket).unwrap();
    let (mut writes, mut flushed) = (Vec::new(), first_number - 1);
    for number in first_number.. {
        let first = rng.below(PAGES - 8);
        let change = Write { first, pages: 1 + rng.below(8), number };
        let pages = first..first + change.pages;
        let bytes: Vec<u8> = pages.flat_map(|page| content(page, number)).collect();
        let sent = client.send(Command::Write, number, first, change.pages as usize, &bytes);
        writes.push(change);
        if sent.and_then(|()| client.reply()).map(|reply| assert_eq!(reply.1, 0)).is_err() {
            break;
        }
        pulse.acknowledged();
        if rng.chance(0.02) {
            let sent = client.send(Command::Flush, 0, 0, 0, &[]);
            if sent.and_then(|()| client.reply()).map(|reply| assert_eq!(reply.1, 0)).is_err() {
                break;
            }
            flushed = number;
        }
    }
    (writes, flushed)
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !installed(&["fio"]) {
        return;
    }
    let verify = ["--verify=crc32c", "--verify_fatal=1", "--do_verify=1"];
    // fio 3.33 aborts if one job trims and verifies, whatever the server.
    let trim = ["--rw=randtrimwrite", "--size=16m", "--bs=8k"];
    for (durability, job) in [
        (
            "on_ack",
            [&["--rw=randwrite", "--size=16m", "--bs=4k", "--loops=2"], &verify[..]].concat(),
        ),
        (
            "on_flush",
            [&["--rw=randwrite", "--size=16m", "--bs=4k", "--fsync=64"], &verify[..]].concat(),
        ),
        (
            "on_flush",
            [&["--rw=randrw", "--size=8m", "--bsrange=512-32k", "--blockalign=512"], &verify[..]]
                .concat(),
        ),
        ("on_ack", trim.to_vec()),
    ] {
        let (_folder, config) = volume("16MiB", durability);
        let server = Server::start(&config);
        let uri = format!("--uri={}", server.uri());
        let common = ["--name=load", "--ioengine=nbd", &uri, "--iodepth=32", "--randseed=7"];
        run("fio", &[&common[..], &job[..]].concat());
        server.terminate();
        check(&config);
    }
}

#[test]
fn qemu_io_finds_its_patterns_after_a_kill() {
    if !installed(&["qemu-io"]) {
        return;
    }
    let (_folder, config) = volume("8MiB", "on_ack");
    let qemu_io = |server: &Server, commands: &[&str]| {
        let uri = server.uri();
        let mut arguments = vec!["-f", "raw"];
        commands.iter().for_each(|command| arguments.extend(["-c", command]));
        arguments.push(&uri);
        let printed = run("qemu-io", &arguments);
        assert!(!printed.to_lowercase().contains("fail"), "{printed}");
    };
    let server = Server::start(&config);
    let write =
        ["write -P 0xaa 0 3m", "write -P 0xbb 4608 7680", "discard 1m 1m", "write -z 2m 512k"];
    qemu_io(&server, &write);
    server.kill();
    let server = Server::start(&config);
    qemu_io(
        &server,
        &[
            "read -P 0xaa 0 4608",
            "read -P 0xbb 4608 7680",
            "read -P 0xaa 12288 1036288",
            "read -P 0 1m 1536k",
            "read -P 0xaa 2560k 512k",
            "read -P 0 3m 5m",
        ],
    );
    server.terminate();
    check(&config);
}

#[test]
fn nbdcopy_brings_back_what_it_took_after_a_kill() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let (folder, config) = volume("16MiB", "on_flush");
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    let mut bytes = vec![0; 16 << 20];
    // The rest is left zero, and copied as zeros.
    Rng::new(1).fill(&mut bytes[..10 << 20]);
    std::fs::write(&there, &bytes).unwrap();
    let server = Server::start(&config);
    run("nbdcopy", &["--flush", there.to_str().unwrap(), &server.uri()]);
    server.kill();
    let server = Server::start(&config);
    run("nbdcopy", &[&server.uri(), back.to_str().unwrap()]);
    assert!(std::fs::read(&back).unwrap() == bytes);
    server.terminate();
    check(&config);
}

/// Files on an ext4 whose server is killed. `$1` is the server's URI, `$2` a folder for the mounts, `$3` the server's
/// process, or `-` to check the files of the first run.
const FILE_SYSTEM: &str = r#"
set -e
mkdir -p "$2/nbd" "$2/ext4"
nbdfuse "$2/nbd" "$1" &
fuse=$!
loop=
clean() {
    umount "$2/ext4" 2>/dev/null || umount -l "$2/ext4" 2>/dev/null || true
    [ -z "$loop" ] || losetup -d "$loop" || true
    fusermount3 -u "$2/nbd" 2>/dev/null || umount -l "$2/nbd" || true
    wait $fuse || true
}
trap 'clean "$@"' EXIT
for turn in $(seq 300); do [ -e "$2/nbd/nbd" ] && break; sleep 0.1; done
loop=$(losetup -f --show "$2/nbd/nbd")
if [ "$3" != - ]; then
    mkfs.ext4 -q "$loop"
    mount "$loop" "$2/ext4"
    mkdir "$2/there"
    for name in 1 2 3 4 5 6; do head -c 1500000 /dev/urandom > "$2/there/$name"; done
    cp "$2/there"/* "$2/ext4/"
    sync "$2/ext4"/*
    sync -f "$2/ext4"
    head -c 3000000 /dev/urandom > "$2/ext4/unsynced" &
    kill -9 "$3"
    wait $! || true
else
    # Mounting replays the file system's own journal; what is left must be clean.
    mount "$loop" "$2/ext4"
    for name in 1 2 3 4 5 6; do cmp "$2/there/$name" "$2/ext4/$name"; done
    umount "$2/ext4"
    e2fsck -fn "$loop"
fi
"#;

#[test]
fn ext4_keeps_its_files_when_the_server_is_killed() {
    let programs = ["nbdfuse", "losetup", "mkfs.ext4", "e2fsck", "fusermount3"];
    if !installed(&programs) || !tantalum_testing::can_loop() {
        return;
    }
    for durability in ["on_ack", "on_flush"] {
        let (folder, config) = volume("48MiB", durability);
        let folder = folder.path().to_str().unwrap();
        let server = Server::start(&config);
        let pid = server.pid().to_string();
        run("sh", &["-c", FILE_SYSTEM, "sh", &server.uri(), folder, &pid]);
        drop(server);
        let server = Server::start(&config);
        run("sh", &["-c", FILE_SYSTEM, "sh", &server.uri(), folder, "-"]);
        server.terminate();
        check(&config);
    }
}
