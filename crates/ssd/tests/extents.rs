//! Compares the extents that a device reports with the pages that were written and the content that
//! it reads.
use crate::devices::{Zones, run, ssd};
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::{Error, PageDevice, PageNo, PageRange, Payload, Result, Rng, Stamp};
use tantalum_ftl::FtlOptions;
use tantalum_runtime::{Runtime, Virtual};
use tantalum_ssd::{CacheKind, Ssd};

const PAGES: u64 = 160;
const KINDS: [CacheKind; 4] =
    [CacheKind::WriteThrough, CacheKind::Durable, CacheKind::Ordered, CacheKind::Volatile];

/// Options of half of the seeds have few entries for remapped pages, so that a share must copy
/// other pages.
fn options(seed: u64) -> FtlOptions {
    let share_entries_max = (seed / 4 % 2 == 1).then_some(6);
    FtlOptions { share_entries_max, ..FtlOptions::new(PAGES) }
}

/// The pages of `range` with content, as `device` reports them in one step.
fn told(device: &Ssd<Zones>, range: PageRange) -> BTreeSet<u64> {
    let mut told = BTreeSet::new();
    let (mut at, mut before) = (range.first.0, None);
    while at < range.end().0 {
        let extent = device.extent(PageRange::new(PageNo(at), range.end().0 - at));
        assert!(extent.pages > 0 && at + extent.pages <= range.end().0, "{extent:?} at {at}");
        assert_ne!(before.replace(extent.is_hole), Some(extent.is_hole), "in two parts at {at}");
        if !extent.is_hole {
            told.extend(at..at + extent.pages);
        }
        at += extent.pages;
    }
    told
}

fn some_range(rng: &mut Rng, pages_max: u64) -> PageRange {
    let pages = 1 + rng.below(pages_max);
    PageRange::new(PageNo(rng.below(PAGES - pages + 1)), pages)
}

/// Changes some pages, and updates `written` accordingly.
async fn change(
    device: &Ssd<Zones>,
    rng: &mut Rng,
    count: u64,
    written: &mut BTreeSet<u64>,
) -> Result<()> {
    let range = some_range(rng, 6);
    let stamps: Vec<_> = range.iter().map(|page| Stamp::new(page, count)).collect();
    match rng.below(8) {
        0..4 => {
            device.write(range.first, &stamps, None).await?;
            written.extend(range.iter().map(|page| page.0));
        }
        4 if device.limits().transactions_max > 0 => {
            let pages = range.iter().zip(stamps).collect();
            device.write_scattered(pages, || ()).await?;
            written.extend(range.iter().map(|page| page.0));
        }
        4..7 => {
            let range = some_range(rng, 40);
            device.trim(range).await?;
            written.retain(|page| !range.contains(PageNo(*page)));
        }
        _ => {
            let content = written.iter().copied().find(|page| !range.contains(PageNo(*page)));
            if let Some(content) = content.filter(|_| device.limits().share_pairs_max > 0) {
                let pairs: Vec<_> = range.iter().map(|page| (page, PageNo(content))).collect();
                device.share(&pairs).await?;
                written.extend(range.iter().map(|page| page.0));
            }
        }
    }
    Ok(())
}

#[test]
fn it_is_what_was_written_and_not_trimmed() {
    for (seed, cache) in (0..24).zip(KINDS.into_iter().cycle()) {
        run(seed, move |runtime| async move {
            let device = ssd(runtime, cache, options(seed)).await?;
            let mut rng = Rng::split(seed, "changes");
            let mut written = BTreeSet::new();
            for count in 1..120 {
                change(&device, &mut rng, count, &mut written).await?;
                let range = some_range(&mut rng, PAGES);
                let expected: BTreeSet<u64> =
                    written.iter().copied().filter(|page| range.contains(PageNo(*page))).collect();
                assert_eq!(told(&device, range), expected, "seed {seed}, change {count}, {range}");
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

/// Compares extents and content repeatedly while other tasks change the pages.
async fn look(runtime: &Virtual, device: &Ssd<Zones>, seed: u64) -> Result<u32> {
    let mut holes = 0;
    for look in 0..60 {
        runtime.sleep(70_000).await;
        let all = PageRange::new(PageNo(0), PAGES);
        let told = told(device, all);
        // No await in between: a read is as of its first step.
        let mut pages = vec![Stamp::zero(); PAGES as usize];
        device.read(all.first, &mut pages, None).await?;
        for (page, content) in (0..).zip(pages) {
            let is_hole = !told.contains(&page);
            assert_eq!(is_hole, content == Stamp::zero(), "seed {seed}, look {look}, page {page}");
            holes += u32::from(is_hole);
        }
    }
    Ok(holes)
}

#[test]
fn it_is_what_a_read_in_the_same_step_finds() {
    for (seed, cache) in (0..24).zip(KINDS.into_iter().cycle()) {
        run(seed, move |runtime| async move {
            let device = ssd(runtime.clone(), cache, options(seed)).await?;
            let mut tasks = Vec::new();
            for task in 0..4 {
                let device = Rc::clone(&device);
                tasks.push(runtime.spawn("changes", async move {
                    let mut rng = Rng::split(seed, &format!("changes {task}"));
                    let mut written = BTreeSet::new();
                    for count in 1..60 {
                        // A share fails if another task trimmed the source.
                        _ = change(&device, &mut rng, count, &mut written).await;
                    }
                }));
            }
            let holes = look(&runtime, &device, seed).await?;
            assert!((600..9000).contains(&holes), "seed {seed}: nothing was to be seen: {holes}");
            for task in tasks {
                task.await;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}
