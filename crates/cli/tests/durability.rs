//! The promise that a client of a volume gets: the default of its front end, or the user's choice.
mod support;

use std::path::Path;
use support::nbd::{Client, Command, PAGE_BYTES};
use support::server::Server;
use support::tiered::TieredVolume;
use support::volume::{assert_tells, edit, volume};
use support::{good, refused, stat_row, text};
use tantalum::Volume;
use tantalum_base::Durability;
use tantalum_volume::VolumeConfig;

/// The durability in `stat`: for programs that open the volume, and over NBD.
fn told(config: &Path) -> [String; 2] {
    let row = stat_row(config);
    ["durability", "durability_over_nbd"].map(|name| row[name].as_str().unwrap().to_owned())
}

/// The durability for a program that opens the volume itself.
fn own(config: &Path) -> Durability {
    Volume::open(config).unwrap().limits().durability
}

#[test]
fn where_nobody_has_chosen_nbd_clients_get_on_flush_and_all_others_on_ack() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let created = good(&["create", text(&config), "--capacity", "4MiB"]);
    assert_tells(&created, &["durability: on_flush over NBD", "on_ack for programs"]);
    assert_eq!(told(&config), ["on_ack", "on_flush"]);
    assert_eq!(own(&config), Durability::OnAck);
    let nowhere = refused(&["serve", text(&config)]);
    let example =
        format!("For example: tantalum serve {} --nbd unix:/tmp/tantalum.sock\n", text(&config));
    assert!(
        nowhere.contains("--socket for local programs") && nowhere.ends_with(&example),
        "{nowhere}"
    );
    let nothing = refused(&["serve", "--nbd", "unix:/tmp/x"]);
    assert!(nothing.contains("configuration or --device is needed. For example: "), "{nothing}");
    let device = refused(&["serve", "--device", "durassd:capacity=16MiB"]);
    assert!(
        device.contains("tantalum serve --device durassd:capacity=16MiB --nbd unix:"),
        "{device}"
    );
    let server = Server::start(&config);
    assert_tells(&server.banner, &["v.toml: on_flush, the default over NBD, at unix:"]);
    assert_eq!(told(&config), ["on_ack", "on_flush"], "as its server says");
    server.terminate();
}

#[test]
fn what_the_volume_says_is_so_for_everybody() {
    for (said, durability) in [("on_ack", Durability::OnAck), ("on_flush", Durability::OnFlush)] {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("v.toml");
        let create = ["create", text(&config), "--capacity", "4MiB", "--durability", said];
        assert!(!good(&create).contains("over NBD"), "somebody has chosen");
        assert_eq!(told(&config), [said, said]);
        assert_eq!(own(&config), durability);
        let server = Server::start(&config);
        assert_tells(&server.banner, &[&format!("v.toml: {said}, as device.durability says, at ")]);
        server.terminate();
    }
}

#[test]
fn serve_may_be_told_otherwise_for_one_run() {
    let (_folder, config) = volume();
    let as_told = |said: &str| {
        let server = Server::start_as(&config, &["--durability", said]);
        assert_tells(&server.banner, &[&format!("v.toml: {said}, as --durability says, at ")]);
        assert_eq!(told(&config), [said, said]);
        server
    };
    // A write acknowledged without a flush survives a kill.
    let server = as_told("on_ack");
    Client::connect(&server.socket).unwrap().write(3, &[0x33; PAGE_BYTES]);
    server.kill();
    edit(&config, "# durability = \"on_ack\"", "durability = \"on_ack\"");
    let server = as_told("on_flush");
    let mut client = Client::connect(&server.socket).unwrap();
    assert_eq!(client.read(3, 1), Ok(vec![0x33; PAGE_BYTES]));
    server.terminate();
    assert_eq!(told(&config), ["on_ack", "on_ack"], "the next run is as ever");
    let sometimes = ["serve", text(&config), "--nbd", "127.0.0.1:0", "--durability", "sometimes"];
    assert_tells(
        &refused(&sometimes),
        &["--durability: \"sometimes\" is not one of on_ack, on_flush"],
    );
}

#[test]
fn what_was_flushed_is_there_after_a_kill_where_nobody_has_chosen() {
    let (_folder, config) = volume();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..64 {
        client.write(page, &[page as u8 + 1; PAGE_BYTES]);
    }
    client.send(Command::Flush, 9, 0, 0, &[]).unwrap();
    assert_eq!(client.reply().unwrap(), (9, 0));
    server.kill();
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..64 {
        assert_eq!(client.read(page, 1), Ok(vec![page as u8 + 1; PAGE_BYTES]), "page {page}");
    }
    server.terminate();
}

#[test]
fn a_cache_of_a_home_keeps_all_that_it_acknowledges() {
    let tiered = TieredVolume::new("ordered");
    let config = tiered.config();
    assert_eq!(told(&config), ["on_ack", "on_ack"]);
    let server = tiered.serve();
    assert_tells(&server.banner, &[": on_ack, as for every cache of a home, at "]);
    server.terminate();
    let asked = ["serve", text(&config), "--nbd", "127.0.0.1:0", "--durability", "on_flush"];
    assert_tells(&refused(&asked), &["a tiered volume keeps all that it acknowledges"]);
    edit(&config, "[device]", "[device]\ndurability = \"on_flush\"");
    let error = VolumeConfig::read(&config).unwrap_err().to_string();
    assert_tells(&error, &["VOLUME.toml, line ", ": a tiered volume keeps all"]);
}
