//! Existing NBD clients over TLS, and clients that they should not be.
mod support;

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{Serving, installed, run, serve_at};
use tantalum_base::Durability;
use tantalum_nbd::{Certificates, ServerOptions, Tls};
use tantalum_runtime::live::EngineChoice;
use tantalum_runtime::live::net::Address;
use tantalum_testing::certificates::{VALID_UNIX_SECONDS, folder};
use tantalum_testing::is_root;

const MIB: u64 = 1 << 20;

/// A server at a port of loopback.
fn serve_with(name: &str, is_required: bool, options: ServerOptions) -> Serving {
    let certificates = Certificates::read(&folder(name), || VALID_UNIX_SECONDS).unwrap();
    let options = ServerOptions { tls: Some(Tls { certificates, is_required }), ..options };
    let (place, address) = (tempfile::tempdir().unwrap(), "127.0.0.1:0".parse().unwrap());
    serve_at(place, address, EngineChoice::Auto, 64 * MIB, Durability::OnFlush, options)
}

fn serve(is_required: bool) -> Serving {
    serve_with("server", is_required, ServerOptions::default())
}

fn port(serving: &Serving) -> u16 {
    let Address::Tcp(address) = &serving.address else { unreachable!() };
    address.port()
}

fn uri(serving: &Serving, certificates: &str) -> String {
    let folder = folder(certificates);
    format!("nbds://localhost:{}/?tls-certificates={}", port(serving), folder.display())
}

/// Options by which `qemu-img` reaches the server.
fn qemu(serving: &Serving, certificates: &str) -> [String; 2] {
    let dir = folder(certificates);
    [
        format!("tls-creds-x509,id=tls0,dir={},endpoint=client", dir.display()),
        format!(
            "driver=nbd,server.type=inet,server.host=localhost,server.port={},tls-creds=tls0",
            port(serving)
        ),
    ]
}

/// Runs a client that must fail, and returns its errors.
fn failed(program: &str, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        Command::new("timeout").args(["60", program]).args(arguments).output().unwrap();
    assert!(!status.success() && status.code() != Some(124), "{program} {arguments:?}: {status}");
    String::from_utf8_lossy(&stderr).into_owned()
}

/// Bytes that look alike nowhere.
fn image(path: &Path, bytes: u64) {
    let words =
        (0..bytes / 8).flat_map(|word| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes());
    std::fs::write(path, words.collect::<Vec<u8>>()).unwrap();
}

#[test]
fn nbdinfo_comes_in_with_its_certificate_alone() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    for is_required in [false, true] {
        let serving = serve(is_required);
        let told = run("nbdinfo", &["--json", &uri(&serving, "client")]);
        let info: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&info["TLS"], &info["structured"]), (&true.into(), &true.into()));
        assert_eq!(info["exports"][0]["export-size"], 64 * MIB);
        let statistics = serving.finish();
        assert!(statistics.tls_connections > 0);
        assert_eq!((statistics.tls_handshakes_failed, statistics.connections_failed), (0, 0));
    }
}

#[test]
fn a_client_without_tls_is_told_that_it_needs_it() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let serving = serve(true);
    failed("nbdinfo", &[&serving.uri()]);
    if installed(&["qemu-img"]) {
        let told = failed("qemu-img", &["info", "-f", "raw", &serving.uri()]);
        assert!(told.contains("TLS"), "{told}");
    }
    assert_eq!(serving.finish().tls_connections, 0);
    let serving = serve(false);
    run("nbdinfo", &[&serving.uri()]);
    serving.finish();
}

#[test]
fn clients_with_a_wrong_certificate_are_refused_and_the_others_are_served() {
    if !installed(&["nbdinfo", "qemu-img"]) {
        return;
    }
    // QEMU checks its own certificate first. One that was revoked looks good to it.
    for (server, client, reason, failures) in [
        ("server", "client-of-another-ca", "none from a CA in ca-cert.pem", 1),
        ("server", "client-expired", "has expired", 1),
        ("server-with-crl", "client-revoked", "was revoked", 2),
    ] {
        let serving = serve_with(server, true, ServerOptions::default());
        failed("nbdinfo", &[&uri(&serving, client)]);
        let [creds, image] = qemu(&serving, client);
        failed("qemu-img", &["info", "--object", &creds, "--image-opts", &image]);
        run("nbdinfo", &[&uri(&serving, "client")]);
        let statistics = serving.finish();
        assert_eq!(statistics.tls_handshakes_failed, failures, "{client}: {statistics:?}");
        let failure = statistics.last_failure.unwrap();
        assert!(failure.contains(reason), "{client}: {failure}");
    }
    let serving = serve(true);
    failed("nbdinfo", &[&uri(&serving, "client-without-certificate")]);
    let failure = serving.finish().last_failure.unwrap();
    assert!(failure.contains("sent no certificate"), "{failure}");
}

#[test]
fn a_client_refuses_a_server_that_it_does_not_know() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let serving = serve_with("server-of-another-ca", true, ServerOptions::default());
    failed("nbdinfo", &[&uri(&serving, "client")]);
    let statistics = serving.finish();
    assert_eq!((statistics.tls_connections, statistics.tls_handshakes_failed), (0, 1));
}

#[test]
fn nbdcopy_brings_an_image_in_and_out() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let serving = serve(true);
    let (first, second) = (serving.file("first"), serving.file("second"));
    image(&first, 64 * MIB);
    let uri = uri(&serving, "client");
    run("nbdcopy", &["--flush", first.to_str().unwrap(), &uri]);
    run("nbdcopy", &[&uri, second.to_str().unwrap()]);
    assert!(std::fs::read(first).unwrap() == std::fs::read(second).unwrap());
    let statistics = serving.finish();
    assert_eq!((statistics.errors, statistics.connections_failed), (0, 0));
}

#[test]
fn nbdcopy_copies_from_one_end_to_the_other_of_the_same_server() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    // Large transfers both ways at once.
    let serving = serve(true);
    let source = serving.file("source");
    image(&source, 32 * MIB);
    let part =
        |first: &str| uri(&serving, "client").replace("/?tls", &format!("/@{first}+32MiB?tls"));
    run("nbdcopy", &["--flush", source.to_str().unwrap(), &part("0MiB")]);
    run("nbdcopy", &["--flush", &part("0MiB"), &part("32MiB")]);
    let copy = serving.file("copy");
    run("nbdcopy", &[&part("32MiB"), copy.to_str().unwrap()]);
    assert!(std::fs::read(source).unwrap() == std::fs::read(copy).unwrap());
    serving.finish();
}

#[test]
fn qemu_img_converts_and_compares() {
    if !installed(&["qemu-img"]) {
        return;
    }
    let serving = serve(true);
    let first = serving.file("first");
    image(&first, 64 * MIB);
    let first = first.to_str().unwrap();
    let [creds, image] = qemu(&serving, "client");
    let object = ["--object", creds.as_str()];
    let convert = [&["convert", "-n", "-f", "raw"], &object[..]].concat();
    run("qemu-img", &[&convert[..], &["--target-image-opts", first, &image]].concat());
    let here = format!("driver=file,filename={first}");
    let compare = [&["compare"], &object[..], &["--image-opts", &image, &here]].concat();
    let told = run("qemu-img", &compare);
    assert!(told.contains("identical"), "{told}");
    assert_eq!(serving.finish().connections_failed, 0);
}

#[test]
fn fio_verifies_what_it_wrote_at_depth() {
    if !installed(&["fio"]) {
        return;
    }
    let serving = serve(true);
    // fio refuses a folder in its URI. libnbd looks in the home of the user, but not in that of root.
    let home = serving.folder.path();
    std::fs::set_permissions(home, Permissions::from_mode(0o755)).unwrap();
    let place = home.join(".pki/libnbd");
    std::fs::create_dir_all(&place).unwrap();
    for file in std::fs::read_dir(folder("client")).unwrap() {
        let file = file.unwrap();
        let copy = place.join(file.file_name());
        std::fs::copy(file.path(), &copy).unwrap();
        std::fs::set_permissions(copy, Permissions::from_mode(0o644)).unwrap();
    }
    let (home, uri) =
        (format!("HOME={}", home.display()), format!("--uri=nbds://localhost:{}", port(&serving)));
    let mut command = vec![home.as_str()];
    if is_root() {
        command.extend("setpriv --reuid=65534 --regid=65534 --clear-groups".split(' '));
    }
    let jobs = "fio --name=v --ioengine=nbd --rw=randrw --bsrange=4k-64k --iodepth=32 --size=32m --verify=crc32c --verify_fatal=1 --verify_state_save=0";
    command.extend(jobs.split(' '));
    command.push(&uri);
    run("env", &command);
    let statistics = serving.finish();
    assert!(statistics.writes > 100 && statistics.tls_connections > 0, "{statistics:?}");
    assert_eq!((statistics.errors, statistics.connections_failed), (0, 0));
}

#[test]
fn a_server_stops_during_a_transfer() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let serving =
        serve_with("server", true, ServerOptions { stop_ms_max: 2_000, ..Default::default() });
    let mut copying = Command::new("nbdcopy")
        .args([&uri(&serving, "client"), "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = copying.stdout.take().unwrap();
    out.read_exact(&mut [0; 100_000]).unwrap();
    let statistics = serving.finish();
    assert_eq!(statistics.connections_open, 0);
    drop(out);
    copying.kill().unwrap();
    copying.wait().unwrap();
}

/// A connection whose server waits for a handshake.
fn before_handshake(serving: &Serving) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port(serving))).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[8..], *b"\0\0\0\x05\0\0\0\x01\0\0\0\0");
    stream
}

#[test]
fn squatters_in_the_handshake_harm_nobody_and_are_cut_off() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    let options = ServerOptions { negotiation_ms_max: 1_500, ..Default::default() };
    let serving = serve_with("server", true, options);
    let mut squatters: Vec<_> = (0..15).map(|_| before_handshake(&serving)).collect();
    // The beginning of a handshake message of 65,000 bytes.
    squatters[3].write_all(b"\x16\x03\x01\x40\0\x01\0\xfd\xe8").unwrap();
    squatters[4].write_all(b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
    let source = serving.file("source");
    image(&source, 16 * MIB);
    run("nbdcopy", &[source.to_str().unwrap(), &uri(&serving, "client")]);
    for mut squatter in squatters {
        let mut rest = Vec::new();
        // A reset ends the connection just as well.
        let _ = squatter.read_to_end(&mut rest);
        assert!(rest.len() <= 7, "at most an alert: {rest:?}");
    }
    let statistics = serving.finish();
    assert_eq!((statistics.connections_failed, statistics.tls_handshakes_failed), (15, 15));
}

/// A port that leads to the server's handshake, for a client that knows nothing of NBD.
#[expect(clippy::disallowed_methods, reason = "passes on bytes both ways, in real time")]
fn behind_starttls(serving: &Serving) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, mut server) = (listener.local_addr().unwrap().port(), before_handshake(serving));
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        // An end of either side ends both.
        let _ = std::io::copy(&mut client, &mut server);
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
    port
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "OpenSSL takes a command at the beginning of what it reads"
)]
fn a_client_that_requests_new_keys_gets_them() {
    if !installed(&["openssl"]) {
        return;
    }
    let serving = serve(true);
    let (client, port) = (folder("client"), behind_starttls(&serving));
    let mut openssl = Command::new("timeout")
        .args(["60", "openssl", "s_client", "-tls1_3", "-msg"])
        .args(["-connect", &format!("127.0.0.1:{port}"), "-verify_return_error", "-CAfile"])
        .arg(client.join("ca-cert.pem"))
        .arg("-cert")
        .arg(client.join("client-cert.pem"))
        .arg("-key")
        .arg(client.join("client-key.pem"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = openssl.stdin.take().unwrap();
    let list = b"IHAVEOPT\0\0\0\x03\0\0\0\0";
    for input in [&list[..], b"K\n", list, b"K\n", list, b"Q\n"] {
        std::thread::sleep(std::time::Duration::from_millis(400));
        stdin.write_all(input).unwrap();
    }
    let mut told = Vec::new();
    openssl.stdout.take().unwrap().read_to_end(&mut told).unwrap();
    openssl.wait().unwrap();
    let told = String::from_utf8_lossy(&told);
    assert_eq!(told.matches("Tantalum volume").count(), 3, "{told}");
    assert_eq!(
        told.matches("<<< TLS 1.3, Handshake [length 0005], KeyUpdate").count(),
        2,
        "{told}"
    );
    assert_eq!(serving.finish().tls_connections, 1);
}
