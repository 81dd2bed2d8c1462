//! `tantalum serve --metrics`: the metrics of a running server.
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use support::exposition::Told;
use support::nbd::{Client, Command, EIO, PAGE_BYTES};
use support::server::{Server, run};
use support::{good, refused};
use tantalum::Volume;
use tantalum::front_end::counters_of;
use tantalum_testing::installed;

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
const DOCUMENTED: &str = include_str!("../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../packaging/grafana-dashboard.json");

/// A volume in memory with a buffer, made in `folder`: its configuration.
fn volume(folder: &Path) -> PathBuf {
    let config = folder.join("VOLUME.toml");
    good(&["create", config.to_str().unwrap(), "--capacity", "8MiB"]);
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("\n[buffer]\nsize = \"1MiB\"\n");
    std::fs::write(&config, text).unwrap();
    config
}

/// A cache over a file, made in `folder`: its configuration.
fn tiered_volume(folder: &Path) -> PathBuf {
    let config = folder.join("TIERED.toml");
    let (home, flash) = (folder.join("home.img"), folder.join("flash.bin"));
    let (home, flash) = (home.to_str().unwrap(), flash.to_str().unwrap());
    let paths = ["--home", home, "--flash", flash];
    let sizes = ["--capacity", "32MiB", "--flash-size", "128MiB"];
    good(&[&["create", config.to_str().unwrap()], &paths[..], &sizes[..]].concat());
    config
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("metrics.sock")
}

fn option(folder: &Path) -> String {
    format!("unix:{}", socket(folder).display())
}

fn ask(folder: &Path) -> Told {
    let mut stream = UnixStream::connect(socket(folder)).unwrap();
    stream.write_all(GET).unwrap();
    told(stream)
}

fn told(mut stream: impl Read) -> Told {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    Told::read(body)
}

/// The names in backticks in the first cells of the tables.
fn documented() -> BTreeSet<String> {
    let cells = DOCUMENTED.lines().filter_map(|line| line.strip_prefix("| `tantalum_"));
    let names = cells.map(|rest| format!("tantalum_{}", rest.split(['`', '{']).next().unwrap()));
    names.collect()
}

/// The names in the file of a program that has opened a volume itself.
fn told_by_a_program(config: &Path) -> BTreeSet<String> {
    let config = config.with_file_name("own.toml");
    good(&["create", config.to_str().unwrap(), "--capacity", "8MiB", "--force"]);
    let client = Volume::open(&config).unwrap();
    let own = tantalum_volume::VolumeConfig::read(&config).unwrap();
    loop {
        client.read(tantalum_base::PageNo(0), 1).unwrap();
        if let Some(told) = counters_of(&own) {
            return Told::read(&told.text).names().into_iter().collect();
        }
    }
}

#[test]
fn what_is_told_is_documented_and_what_is_documented_is_told() {
    let mut told = BTreeSet::new();
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--metrics", &option(folder.path()), "--socket"]);
    told.extend(ask(folder.path()).names());
    server.terminate();
    assert!(!socket(folder.path()).exists());
    let tiered = tiered_volume(folder.path());
    let server = Server::start_as(&tiered, &["--metrics", &option(folder.path())]);
    told.extend(ask(folder.path()).names());
    server.terminate();
    told.extend(told_by_a_program(&config));
    for device in [
        "durassd:capacity=32MiB",
        "cheetah-15k6:capacity=32MiB",
        "txssd:capacity=32MiB",
        "bast:capacity=32MiB",
        "wal:capacity=32MiB",
        "tx-flash:capacity=32MiB",
        "dftl:capacity=32MiB",
    ] {
        let options = ["--metrics", &option(folder.path())];
        let server = Server::start_device_as(folder.path(), device, &options);
        let here = ask(folder.path());
        assert_eq!(here.get("tantalum_device_capacity_bytes"), f64::from(32 << 20), "{device}");
        told.extend(here.names());
        server.terminate();
    }
    let documented = documented();
    let untold: Vec<_> = documented.difference(&told).collect();
    assert!(untold.is_empty(), "docs/metrics.md has what nothing tells: {untold:?}");
    let undocumented: Vec<_> = told.difference(&documented).collect();
    assert!(undocumented.is_empty(), "docs/metrics.md lacks {undocumented:?}");
}

/// The requests of a dashboard's panel: each query, and the text that names its series.
fn queries(dashboard: &serde_json::Value) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"]))).collect()
}

/// The last word of `text`.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches(['!', ' ']);
    let before = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    text[before.map_or(0, |at| at + 1)..].to_owned()
}

/// Labels followed by a value, in a query or in a reported line.
fn labels(text: &str) -> BTreeSet<String> {
    let ends = ["=\"", "=~\"", "!~\""].into_iter().flat_map(|end| text.match_indices(end));
    ends.map(|(at, _)| last_word(&text[..at])).collect()
}

/// Labels of a query: in selectors, in groupings, and in the name of its series.
fn labels_asked_for(query: &str, legend: &str) -> BTreeSet<String> {
    let mut found = labels(query);
    for grouping in ["by (", "on (", "group_left ("] {
        let lists = query.split(grouping).skip(1).map(|rest| rest.split(')').next().unwrap());
        found.extend(lists.flat_map(|list| list.split(',')).map(|label| label.trim().to_owned()));
    }
    let in_legend = legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap());
    found.extend(in_legend.map(str::to_owned));
    found
}

#[test]
fn each_query_of_the_dashboard_names_metrics_and_labels_that_are_told() {
    let folder = tempfile::tempdir().unwrap();
    // Labels of each series, by its name in queries.
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for config in [volume(folder.path()), tiered_volume(folder.path())] {
        let server = Server::start_as(&config, &["--metrics", &option(folder.path()), "--socket"]);
        for series in ask(folder.path()).numbers.keys() {
            let name = series.split('{').next().unwrap();
            told.entry(name.to_owned()).or_default().extend(labels(series));
        }
        server.terminate();
    }
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let queries = queries(&dashboard);
    assert!(queries.len() >= 12, "{} queries: they are not found any more", queries.len());
    for (query, legend) in queries {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: BTreeSet<&str> = words.filter(|word| word.starts_with("tantalum_")).collect();
        assert!(!names.is_empty(), "{query}: no metric");
        // Prometheus itself adds these two.
        let mut known = BTreeSet::from(["instance".to_owned(), "job".to_owned()]);
        for name in names {
            let of_name = told.get(name);
            known.extend(of_name.unwrap_or_else(|| panic!("{query}: no {name} is told")).clone());
        }
        let asked_for = labels_asked_for(&query, &legend);
        let unknown: Vec<_> = asked_for.difference(&known).collect();
        assert!(unknown.is_empty(), "{query} ({legend}): no labels {unknown:?}");
    }
    // The list of servers to select from.
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let of_servers = variables.iter().find(|variable| variable["name"] == "instance").unwrap();
    assert_eq!(of_servers["definition"], "label_values(tantalum_uptime_seconds, instance)");
    assert!(told.contains_key("tantalum_uptime_seconds"));
}

#[test]
fn the_types_are_documented_as_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let _server = Server::start_as(&config, &["--metrics", &option(folder.path())]);
    for (name, kind) in ask(folder.path()).types {
        let row = DOCUMENTED.lines().find(|line| line.starts_with(&format!("| `{name}")));
        let row = row.unwrap_or_else(|| panic!("docs/metrics.md lacks {name}"));
        assert_eq!(row.split('|').nth(2).unwrap().trim(), kind, "{row}");
    }
}

#[test]
fn numbers_come_out_as_they_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--metrics", &option(folder.path())]);
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..100 {
        client.write(page, &[page as u8; PAGE_BYTES]);
    }
    for _ in 0..7 {
        client.flush();
    }
    for page in 0..50 {
        client.read(page, 2).unwrap();
    }
    client.trim(90, 10);
    // Past the end: the device never sees this request.
    assert!(client.read(2048, 1).is_err());
    let told = ask(folder.path());
    let of = |name: &str, command: &str| {
        told.get(&format!("tantalum_nbd_{name}{{command=\"{command}\"}}"))
    };
    for (command, requests, bytes) in [
        ("read", 50, 50 * 8192),
        ("write", 100, 409_600),
        ("trim", 1, 40_960),
        ("write_zeroes", 0, 0),
    ] {
        assert_eq!(of("requests_total", command), f64::from(requests), "{command}");
        assert_eq!(of("request_bytes_total", command), f64::from(bytes), "{command}");
        assert_eq!(of("request_duration_seconds_count", command), f64::from(requests), "{command}");
    }
    assert_eq!(of("requests_total", "flush"), 7.0);
    assert_eq!(of("request_duration_seconds_count", "flush"), 7.0);
    assert!(of("request_duration_seconds_sum", "write") > 0.0);
    assert_eq!(told.get("tantalum_nbd_refused_requests_total"), 1.0);
    assert_eq!(told.get("tantalum_nbd_requests_in_flight"), 0.0);
    assert_eq!(told.get("tantalum_nbd_connections"), 1.0);
    assert_eq!(told.get("tantalum_ftl_mapped_pages"), 90.0);
    assert_eq!(told.get("tantalum_device_written_pages_total"), 100.0);
    assert_eq!(told.get("tantalum_device_flushes_total"), 7.0);
    assert_eq!(told.get("tantalum_device_capacity_bytes"), f64::from(8 << 20));
    assert_eq!(told.get("tantalum_buffer_requested_pages_total"), 200.0);
    assert!(told.get("tantalum_buffer_hit_pages_total") >= 100.0);
    assert!(told.get("tantalum_ftl_programmed_slots_total") >= 100.0);
    let zones = told.get("tantalum_ftl_zones");
    assert!(zones > 0.0 && told.get("tantalum_ftl_free_zones") < zones);
    assert!(told.numbers.keys().any(|key| {
        key.starts_with("tantalum_device_info{")
            && key.contains("kind=\"flash\",durability=\"on_flush\"")
    }));
    drop(client);
    server.terminate();
}

#[test]
fn an_error_of_the_medium_is_counted_by_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("VOLUME.toml");
    good(&["create", config.to_str().unwrap(), "--capacity", "8MiB"]);
    let server = Server::start(&config);
    let mut client = Client::connect(&server.socket).unwrap();
    let content = [0xa7; PAGE_BYTES];
    client.write(3, &content);
    drop(client);
    server.terminate();
    // Flip one bit of that page in the file.
    let data = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let data = data.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&data).unwrap();
    let at = bytes.chunks(PAGE_BYTES).position(|page| page == content).unwrap() * PAGE_BYTES;
    bytes[at + 100] ^= 1;
    std::fs::write(&data, bytes).unwrap();

    let server = Server::start_as(&config, &["--metrics", &option(folder.path())]);
    let mut client = Client::connect(&server.socket).unwrap();
    assert_eq!(client.read(3, 1), Err(EIO));
    let told = ask(folder.path());
    assert_eq!(told.get("tantalum_nbd_errors_total{kind=\"checksum\"}"), 1.0);
    assert_eq!(told.get("tantalum_nbd_errors_total{kind=\"io\"}"), 0.0);
    assert_eq!(told.get("tantalum_ftl_latched"), 0.0);
    // The failed request took time as well.
    assert_eq!(told.get("tantalum_nbd_request_duration_seconds_count{command=\"read\"}"), 1.0);
    let json = good(&[
        "top",
        &option(folder.path()),
        "--interval",
        "0.1",
        "--count",
        "1",
        "--format",
        "json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["errors"].as_u64(), json["media_errors"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn mad_clients_of_metrics_do_not_hinder_those_of_the_volume() {
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--metrics", &option(folder.path())]);
    let mut client = Client::connect(&server.socket).unwrap();
    let connect = || UnixStream::connect(socket(folder.path()));
    let mut open = Vec::new();
    for round in 0..60u64 {
        let mut stream = connect().unwrap();
        // The connection may be cut off while this sends.
        let _ = match round % 4 {
            0 => Ok(()),
            1 => stream.write_all(&GET[..10]),
            2 => stream.write_all(&[0xff; 40_000]),
            _ => stream.write_all(GET),
        };
        client.write(round, &[round as u8; PAGE_BYTES]);
        if round % 3 == 0 {
            open.push(stream);
        }
    }
    for page in 0..60 {
        assert_eq!(client.read(page, 1).unwrap(), [page as u8; PAGE_BYTES]);
    }
    drop(open);
    let told = ask(folder.path());
    assert_eq!(told.get("tantalum_nbd_requests_total{command=\"write\"}"), 60.0);
    assert_eq!(told.get("tantalum_nbd_connections_failed_total"), 0.0);
    // A client in the middle of a request does not delay the end.
    let _silent = connect().unwrap();
    drop(client);
    server.terminate();
}

#[test]
fn fio_is_counted_while_it_runs() {
    if !installed(&["fio"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = volume(folder.path());
    let server = Server::start_as(&config, &["--metrics", &option(folder.path())]);
    let uri = format!("--uri={}", server.uri());
    let job = ["--name=w", "--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", "--iodepth=16"];
    run("fio", &[&job[..], &["--size=4m", "--output-format=terse"]].concat());
    let told = ask(folder.path());
    assert_eq!(told.get("tantalum_nbd_requests_total{command=\"write\"}"), 1024.0);
    assert_eq!(told.get("tantalum_nbd_request_bytes_total{command=\"write\"}"), f64::from(4 << 20));
    let durations = "tantalum_nbd_request_duration_seconds_count{command=\"write\"}";
    assert_eq!(told.get(durations), 1024.0);
    server.terminate();
}

#[test]
fn the_address_may_be_tcp_and_its_port_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--metrics", "127.0.0.1:0"];
    let mut server = Server::start_device_as(folder.path(), "durassd:capacity=32MiB", &options);
    let line = server.line();
    let address = line.trim().strip_prefix("metrics at ").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(GET).unwrap();
    let told = told(stream);
    let name = server.banner.split(": ").next().unwrap();
    let info = format!("device=\"{name}\",kind=\"simulated\"");
    assert!(name.starts_with("durassd") && told.numbers.keys().any(|key| key.contains(&info)));
    assert!(told.get("tantalum_dump_budget_bytes") > 0.0);
    // Requests for metrics do not disturb an NBD client in the middle of a request.
    let mut client = Client::connect(&server.socket).unwrap();
    client.send(Command::Write, 1, 0, 1, &[1; 100]).unwrap();
    drop(client);
    server.terminate();
}

#[test]
fn addresses_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let nbd = format!("unix:{}", folder.path().join("s").display());
    let serve = ["serve", "--device", "durassd:capacity=32MiB", "--nbd", &nbd, "--metrics"];
    for (address, said) in [
        ("localhost", "--metrics"),
        (nbd.as_str(), "each needs an address of its own"),
        ("0.0.0.0:0", "--allow-remote"),
        ("unix:/nowhere/at/all", "listening at unix:/nowhere/at/all"),
    ] {
        let told = refused(&[&serve[..], &[address]].concat());
        assert!(told.contains(said), "{told}");
        assert!(!folder.path().join("s").exists(), "{address}");
    }
}
