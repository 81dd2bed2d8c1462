//! A medium that recovery refuses stays as it was: nothing is appended, reset or anchored before it
//! is certain that the device can be opened.
use crate::support::changes::Changes;
use crate::support::{format, recover};
use std::collections::BTreeSet;
use std::rc::Rc;
use tantalum_base::{
    Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Result, Rng,
};
use tantalum_ftl::{DumpOptions, FtlOptions};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::file_zones::anchor_area_bytes;
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions, ZoneMedia};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

const PAGES: u64 = 100;
const ZONES: u32 = 64;
const SLOTS_PER_ZONE: u32 = 16;
const ANCHORS: u32 = 8;
const ZONES_BYTE: u64 = anchor_area_bytes(ANCHORS);
/// Frames of a dump.
const FRAMES: u64 = 5;

fn media(disk: &MemoryStore) -> FileZones<MemoryStore> {
    let slots_per_zone = SLOTS_PER_ZONE;
    let options =
        FileZonesOptions { volume_id: 3, first_byte: ZONES_BYTE, zones: ZONES, slots_per_zone };
    FileZones::new(disk.clone(), options).unwrap().with_anchors(0, ANCHORS)
}

fn new_disk() -> MemoryStore {
    MemoryStore::new(ZONES_BYTE + u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64)
}

/// Few checkpoints, so that much is only in the log, or in delta pages.
fn options(with_dump: bool) -> FtlOptions {
    let geometry = media(&new_disk()).geometry();
    let dump = with_dump.then(|| DumpOptions::least(&geometry, PAGES, 2 * FRAMES as u32));
    FtlOptions { dump, checkpoint_interval_slots: 700, ..FtlOptions::new(PAGES) }
}

/// A device that was used at random, then killed, or dumped at a power loss.
fn used(options: FtlOptions) -> MemoryStore {
    let (disk, runtime) = (new_disk(), Virtual::new(Schedule::Fifo));
    let (store, rt) = (disk.clone(), runtime.clone());
    let life = async move {
        let ftl = format(media(&store), options).await?;
        let (cleaner, checkpointer) = (Rc::clone(&ftl), Rc::clone(&ftl));
        rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
        rt.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
        if options.dump.is_some() {
            let backup = Rc::clone(&ftl);
            rt.spawn("backup", async move { backup.run_backup().await });
        }
        let mut rng = Rng::split(5, "refusals");
        for number in 0..600_u64 {
            let (first, pages) = (rng.below(PAGES - 5), 1 + rng.below(5));
            match rng.below(12) {
                0 => ftl.trim(PageRange::new(PageNo(first), pages), true).await?,
                1 if ftl.is_mapped(PageNo(first)) => {
                    ftl.share(&[(PageNo((first + 7) % PAGES), PageNo(first))], true, || {}).await?;
                }
                _ => {
                    let content = PageBuf::copy_from(&[number as u8; PAGE_BYTES]);
                    let page = |page| (PageNo(page), content.clone());
                    let batch: Vec<_> = (first..first + pages).map(page).collect();
                    ftl.write(&batch, true).await?;
                }
            }
        }
        Ok::<_, Error>(ftl)
    };
    let ftl = runtime.run(life).unwrap().unwrap();
    runtime.drop_tasks();
    if options.dump.is_some() {
        let frames: Vec<_> = (0..FRAMES).map(|page| (PageNo(page), PageBuf::zero())).collect();
        let store = disk.clone();
        let dump =
            async move { ftl.dump(&ErasedZones::new(media(&store)), &frames).await.map(|_| ()) };
        Virtual::new(Schedule::Fifo).run(dump).unwrap().unwrap();
    }
    disk
}

/// Opens the device on `disk`. Checks that a refusal changes nothing.
fn open(disk: &MemoryStore, options: FtlOptions) -> Result<()> {
    let (medium, noted) = Changes::new(media(disk));
    let opened = Virtual::new(Schedule::Fifo)
        .run(async move { recover(medium, options).await.map(|_| ()) })
        .unwrap();
    if let Err(error) = &opened {
        assert_eq!(*noted.borrow(), [""; 0], "{error}");
    } else {
        assert!(!noted.borrow().is_empty(), "an opening makes its conclusion durable");
    }
    opened
}

/// Damages every block in turn; returns why openings were refused.
fn reasons(used: &MemoryStore, options: FtlOptions, zeroed: bool) -> BTreeSet<String> {
    let whole = used.image();
    open(&MemoryStore::with_image(&whole), options).unwrap();
    let mut reasons = BTreeSet::new();
    for (byte, page) in (0..).step_by(PAGE_BYTES).zip(whole.chunks(PAGE_BYTES)) {
        if page.iter().all(|byte| *byte == 0) {
            continue;
        }
        let disk = MemoryStore::with_image(&whole);
        match zeroed {
            true => disk.wipe_block(byte),
            false => disk.spoil_block(byte),
        }
        if let Err(error) = open(&disk, options) {
            let text: String =
                error.to_string().chars().filter(|it| !it.is_ascii_digit()).collect();
            reasons.insert(text);
        }
    }
    reasons
}

fn assert_has(reasons: &BTreeSet<String>, wanted: &[&str]) {
    for wanted in wanted {
        assert!(reasons.iter().any(|reason| reason.contains(wanted)), "{wanted}: {reasons:#?}");
    }
}

#[test]
fn a_damaged_device_that_is_refused_stays_as_it_was() {
    let options = options(false);
    let used = used(options);
    let refused = reasons(&used, options, true);
    assert_has(&refused, &["are damaged. The affected pages are unknown"]);
    assert!(!reasons(&used, options, false).is_empty());
    // The anchors are there, and nothing to which they point.
    let blocks = (ZONES_BYTE..).step_by(PAGE_BYTES).take((ZONES * SLOTS_PER_ZONE) as usize);
    blocks.for_each(|byte| used.wipe_block(byte));
    let refused = open(&used, options).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
}

#[test]
fn a_damaged_dump_that_is_refused_stays_as_it_was() {
    let options = options(true);
    let used = used(options);
    let refused = reasons(&used, options, true);
    let dump = ["has lost its header", "has lost its footer", "has lost mapping entries"];
    assert_has(&refused, &dump);
    let built_on = ["delta pages of checkpoint", "pages of checkpoint  only"];
    assert_has(&refused, &built_on);
    assert!(!reasons(&used, options, false).is_empty());
}

#[test]
fn a_device_that_is_opened_as_another_one_stays_as_it_was() {
    for (with_dump, pages, dumps) in [(false, PAGES - 1, false), (true, PAGES, false)] {
        let used = used(options(with_dump));
        let other = FtlOptions { pages, ..options(dumps) };
        let refused = open(&used, other).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    }
    let refused = open(&new_disk(), options(false)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
}
