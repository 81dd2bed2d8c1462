//! `tantalum top` with a running server.
mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::nbd::{Client, PAGE_BYTES};
use support::server::Server;
use support::{good, refused, tantalum};
use tantalum_base::{PageBuf, PageNo};
use tantalum_testing::{built, installed};

fn address(folder: &Path) -> String {
    format!("unix:{}", folder.join("metrics.sock").display())
}

fn served(folder: &Path) -> Server {
    let config = folder.join("VOLUME.toml");
    good(&["create", config.to_str().unwrap(), "--capacity", "8MiB"]);
    // Acknowledged writes count as mapped at once.
    Server::start_as(&config, &["--metrics", &address(folder), "--durability", "on_ack"])
}

/// `top` on the server of `folder`, with its output in a pipe.
fn top(folder: &Path, options: &[&str]) -> Child {
    Command::new(built::tantalum())
        .args(["top", &address(folder), "--interval", "0.1"])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tantalum starts")
}

#[test]
fn intervals_are_printed_one_below_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = served(folder.path());
    let mut client = Client::connect(&server.socket).unwrap();
    for page in 0..20 {
        client.write(page, &[1; PAGE_BYTES]);
    }
    let text = good(&["top", &address(folder.path()), "--interval", "0.1", "--count", "2"]);
    assert_eq!(text.matches("VOLUME.toml (on_ack), up ").count(), 2, "{text}");
    assert_eq!(text.matches("\nerrors        all 0, of the media 0").count(), 2, "{text}");
    assert!(text.contains("\nspace         mapped 80.0 KiB, of 8.0 MiB\n"), "{text}");
    // There is no buffer, no dump and no disk; and there are no terminal sequences.
    for absent in ["buffer", "dump", "disk", "\x1b"] {
        assert!(!text.contains(absent), "{absent:?}: {text}");
    }
    server.terminate();
}

/// Local clients count as those of NBD do; the volume itself names the server.
#[test]
fn local_clients_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("VOLUME.toml");
    good(&["create", config.to_str().unwrap(), "--capacity", "8MiB"]);
    let options = ["--socket", "--metrics", &address(folder.path())];
    let server = Server::start_as(&config, &options);
    let told = refused(&["top", config.to_str().unwrap()]);
    assert!(told.contains("it is served (pid") && told.contains("--metrics"), "{told}");
    let volume = tantalum::Volume::open(&config).unwrap();
    let mut top = top(folder.path(), &["--format", "json"]);
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let row = loop {
        for page in 0..10 {
            volume.write(PageNo(page), vec![PageBuf::copy_from(&[1; PAGE_BYTES])]).unwrap();
        }
        let line = lines.next().unwrap().unwrap();
        let row: serde_json::Value = serde_json::from_str(&line).unwrap();
        if row["writes_per_second"].as_f64() > Some(0.0) {
            break row;
        }
    };
    assert_eq!(row["connections"], 1, "{row}");
    let rate = |key: &str| row[key].as_f64().unwrap();
    let bytes = rate("writes_per_second") * PAGE_BYTES as f64;
    assert!((rate("write_bytes_per_second") - bytes).abs() < 5.0, "{row}");
    assert!(rate("write_p50_seconds") > 0.0, "{row}");
    drop(volume);
    drop(lines);
    top.wait().unwrap();
    server.terminate();
}

#[test]
fn json_is_an_object_a_line_with_what_happened_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let server = served(folder.path());
    let mut client = Client::connect(&server.socket).unwrap();
    let mut top = top(folder.path(), &["--format", "json"]);
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    next();
    let mut written = 0;
    let busy = loop {
        for _ in 0..10 {
            client.write(written % 100, &[2; PAGE_BYTES]);
            written += 1;
        }
        let seen = next();
        if seen["writes_per_second"].as_f64().unwrap() > 0.0 {
            break seen;
        }
    };
    let rate = |key: &str| busy[key].as_f64().unwrap();
    // Both are rounded to three decimals.
    let bytes = rate("writes_per_second") * PAGE_BYTES as f64;
    assert!((rate("write_bytes_per_second") - bytes).abs() < 5.0, "{busy}");
    assert!(rate("write_p50_seconds") > 0.0);
    assert!(rate("write_p50_seconds") <= rate("write_p999_seconds"));
    assert!(rate("write_amplification") >= 1.0, "{busy}");
    assert!(busy["read_p50_seconds"].is_null() && busy["buffer_hit_ratio"].is_null(), "{busy}");
    assert_eq!(busy["reads_per_second"].as_f64(), Some(0.0));
    assert_eq!(busy["capacity_bytes"].as_u64(), Some(8 << 20));
    top.kill().unwrap();
    top.wait().unwrap();
    server.terminate();
}

#[test]
fn csv_has_one_heading() {
    let folder = tempfile::tempdir().unwrap();
    let _server = served(folder.path());
    let text = good(&[
        "top",
        &address(folder.path()),
        "--interval",
        "0.1",
        "--count",
        "3",
        "--format",
        "csv",
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("uptime_seconds,interval_seconds,reads_per_second,"));
    let commas = |line: &&str| line.matches(',').count();
    assert!(lines.iter().all(|line| commas(line) == commas(&lines[0])));
}

#[test]
fn a_server_that_goes_away_is_one_line_and_status_1() {
    for kills in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let server = served(folder.path());
        let mut top = top(folder.path(), &["--format", "json"]);
        let mut out = BufReader::new(top.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        if kills {
            server.kill();
        } else {
            server.terminate();
        }
        let mut err = String::new();
        top.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(top.wait().unwrap().code(), Some(1), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains("metrics.sock does not answer any more: "), "{err}");
    }
}

#[test]
fn an_address_without_metrics_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = served(folder.path());
    let file = refused(&["top", &folder.path().join("VOLUME.toml").display().to_string()]);
    assert!(file.contains("--metrics 127.0.0.1:9809"), "{file}");
    let nobody = refused(&["top", "unix:/nowhere/at/all"]);
    assert!(nobody.contains("connecting to unix:/nowhere/at/all"), "{nobody}");
    assert!(refused(&["top", "127.0.0.1:1"]).contains("refused"));
    assert!(refused(&["top", "localhost:80"]).contains("unix:/path"));
    // A server that does not serve metrics.
    let nbd = refused(&["top", &format!("unix:{}", server.socket.display())]);
    assert!(nbd.contains("not metrics"), "{nbd}");
    let other = folder.path().join("other.sock");
    let listener = UnixListener::bind(&other).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept().unwrap()));
        let told = refused(&["top", &format!("unix:{}", other.display())]);
        assert!(told.contains("asking unix:"), "{told}");
    });
    for (option, value) in [("--interval", "0"), ("--interval", "x"), ("--count", "0")] {
        assert_eq!(tantalum(&["top", &address(folder.path()), option, value]).code, 2);
    }
    assert!(refused(&["top", "unix:/x", "--format", "yaml"]).contains("table, csv, json"));
}

/// Answers every request at `socket` as a server of metrics would, with a name that tells a terminal to do something.
fn pretend(socket: &Path) {
    use std::io::Write;
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::Builder::new()
        .spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let text = "tantalum_device_info{device=\"\x1b]0;title\x07\u{9b}2J\",durability=\"on_ack\"} 1\n\
                            tantalum_uptime_seconds 60\n";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
                write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
            }
        })
        .unwrap();
}

#[test]
fn a_server_tells_the_terminal_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("metrics.sock");
    pretend(&socket);
    let watch = ["top", &address(folder.path()), "--interval", "0.1", "--count", "1"];
    for format in ["table", "csv", "json"] {
        let text = good(&[&watch[..], &["--format", format]].concat());
        let obeyed = |it: char| it.is_control() && it != '\n' && it != '\t';
        assert!(!text.contains(obeyed), "{format}: {text:?}");
    }
    let text = good(&watch);
    assert!(text.contains(r"\u001b]0;title\u0007\u009b2J (on_ack)"), "{text}");
    if installed(&["script"]) {
        // On a terminal it is drawn in place.
        let line = format!("timeout -s INT 1 {} top {}", built::tantalum(), address(folder.path()));
        let drawn = Command::new("script")
            .args(["--quiet", "--command", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let drawn = String::from_utf8_lossy(&drawn.stdout);
        assert!(drawn.contains(r"\u001b]0;title") && !drawn.contains("\x1b]0;"), "{drawn:?}");
    }
}

#[test]
fn whoever_reads_no_further_ends_it_well() {
    let folder = tempfile::tempdir().unwrap();
    let _server = served(folder.path());
    let mut top = top(folder.path(), &[]);
    let mut out = BufReader::new(top.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(top.wait().unwrap().code(), Some(0));
}

#[test]
fn a_terminal_is_drawn_on_in_place_and_given_back() {
    if !installed(&["script", "timeout"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = served(folder.path());
    for (signal, columns) in [("INT", 200), ("TERM", 30)] {
        let program = built::tantalum();
        let line = format!(
            "stty cols {columns} rows 12; timeout --foreground --signal={signal} 1 {program} top {} \
             --interval 0.1",
            address(folder.path())
        );
        let output = Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (entered, rest) = text.split_once("\x1b[?1049h\x1b[?25l").expect("it takes the screen");
        let (drawn, left) = rest.split_once("\x1b[?25h\x1b[?1049l").expect("it gives it back");
        assert_eq!(entered, "");
        assert!(drawn.matches("\x1b[H").count() > 1, "{drawn:?}");
        for line in drawn.split("\x1b[H").flat_map(|frame| frame.split("\r\n")) {
            let line = line
                .trim_end_matches('\r')
                .replace("\x1b[K", "")
                .replace("\x1b[J", "")
                .replace("\x1b[2J", "");
            assert!(line.chars().count() <= columns, "{line:?}");
        }
        let frames = drawn.split("\x1b[H").skip(1);
        frames.for_each(|frame| assert!(frame.matches("\r\n").count() < 12, "{frame:?}"));
        // The last values stay.
        assert!(left.contains("VOLUME.toml (on_ack)"), "{left:?}");
    }
    server.terminate();
}
