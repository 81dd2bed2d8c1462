//! One commit of 8 pages through the blocking client, and one `O_DSYNC` write of as many bytes
//! as the volume writes for it (8 pages and a header), in turns.
//!
//! `scripts/bench volume/commit_latency`; rounds and seconds by `FIO_ROUNDS`
//! (3) and `FIO_SECONDS` (2).
mod support;

use hdrhistogram::Histogram;
use std::path::Path;
use std::time::{Duration, Instant};
use support::create;
use tantalum::Volume;
use tantalum_base::rng::Rng;
use tantalum_base::{PageBuf, PageNo, Payload};
use tantalum_testing::built::disk_folder as folder;
use tantalum_testing::installed;
use tantalum_testing::programs::{FioJob, fio, median, setting};

const PAGES: u64 = 8;

fn main() {
    if !support::wanted() || !installed(&["fio"]) {
        return;
    }
    let folder = folder();
    let (rounds, seconds) = (setting("FIO_ROUNDS", 3), setting("FIO_SECONDS", 2));
    let config = create(folder.path(), 1 << 30, "");
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let plain = plain_file(folder.path(), seconds);
        let theirs = plain.per_second("write");
        let opened = Volume::open(&config.path);
        let client = opened.expect("the volume opens");
        let (ours, latency_ns) = commit(&client, Duration::from_secs(seconds.into()));
        let latency_us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        println!(
            "round {round}: {ours:.0} commits/s of {PAGES} pages (p50 {:.0} us, p99 {:.0} us), \
             plain write {theirs:.0}/s (p50 {:.0} us, p99 {:.0} us), ratio {:.2}",
            latency_us(0.5),
            latency_us(0.99),
            plain.latency_us("write", "50.000000"),
            plain.latency_us("write", "99.000000"),
            ours / theirs
        );
        ratios.push(ours / theirs);
    }
    println!("median ratio {:.2}", median(ratios));
}

fn plain_file(folder: &Path, seconds: u32) -> FioJob {
    fio(&[
        &format!("--filename={}", folder.join("plain").display()),
        "--size=1207959552",
        "--ioengine=psync",
        "--direct=1",
        "--sync=dsync",
        "--rw=write",
        "--bs=36k",
        "--overwrite=1",
        "--time_based",
        &format!("--runtime={seconds}"),
    ])
}

#[expect(clippy::disallowed_methods, reason = "a caller's latency is measured on its own thread")]
fn commit(client: &Volume, time: Duration) -> (f64, Histogram<u64>) {
    let mut rng = Rng::new(1);
    let pages = client.limits().pages;
    let mut latency_ns = Histogram::new(3).expect("3 digits are supported");
    let start = Instant::now();
    while start.elapsed() < time {
        let mut batch: Vec<(PageNo, PageBuf)> = Vec::new();
        // Scattered as a small transaction's pages are; one in each eighth, so never one twice.
        for part in 0..PAGES {
            let page = PageNo(part * (pages / PAGES) + rng.below(pages / PAGES));
            let mut content = PageBuf::zero();
            rng.fill(&mut content.make_mut()[..64]);
            batch.push((page, content));
        }
        let from = Instant::now();
        client.write_scattered(batch).expect("a commit");
        latency_ns.record(from.elapsed().as_nanos() as u64).expect("a latency that fits");
    }
    (latency_ns.len() as f64 / start.elapsed().as_secs_f64(), latency_ns)
}
