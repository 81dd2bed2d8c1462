//! A sparse volume gives space back to the file system, measured in the blocks of a real file.
use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Result, Rng};
use tantalum_media::block_store::{
    CrashOptions, CrashStore, CutStyle, FileStore, FileStoreOptions,
};
use tantalum_media::{BlockStore, CutPlan, Fate, StoreLayer};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live, Runtime};
use tantalum_volume::{
    FlashVolume, OpenOptions, VolumeConfig, VolumeStore, config, create_volume, open_flash,
    open_volume,
};

const MIB: u64 = 1 << 20;
/// Pages per write.
const PIECE: u64 = 256;
/// The area that is overwritten repeatedly.
const AREA_PAGES: u64 = 16 * MIB / PAGE_BYTES as u64;

type Volume = Rc<FlashVolume<VolumeStore>>;

/// A volume; with 256 MiB it has zones of 2 MiB.
fn config_in(folder: &Path, capacity: &str, sparse: bool) -> VolumeConfig {
    let path = folder.join("v.toml");
    let text =
        config::template(capacity).replace("# sparse = false", &format!("sparse = {sparse}"));
    let text = text.replace("# durability = \"on_ack\"", "durability = \"on_flush\"");
    assert!(text.contains("\nsparse = ") && text.contains("\ndurability = "), "{text}");
    std::fs::write(&path, text).unwrap();
    VolumeConfig::read(&path).unwrap()
}

/// MiB that the file occupies on its file system.
fn held_mib(config: &VolumeConfig) -> u64 {
    std::fs::metadata(config.data_path().unwrap()).unwrap().blocks() * 512 / MIB
}

/// MiB reserved behind the end of an open volume's file, in case its file system is full: the write cache and two
/// zones.
fn spare_mib(config: &VolumeConfig) -> u64 {
    u64::from(config.ssd_options().unwrap().cache_pages) * PAGE_BYTES as u64 / MIB + 4
}

fn content(page: u64, round: u64) -> PageBuf {
    PageBuf::copy_from(&(page * 1000 + round + 1).to_le_bytes().repeat(PAGE_BYTES / 8))
}

async fn write(volume: &Volume, first: u64, pages: u64, round: u64) {
    let content: Vec<_> = (first..first + pages).map(|page| content(page, round)).collect();
    volume.write(PageNo(first), &content, None).await.unwrap();
}

async fn write_area(volume: &Volume, first: u64, round: u64) {
    for piece in (first..first + AREA_PAGES).step_by(PIECE as usize) {
        write(volume, piece, PIECE, round).await;
    }
    volume.flush().await.unwrap();
}

async fn assert_holds(volume: &Volume, first: u64, round: u64) {
    for piece in (first..first + AREA_PAGES).step_by(PIECE as usize) {
        let mut read = vec![PageBuf::zero(); PIECE as usize];
        volume.read(PageNo(piece), &mut read, None).await.unwrap();
        for (page, read) in (piece..).zip(read) {
            assert!(read == content(page, round), "page {page}");
        }
    }
}

fn on_live<T: 'static, F: Future<Output = T> + 'static>(body: impl FnOnce(Live) -> F) -> T {
    let live = Live::new(LiveOptions::default()).unwrap();
    let result = live.run(body(live.clone()));
    live.drop_tasks();
    result
}

/// Waits until the file occupies at most `most` MiB; returns the size that it then occupies.
async fn shrinks_to(live: &Live, config: &VolumeConfig, most: u64) -> u64 {
    for _ in 0..100 {
        if held_mib(config) <= most {
            break;
        }
        live.sleep(20_000_000).await;
    }
    held_mib(config)
}

#[test]
fn a_small_area_stays_small_and_what_is_discarded_goes() {
    let folder = tempfile::tempdir().unwrap();
    let config = config_in(folder.path(), "256MiB", true);
    let opened = config.clone();
    on_live(async move |live| {
        create_volume(&live, &opened, false).await.unwrap();
        let (volume, _) = open_volume(&live, &opened, OpenOptions::default()).await.unwrap();
        let empty = held_mib(&opened);
        // Content that is never overwritten.
        write_area(&volume, 2 * AREA_PAGES, 0).await;
        for round in 0..8 {
            write_area(&volume, 0, round).await;
        }
        let held = held_mib(&opened) - empty;
        println!("{empty} MiB empty, {held} MiB more after 16 MiB, and 16 MiB eight times over");
        assert!(held <= 2 * 32 + 18, "32 MiB are live, and {held} MiB more than at first held");
        assert_holds(&volume, 0, 7).await;
        volume.trim(PageRange::new(PageNo(0), AREA_PAGES)).await.unwrap();
        volume.flush().await.unwrap();
        let held = shrinks_to(&live, &opened, empty + 16 + 12).await - empty;
        println!("{held} MiB when the second area was discarded");
        assert!(held <= 16 + 12, "16 MiB are live, and {held} MiB more than at first held");
        assert_holds(&volume, 2 * AREA_PAGES, 0).await;
        assert_eq!(volume.check(|_, _| ()).await.unwrap(), []);
        volume.close().await.unwrap();
    });
}

#[test]
fn an_area_that_is_written_at_random_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let config = config_in(folder.path(), "256MiB", true);
    on_live(async move |live| {
        create_volume(&live, &config, false).await.unwrap();
        let (volume, _) = open_volume(&live, &config, OpenOptions::default()).await.unwrap();
        let empty = held_mib(&config);
        write_area(&volume, 0, 0).await;
        let mut rng = Rng::new(7);
        let mut rounds = vec![0; AREA_PAGES as usize];
        for round in 1..30_000 {
            let page = rng.below(AREA_PAGES);
            rounds[page as usize] = round;
            write(&volume, page, 1, round).await;
            if round.is_multiple_of(100) {
                volume.flush().await.unwrap();
            }
        }
        let held = held_mib(&config) - empty;
        println!("{held} MiB more than at first for 16 MiB");
        assert!(held <= 90, "16 MiB are live, and {held} MiB more than at first held");
        let mut read = vec![PageBuf::zero(); AREA_PAGES as usize];
        volume.read(PageNo(0), &mut read, None).await.unwrap();
        for (page, round) in rounds.into_iter().enumerate() {
            assert!(read[page] == content(page as u64, round), "page {page}");
        }
    });
}

#[test]
fn what_a_killed_process_left_goes_at_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let config = config_in(folder.path(), "256MiB", true);
    // As if it had been killed before it gave any space back: with this option it gives none back.
    let keeping = config_in(folder.path(), "256MiB", false);
    let made = config.clone();
    on_live(async move |live| {
        create_volume(&live, &made, false).await.unwrap();
        let (volume, _) = open_volume(&live, &keeping, OpenOptions::default()).await.unwrap();
        write_area(&volume, 0, 0).await;
        write_area(&volume, AREA_PAGES, 0).await;
        volume.trim(PageRange::new(PageNo(0), AREA_PAGES)).await.unwrap();
        volume.flush().await.unwrap();
    });
    let held = held_mib(&config);
    assert!(held >= 32, "{held} MiB held: it went already");
    on_live(async move |live| {
        let (volume, _) = open_volume(&live, &config, OpenOptions::default()).await.unwrap();
        let spare = spare_mib(&config);
        let most = spare + 16 + 12;
        let held = shrinks_to(&live, &config, most).await;
        assert!(held <= most, "16 MiB are live and {spare} MiB kept aside, and {held} MiB held");
        assert_holds(&volume, AREA_PAGES, 0).await;
    });
}

#[test]
fn a_volume_that_is_not_sparse_keeps_all_its_room() {
    let folder = tempfile::tempdir().unwrap();
    let config = config_in(folder.path(), "256MiB", false);
    on_live(async move |live| {
        create_volume(&live, &config, false).await.unwrap();
        let (volume, _) = open_volume(&live, &config, OpenOptions::default()).await.unwrap();
        let held = held_mib(&config);
        write_area(&volume, 0, 0).await;
        volume.trim(PageRange::new(PageNo(0), AREA_PAGES)).await.unwrap();
        volume.flush().await.unwrap();
        live.sleep(300_000_000).await;
        assert!(held >= 256 && held_mib(&config) >= held);
    });
}

/// Counts calls that give space back.
struct Counted<S> {
    inner: S,
    given: Rc<Cell<u64>>,
}

impl<S: Clone> Clone for Counted<S> {
    fn clone(&self) -> Self {
        Counted { inner: self.inner.clone(), given: Rc::clone(&self.given) }
    }
}

impl<S: BlockStore> StoreLayer for Counted<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn give_room_back(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.given.set(self.given.get() + 1);
        self.inner.give_room_back(offset, bytes).await
    }
}

/// The knowledge of the volume's clients.
#[derive(Default)]
struct Known {
    /// The round of the last acknowledged write of each page; `None` if the page was discarded.
    held: RefCell<Vec<Option<u64>>>,
    /// The change that was not acknowledged when power was cut.
    on_its_way: RefCell<Option<(PageRange, Option<u64>)>>,
    round: Cell<u64>,
    given: Rc<Cell<u64>>,
}

const CUT_PAGES: u64 = 1024;

async fn open_sparse(live: &Live, config: &VolumeConfig) -> FileStore {
    let options = FileStoreOptions { sparse: true, ..FileStoreOptions::default() };
    FileStore::open(live, &config.data_path().unwrap(), options).unwrap()
}

/// Writes and discards until power is cut at a random operation, often one that gives space back.
async fn load_and_cut(live: Live, config: VolumeConfig, known: Rc<Known>, seed: u64) {
    let mut rng = Rng::split(seed, "cut");
    let file = open_sparse(&live, &config).await;
    let store = CrashStore::new(live.clone(), file, CrashOptions::default());
    let counted = Counted { inner: store.clone(), given: Rc::clone(&known.given) };
    let fate = Fate::ALL[rng.below(3) as usize];
    store.plan_cut(CutPlan { after_operations: rng.below(300), fate });
    if let Ok((volume, _)) = open_flash(&live, counted, &config, OpenOptions::default()).await {
        loop {
            let (round, trims) = (known.round.get() + 1, rng.chance(0.15));
            known.round.set(round);
            let pages = if trims { CUT_PAGES / 2 } else { 1 + rng.below(60) };
            let range = PageRange::new(PageNo(rng.below(CUT_PAGES - pages)), pages);
            let now = (!trims).then_some(round);
            *known.on_its_way.borrow_mut() = Some((range, now));
            let done = if trims {
                volume.trim(range).await
            } else {
                let pages: Vec<_> = range.iter().map(|page| content(page.0, round)).collect();
                volume.write(range.first, &pages, None).await
            };
            let done = match done {
                Ok(()) => volume.flush().await,
                failed => failed,
            };
            if done.is_err() {
                break;
            }
            known.on_its_way.take();
            for page in range.iter() {
                known.held.borrow_mut()[page.0 as usize] = now;
            }
        }
    }
    assert!(store.is_cut(), "seed {seed}: the device failed before power was cut");
    store.cut(&mut rng, CutStyle::Random).await.unwrap();
}

/// Opens the real file and compares.
async fn verify(live: Live, config: VolumeConfig, known: Rc<Known>, seed: u64) {
    let file = open_sparse(&live, &config).await;
    let (volume, _) = open_flash(&live, file, &config, OpenOptions::default()).await.unwrap();
    let mut found = vec![PageBuf::zero(); CUT_PAGES as usize];
    volume.read(PageNo(0), &mut found, None).await.unwrap();
    let as_in = |page: u64, round: Option<u64>| {
        let expected = round.map_or_else(PageBuf::zero, |round| content(page, round));
        found[page as usize] == expected
    };
    // A write of several pages in flight may be there in part; a log command may have taken effect or not.
    let on_its_way = known.on_its_way.take();
    for page in 0..CUT_PAGES {
        let held = known.held.borrow()[page as usize];
        let newer = on_its_way.filter(|(range, _)| range.iter().any(|at| at.0 == page));
        match newer {
            Some((_, now)) if as_in(page, now) => known.held.borrow_mut()[page as usize] = now,
            _ => assert!(as_in(page, held), "seed {seed}: page {page} does not hold {held:?}"),
        }
    }
    assert_eq!(volume.check(|_, _| ()).await.unwrap(), [], "seed {seed}");
    if seed.is_multiple_of(2) {
        volume.close().await.unwrap();
    }
}

#[test]
fn nothing_is_lost_in_power_cuts_while_room_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let text = config::template("16MiB").replace("# zone = \"8MiB\"", "zone = \"128KiB\"");
    let text = text.replace("# sparse = false", "sparse = true");
    assert!(text.contains("\nzone = ") && text.contains("\nsparse = "), "{text}");
    let config = VolumeConfig::parse(&text, &folder.path().join("v.toml")).unwrap();
    let known = Rc::new(Known::default());
    *known.held.borrow_mut() = vec![None; CUT_PAGES as usize];
    let made = config.clone();
    on_live(async move |live| _ = create_volume(&live, &made, false).await.unwrap());
    for seed in 0..30 {
        let (cut, verified) = (config.clone(), config.clone());
        let (loaded, compared) = (Rc::clone(&known), Rc::clone(&known));
        on_live(async move |live| load_and_cut(live, cut, loaded, seed).await);
        on_live(async move |live| verify(live, verified, compared, seed).await);
    }
    let (rounds, given) = (known.round.get(), known.given.get());
    println!("{rounds} writes and discards; {given} times room was given back");
    assert!(rounds > 300 && given > 100, "{rounds} changes and {given} times test little");
}
