//! Cloning half a volume: the clone shows one moment, despite concurrent writes; a power cut leaves all of it or nothing; and
//! it takes no space until either side is written.
use std::path::Path;
use std::rc::Rc;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{BlockStore, CutPlan, Fate};
use tantalum_runtime::virtual_time::{Schedule, Virtual};
use tantalum_runtime::{LifeCycle, Runtime};
use tantalum_ssd::fault_points::Fault;
use tantalum_volume::{FlashVolume, OpenOptions, VolumeConfig, config, create_flash, open_flash};

/// In memory, with the latency of a drive: concurrent operations complete in another order than they began.
type Store = CrashStore<MemoryStore, Virtual>;

const PAGES: u64 = 1024;
const HALF: u64 = PAGES / 2;
/// Pages that are written together, repeatedly, while the clone is made.
const GROUP: u64 = 8;

fn configuration(durability: &str, buffer: bool) -> VolumeConfig {
    let text = config::template("4MiB")
        .replace("# zone = \"8MiB\"", "zone = \"128KiB\"")
        .replace("# durability = \"on_ack\"", &format!("durability = \"{durability}\""));
    let text = if buffer { text.replace("# [buffer]", "[buffer]\nsize = \"1MiB\"") } else { text };
    VolumeConfig::parse(&text, Path::new("v.toml")).unwrap()
}

/// The content of `page` after write number `count`.
fn content(page: u64, count: u64) -> PageBuf {
    PageBuf::copy_from(&std::array::from_fn::<u8, PAGE_BYTES, _>(|at| match at {
        0..8 => page.to_le_bytes()[at],
        8..16 => count.to_le_bytes()[at - 8],
        _ => (page + count) as u8,
    }))
}

/// The content of the lower half: every seventh page is empty.
fn lower(page: u64) -> PageBuf {
    if page % 7 == 3 { PageBuf::zero() } else { content(page, 1) }
}

/// The content of the upper half before the clone: some pages have content, whether a clone overwrites or trims them.
fn upper(page: u64) -> PageBuf {
    if page.is_multiple_of(3) { content(page, 1) } else { PageBuf::zero() }
}

async fn filled<S: BlockStore + Clone>(volume: &FlashVolume<S>) {
    for page in 0..PAGES {
        let held = if page < HALF { lower(page) } else { upper(page) };
        if held != PageBuf::zero() {
            volume.write(PageNo(page), &[held], None).await.unwrap();
        }
    }
}

async fn read<S: BlockStore + Clone>(volume: &FlashVolume<S>, first: u64) -> Vec<PageBuf> {
    let mut found = vec![PageBuf::zero(); HALF as usize];
    volume.read(PageNo(first), &mut found, None).await.unwrap();
    found
}

fn expected(first: u64, of: impl Fn(u64) -> PageBuf) -> Vec<PageBuf> {
    (first..first + HALF).map(of).collect()
}

/// Runs `test` on a new, filled volume.
fn on_volume<F: Future<Output = ()> + 'static>(
    config: VolumeConfig,
    test: impl FnOnce(Virtual, Rc<FlashVolume<Store>>) -> F + 'static,
) {
    let runtime = Virtual::new(Schedule::Shuffled(1));
    let handle = runtime.clone();
    let life = async move {
        let (write_ns, sync_ns) = ((20_000, 200_000), (100_000, 300_000));
        let options = CrashOptions { write_ns, sync_ns, ..CrashOptions::default() };
        let store = CrashStore::new(handle.clone(), MemoryStore::new(16 << 20), options);
        create_flash(store.clone(), &config, 7).await.unwrap();
        let opened = open_flash(&handle, store, &config, OpenOptions::default()).await;
        let (volume, _) = opened.unwrap();
        filled(&volume).await;
        test(handle, Rc::clone(&volume)).await;
        assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
        volume.validate();
        volume.close().await.unwrap();
    };
    runtime.run(life).unwrap();
    runtime.drop_tasks();
}

#[test]
fn a_clone_is_what_was_there_and_both_go_on_by_themselves() {
    for (durability, buffer) in [("on_ack", false), ("on_flush", false), ("on_ack", true)] {
        on_volume(configuration(durability, buffer), |_, volume| async move {
            let most = u64::from(volume.limits().share_pairs_max);
            assert!(most < HALF, "one share would take {most} of {HALF} pages");
            read(&volume, HALF).await;
            volume.clone_range(PageNo(HALF), PageNo(0), HALF).await.unwrap();
            assert!(read(&volume, HALF).await == expected(0, lower));
            for page in 0..HALF {
                volume.write(PageNo(page), &[content(page, 2)], None).await.unwrap();
            }
            volume.trim(PageRange::new(PageNo(HALF + 100), 50)).await.unwrap();
            let found = read(&volume, HALF).await;
            for page in 0..HALF {
                let trimmed = (100..150).contains(&page);
                let held = if trimmed { PageBuf::zero() } else { lower(page) };
                assert!(found[page as usize] == held, "page {page} of the clone");
            }
            assert!(read(&volume, 0).await == expected(0, |page| content(page, 2)));
        });
    }
}

#[test]
fn a_clone_writes_no_content_and_one_that_is_made_again_only_what_changed() {
    on_volume(configuration("on_ack", false), |_, volume| async move {
        let counted = || volume.device().statistics().ftl;
        let clone = async || volume.clone_range(PageNo(HALF), PageNo(0), HALF).await.unwrap();
        let before = counted();
        clone().await;
        let once = counted();
        let cloned = (0..HALF).filter(|page| lower(*page) != PageBuf::zero()).count() as u64;
        assert_eq!(once.pages_shared - before.pages_shared, cloned);
        assert_eq!(once.pages_share_copied, before.pages_share_copied);
        // A page of the log holds 170 pairs, plus headers; a higher count would mean checkpoints.
        assert!(once.slots_programmed - before.slots_programmed < 16);
        clone().await;
        assert_eq!(counted().pages_shared, once.pages_shared, "nothing had changed");
        volume.write(PageNo(5), &[content(5, 2)], None).await.unwrap();
        clone().await;
        assert_eq!(counted().pages_shared, once.pages_shared + 1);
        assert!(read(&volume, HALF).await[5] == content(5, 2));
        // Discarded pages are free again.
        let mapped = counted().pages_mapped;
        volume.trim(PageRange::new(PageNo(HALF), HALF)).await.unwrap();
        assert_eq!((counted().pages_mapped, counted().shared_slots), (mapped - cloned, 0));
    });
}

#[test]
fn what_cannot_be_cloned_is_refused_and_changes_nothing() {
    on_volume(configuration("on_ack", false), |_, volume| async move {
        for (to, from, pages, kind) in [
            (HALF + 1, 0, HALF, ErrorKind::OutOfRange),
            (0, HALF, HALF + 1, ErrorKind::OutOfRange),
            (100, 0, 101, ErrorKind::InvalidInput),
            (u64::MAX, 0, 2, ErrorKind::OutOfRange),
        ] {
            let refused = volume.clone_range(PageNo(to), PageNo(from), pages).await.unwrap_err();
            assert_eq!(refused.kind(), kind, "{refused}");
        }
        volume.clone_range(PageNo(HALF), PageNo(0), 0).await.unwrap();
        assert!(read(&volume, 0).await == expected(0, lower));
        assert!(read(&volume, HALF).await == expected(HALF, upper));
    });
}

/// Clones are made during writes of groups of pages, each group all or nothing: each clone shows one complete write of every
/// group.
#[test]
fn a_clone_shows_one_moment() {
    for (durability, buffer) in [("on_ack", false), ("on_flush", true)] {
        on_volume(configuration(durability, buffer), |runtime, volume| async move {
            let mut writers = Vec::new();
            for group in 0..8 {
                let (volume, clock) = (Rc::clone(&volume), runtime.clone());
                writers.push(runtime.spawn("writer", async move {
                    for count in 2..60 {
                        let first = group * GROUP;
                        let pages: Vec<_> =
                            (first..first + GROUP).map(|page| content(page, count)).collect();
                        volume.write(PageNo(first), &pages, None).await.unwrap();
                        // With `on_flush` a write takes no time.
                        clock.sleep(100_000).await;
                    }
                }));
            }
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..12 {
                volume.clone_range(PageNo(HALF), PageNo(0), HALF).await.unwrap();
                let found = read(&volume, HALF).await;
                for (group, pages) in found.chunks(GROUP as usize).take(8).enumerate() {
                    let first = group as u64 * GROUP;
                    let count =
                        |page: &PageBuf| u64::from_le_bytes(page[8..16].try_into().unwrap());
                    let newest = pages.iter().map(count).max().unwrap();
                    let whole = (first..first + GROUP).map(|page| match newest {
                        1 => lower(page),
                        newest => content(page, newest),
                    });
                    assert!(pages.iter().cloned().eq(whole), "group {group}, write {newest}");
                    seen.insert(newest);
                }
                runtime.sleep(700_000).await;
            }
            assert!(seen.len() > 3, "clones were made between few writes: {seen:?}");
            for writer in writers {
                writer.await;
            }
        });
    }
}

/// Cuts the power at operation number `operations` of a clone. `None` if it has no such operation, otherwise the problem found.
fn cut(config: &VolumeConfig, operations: u64, fate: Fate) -> Option<Result<(), String>> {
    let store = MemoryStore::new(16 << 20);
    let runtime = Virtual::new(Schedule::Fifo);
    let crashing = CrashStore::new(runtime.clone(), store.clone(), CrashOptions::default());
    let (handle, made, on, inner) =
        (runtime.clone(), config.clone(), crashing.clone(), store.clone());
    let acknowledged = runtime.run(async move {
        create_flash(inner, &made, 7).await.unwrap();
        let opened = open_flash(&handle, on.clone(), &made, OpenOptions::default()).await;
        let (volume, _) = opened.unwrap();
        filled(&volume).await;
        volume.flush().await.unwrap();
        on.plan_cut(CutPlan { after_operations: operations, fate });
        volume.clone_range(PageNo(HALF), PageNo(0), HALF).await.is_ok()
    });
    let acknowledged = acknowledged.unwrap();
    let is_cut = crashing.is_cut();
    runtime.drop_tasks();
    let dark = async move {
        crashing.cut(&mut Rng::new(operations), CutStyle::Random).await.unwrap();
    };
    Virtual::new(Schedule::Fifo).run(dark).unwrap();
    let runtime = Virtual::new(Schedule::Fifo);
    let (handle, made) = (runtime.clone(), config.clone());
    let found = runtime.run(async move {
        let opened = open_flash(&handle, store, &made, OpenOptions::default()).await;
        let (volume, _) = opened.unwrap();
        assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
        (read(&volume, 0).await, read(&volume, HALF).await)
    });
    runtime.drop_tasks();
    let (source, clone) = found.unwrap();
    let whole = clone == expected(0, lower);
    let problem = if source != expected(0, lower) {
        Err("the source changed")
    } else if !whole && clone != expected(HALF, upper) {
        Err("there is a part of the clone")
    } else if acknowledged && !whole {
        Err("an acknowledged clone is gone")
    } else {
        Ok(())
    };
    let at = |problem| format!("{fate:?} at operation {operations}: {problem}");
    is_cut.then_some(problem.map_err(at))
}

/// The problem found after a power cut at any operation of a clone.
fn cut_anywhere(durability: &str) -> Option<String> {
    let config = configuration(durability, false);
    for fate in Fate::ALL {
        for operations in 0.. {
            match cut(&config, operations, fate) {
                Some(Err(problem)) => return Some(problem),
                Some(Ok(())) => {}
                None => {
                    assert!(operations > 0, "a clone changes nothing");
                    break;
                }
            }
        }
    }
    None
}

#[test]
fn a_power_cut_leaves_all_of_a_clone_or_nothing() {
    for durability in ["on_ack", "on_flush"] {
        assert_eq!(cut_anywhere(durability), None, "{durability}");
    }
}

#[test]
fn a_clone_in_parts_is_noticed() {
    assert_noticed(Fault::ClonedInParts, || cut_anywhere("on_ack"));
}
