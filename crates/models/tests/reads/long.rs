//! Reads that take longer than a zone keeps its content.
use crate::reads::devices::run;
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo, Payload};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::{CrashOptions, CrashStore, MemoryStore};
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions};
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 24;
const ZONES: u32 = 16;
const SLOTS_PER_ZONE: u32 = 16;

/// An FTL on a store whose reads take longer than several writes, and return the content at their
/// end.
async fn ftl(runtime: &Virtual, seed: u64) -> Rc<Ftl<ErasedZones<PageBuf>>> {
    let bytes = u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64;
    let options = CrashOptions {
        seed,
        read_ns: (500_000, 3_000_000),
        write_ns: (10_000, 40_000),
        sync_ns: (10_000, 40_000),
    };
    let store = CrashStore::new(runtime.clone(), MemoryStore::new(bytes), options);
    let options = FileZonesOptions {
        volume_id: 1,
        first_byte: 0,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    let zones = FileZones::new(store, options).unwrap();
    Ftl::format(ErasedZones::new(zones), FtlOptions::new(PAGES)).await.unwrap()
}

fn content(count: u64) -> PageBuf {
    let mut page = PageBuf::zero();
    page.make_mut()[..8].copy_from_slice(&count.to_le_bytes());
    page
}

/// All pages are rewritten together again and again, so that every zone is cleaned in turn. The
/// content that a read has begun to read stays: the read returns one of these batches.
#[test]
pub fn while_zones_are_emptied() {
    for seed in 0..8 {
        run(seed, move |runtime| async move {
            let ftl = ftl(&runtime, seed).await;
            let cleaned = Rc::clone(&ftl);
            runtime.spawn("cleaner", async move { cleaned.run_cleaner().await });
            let (written, ended) = (Rc::clone(&ftl), Rc::new(Cell::new(false)));
            let told = Rc::clone(&ended);
            let writer = runtime.spawn("writer", async move {
                for count in 1..300 {
                    let page = |page| (PageNo(page), content(count));
                    let batch: Vec<(PageNo, PageBuf)> = (0..PAGES).map(page).collect();
                    written.write(&batch, true).await.unwrap();
                }
                told.set(true);
            });
            let pages: Vec<PageNo> = (0..PAGES).map(PageNo).collect();
            let mut out = vec![PageBuf::zero(); PAGES as usize];
            let mut reads = 0;
            while !ended.get() {
                // Before the first write, a read takes no time.
                runtime.sleep(1_000).await;
                ftl.read(&pages, &mut out).await.unwrap();
                assert!(out.iter().all(|page| *page == out[0]), "seed {seed}: two batches");
                reads += 1;
            }
            writer.await;
            let resets = ftl.statistics().zone_resets;
            assert!(reads > 5 && resets > 50, "{reads} reads, {resets} resets");
        });
    }
}
