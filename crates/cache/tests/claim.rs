//! The claim on a home. Power is cut at every operation while the claim is put on or taken off, and
//! again during the repair. Reads through the cache must return the written content, and a released
//! home must have exactly that content, byte for byte.
use std::path::Path;
use tantalum_base::fault_points::assert_noticed;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, Payload, Result, Rng};
use tantalum_cache::Journal;
use tantalum_cache::claim::{
    Claim, Claimed, Extent, HomeOwner, SECTOR_BYTES, UNDO_BYTES, Watched, changes, look, open_home,
    release, settle, unclaim,
};
use tantalum_cache::fault_points::Fault;
use tantalum_cache::journal::{Closed, Pair};
use tantalum_media::block_store::{BlockStore, CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const ID: u128 = 0xc1a1;
const MIB: usize = 1 << 20;
const STYLES: [CutStyle; 4] =
    [CutStyle::DropAll, CutStyle::LandAll, CutStyle::Random, CutStyle::TearAll];

type Store = CrashStore<MemoryStore, Virtual>;
type TestJournal = Journal<Store, PageBuf>;

/// Home, journal and undo file, which survive the cuts; and the expected content of the home.
struct Rig {
    stores: [MemoryStore; 3],
    wanted: Vec<u8>,
}

/// The operation on the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    PutOn,
    Release,
    Unclaim,
}

/// The power cut: at an operation of one of the stores.
#[derive(Clone, Copy, Debug)]
struct Cut {
    store: usize,
    operation: u64,
    fate: Fate,
    style: CutStyle,
}

fn claim(home_bytes: u64) -> Claim {
    Claim::new(ID, home_bytes, Path::new("/j"), Path::new("/h"))
}

/// A claim of the same volume on a home with another name.
fn renewed(home_bytes: u64) -> Claim {
    Claim::new(ID, home_bytes, Path::new("/j"), Path::new("/another/h"))
}

fn owner(read_only: bool) -> HomeOwner {
    HomeOwner { volume_id: ID, read_only, accept_loss: false, claim_found: None }
}

/// Random bytes, with some sectors of zeros.
fn content(bytes: usize, rng: &mut Rng) -> Vec<u8> {
    let mut content: Vec<u8> = (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    for sector in content.chunks_mut(SECTOR_BYTES).step_by(5) {
        sector.fill(0);
    }
    content
}

impl Rig {
    fn new(home_bytes: usize, seed: u64) -> Rig {
        let wanted = content(home_bytes, &mut Rng::new(seed));
        let journal = MemoryStore::new((4 * MIB) as u64);
        let stores =
            [MemoryStore::with_image(&wanted), journal.clone(), MemoryStore::new(UNDO_BYTES)];
        let pair = Pair { volume_id: ID, pages: (home_bytes / PAGE_BYTES) as u64 };
        let format = async move { Journal::<_, PageBuf>::format(journal, pair, 0).await.map(drop) };
        Virtual::new(Schedule::Fifo).run(format).unwrap().unwrap();
        Rig { stores, wanted }
    }

    /// Runs `work` on home, journal and undo file with the power on, until it ends or meets the
    /// cut.
    fn live<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        cut: Option<Cut>,
        work: impl FnOnce([Store; 3]) -> F,
    ) -> Result<(Option<T>, [u64; 3])> {
        let runtime = Virtual::new(Schedule::Fifo);
        let stores = self
            .stores
            .clone()
            .map(|store| CrashStore::new(runtime.clone(), store, CrashOptions::default()));
        if let Some(Cut { store, operation, fate, .. }) = cut {
            stores[store].plan_cut(CutPlan { after_operations: operation, fate });
        }
        let done = match runtime.run(work(stores.clone())).expect("no deadlock") {
            Ok(done) => Some(done),
            Err(error) if error.kind() == ErrorKind::PowerCut => None,
            Err(error) => return Err(error),
        };
        let operations = [0, 1, 2].map(|store: usize| stores[store].operations());
        runtime.drop_tasks();
        let style = cut.map_or(CutStyle::DropAll, |cut| cut.style);
        let dark = async move {
            let mut rng = Rng::new(operations[0] * 7 + operations[1]);
            for store in &stores {
                store.cut(&mut rng, style).await?;
            }
            Ok::<_, Error>(())
        };
        runtime.run(dark).expect("no deadlock")?;
        Ok((done, operations))
    }

    fn work(&self, work: Work, cut: Option<Cut>) -> Result<(Option<()>, [u64; 3])> {
        let bytes = self.wanted.len() as u64;
        self.live(cut, move |[home, journal, undo]| async move {
            if work == Work::Unclaim {
                return unclaim(&home, &undo).await.map(drop);
            }
            let (journal, home) = open(home, journal, false).await?;
            match work {
                Work::PutOn => settle(&journal, &home, Some(claim(bytes))).await,
                _ => release(&journal, &home).await,
            }
        })
    }

    /// Checks the home as seen through the cache, without writing; returns the first error.
    fn wrong_through_the_cache(&self) -> Result<Option<String>> {
        let bytes = self.wanted.len();
        let seen = self.live(None, move |[home, journal, _]| async move {
            let (_, home) = open(home, journal, true).await?;
            Ok(home.read(0, home.buffer(bytes)).await?.to_vec())
        })?;
        Ok(difference(&seen.0.expect("no cut is planned"), &self.wanted))
    }

    /// Checks the home after `work` is done; returns the first error.
    fn wrong_at_the_end(&self, work: Work) -> Option<String> {
        let image = self.stores[0].image();
        if matches!(work, Work::Release | Work::Unclaim) {
            return difference(&image, &self.wanted);
        }
        if image[..SECTOR_BYTES] != *claim(image.len() as u64).sector() {
            return Some("the home shows another claim".into());
        }
        let ranges = Extent::of(image.len() as u64).ranges();
        let near = |at: usize| ranges.iter().any(|range| range.contains(&(at as u64)));
        let same = |at: &usize| near(*at) == (image[*at] == self.wanted[*at]);
        (0..image.len()).find(same).map(|at| format!("byte {at} under the claim"))
    }
}

async fn open(
    home: Store,
    journal: Store,
    read_only: bool,
) -> Result<(TestJournal, Claimed<Store>)> {
    let pair = TestJournal::pair_of(&journal).await?;
    let (journal, _) = Journal::open(journal, pair, 0).await?;
    let home = open_home(home, Some(&journal), owner(read_only)).await?;
    Ok((journal, home))
}

fn difference(found: &[u8], wanted: &[u8]) -> Option<String> {
    let at = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    at.map(|at| format!("byte {at} differs"))
}

/// Does `work` on a home of this size, with up to two cuts; returns the first error.
fn survive(work: Work, home_bytes: usize, cuts: [Option<Cut>; 2]) -> Option<String> {
    let told = |what: String| format!("{work:?} of {home_bytes} bytes, {cuts:?}: {what}");
    let failed = |error: Error| told(error.to_string());
    let rig = Rig::new(home_bytes, 3);
    if work != Work::PutOn {
        rig.work(Work::PutOn, None).unwrap();
    }
    for cut in cuts {
        match rig.work(work, cut) {
            Ok(_) => {}
            // It was done already: the cut came too late.
            Err(error) if work == Work::Unclaim && error.kind() == ErrorKind::InvalidInput => {}
            Err(error) => return Some(failed(error)),
        }
        if work != Work::Unclaim {
            match rig.wrong_through_the_cache() {
                Ok(None) => {}
                Ok(Some(wrong)) => return Some(told(format!("read after the cut: {wrong}"))),
                Err(error) => return Some(failed(error)),
            }
        }
    }
    match rig.work(work, None) {
        Err(error) if work != Work::Unclaim || error.kind() != ErrorKind::InvalidInput => {
            Some(failed(error))
        }
        _ => rig.wrong_at_the_end(work).map(told),
    }
}

/// Cuts at every operation, once and twice. Returns the first error that follows, and the number of
/// cuts.
fn search(work: Work, home_bytes: usize) -> (Option<String>, usize) {
    let rig = Rig::new(home_bytes, 3);
    if work != Work::PutOn {
        rig.work(Work::PutOn, None).unwrap();
    }
    let (_, operations) = rig.work(work, None).unwrap();
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    let mut survived = 0;
    for (store, operations) in operations.into_iter().enumerate() {
        for operation in 0..operations {
            for (number, fate) in Fate::ALL.into_iter().enumerate() {
                let style = STYLES[(operation as usize + number) % STYLES.len()];
                let first = Cut { store, operation, fate, style };
                // The second cut is at a different operation each time; in nightly runs at each of
                // the first ones.
                let seconds = if nightly { 0..12 } else { operation..operation + 1 };
                for second in seconds {
                    let at = if nightly { second / 2 } else { (second + number as u64) % 4 };
                    let store = (store + second as usize + number) % 3;
                    let second = Cut { store, operation: at, fate, style: STYLES[number] };
                    if let Some(wrong) = survive(work, home_bytes, [Some(first), Some(second)]) {
                        return (Some(wrong), survived);
                    }
                    survived += 1;
                }
            }
        }
    }
    (None, survived)
}

/// Separate ends, adjacent ends, homes shorter than both ends, and homes that end within a block.
const SIZES: [usize; 6] = [3 * MIB, 2 * MIB, MIB + 12288, 12288, 3 * MIB + 512, 11776];

fn no_cut_harms(work: Work) {
    for home_bytes in SIZES {
        let (wrong, survived) = search(work, home_bytes);
        assert_eq!(wrong, None);
        println!("{work:?} of {home_bytes} bytes: {survived} pairs of cuts");
        assert!(survived >= 9, "{survived} cuts");
    }
}

#[test]
fn a_claim_that_is_put_on_survives_cuts() {
    no_cut_harms(Work::PutOn);
}

/// What the home shows is what it was claimed with, whatever a journal says.
#[test]
fn a_journal_that_says_another_claim_than_the_home_is_not_believed() {
    for said in [renewed(3 * MIB as u64), Claim::new(5, 3 << 20, Path::new("/j"), Path::new("/h"))]
    {
        let rig = Rig::new(3 * MIB, 9);
        rig.work(Work::PutOn, None).unwrap();
        let told = rig.live(None, move |[home, journal, _]| async move {
            open(home, journal, false).await?.0.note_claim(said).await
        });
        told.unwrap();
        assert_eq!(rig.wrong_through_the_cache().unwrap(), None);
        rig.work(Work::Release, None).unwrap();
        assert_eq!(rig.wrong_at_the_end(Work::Release), None);
    }
}

#[test]
fn a_claim_that_is_taken_off_survives_cuts() {
    no_cut_harms(Work::Release);
}

#[test]
fn a_home_that_is_alone_survives_cuts() {
    no_cut_harms(Work::Unclaim);
}

#[test]
fn a_claim_that_was_not_journaled_is_noticed() {
    assert_noticed(Fault::ClaimNotJournaled, || search(Work::PutOn, 12288).0);
}

#[test]
fn a_claim_that_is_toggled_is_noticed() {
    assert_noticed(Fault::ClaimToggled, || search(Work::Release, 12288).0);
}

/// Makes random writes and trims through a claimed home, then releases it; returns the first error.
fn used(home_bytes: usize, seed: u64) -> Option<String> {
    let mut rig = Rig::new(home_bytes, seed);
    rig.work(Work::PutOn, None).unwrap();
    let mut rng = Rng::new(seed);
    let pages = home_bytes.div_ceil(PAGE_BYTES) as u64;
    for _ in 0..60 {
        let first = rng.below(pages);
        let count = 1 + rng.below((pages - first).min(300));
        let end = ((first + count) as usize * PAGE_BYTES).min(home_bytes);
        let bytes = first as usize * PAGE_BYTES..end;
        let written = (rng.below(3) > 0).then(|| content(bytes.len(), &mut rng));
        rig.wanted[bytes.clone()].fill(0);
        if let Some(written) = &written {
            rig.wanted[bytes.clone()].copy_from_slice(written);
        }
        let at = bytes.start as u64;
        let change = rig.live(None, move |[home, journal, _]| async move {
            let (_, home) = open(home, journal, false).await?;
            match written {
                None => home.zero(at, bytes.len() as u64).await?,
                Some(written) => {
                    let mut buf = home.buffer(written.len());
                    buf.copy_from_slice(&written);
                    let buf = home.write(at, buf, false).await?;
                    assert!(*buf == written[..], "the buffer comes back as it was given");
                }
            }
            home.sync().await
        });
        if let Err(error) = change {
            return Some(format!("seed {seed}: {error}"));
        }
        match rig.wrong_through_the_cache() {
            Ok(None) => {}
            wrong => return Some(format!("seed {seed}: {wrong:?}")),
        }
    }
    rig.work(Work::Release, None).unwrap();
    rig.wrong_at_the_end(Work::Release).map(|wrong| format!("seed {seed}: {wrong}"))
}

#[test]
fn what_is_written_and_trimmed_under_a_claim_is_read_and_released() {
    for (seed, home_bytes) in (1..).zip(SIZES) {
        assert_eq!(used(home_bytes, seed), None);
    }
}

#[test]
fn a_trim_that_does_not_know_of_the_claim_is_noticed() {
    assert_noticed(Fault::TrimsUnclaimed, || used(12288, 1));
}

/// The error of opening a home on which another program wrote over a part.
fn written_over(range: std::ops::Range<usize>, fill: u8) -> Option<String> {
    let rig = Rig::new(3 * MIB, 9);
    rig.work(Work::PutOn, None).unwrap();
    let home = rig.stores[0].clone();
    let write = async move {
        let mut buf = home.buffer(range.len());
        buf.fill(fill);
        home.write(range.start as u64, buf, true).await.map(drop)
    };
    Virtual::new(Schedule::Fifo).run(write).unwrap().unwrap();
    let before = rig.stores.clone().map(|store| store.image());
    let error = rig.work(Work::PutOn, None).err()?;
    assert!(rig.stores.clone().map(|store| store.image()) == before, "nothing is written");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    Some(error.to_string())
}

fn nobody_told() -> Option<String> {
    match written_over(0..8192, 0) {
        Some(_) => None,
        None => Some("opened".into()),
    }
}

#[test]
fn a_home_that_somebody_wrote_over_is_refused() {
    for range in [0..4096, 2 * MIB + 4096..2 * MIB + 8192] {
        let error = written_over(range, 0).expect("it is refused");
        assert!(error.contains("without its cache") && error.contains("--force"), "{error}");
    }
    let error = written_over(0..3 * MIB, 0).expect("it is refused");
    assert!(error.contains("probably another disk") && !error.contains("--force"), "{error}");
    assert_noticed(Fault::ClaimNotChecked, nobody_told);
}

#[test]
fn the_claim_is_what_most_sectors_show_and_anothers_is_refused() {
    let rig = Rig::new(3 * MIB, 9);
    rig.work(Work::PutOn, None).unwrap();
    let home = rig.stores[0].clone();
    let look_at = move || {
        let home = home.clone();
        Virtual::new(Schedule::Fifo).run(async move { look(&home).await }).unwrap().unwrap()
    };
    assert_eq!((look_at().claim, look_at().zero_sectors), (Some(claim(3 * MIB as u64)), 0));
    let error = rig.live(None, |[home, journal, _]| async move {
        let pair = TestJournal::pair_of(&journal).await?;
        let (journal, _) = TestJournal::open(journal, pair, 0).await?;
        let another = HomeOwner { volume_id: 5, ..owner(false) };
        open_home(home, Some(&journal), another).await.map(drop)
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("belongs to volume") && error.contains("c1a1"), "{error}");
}

#[test]
fn where_no_sector_is_zero_nothing_is_claimed() {
    let mut rig = Rig::new(12288, 1);
    rig.wanted.iter_mut().for_each(|byte| *byte |= 1);
    rig.stores[0] = MemoryStore::with_image(&rig.wanted);
    rig.work(Work::PutOn, None).unwrap();
    assert_eq!(rig.stores[0].image(), rig.wanted);
    let error = rig.work(Work::Unclaim, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("shows no claim"), "{error}");
}

/// Makes random writes, trims and syncs on a watched home without a claim, and opens it again;
/// returns the first error.
fn watched(seed: u64, cut: Option<Cut>) -> (Option<String>, [u64; 3]) {
    let rig = Rig::new(60 * PAGE_BYTES, seed);
    let open = |[home, journal, _]: [Store; 3]| async move {
        if let Some(change) = changes(&home, &journal).await? {
            let context = format!("somebody changed the home: {change}");
            return Err(Error::new(ErrorKind::Corrupt, context));
        }
        let home = Watched::new(home);
        home.watch(journal, true).await?;
        home.mark().await?;
        Ok::<_, Error>(home)
    };
    let used = rig.live(cut, move |stores| async move {
        let (home, mut rng) = (open(stores).await?, Rng::new(seed));
        for _ in 0..12 {
            let first = rng.below(60);
            let bytes = (1 + rng.below(60 - first)) * PAGE_BYTES as u64;
            match rng.below(4) {
                0 => home.sync().await?,
                1 => home.zero(first * PAGE_BYTES as u64, bytes).await?,
                _ => {
                    let mut buf = home.buffer(bytes as usize);
                    buf.copy_from_slice(&content(bytes as usize, &mut rng));
                    home.write(first * PAGE_BYTES as u64, buf, false).await?;
                }
            }
        }
        Ok(())
    });
    let (_, operations) = match used {
        Ok(used) => used,
        Err(error) => return (Some(error.to_string()), [0; 3]),
    };
    match rig.live(None, |stores| async move { open(stores).await.map(drop) }) {
        Ok(_) => {}
        Err(error) => return (Some(format!("seed {seed}, {cut:?}: {error}")), operations),
    }
    // The home is settled now: any change is noticed.
    rig.stores[0].flip_bit(seed % 32 * PAGE_BYTES as u64 + 99, 1);
    match rig.live(None, |stores| async move { open(stores).await.map(drop) }) {
        Ok(_) => (Some(format!("seed {seed}, {cut:?}: a change was not noticed")), operations),
        Err(error) => {
            let is_told = error.to_string().contains("somebody changed the home");
            ((!is_told).then(|| error.to_string()), operations)
        }
    }
}

#[test]
fn a_plain_home_is_known_again_after_any_cut_and_changes_are_noticed() {
    let mut survived = 0;
    for seed in 0..6 {
        let (wrong, operations) = watched(seed, None);
        assert_eq!(wrong, None);
        for (store, operations) in operations.into_iter().enumerate() {
            for operation in 0..operations {
                for (number, fate) in Fate::ALL.into_iter().enumerate() {
                    let style = STYLES[(operation as usize + number) % STYLES.len()];
                    let cut = Cut { store, operation, fate, style };
                    assert_eq!(watched(seed, Some(cut)).0, None);
                    survived += 1;
                }
            }
        }
    }
    println!("{survived} cuts");
    assert!(survived > 200, "{survived} cuts");
}

/// A journal with an epoch that is not on the home yet keeps that epoch when the claim is put on.
#[test]
fn a_claim_leaves_a_committed_epoch_alone() {
    let rig = Rig::new(3 * MIB, 4);
    let page = |fill: u8| PageBuf::from_bytes(&[fill; PAGE_BYTES]);
    let committed = rig.live(None, move |[home, journal, _]| async move {
        let (journal, _) = open(home, journal, false).await?;
        journal.begin(1);
        journal
            .append((0..40).map(|at| (tantalum_base::PageNo(at), page(at as u8))).collect())
            .await?;
        journal.commit(Closed { epoch: 1, unix_ms: 5, ..Closed::default() }).await
    });
    committed.unwrap();
    rig.work(Work::PutOn, None).unwrap();
    assert_eq!(rig.wrong_through_the_cache().unwrap(), None);
    let last = rig.live(None, move |[home, journal, _]| async move {
        let (journal, _) = open(home, journal, false).await?;
        assert!(journal.has_claim() && journal.check().await?.is_empty());
        Ok(journal.last_committed().map(|closed| closed.epoch))
    });
    assert_eq!(last.unwrap().0, Some(Some(1)));
}

/// The journal of a volume that destages without epochs was lost.
#[test]
fn a_new_journal_learns_the_claim_from_the_home() {
    let rig = Rig::new(3 * MIB, 6);
    rig.work(Work::PutOn, None).unwrap();
    let fresh = Rig::new(3 * MIB, 6);
    let [_, journal, undo] = fresh.stores;
    let rig = Rig { stores: [rig.stores[0].clone(), journal, undo], wanted: rig.wanted };
    rig.work(Work::PutOn, None).unwrap();
    assert_eq!(rig.wrong_through_the_cache().unwrap(), None);
    rig.work(Work::Release, None).unwrap();
    assert_eq!(rig.wrong_at_the_end(Work::Release), None);
}
