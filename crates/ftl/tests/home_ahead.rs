//! A cache whose home has later changes than the flash: which pages are given up, and when opening is
//! refused.
use crate::support::format;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, Result, Version};
use tantalum_ftl::{
    CacheOptions, Ftl, FtlOptions, HomeState, Lacks, RecoveryReport, kept_pages_max,
};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{ErasedZones, FileZones, FileZonesOptions, ZoneMedia};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const PAGES: u64 = 100;
const ZONES: u32 = 32;
const SLOTS_PER_ZONE: u32 = 16;
const WRITTEN: u64 = 20;

type Device = Rc<Ftl<ErasedZones<PageBuf>>>;

fn media(disk: &MemoryStore) -> FileZones<MemoryStore> {
    let slots_per_zone = SLOTS_PER_ZONE;
    let options = FileZonesOptions { volume_id: 3, first_byte: 0, zones: ZONES, slots_per_zone };
    FileZones::new(disk.clone(), options).unwrap()
}

fn page(fill: u8) -> PageBuf {
    PageBuf::copy_from(&[fill; PAGE_BYTES])
}

fn options(accept_loss: bool) -> FtlOptions {
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let kept_pages_max = kept_pages_max(&media(&disk).geometry(), 0);
    let cache =
        CacheOptions { dirty_pages_max: kept_pages_max / 2, kept_pages_max, staging_pages: 0 };
    FtlOptions { cache: Some(cache), accept_loss, ..FtlOptions::new(PAGES) }
}

/// A cache with dirty pages, of the versions up to [`WRITTEN`].
fn written(runtime: &Virtual) -> MemoryStore {
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let store = disk.clone();
    let write = async move {
        let ftl = format(media(&store), options(false)).await?;
        for number in 0..WRITTEN {
            ftl.write(&[(PageNo(number), page(number as u8 + 1))], true).await?;
        }
        ftl.sync().await
    };
    runtime.run(write).unwrap().unwrap();
    disk
}

/// Recovers it over a home that has the changes up to a version, except for those that it lacks.
fn recover(
    runtime: &Virtual,
    disk: &MemoryStore,
    home: (u64, Lacks),
    accept_loss: bool,
) -> Result<(Device, RecoveryReport, bool)> {
    let media = media(disk);
    runtime
        .run(async move {
            let home = HomeState { version: Version(home.0), lacks: home.1 };
            let rebuilt =
                Ftl::rebuild(ErasedZones::new(media), options(accept_loss), Some(home)).await?;
            let is_behind_home = rebuilt.is_behind_home();
            let (ftl, report) = rebuilt.conclude().await?;
            Ok((ftl, report, is_behind_home))
        })
        .unwrap()
}

fn read(runtime: &Virtual, ftl: &Device, number: u64) -> Result<PageBuf> {
    let ftl = Rc::clone(ftl);
    runtime
        .run(async move {
            let mut out = [page(0)];
            ftl.read(&[PageNo(number)], &mut out).await.map(|_| out[0].clone())
        })
        .unwrap()
}

#[test]
fn a_home_that_is_as_far_as_the_flash_changes_nothing() {
    let runtime = Virtual::new(Schedule::Fifo);
    for lacks in [Lacks::default(), Lacks::PagesUnknown, Lacks::ChangesUnknown] {
        let disk = written(&runtime);
        let (ftl, report, is_behind_home) =
            recover(&runtime, &disk, (WRITTEN, lacks), false).unwrap();
        assert_eq!((is_behind_home, report.pages_taken_from_home), (false, 0));
        assert_eq!(ftl.dirty_pages(), WRITTEN);
    }
}

#[test]
fn everything_is_taken_from_a_home_that_is_ahead() {
    let runtime = Virtual::new(Schedule::Fifo);
    let disk = written(&runtime);
    let lacks = Lacks::Pages(vec![PageNo(3), PageNo(50)]);
    let (ftl, report, is_behind_home) =
        recover(&runtime, &disk, (WRITTEN + 5, lacks), false).unwrap();
    assert_eq!((is_behind_home, report.pages_taken_from_home), (true, WRITTEN));
    assert_eq!((ftl.dirty_pages(), report.pages_lost), (0, 2));
    assert!(!ftl.is_mapped(PageNo(4)), "it is at home");
    for lost in [3, 50] {
        assert!(read(&runtime, &ftl, lost).is_err(), "page {lost} is nowhere");
    }
    assert!(ftl.last_version() > Version(WRITTEN + 5), "no version is used twice");
}

#[test]
fn a_home_that_is_ahead_by_nobody_knows_what_is_refused() {
    let runtime = Virtual::new(Schedule::Fifo);
    for lacks in [Lacks::PagesUnknown, Lacks::ChangesUnknown] {
        let disk = written(&runtime);
        let before = disk.image();
        let refused = recover(&runtime, &disk, (WRITTEN + 5, lacks.clone()), false);
        let error = refused.err().expect("it is refused");
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains("home"),
            "{error}"
        );
        assert!(disk.image() == before, "what is refused stays as it was");
        let (ftl, report, is_behind_home) =
            recover(&runtime, &disk, (WRITTEN + 5, lacks.clone()), true).unwrap();
        assert!(ftl.last_version() > Version(WRITTEN + 5), "no version is used twice");
        if lacks == Lacks::PagesUnknown {
            assert_eq!((is_behind_home, report.pages_taken_from_home), (true, WRITTEN));
            continue;
        }
        // Pages were written home one by one: most of the content here is nowhere else.
        assert_eq!((is_behind_home, ftl.dirty_pages()), (false, WRITTEN));
        for number in 0..WRITTEN {
            assert_eq!(read(&runtime, &ftl, number).unwrap(), page(number as u8 + 1));
        }
    }
}
