//! Existing NBD clients, against a device in memory.
mod support;

use support::{installed, run, serve, serve_at};
use tantalum_base::Durability;
use tantalum_nbd::ServerOptions;
use tantalum_runtime::live::EngineChoice;

const MIB: u64 = 1 << 20;

#[test]
fn nbdinfo_sees_the_export() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let options = ServerOptions { description: "for nbdinfo".into(), ..Default::default() };
    let serving = serve(8 * MIB, Durability::OnFlush, options);
    let info: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--json", &serving.uri()])).unwrap();
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 8 * MIB);
    assert_eq!(export["description"], "for nbdinfo");
    for (field, value) in [
        ("is_read_only", false),
        ("can_flush", true),
        ("can_fua", true),
        ("can_trim", true),
        ("can_zero", true),
        ("can_fast_zero", true),
        ("can_multi_conn", true),
        ("can_df", true),
    ] {
        assert_eq!(export[field], value, "{field}");
    }
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["block_size_preferred"], 4096);
    assert_eq!(export["block_size_maximum"], 32 * MIB);
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    assert_eq!(info["structured"], true);
    let list = run("nbdinfo", &["--list", &serving.uri()]);
    assert!(list.contains("export=\"tantalum\""), "{list}");
    serving.finish();
}

#[test]
fn qemu_io_writes_reads_and_zeroes_sectors() {
    if !installed(&["qemu-io"]) {
        return;
    }
    let serving = serve(8 * MIB, Durability::OnFlush, ServerOptions::default());
    let commands = [
        "write -P 0xaa 0 64k",
        "write -P 0xbb 512 512",
        "write -f -P 0xcc 4608 7680",
        "read -P 0xaa 0 512",
        "read -P 0xbb 512 512",
        "read -P 0xaa 1024 3584",
        "read -P 0xcc 4608 7680",
        "read -P 0xaa 12288 53248",
        "write -z 1024 20480",
        "read -P 0 1024 20480",
        "write -z -u 0 64k",
        "read -P 0 0 64k",
        "write -P 0xdd 7m 1m",
        "discard 7m 512k",
        "read -P 0xdd 7864320 512k",
        "flush",
    ];
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    let uri = serving.uri();
    arguments.push(&uri);
    let printed = run("qemu-io", &arguments);
    assert!(!printed.to_lowercase().contains("fail"), "{printed}");
    let statistics = serving.finish();
    assert!(statistics.flushes > 0 && statistics.trims > 0 && statistics.write_zeroes > 0);
    assert_eq!((statistics.errors, statistics.connections_failed), (0, 0));
}

#[test]
fn nbdcopy_brings_back_what_it_took() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let mut bytes = vec![0; 16 * MIB as usize];
    // A third is left zero, and copied as zeros.
    tantalum_base::Rng::new(1).fill(&mut bytes[..10 * MIB as usize]);
    for (address, engine) in [
        ("unix:nbd.sock", EngineChoice::Auto),
        ("127.0.0.1:0", EngineChoice::Auto),
        ("unix:nbd.sock", EngineChoice::Threads),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}/nbd.sock", folder.path().display());
        let address = address.replace("unix:nbd.sock", &socket).parse().unwrap();
        let options = ServerOptions::default();
        let serving = serve_at(folder, address, engine, 16 * MIB, Durability::OnAck, options);
        let (there, back) = (serving.file("there"), serving.file("back"));
        std::fs::write(&there, &bytes).unwrap();
        let uri = serving.uri();
        run("nbdcopy", &["--flush", there.to_str().unwrap(), &uri]);
        run("nbdcopy", &[&uri, back.to_str().unwrap()]);
        assert!(std::fs::read(&back).unwrap() == bytes, "{uri}, {engine:?}");
        let statistics = serving.finish();
        assert!(statistics.connections_accepted > 2, "nbdcopy uses several connections");
        assert_eq!((statistics.errors, statistics.connections_failed), (0, 0));
    }
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !installed(&["fio"]) {
        return;
    }
    let verify = ["--verify=crc32c", "--verify_fatal=1", "--do_verify=1"];
    // fio 3.33 aborts if one job trims and verifies, whatever the server. So a second job trims one half of the device
    // while the first writes and verifies the other.
    let beside = ["--name=trim", "--rw=randtrim", "--bs=4k", "--offset=8m", "--size=8m"];
    let jobs: [(&str, Vec<&str>); 4] = [
        ("--rw=randwrite", [&["--size=16m", "--bs=4k"], &verify[..]].concat()),
        (
            "--rw=randrw",
            [&["--size=16m", "--bsrange=512-32k", "--blockalign=512"], &verify[..]].concat(),
        ),
        ("--rw=randwrite", [&["--size=8m", "--bs=4k"], &verify[..], &beside[..]].concat()),
        ("--rw=randtrimwrite", vec!["--size=16m", "--bs=8k"]),
    ];
    for job in jobs {
        let serving = serve(16 * MIB, Durability::OnFlush, ServerOptions::default());
        let uri = format!("--uri={}", serving.uri());
        let common = ["--ioengine=nbd", &uri, "--iodepth=32", "--fsync=64", "--randseed=7"];
        let mut arguments = vec!["--name=verify", job.0];
        for argument in &job.1 {
            // Each job on a command line has its own copy of the options.
            if argument.starts_with("--name") {
                arguments.extend(common);
            }
            arguments.push(argument);
        }
        arguments.extend(common);
        run("fio", &arguments);
        let statistics = serving.finish();
        assert!(statistics.writes > 100, "{job:?}: {statistics:?}");
        let trimming = job.1.contains(&"--name=trim") || job.0 == "--rw=randtrimwrite";
        assert_eq!(statistics.trims > 100, trimming, "{job:?}: {statistics:?}");
        assert_eq!((statistics.errors, statistics.connections_failed), (0, 0), "{job:?}");
    }
}
