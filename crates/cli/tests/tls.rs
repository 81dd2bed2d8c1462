//! `tantalum serve --tls-certificates`: its refusals, what it says, and the recipe for certificates in docs/nbd.md.
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{good, refused, text};
use tantalum_testing::programs::run;
use tantalum_testing::{built, certificates, installed};

fn volume() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("v.toml");
    good(&["create", text(&config), "--capacity", "16MiB"]);
    (folder, config)
}

/// A server at a port of loopback, and the line that it printed.
fn serve(config: &Path, options: &[&str]) -> (Child, String) {
    let mut server = Command::new(built::tantalum())
        .args(["serve", text(config), "--nbd", "127.0.0.1:0"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut banner = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut banner).unwrap();
    (server, banner)
}

/// Ends the server; returns its log.
fn ended(mut server: Child) -> String {
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(server.wait().unwrap().success(), "{log}");
    log
}

/// The port in the first line of a server.
fn port(banner: &str) -> &str {
    let after = banner.split("127.0.0.1:").nth(1).unwrap();
    after.split([',', ' ']).next().unwrap()
}

#[test]
fn certificates_that_cannot_work_are_refused_before_the_volume_is_opened() {
    let (folder, config) = volume();
    let server = certificates::folder("server");
    let expired = certificates::folder("server-expired");
    let mixed = folder.path().join("mixed");
    certificates::copy("server", &mixed);
    fs::copy(expired.join("server-key.pem"), mixed.join("server-key.pem")).unwrap();
    // The volume cannot be opened: the certificates are looked at first.
    fs::remove_file(&config).unwrap();
    let serve = ["serve", text(&config), "--nbd"];
    for (address, options, told) in [
        ("127.0.0.1:0", vec!["--tls-certificates", "/nowhere"], "/nowhere/ca-cert.pem"),
        ("127.0.0.1:0", vec!["--tls-certificates", text(&expired)], "has expired"),
        ("127.0.0.1:0", vec!["--tls-certificates", text(&mixed)], "is not the key of"),
        ("0.0.0.0:0", vec![], "--tls-certificates DIRECTORY"),
        ("0.0.0.0:0", vec!["--tls-certificates", text(&server), "--tls", "on"], "--tls require"),
    ] {
        let refusal = refused(&[&serve[..], &[address], &options].concat());
        assert!(refusal.contains(told), "{told:?} is not in: {refusal}");
    }
    for options in [
        vec!["--nbd", "127.0.0.1:0", "--tls", "require"],
        vec!["--socket", "--tls-certificates", text(&server)],
    ] {
        let command = [&["serve", text(&config)], &options[..]].concat();
        let output = Command::new(built::tantalum()).args(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("arguments were not provided"), "{told}");
    }
}

#[test]
fn a_server_says_whether_it_has_tls_and_warns_of_a_key_that_others_read() {
    let (folder, config) = volume();
    let place = folder.path().join("tls");
    certificates::copy("server", &place);
    let options = ["--tls-certificates", text(&place)];
    let (server, banner) = serve(&config, &options);
    assert!(banner.contains(", TLS offered ("), "{banner}");
    assert!(!ended(server).contains("WARN"));
    let key = place.join("server-key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (server, banner) = serve(&config, &[&options[..], &["--tls", "require"]].concat());
    assert!(banner.contains(", TLS required ("), "{banner}");
    let log = ended(server);
    assert!(log.contains("server-key.pem can be read by other users"), "{log}");
}

#[test]
fn the_log_has_the_reason_and_the_metrics_the_number_of_failed_handshakes() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let (folder, config) = volume();
    let here = certificates::folder("server");
    let metrics = format!("unix:{}", folder.path().join("metrics").display());
    let options = ["--tls-certificates", text(&here), "--metrics", &metrics];
    let (server, banner) = serve(&config, &options);
    for (name, is_good) in [("client", true), ("client-expired", false)] {
        let folder = certificates::folder(name);
        let uri =
            format!("nbds://localhost:{}/?tls-certificates={}", port(&banner), folder.display());
        let mut nbdinfo = Command::new("nbdinfo");
        nbdinfo.arg(uri).stderr(Stdio::null()).stdout(Stdio::null());
        assert_eq!(nbdinfo.status().unwrap().success(), is_good, "{name}");
    }
    let told = good(&["top", &metrics, "--count", "1", "--format", "json"]);
    assert!(told.contains("connections"), "{told}");
    let mut stream =
        std::os::unix::net::UnixStream::connect(folder.path().join("metrics")).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    for line in
        ["tantalum_nbd_tls_connections_total 1", "tantalum_nbd_tls_handshakes_failed_total 1"]
    {
        assert!(told.lines().any(|told| told == line), "{told}");
    }
    let log = ended(server);
    assert!(log.contains("a TLS handshake failed") && log.contains("has expired"), "{log}");
}

#[test]
fn the_recipe_makes_certificates_that_work() {
    if !installed(&["openssl", "nbdinfo", "qemu-img"]) {
        return;
    }
    let page = include_str!("../../../docs/nbd.md");
    let recipe = page.split("<!-- A test runs these lines. -->\n```sh\n").nth(1).unwrap();
    let recipe = recipe.split("```").next().unwrap();
    let (folder, config) = volume();
    let mut shell = Command::new("sh");
    shell.args(["-ec", recipe]).current_dir(folder.path());
    let made = shell.stderr(Stdio::null()).stdout(Stdio::null()).status();
    assert!(made.unwrap().success());
    let place = folder.path().join("server");
    let options = ["--tls-certificates", text(&place), "--tls", "require"];
    let (server, banner) = serve(&config, &options);
    let (port, client) = (port(&banner), folder.path().join("client"));
    let client = text(&client);
    let told = run("nbdinfo", &[&format!("nbds://localhost:{port}/?tls-certificates={client}")]);
    assert!(told.contains("with TLS"), "{told}");
    let object = format!("tls-creds-x509,id=tls0,dir={client},endpoint=client");
    let image = format!(
        "driver=nbd,server.type=inet,server.host=localhost,server.port={port},tls-creds=tls0"
    );
    run("qemu-img", &["info", "--object", &object, "--image-opts", &image]);
    let log = ended(server);
    assert!(!log.contains("WARN"), "{log}");
}
