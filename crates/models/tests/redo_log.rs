//! The content of WAL's log is served from there after a power cut, and is not silently dropped if
//! it decays.
use std::rc::Rc;
use tantalum_base::fault_points::plant;
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, Payload, Result, SlotNo, ZoneNo,
};
use tantalum_ftl::FtlOptions;
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{FileZones, FileZonesOptions, SlotKind, Spare, ZoneMedia};
use tantalum_models::baselines::{RedoLog, Wal, WalCommit, WalOptions, WalRecovery};
use tantalum_models::fault_points::Fault;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

const ZONES: u32 = 24;
const SLOTS_PER_ZONE: u32 = 32;
const PAGES: u64 = 100;
const FORMS: [WalCommit; 2] = [WalCommit::Pages, WalCommit::Record];

fn options(commit: WalCommit) -> WalOptions {
    WalOptions { log_pages: 64, memory_pages: 0, transactions_max: 4, commit }
}

fn media(disk: &MemoryStore) -> FileZones<MemoryStore> {
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: 0,
        zones: ZONES,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    FileZones::new(disk.clone(), options).unwrap()
}

type Device = Rc<Wal<PageBuf>>;

/// Opens the device, which commits in the form `commit` from now on.
async fn recover(
    disk: &MemoryStore,
    runtime: &Virtual,
    commit: WalCommit,
) -> Result<(Device, WalRecovery)> {
    let (media, ftl) = (Rc::new(media(disk)), FtlOptions::new(PAGES));
    let (wal, report) = RedoLog::recover(media, ftl, options(commit), runtime).await?;
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

/// A closed device with pages 0 to 3 committed, then pages 4 to 9, all in the log.
async fn committed(runtime: &Virtual, form: WalCommit) -> Result<MemoryStore> {
    let disk = MemoryStore::new(u64::from(ZONES * SLOTS_PER_ZONE) * PAGE_BYTES as u64);
    let media = Rc::new(media(&disk));
    let wal = Rc::new(RedoLog::format(media, FtlOptions::new(PAGES), options(form)).await?);
    wal.start(runtime);
    commit(&wal, 0..4).await?;
    commit(&wal, 4..10).await?;
    Ok(disk)
}

/// The last slot in the log for which `is_it` returns true.
async fn slot_in_log(disk: &MemoryStore, is_it: impl Fn(&Spare) -> bool) -> Result<SlotNo> {
    let media = media(disk);
    let mut found = None;
    let log_zones = options(WalCommit::Pages).log_zones(&media.geometry());
    for zone in (ZONES - log_zones..ZONES).map(ZoneNo) {
        for append in media.scan(zone, 0, None).await? {
            for (offset, spare) in (append.first_offset..).zip(append.spares) {
                if spare.is_some_and(|spare| is_it(&spare)) {
                    found = Some(media.geometry().slot(zone, offset));
                }
            }
        }
    }
    Ok(found.expect("it is in the log"))
}

async fn slot_of(disk: &MemoryStore, page: u64) -> Result<SlotNo> {
    slot_in_log(disk, |spare| spare.kind == SlotKind::Data && spare.page == PageNo(page)).await
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

fn the_device_serves_from(form: WalCommit) {
    let test = async move |runtime: Virtual| {
        let disk = committed(&runtime, form).await?;
        let (wal, report) = recover(&disk, &runtime, form).await?;
        assert_eq!((report.committed, report.dropped), (2, 0), "{report:?}");
        for page in 0..10 {
            assert!(read(&wal, page).await? == content(page), "page {page}");
        }
        assert_eq!(wal.statistics().pages_home, 0);
        commit(&wal, 8..12).await?;
        // Nothing was copied home, so recovery now finds three transactions.
        let (wal, report) = recover(&disk, &runtime, form).await?;
        assert_eq!((report.committed, report.dropped), (3, 0), "{report:?}");
        wal.checkpoint().await?;
        assert_eq!(wal.statistics().pages_home, 12);
        let (wal, report) = recover(&disk, &runtime, form).await?;
        assert_eq!((report.committed, report.dropped), (0, 0), "{report:?}");
        for page in 0..12 {
            assert!(read(&wal, page).await? == content(page), "page {page}");
        }
        Ok(())
    };
    run(test).unwrap();
}

#[test]
fn the_device_serves_while_the_log_is_full_and_the_log_can_be_emptied_later() {
    FORMS.into_iter().for_each(the_device_serves_from);
}

/// More data than fits goes through the log, over and over, with content of earlier lives in it; and
/// each life finds the transactions that earlier ones logged in the other form.
#[test]
fn a_log_that_was_left_full_comes_round() {
    let disk = run(async |runtime: Virtual| committed(&runtime, FORMS[1]).await).unwrap();
    for life in 0..12 {
        let disk = disk.clone();
        // A runtime of its own: the remaining tasks of the previous device ended with it.
        let test = async move |runtime: Virtual| {
            let (wal, _) = recover(&disk, &runtime, FORMS[life % 2]).await?;
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
        let disk = committed(&runtime, WalCommit::Pages).await?;
        let (wal, _) = recover(&disk, &runtime, WalCommit::Pages).await?;
        flip(&disk, slot_of(&disk, 5).await?);
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

/// The part of the log that decays before the device is opened.
#[derive(Clone, Copy, Debug)]
enum Decayed {
    /// A page.
    Page(u64),
    /// The header of a page's append; in a file, the whole header.
    AppendOf(u64),
    /// The commit record of the first transaction.
    Record,
}

impl Decayed {
    async fn slot(self, disk: &MemoryStore) -> Result<SlotNo> {
        match self {
            Decayed::Page(page) => slot_of(disk, page).await,
            Decayed::AppendOf(first) => slot_of(disk, first).await.map(|slot| SlotNo(slot.0 - 1)),
            Decayed::Record => {
                let is_it = |spare: &Spare| spare.kind == SlotKind::Record && spare.version.0 == 1;
                slot_in_log(disk, is_it).await
            }
        }
    }
}

/// Opens the device with the damage. Returns the result of the recovery, and for each page whether it has
/// the written content.
fn opened(form: WalCommit, decayed: Decayed) -> Result<(WalRecovery, [bool; 10])> {
    run(async move |runtime: Virtual| {
        let disk = committed(&runtime, form).await?;
        flip(&disk, decayed.slot(&disk).await?);
        let (wal, report) = recover(&disk, &runtime, form).await?;
        let mut whole = [false; 10];
        for (whole, page) in whole.iter_mut().zip(0..) {
            *whole = read(&wal, page).await? == content(page);
        }
        Ok((report, whole))
    })
}

#[test]
fn a_commit_that_decayed_is_not_forgotten() {
    // The second commit began when the first was durable, and records that.
    let first = [Decayed::Page(2), Decayed::AppendOf(0)];
    let with_pages = first.map(|decayed| (WalCommit::Pages, decayed));
    let with_records = [first[0], first[1], Decayed::Record, Decayed::Page(5)];
    let with_records = with_records.map(|decayed| (WalCommit::Record, decayed));
    for (form, decayed) in with_pages.into_iter().chain(with_records) {
        let error = opened(form, decayed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{form:?}, {decayed:?}: {error}");
        let _planted = plant(Fault::LogDamageForgotten);
        let (_, whole) = opened(form, decayed).unwrap();
        assert_ne!(whole, [true; 10], "{form:?}, {decayed:?}: nothing decayed");
    }
}

/// Nothing records that the last commit was durable. So it is dropped as a whole, as after a cut. Later
/// commits do not bring it back, and are not confused with it.
#[test]
fn damage_to_the_last_commit_looks_like_a_cut() {
    let test = async |runtime: Virtual| {
        let form = WalCommit::Pages;
        let disk = committed(&runtime, form).await?;
        flip(&disk, slot_of(&disk, 5).await?);
        let is_written = |page: u64| page < 4 || (20..26).contains(&page);
        for later in [20, 22, 24] {
            let (wal, report) = recover(&disk, &runtime, form).await?;
            assert_eq!((report.committed, report.dropped), ((later - 20) / 2 + 1, 1), "{report:?}");
            commit(&wal, later..later + 2).await?;
        }
        let (wal, _) = recover(&disk, &runtime, form).await?;
        for page in 0..30 {
            let expected = if is_written(page) { content(page) } else { PageBuf::zero() };
            assert!(read(&wal, page).await? == expected, "page {page}");
        }
        // Each of those except the last is known to have been durable.
        flip(&disk, slot_of(&disk, 22).await?);
        recover(&disk, &runtime, form).await.map(|_| ())
    };
    assert_eq!(run(test).unwrap_err().kind(), ErrorKind::Corrupt);
}
