//! `tantalum serve --tls-certificates`: its refusals, what it says, and the recipe for certificates in docs/nbd.md.
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{good, refused, stat_row, text};
use tantalum_testing::programs::run;
use tantalum_testing::rig::until;
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

/// The lines of docs/nbd.md behind this remark.
fn recipe(remark: &str) -> &'static str {
    let page = include_str!("../../../docs/nbd.md");
    let recipe = page.split(&format!("<!-- {remark} -->\n```sh\n")).nth(1).unwrap();
    recipe.split("```").next().unwrap()
}

/// Runs a shell's commands in `folder`.
fn shell(folder: &Path, commands: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(folder);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Serves with the certificates that a recipe made in `folder`, to `nbdinfo` and `qemu-img`.
fn serve_by_recipe(folder: &Path, config: &Path) {
    let place = folder.join("server");
    let options = ["--tls-certificates", text(&place), "--tls", "require"];
    let (server, banner) = serve(config, &options);
    let (port, client) = (port(&banner), folder.join("client"));
    let client = text(&client);
    let told = run("nbdinfo", &[&format!("nbds://localhost:{port}/?tls-certificates={client}")]);
    assert!(told.contains("with TLS"), "{told}");
    let object = format!("tls-creds-x509,id=tls0,dir={client},endpoint=client");
    run("qemu-img", &["info", "--object", &object, "--image-opts", &image(port)]);
    let log = ended(server);
    assert!(!log.contains("WARN"), "{log}");
}

/// QEMU's words for the export at `port`, with the certificates `tls0`.
fn image(port: &str) -> String {
    format!("driver=nbd,server.type=inet,server.host=localhost,server.port={port},tls-creds=tls0")
}

#[test]
fn the_recipe_with_gnutls_makes_certificates_that_work() {
    if !installed(&["certtool", "nbdinfo", "qemu-img"]) {
        return;
    }
    let (folder, config) = volume();
    shell(folder.path(), recipe("A test runs these lines with certtool."));
    serve_by_recipe(folder.path(), &config);
}

#[test]
fn a_list_that_has_expired_is_told_at_the_start_and_with_each_client() {
    if !installed(&["openssl", "nbdinfo"]) {
        return;
    }
    let (folder, config) = volume();
    shell(folder.path(), recipe("A test runs these lines."));
    let list = "printf '[ca]\\ndefault_ca=x\\n[x]\\ndatabase=index\\ncrlnumber=number\\ndefault_md=sha256\\n' > ca.conf
        : > index; echo 01 > number
        openssl ca -config ca.conf -gencrl -keyfile ca-key.pem -cert server/ca-cert.pem -out server/ca-crl.pem";
    for (options, is_old) in [
        ("-crldays 30", false),
        ("-crl_lastupdate 20250101000000Z -crl_nextupdate 20250201093000Z", true),
    ] {
        shell(folder.path(), &format!("{list} {options}"));
        let place = folder.path().join("server");
        let (server, banner) = serve(&config, &["--tls-certificates", text(&place)]);
        let client = folder.path().join("client").display().to_string();
        let uri = format!("nbds://localhost:{}/?tls-certificates={client}", port(&banner));
        run("nbdinfo", &["--size", &uri]);
        let log = ended(server);
        let told: Vec<_> =
            log.lines().filter(|line| line.contains("expired on 2025-02-01 09:30 UTC")).collect();
        assert_eq!(told.len(), if is_old { 2 } else { 0 }, "{log}");
        assert!(!is_old || told[1].contains("a client is let in by an old list"), "{log}");
        assert!(log.contains("WARN") == is_old, "{log}");
    }
}

#[test]
fn stat_and_top_tell_whether_clients_get_tls_and_how_many_have_it() {
    if !installed(&["qemu-io"]) {
        return;
    }
    let (folder, config) = volume();
    let metrics = format!("unix:{}", folder.path().join("metrics").display());
    let top = || {
        let told = good(&["top", &metrics, "--count", "1", "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(told.lines().next().unwrap()).unwrap()
    };
    let served = |options: &[&str]| serve(&config, &[options, &["--metrics", &metrics]].concat());
    assert!(stat_row(&config)["nbd_tls"].is_null());
    let (server, _) = served(&[]);
    let row = stat_row(&config);
    assert_eq!((&row["nbd_tls"], &row["nbd_connections"]), (&"off".into(), &0.into()));
    assert_eq!(top()["nbd_tls"], "off");
    ended(server);
    let here = certificates::folder("server");
    let options = ["--tls-certificates", text(&here)];
    let (server, _) = served(&[&options[..], &["--tls", "require"]].concat());
    assert_eq!(
        (&stat_row(&config)["nbd_tls"], &top()["nbd_tls"]),
        (&"required".into(), &"required".into())
    );
    ended(server);
    let (server, banner) = served(&options);
    let of_client = certificates::folder("client");
    let object = format!("tls-creds-x509,id=tls0,dir={},endpoint=client", text(&of_client));
    // It stays until its input ends.
    let mut client = Command::new("qemu-io")
        .args(["--object", &object, "--image-opts", &image(port(&banner))])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let in_tls = |count: u64| stat_row(&config)["nbd_tls_connections"] == count;
    until("a client in TLS", || in_tls(1));
    let row = stat_row(&config);
    assert_eq!((&row["nbd_tls"], &row["nbd_connections"]), (&"offered".into(), &1.into()));
    let told = good(&["stat", text(&config)]);
    assert!(told.contains("offered") && told.contains("NBD clients"), "{told}");
    assert_eq!((&top()["nbd_tls"], &top()["nbd_tls_connections"]), (&"offered".into(), &1.into()));
    drop(client.stdin.take());
    client.wait().unwrap();
    until("its end", || in_tls(0));
    ended(server);
}

#[test]
fn the_recipe_makes_certificates_that_work() {
    if !installed(&["openssl", "nbdinfo", "qemu-img"]) {
        return;
    }
    let (folder, config) = volume();
    shell(folder.path(), recipe("A test runs these lines."));
    serve_by_recipe(folder.path(), &config);
}
