//! `tantalum stat` of a volume that another process has open.
mod support;

use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::tiered::TieredVolume;
use support::{good, stat_row as row, text};
use tantalum::{ErrorKind, PageBuf, PageNo, Payload, Volume};

#[test]
fn the_server_of_a_volume_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    let create = ["create", text(&config), "--capacity", "4MiB", "--buffer", "1MiB"];
    good(&[&create[..], &["--durability", "on_ack"]].concat());
    let before = row(&config);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..5 {
        client.write(page, &[7; PAGE_BYTES]);
    }
    let served = row(&config);
    assert_eq!((&before["mapped_bytes"], &served["mapped_bytes"]), (&0.into(), &20480.into()));
    // Constant fields are the same, and of the same type, whichever process reports them.
    for (name, value) in before.as_object().unwrap() {
        let may_change = [
            "mapped_bytes",
            "live_bytes",
            "dead_bytes",
            "zones_free",
            "mapping_bytes",
            "zone_resets_max",
            "holds",
            "open_by",
            "open_by_pid",
            "nbd_tls",
            "nbd_connections",
            "nbd_tls_connections",
        ];
        assert!(may_change.contains(&&name[..]) || *value == served[name], "{name}: {served}");
        let is_of_same_kind = value.is_null() || value.is_number() == served[name].is_number();
        assert!(is_of_same_kind, "{name}: {served}");
    }
    assert_eq!((&before["holds"], &served["holds"]), (&"nothing".into(), &"unknown".into()));
    assert_eq!(served["open_by_pid"], server.pid());
    let stat = good(&["stat", text(&config), "--format", "json"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
    for list in ["zone_fill", "zone_wear"] {
        let zones = stat[list].as_array().unwrap().iter().map(|row| row["zones"].as_u64().unwrap());
        assert_eq!(Some(zones.sum()), served["zones"].as_u64(), "each zone once: {stat}");
    }
    assert!(served["live_bytes"].as_u64() >= served["mapped_bytes"].as_u64(), "{stat}");
    let table = good(&["stat", text(&config)]);
    assert!(table.contains("20.0 KiB") && table.contains("on_ack"), "{table}");
    server.kill();
    // The socket that the server left behind does no harm.
    assert_eq!(row(&config)["mapped_bytes"], 20480);
}

/// A program that uses the volume through its server gets the same figures as the command.
#[test]
fn a_program_asks_the_server_for_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let server = Server::start_as(&config, &["--socket"]);
    let volume = Volume::open(&config).unwrap();
    volume.write(PageNo(3), vec![PageBuf::zero(); 5]).unwrap();
    let (stat, row) = (volume.stat().unwrap(), row(&config));
    assert_eq!(stat.number("mapped_bytes"), Some(20480));
    for (name, figure) in stat.iter().filter(|(name, _)| row.get(name).is_some()) {
        let told = row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
        assert_eq!(told, figure, "{name}");
    }
    let by_socket = Volume::open(config.with_extension("toml.socket")).unwrap();
    assert_eq!(by_socket.stat().unwrap_err().kind(), ErrorKind::Unsupported);
    server.terminate();
    assert_eq!(volume.stat().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn the_server_of_a_cache_tells_what_home_lacks() {
    let volume = TieredVolume::new("ordered");
    let server = volume.serve();
    let mut client = Client::connect(&server.socket).unwrap();
    client.write(3, &[7; PAGE_BYTES]);
    let served = row(&volume.config());
    assert_eq!(served["kind"], "tiered");
    assert!(served["dirty_bytes"].as_u64().unwrap() <= 4096 && served["epoch_at_home"].is_number());
    server.terminate();
    let after = row(&volume.config());
    assert_eq!(after["identity"], served["identity"]);
}

#[test]
fn one_that_a_program_has_open_tells_what_stays_and_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let before = row(&config);
    let client = Volume::open(&config).unwrap();
    let held = row(&config);
    assert_eq!(held["open_by_pid"], std::process::id());
    for key in ["identity", "capacity_bytes", "store_bytes", "zones", "kind", "durability"] {
        assert_eq!(held[key], before[key], "{key}");
    }
    assert!(held["mapped_bytes"].is_null() && held["holds"].is_null(), "{held}");
    let table = good(&["stat", text(&config)]);
    assert!(table.contains(&format!("(pid {})", std::process::id())), "{table}");
    assert!(table.contains("tantalum serve VOLUME.toml --socket"), "{table}");
    drop(client);
    assert_eq!(row(&config)["open_by"], serde_json::Value::Null);
}

#[test]
fn the_content_is_told_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    let mut page = [0; PAGE_BYTES];
    page[1080..1082].copy_from_slice(&[0x53, 0xef]);
    page[1024 + 96] = 0x40;
    client.write(0, &page);
    assert_eq!(row(&config)["holds"], "ext4");
    page[..4].copy_from_slice(b"XFSB");
    client.write(0, &page);
    assert_eq!(row(&config)["holds"], "XFS");
    server.terminate();
    assert_eq!(row(&config)["holds"], "XFS");
}

#[test]
fn the_table_is_in_groups_without_rows_that_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "4MiB"]);
    let table = good(&["stat", text(&config)]);
    let headings: Vec<&str> = table.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(headings, ["Volume", "", "Space", "", "State", "", "Memory", "", "Limits"]);
    for absent in ["seed", "shared pages", "buffer", "clean  ", "worn-out"] {
        assert!(!table.contains(absent), "{absent}: {table}");
    }
    assert!(table.contains("holds              nothing\n"), "{table}");
    let volume = TieredVolume::new("ordered");
    let table = good(&["stat", text(&volume.config())]);
    assert!(table.contains("\nCache\n  in the flash") && table.contains("  dirty "), "{table}");
}
