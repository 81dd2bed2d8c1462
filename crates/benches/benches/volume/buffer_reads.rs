//! Random reads of one page from a volume on a file, without a buffer and with one for a quarter of
//! its pages: 80 % of the reads go to 20 % of the pages.
//!
//! `scripts/bench volume/buffer_reads`; seconds each by `READ_SECONDS` (3).
mod support;

use std::rc::Rc;
use std::time::{Duration, Instant};
use support::{create, with_volume};
use tantalum_base::rng::Rng;
use tantalum_base::{PageBuf, PageDevice, PageNo, Payload};
use tantalum_runtime::Runtime;
use tantalum_testing::built::disk_folder as folder;
use tantalum_testing::programs::setting;
use tantalum_volume::VolumeConfig;

const CAPACITY_BYTES: u64 = 256 << 20;
const PAGES: u64 = CAPACITY_BYTES / 4096;

fn main() {
    if !support::wanted() {
        return;
    }
    let folder = folder();
    let seconds = Duration::from_secs(setting("READ_SECONDS", 3).into());
    for (name, buffer) in [("none", ""), ("64 MiB", "\n[buffer]\nsize = \"64MiB\"")] {
        let config = create(folder.path(), CAPACITY_BYTES, buffer);
        fill(config.clone());
        for clients in [1, 8] {
            let (reads, hits) = reads(config.clone(), clients, seconds);
            println!("buffer {name}, {clients} clients: {reads:.0} reads/s, {hits:.1} % hits");
        }
    }
}

/// Writes every page.
fn fill(config: VolumeConfig) {
    with_volume(config, |_, volume| async move {
        let pages = vec![PageBuf::from_bytes(&[0x5a; 4096]); 64];
        for first in (0..PAGES).step_by(pages.len()) {
            volume.write(PageNo(first), &pages, None).await.expect("room");
        }
    });
}

/// Reads a second, and the share of them that hit, once the buffer is warm.
#[expect(clippy::disallowed_methods, reason = "measures on the real clock")]
fn reads(config: VolumeConfig, clients: u64, time: Duration) -> (f64, f64) {
    with_volume(config, move |live, volume| async move {
        let run = |seed: u64, time: Duration| {
            let tasks: Vec<_> = (0..clients)
                .map(|client| {
                    let volume = Rc::clone(&volume);
                    live.spawn("reader", async move {
                        let mut rng = Rng::new(seed + client);
                        let (mut out, mut done) = ([PageBuf::zero()], 0u64);
                        let start = Instant::now();
                        while start.elapsed() < time {
                            let hot = if rng.chance(0.8) { PAGES / 5 } else { PAGES };
                            let page = PageNo(rng.below(hot));
                            volume.read(page, &mut out, None).await.expect("a page");
                            done += 1;
                        }
                        done
                    })
                })
                .collect();
            async move {
                let mut reads = 0;
                for task in tasks {
                    reads += task.await;
                }
                reads
            }
        };
        run(1, time).await;
        let counted = || volume.statistics().map_or((0, 0), |seen| (seen.hits, seen.requests));
        let before = counted();
        let reads = run(100, time).await;
        let (hits, requests) = (counted().0 - before.0, counted().1 - before.1);
        let share = 100.0 * hits as f64 / requests.max(1) as f64;
        (reads as f64 / time.as_secs_f64(), share)
    })
}
