//! `tantalum serve --device DEVICE`: simulated devices in real time.
mod support;

use support::nbd::Client;
use support::refused;
use support::server::{Server, run};
use tantalum_testing::installed;

#[test]
fn every_kind_of_device_serves_real_bytes() {
    let devices = [
        "durassd:capacity=64MiB",
        "ssd-b:capacity=64MiB,storage-cache=off",
        "cheetah-15k6:capacity=64MiB",
        "txssd:capacity=64MiB",
        "bast:capacity=64MiB",
    ];
    for device in devices {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_device(folder.path(), device);
        assert!(server.banner.contains("lost when the server ends"), "{}", server.banner);
        let mut client = Client::connect(&server.socket).unwrap();
        let content: Vec<u8> = (0..8 * 4096u32).map(|at| (at / 7) as u8).collect();
        client.write(100, &content);
        client.flush();
        client.write(102, &content[..4096]);
        let mut expected = content.clone();
        expected[2 * 4096..3 * 4096].copy_from_slice(&content[..4096]);
        assert_eq!(client.read(100, 8).unwrap(), expected, "{device}");
        assert_eq!(client.read(98, 2).unwrap(), [0; 2 * 4096], "{device}");
        drop(client);
        server.terminate();
    }
}

#[test]
fn nbdcopy_brings_back_what_it_took() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_device(folder.path(), "durassd:capacity=32MiB,barrier=on");
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    let content: Vec<u8> = (0..32u64 << 20).map(|at| (at * at / 4099) as u8).collect();
    std::fs::write(&there, &content).unwrap();
    run("nbdcopy", &["--flush", there.to_str().unwrap(), &server.uri()]);
    run("nbdcopy", &[&server.uri(), back.to_str().unwrap()]);
    assert!(std::fs::read(&back).unwrap() == content);
    server.terminate();
}

#[test]
fn a_device_that_drops_flushes_says_so_at_its_start() {
    for (device, told) in [
        ("ssd-a:capacity=32MiB,barrier=off", true),
        ("ssd-a:capacity=32MiB", false),
        ("durassd:capacity=32MiB", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rest = Server::start_device(folder.path(), device).terminate();
        assert_eq!(rest.contains("FLUSH and FUA are answered without effect"), told, "{rest}");
    }
}

#[test]
fn a_volume_or_a_device_and_not_both() {
    let refusal = refused(&["serve", "--device", "durasd", "--nbd", "unix:/nowhere/sock"]);
    assert!(refusal.contains("durassd, ssd-a"), "{refusal}");
    let both = ["serve", "v.toml", "--device", "durassd", "--nbd", "unix:/nowhere/sock"];
    assert_eq!(support::tantalum(&both).code, 2);
    assert_eq!(support::tantalum(&["serve", "--nbd", "unix:/nowhere/sock"]).code, 2);
}
