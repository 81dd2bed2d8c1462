//! What WAL's log holds after a power cut is served from there, and is not forgotten when it decays.
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, SlotNo, ZoneNo,
};
use tantalum_ftl::FtlOptions;
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{FileZones, FileZonesOptions, ZoneMedia};
use tantalum_models::baselines::{RedoLog, Wal, WalOptions, WalRecovery};
use tantalum_models::fault_points::Fault;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

const ZONES: u32 = 24;
const SLOTS_PER_ZONE: u32 = 32;
const PAGES: u64 = 100;
const OPTIONS: WalOptions = WalOptions { log_pages: 64, memory_pages: 0, transactions_max: 4 };

fn media(disk: &MemoryStore) -> FileZones<MemoryStore> {
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: 0,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    FileZones::new(disk.clone(), options).unwrap()
}

type Device = Rc<Wal<FileZones<MemoryStore>>>;

async fn recover(disk: &MemoryStore, runtime: &Virtual) -> Result<(Device, WalRecovery)> {
    let media = Rc::new(media(disk));
    let (wal, report) = RedoLog::recover(media, FtlOptions::new(PAGES), OPTIONS, runtime).await?;
    let wal = Rc::new(wal);
    wal.start(runtime);
    Ok((wal, report))
}

fn content(page: u64) -> PageBuf {
    PageBuf::copy_from(&[page as u8 + 1; PAGE_BYTES])
}

async fn commit(wal: &Device, pages: std::ops::Range<u64>) -> Result<()> {
    let tx = wal.begin().await?;
    for page in pages {
        wal.write(PageNo(page), &[content(page)], Some(tx)).await?;
    }
    wal.commit(tx).await
}

async fn read(wal: &Device, page: u64) -> Result<PageBuf> {
    let mut out = [PageBuf::zero()];
    wal.read(PageNo(page), &mut out, None).await?;
    let [content] = out;
    Ok(content)
}

/// A device that is gone, with pages 0 to 9 committed and in the log.
async fn committed(runtime: &Virtual) -> Result<MemoryStore> {
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let media = Rc::new(media(&disk));
    let wal = Rc::new(RedoLog::format(media, FtlOptions::new(PAGES), OPTIONS).await?);
    wal.start(runtime);
    commit(&wal, 0..4).await?;
    commit(&wal, 4..10).await?;
    Ok(disk)
}

/// Where in the log the last version of `page` lies.
async fn slot_in_log(disk: &MemoryStore, page: u64) -> Result<SlotNo> {
    let media = media(disk);
    let mut found = None;
    for zone in (ZONES - OPTIONS.log_zones(&media.geometry())..ZONES).map(ZoneNo) {
        for append in media.scan(zone, 0, None).await? {
            for (offset, spare) in (append.first_offset..).zip(append.spares) {
                if spare.is_some_and(|spare| spare.page == PageNo(page)) {
                    found = Some(media.geometry().slot(zone, offset));
                }
            }
        }
    }
    Ok(found.expect("the page is in the log"))
}

fn flip(disk: &MemoryStore, slot: SlotNo) {
    disk.flip_bit(u64::from(slot.0) * PAGE_BYTES as u64 + 100, 3);
}

fn run<T: 'static>(test: impl AsyncFnOnce(Virtual) -> Result<T> + 'static) -> Result<T> {
    let runtime = Virtual::new(Schedule::Fifo);
    let handle = runtime.clone();
    let ended = runtime.run(async move { test(handle).await });
    runtime.drop_tasks();
    ended.unwrap()
}

#[test]
fn the_device_serves_while_the_log_is_full_and_the_log_can_be_emptied_later() {
    let test = async |runtime: Virtual| {
        let disk = committed(&runtime).await?;
        let (wal, report) = recover(&disk, &runtime).await?;
        assert_eq!((report.committed, report.dropped), (2, 0), "{report:?}");
        for page in 0..10 {
            assert!(read(&wal, page).await? == content(page), "page {page}");
        }
        assert_eq!(wal.statistics().pages_home, 0);
        commit(&wal, 8..12).await?;
        // Nothing was brought home, so three transactions are found now.
        let (wal, report) = recover(&disk, &runtime).await?;
        assert_eq!((report.committed, report.dropped), (3, 0), "{report:?}");
        wal.checkpoint().await?;
        assert_eq!(wal.statistics().pages_home, 12);
        let (wal, report) = recover(&disk, &runtime).await?;
        assert_eq!((report.committed, report.dropped), (0, 0), "{report:?}");
        for page in 0..12 {
            assert!(read(&wal, page).await? == content(page), "page {page}");
        }
        Ok(())
    };
    run(test).unwrap();
}

/// More goes through the log than it holds, over and over, with what an earlier life left in it.
#[test]
fn a_log_that_was_left_full_comes_round() {
    let disk = run(async |runtime: Virtual| committed(&runtime).await).unwrap();
    for life in 0..12 {
        let disk = disk.clone();
        // A runtime of its own: what the device before still had to do ended with it.
        let test = async move |runtime: Virtual| {
            let (wal, _) = recover(&disk, &runtime).await?;
            for page in (0..PAGES).step_by(10).take(3 + life) {
                commit(&wal, page..page + 10).await?;
            }
            for page in 0..30 {
                assert!(read(&wal, page).await? == content(page), "life {life}, page {page}");
            }
            Ok(())
        };
        run(test).unwrap();
    }
}

/// Reads a page of the log that decayed after the recovery.
fn read_decayed() -> Result<bool> {
    run(async |runtime: Virtual| {
        let disk = committed(&runtime).await?;
        let (wal, _) = recover(&disk, &runtime).await?;
        flip(&disk, slot_in_log(&disk, 5).await?);
        assert!(read(&wal, 6).await? == content(6), "its neighbour");
        Ok(read(&wal, 5).await? == content(5))
    })
}

#[test]
fn a_page_of_the_log_that_decays_is_an_error() {
    assert_eq!(read_decayed().unwrap_err().kind(), ErrorKind::Checksum);
    let _planted = plant(Fault::LogUnchecked);
    assert!(!read_decayed().unwrap(), "nothing decayed");
}

#[test]
fn a_commit_that_decayed_is_not_forgotten() {
    let opened = run(async |runtime: Virtual| {
        let disk = committed(&runtime).await?;
        flip(&disk, slot_in_log(&disk, 5).await?);
        recover(&disk, &runtime).await.map(|(_, report)| report)
    });
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corrupt);
}
