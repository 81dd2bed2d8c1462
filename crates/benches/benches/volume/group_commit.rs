//! 4 KiB random writes, durable on acknowledge: 32 writers through the Rust API on a volume in a
//! file, and `fio` with `O_DSYNC` at depth 32 on a plain file of the same disk, in turns.
//!
//! `scripts/bench volume/group_commit`; rounds and seconds by `FIO_ROUNDS` (3)
//! and `FIO_SECONDS` (3), writers by `WRITERS` (32), more device settings by `DEVICE`.
mod support;

use hdrhistogram::Histogram;
use std::path::Path;
use std::rc::Rc;
use support::{create, with_volume};
use tantalum_base::rng::Rng;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload};
use tantalum_runtime::{Live, Runtime};
use tantalum_ssd::SsdStatistics;
use tantalum_testing::built::disk_folder as folder;
use tantalum_testing::installed;
use tantalum_testing::programs::{FioJob, fio, median, setting};
use tantalum_volume::{FlashVolume, VolumeConfig, VolumeStore};

const FIO_BYTES: u64 = 1 << 30;

/// One kind of volume to measure.
struct Case {
    name: &'static str,
    capacity_bytes: u64,
    /// Write every page before measuring, so that cleaning is at work.
    fill: bool,
}

const CASES: [Case; 2] = [
    Case { name: "new volume, no cleaning", capacity_bytes: 4 << 30, fill: false },
    Case {
        name: "full volume, cleaning at 12% over-provisioning",
        capacity_bytes: 256 << 20,
        fill: true,
    },
];

fn main() {
    if !support::wanted() || !installed(&["fio"]) {
        return;
    }
    let folder = folder();
    let (rounds, seconds) = (setting("FIO_ROUNDS", 3), setting("FIO_SECONDS", 3));
    for case in CASES {
        let config = create(
            folder.path(),
            case.capacity_bytes,
            &std::env::var("DEVICE").unwrap_or_default(),
        );
        if case.fill {
            with_volume(config.clone(), |_, volume| async move { fill(&volume).await });
        }
        println!("{}, {} writers:", case.name, writers());
        let mut ratios = Vec::new();
        for round in 1..=rounds {
            let theirs = plain_file(folder.path(), seconds).per_second("write");
            let ours = measure(&config, seconds);
            println!(
                "  round {round}: {:.0}/s ({}), plain file O_DSYNC {theirs:.0}/s, ratio {:.2}",
                ours.per_second,
                ours.describe(),
                ours.per_second / theirs
            );
            ratios.push(ours.per_second / theirs);
        }
        println!("  median ratio {:.2}", median(ratios));
    }
}

fn writers() -> u32 {
    setting("WRITERS", 32)
}

fn plain_file(folder: &Path, seconds: u32) -> FioJob {
    fio(&[
        &format!("--filename={}", folder.join("plain").display()),
        &format!("--size={FIO_BYTES}"),
        "--ioengine=io_uring",
        "--direct=1",
        "--sync=dsync",
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=32",
        "--overwrite=1",
        "--time_based",
        &format!("--runtime={seconds}"),
        "--ramp_time=1",
    ])
}

struct Measured {
    per_second: f64,
    before: SsdStatistics,
    after: SsdStatistics,
    seconds: f64,
    latency_ns: Histogram<u64>,
}

impl Measured {
    fn describe(&self) -> String {
        let since =
            |count: fn(&SsdStatistics) -> u64| (count(&self.after) - count(&self.before)) as f64;
        let appends = since(|statistics| statistics.ftl.host_appends);
        let pages = since(|statistics| statistics.ftl.host_pages);
        let slots = since(|statistics| statistics.ftl.slots_programmed);
        let latency_us = |quantile| self.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        format!(
            "{:.0} appends/s of {:.1} pages, {:.2} slots a page, p50 {:.0} us, p99 {:.0} us",
            appends / self.seconds,
            pages / appends,
            slots / pages,
            latency_us(0.5),
            latency_us(0.99)
        )
    }
}

async fn fill(volume: &FlashVolume<VolumeStore>) {
    let device = &volume;
    let pages = vec![PageBuf::zero(); device.limits().atomic_write_pages_max as usize];
    let mut first = PageNo(0);
    while first.0 < device.limits().pages {
        let count = (device.limits().pages - first.0).min(pages.len() as u64);
        device.write(first, &pages[..count as usize], None).await.expect("a write");
        first.0 += count;
    }
    // Overwritten once more at random, so that cleaning finds zones as it will go on finding them.
    let mut rng = Rng::new(1);
    for _ in 0..device.limits().pages / 16 {
        let first = PageNo(rng.below(device.limits().pages - 16));
        device.write(first, &pages[..16], None).await.expect("a write");
    }
}

fn measure(config: &VolumeConfig, seconds: u32) -> Measured {
    with_volume(config.clone(), move |live, volume| async move {
        let second_ns = 1_000_000_000;
        let window =
            Window { from_ns: live.now_ns() + second_ns, ns: u64::from(seconds) * second_ns };
        let writers: Vec<_> = (0..writers())
            .map(|number| {
                live.spawn("writer", write(live.clone(), Rc::clone(&volume), number, window))
            })
            .collect();
        live.sleep_until(window.from_ns).await;
        let before = volume.device().statistics();
        live.sleep_until(window.from_ns + window.ns).await;
        let after = volume.device().statistics();
        let mut latency_ns = Histogram::new(3).expect("3 digits are supported");
        for writer in writers {
            latency_ns.add(writer.await).expect("histograms of one kind");
        }
        let seconds = f64::from(seconds);
        Measured {
            per_second: latency_ns.len() as f64 / seconds,
            before,
            after,
            seconds,
            latency_ns,
        }
    })
}

#[derive(Clone, Copy)]
struct Window {
    from_ns: u64,
    ns: u64,
}

/// Writes random pages one after the other; latencies of those that ended in the window.
async fn write(
    live: Live,
    volume: Rc<FlashVolume<VolumeStore>>,
    number: u32,
    window: Window,
) -> Histogram<u64> {
    let device = &volume;
    let mut rng = Rng::split(1, &number.to_string());
    let mut content = vec![0; PAGE_BYTES];
    rng.fill(&mut content);
    let mut page = [PageBuf::copy_from(&content)];
    let mut latency_ns = Histogram::new(3).expect("3 digits are supported");
    for count in 0u64.. {
        page[0].make_mut()[..8].copy_from_slice(&count.to_le_bytes());
        let from_ns = live.now_ns();
        let number = PageNo(rng.below(device.limits().pages));
        device.write(number, &page, None).await.expect("a write");
        let now_ns = live.now_ns();
        if now_ns > window.from_ns + window.ns {
            break;
        }
        if now_ns >= window.from_ns {
            latency_ns.record(now_ns - from_ns).expect("a latency that fits");
        }
    }
    latency_ns
}
