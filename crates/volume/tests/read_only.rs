//! Volumes in files, opened read-only and checked: nothing in their folder changes.
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tantalum_base::{
    ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result, Rng,
};
use tantalum_media::block_store::{
    CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions,
};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::{
    OpenOptions, VolumeConfig, check_volume, config, create_volume, open_flash, open_volume,
};

const PAGES: u64 = 512;

/// How the last writer ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Closed,
    Killed,
    CutInRecovery,
}

const ENDS: [End; 3] = [End::Closed, End::Killed, End::CutInRecovery];

/// Runs `body` on an executor of its own, and drops all its tasks afterwards.
fn on_live<T: 'static, F: Future<Output = T> + 'static>(body: impl FnOnce(Live) -> F) -> T {
    let live = Live::new(LiveOptions::default()).unwrap();
    let result = live.run(body(live.clone()));
    live.drop_tasks();
    result
}

fn page(number: u64) -> PageBuf {
    PageBuf::copy_from(&number.to_le_bytes().repeat(PAGE_BYTES / 8))
}

async fn contents<D: PageDevice<Page = PageBuf>>(device: &D) -> Result<Vec<PageBuf>> {
    let mut found = vec![PageBuf::zero(); PAGES as usize];
    device.read(PageNo(0), &mut found, None).await.map(|()| found)
}

/// All content and attributes of a folder, except for access times.
fn everything_in(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, [i64; 5])> {
    let about = |path: &Path| {
        let it = std::fs::metadata(path).unwrap();
        [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec(), it.len() as i64]
    };
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut all: BTreeMap<_, _> =
        files.map(|path| (path.clone(), (std::fs::read(&path).ok(), about(&path)))).collect();
    all.insert(folder.to_path_buf(), (None, about(folder)));
    all
}

/// A volume that reached its `end` under load, small enough that cleaning has much to do, and the content
/// of its pages.
fn volume(folder: &Path, end: End) -> (VolumeConfig, Vec<PageBuf>) {
    let path = folder.join("v.toml");
    let text = config::template("2MiB").replace("# zone = \"8MiB\"", "zone = \"64KiB\"");
    std::fs::write(&path, text).unwrap();
    let config = VolumeConfig::read(&path).unwrap();
    let made = config.clone();
    let held = on_live(async move |live| {
        create_volume(&live, &made, false).await.unwrap();
        let (volume, _) = open_volume(&live, &made, OpenOptions::default()).await.unwrap();
        let mut held = vec![PageBuf::zero(); PAGES as usize];
        let mut rng = Rng::new(7);
        for number in 1..1500 {
            let (first, pages) = (rng.below(PAGES - 8), 1 + rng.below(8));
            let range = first as usize..(first + pages) as usize;
            if rng.chance(0.1) {
                volume.trim(PageRange::new(PageNo(first), pages)).await.unwrap();
                held[range].fill(PageBuf::zero());
            } else {
                held[range.clone()].fill(page(number));
                volume.write(PageNo(first), &held[range], None).await.unwrap();
            }
        }
        assert!(volume.device().statistics().ftl.zones_cleaned > 10);
        if end == End::Closed {
            volume.close().await.unwrap();
        }
        held
    });
    if end == End::CutInRecovery {
        cut_recovery(&config);
    }
    (config, held)
}

/// Opens the volume for writing and cuts the power during recovery, before its result is in force.
fn cut_recovery(config: &VolumeConfig) {
    let data = config.data_path().unwrap();
    let original = std::fs::read(&data).unwrap();
    let opens = |after_operations| {
        let (config, data) = (config.clone(), data.clone());
        on_live(async move |live| {
            let file = FileStore::open(&live, &data, FileStoreOptions::default()).unwrap();
            let store = CrashStore::new(live.clone(), file, CrashOptions::default());
            store.plan_cut(CutPlan { after_operations, fate: Fate::Tear });
            let opened =
                open_flash(&live, store.clone(), &config, OpenOptions::default()).await.is_ok();
            store.cut(&mut Rng::new(1), CutStyle::TearAll).await.unwrap();
            opened
        })
    };
    let last = (0..).find(|operations| opens(*operations)).unwrap() - 1;
    std::fs::write(&data, &original).unwrap();
    assert!(!opens(last / 2));
    assert!(std::fs::read(&data).unwrap() != original, "it was cut before it wrote anything");
}

/// Every change is refused; a flush does nothing.
async fn assert_refuses_changes<D: PageDevice<Page = PageBuf>>(device: &D) {
    for refused in [
        device.write(PageNo(3), &[page(9)], None).await,
        device.trim(PageRange::new(PageNo(3), 2)).await,
        device.share(&[(PageNo(3), PageNo(9))]).await,
        device.begin().await.map(|_| ()),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    }
    device.flush().await.unwrap();
}

#[test]
fn a_volume_that_is_read_only_is_all_there_and_left_as_it_was() {
    for end in ENDS {
        let folder = tempfile::tempdir().unwrap();
        let (config, held) = volume(folder.path(), end);
        let before = everything_in(folder.path());
        for buffered in [false, true, true] {
            let mut config = config.clone();
            if buffered {
                let text = std::fs::read_to_string(&config.path).unwrap();
                let text = text.replace("# [buffer]", "[buffer]\nsize = \"256KiB\"");
                config = VolumeConfig::parse(&text, &config.path).unwrap();
            }
            let held = held.clone();
            on_live(async move |live| {
                let options = OpenOptions::READ_ONLY;
                let (volume, report) = open_volume(&live, &config, options).await.unwrap();
                assert_eq!(report.recovery.replayed > 0, end != End::Closed, "{end:?}");
                assert!(contents(&*volume).await.unwrap() == held, "{end:?}");
                assert_refuses_changes(&*volume).await;
                assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
                assert!(contents(&*volume).await.unwrap() == held, "{end:?}");
                volume.close().await.unwrap();
            });
        }
        assert!(everything_in(folder.path()) == before, "{end:?}: something changed");
        on_live(async move |live| {
            let (volume, report) =
                open_volume(&live, &config, OpenOptions::default()).await.unwrap();
            assert_eq!(report.recovery.replayed > 0, end != End::Closed, "{end:?}");
            assert!(contents(&*volume).await.unwrap() == held, "{end:?}");
            volume.write(PageNo(3), &[page(9)], None).await.unwrap();
            volume.close().await.unwrap();
        });
    }
}

#[test]
fn a_check_finds_nothing_wrong_with_a_sound_volume_and_changes_nothing() {
    for end in ENDS {
        let folder = tempfile::tempdir().unwrap();
        let (config, _) = volume(folder.path(), end);
        let before = everything_in(folder.path());
        for _ in 0..2 {
            let config = config.clone();
            let report = on_live(async move |live| check_volume(&live, &config, |_, _| ()).await);
            let report = report.unwrap();
            assert_eq!((report.findings, report.not_in_force), (vec![], vec![]), "{end:?}");
            assert_eq!(report.superblock.unwrap().pages, PAGES);
            assert_eq!(report.recovery.unwrap().replayed > 0, end != End::Closed, "{end:?}");
        }
        assert!(everything_in(folder.path()) == before, "{end:?}: something changed");
    }
}

#[test]
fn what_damage_keeps_from_being_opened_is_named_by_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = volume(folder.path(), End::Closed);
    let data = config.data_path().unwrap();
    let mut bytes = std::fs::read(&data).unwrap();
    // All checkpoints, and all headers before them.
    for at in ((1 << 20)..bytes.len()).step_by(PAGE_BYTES) {
        bytes[at + 100] ^= 1;
    }
    std::fs::write(&data, &bytes).unwrap();
    let before = everything_in(folder.path());
    let report = on_live(async move |live| check_volume(&live, &config, |_, _| ()).await).unwrap();
    assert_eq!(report.recovery, None);
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(finding.place == "log and checkpoints" && finding.problem.contains("checkpoint"));
    assert!(everything_in(folder.path()) == before, "something changed");
}

/// After a clean close the checkpoint is enough for opening and contains its own place, so no header is
/// in force.
#[test]
fn a_damaged_header_of_a_closed_volume_is_told_and_is_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = volume(folder.path(), End::Closed);
    let data = config.data_path().unwrap();
    let whole = std::fs::read(&data).unwrap();
    let is_header = |at: &usize| whole[*at..].starts_with(b"TantalZA");
    let headers: Vec<usize> =
        (1 << 20..whole.len()).step_by(PAGE_BYTES).filter(is_header).collect();
    let mut told = 0;
    for at in headers.iter().take(12) {
        let mut bytes = whole.clone();
        bytes[at + 100] ^= 1;
        std::fs::write(&data, &bytes).unwrap();
        let config = config.clone();
        let report = on_live(async move |live| check_volume(&live, &config, |_, _| ()).await);
        let report = report.unwrap();
        assert_eq!(report.findings, [], "byte {at}");
        assert!(report.not_in_force.len() <= 1, "byte {at}: {:?}", report.not_in_force);
        told += report.not_in_force.len();
    }
    println!("{told} of {} told", headers.len().min(12));
    assert!(told > 0);
}
