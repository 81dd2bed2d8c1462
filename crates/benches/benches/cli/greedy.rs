//! One client that reads and writes 4 KiB at a time, one after the other, beside 15 clients that do the same, and beside 15 that take
//! all they can get. Tells its operations a second and its 99th percentile beside the greedy ones, over those beside the polite ones.
//!
//! `scripts/bench cli/greedy`; seconds by `SECONDS_EACH` (5), rounds by `ROUNDS` (3); those whose name contains a word: `ARGUMENTS=reads`.
#![expect(clippy::disallowed_methods, reason = "clients of their own, in real time")]
#[path = "../../../nbd/tests/support/raw.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod raw;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use hdrhistogram::Histogram;
use tantalum_base::Rng;
use tantalum_testing::built::disk_folder;
use tantalum_testing::programs::{median, setting};
use tantalum_testing::rig::{MIB, Server, now, tantalum};

const OTHERS: usize = 15;
/// The polite clients use this much of the device.
const POLITE_PAGES: u64 = 16_384;
const REQUESTS_AT_ONCE: usize = 64;
/// Clients that have left must be gone by then.
const PLACES_WAIT_MAX: Duration = Duration::from_secs(20);

/// The commands of the protocol.
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const UNKNOWN: u16 = 99;

/// The behaviour of the other clients.
#[derive(Clone, Copy)]
enum Others {
    Polite,
    /// Send this without a pause, and take each reply.
    Flood(fn() -> Vec<u8>),
    /// Ask for much, and take 64 KiB each second.
    Trickle,
    /// Connect and leave.
    Storm,
}

const GREEDY: [(&str, Others); 8] = [
    ("block status of 256 MiB", Others::Flood(|| raw::request(BLOCK_STATUS, 0, 256 << 20))),
    ("reads of 32 MiB", Others::Flood(|| raw::request(READ, 128 << 20, 32 << 20))),
    ("writes of a byte in one page", Others::Flood(one_byte)),
    ("zeroes of 128 MiB", Others::Flood(|| raw::request(WRITE_ZEROES, 128 << 20, 128 << 20))),
    ("flushes", Others::Flood(|| raw::request(FLUSH, 0, 0))),
    ("unknown commands", Others::Flood(|| raw::request(UNKNOWN, 0, 0))),
    ("reads whose replies are not taken", Others::Trickle),
    ("connecting and leaving", Others::Storm),
];

fn one_byte() -> Vec<u8> {
    [raw::request(WRITE, (200 << 20) + 1, 1), vec![b'x']].concat()
}

fn main() {
    // `cargo test` builds benches too and starts them without `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let greedy: Vec<_> = GREEDY.iter().filter(|(name, _)| is_wanted(name)).collect();
    let folder = disk_folder();
    let config = folder.path().join("VOLUME.toml").to_string_lossy().into_owned();
    tantalum(&["create", &config, "--capacity", "1GiB"]);
    let server = Server::start(folder.path(), "volume.sock", &[&config]);
    let socket = &server.socket;
    fill(socket);
    let mut ratios: Vec<[Vec<f64>; 2]> = greedy.iter().map(|_| Default::default()).collect();
    for round in 1..=setting("ROUNDS", 3) {
        for ((name, others), ratios) in greedy.iter().zip(&mut ratios) {
            let polite = beside(socket, Others::Polite);
            let greedy = beside(socket, *others);
            println!("round {round}: {name}: {}; polite: {}", greedy.told(), polite.told());
            ratios[0].push(greedy.per_second / polite.per_second);
            ratios[1].push(greedy.p99_ms() / polite.p99_ms());
        }
    }
    for ((name, _), [rate, p99]) in greedy.iter().zip(ratios) {
        let (rate, p99) = (median(rate), median(p99));
        println!("{name}: {rate:.2} of the rate (asked: 0.5), p99 {p99:.1} times (asked: 5)");
    }
}

/// Writes the pages that are read.
fn fill(socket: &Path) {
    let mut stream = raw::negotiated(socket);
    (0..POLITE_PAGES).for_each(|page| raw::write_page(&mut stream, page));
}

/// The measurement of a client.
struct Measured {
    per_second: f64,
    latencies_ns: Histogram<u64>,
}

impl Measured {
    fn p99_ms(&self) -> f64 {
        self.latencies_ns.value_at_quantile(0.99) as f64 / 1e6
    }

    fn told(&self) -> String {
        let max_ms = self.latencies_ns.max() as f64 / 1e6;
        format!("{:.0}/s, p99 {:.2} ms, max {max_ms:.0} ms", self.per_second, self.p99_ms())
    }
}

/// Waits until the server has let clients go that have left, and returns the seconds.
fn wait_for_places(socket: &Path) -> f64 {
    let began = now();
    while began.elapsed() < PLACES_WAIT_MAX {
        let places: Result<Vec<_>, _> = (0..=OTHERS).map(|_| raw::try_negotiated(socket)).collect();
        if places.is_ok() {
            return began.elapsed().as_secs_f64();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("after {PLACES_WAIT_MAX:?} clients that have left still take places");
}

/// Measures a client beside others.
fn beside(socket: &Path, others: Others) -> Measured {
    let waited_s = wait_for_places(socket);
    if waited_s > 1.0 {
        println!("the clients before took places for {waited_s:.1} s after they had left");
    }
    // Those that tried the places leave again.
    std::thread::sleep(Duration::from_millis(100));
    let own = raw::negotiated(socket);
    let end = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..OTHERS as u64)
        .flat_map(|seed| start(socket.to_path_buf(), others, seed, Arc::clone(&end)))
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let seconds = f64::from(setting("SECONDS_EACH", 5));
    let latencies_ns = polite(own, OTHERS as u64, |since_s| since_s > seconds);
    end.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    Measured { per_second: latencies_ns.len() as f64 / seconds, latencies_ns }
}

/// Reads and writes a page at a time until `is_over` the seconds since it began.
fn polite(mut stream: UnixStream, seed: u64, is_over: impl Fn(f64) -> bool) -> Histogram<u64> {
    let mut rng = Rng::new(seed);
    let mut latencies_ns = Histogram::new(3).expect("three digits");
    let mut reply = [0; 16 + 4096];
    let start = now();
    for number in 0_u64.. {
        let began = now();
        let page = rng.below(POLITE_PAGES);
        if number % 2 == 0 {
            stream.write_all(&raw::request(READ, page * 4096, 4096)).expect("the server");
            stream.read_exact(&mut reply).expect("a reply");
        } else {
            raw::write_page(&mut stream, page);
        }
        latencies_ns.record(began.elapsed().as_nanos() as u64).expect("it grows");
        if is_over(start.elapsed().as_secs_f64()) {
            break;
        }
    }
    latencies_ns
}

/// Starts one of the others.
fn start(
    socket: std::path::PathBuf,
    others: Others,
    seed: u64,
    end: Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    match others {
        Others::Polite => vec![spawn(move || {
            polite(raw::negotiated(&socket), seed, |_| end.load(Ordering::Relaxed));
        })],
        Others::Flood(request) => flood(&socket, &request(), end),
        Others::Trickle => {
            let mut stream = raw::negotiated(&socket);
            stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
            stream.write_all(&raw::request(READ, 0, 32 << 20).repeat(100)).expect("room");
            vec![spawn(move || {
                let mut part = vec![0; 64 << 10];
                while !end.load(Ordering::Relaxed) {
                    // The server may cut it off.
                    let _ = stream.read(&mut part);
                    std::thread::sleep(Duration::from_secs(1));
                }
            })]
        }
        Others::Storm => vec![spawn(move || {
            while !end.load(Ordering::Relaxed) {
                drop(UnixStream::connect(&socket));
            }
        })],
    }
}

/// Sends `request` without a pause on one thread, and takes the replies on another.
fn flood(socket: &Path, request: &[u8], end: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let mut stream = raw::with_block_status(socket);
    let mut taken = stream.try_clone().expect("a descriptor");
    let requests = request.repeat(REQUESTS_AT_ONCE);
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a time");
    let sender = spawn(move || {
        let mut left = &requests[..];
        while !end.load(Ordering::Relaxed) {
            if let Ok(sent) = stream.write(left) {
                left = if sent == left.len() { &requests } else { &left[sent..] };
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let taker = spawn(move || {
        let mut part = vec![0; MIB as usize];
        while matches!(taken.read(&mut part), Ok(1..)) {}
    });
    vec![sender, taker]
}
