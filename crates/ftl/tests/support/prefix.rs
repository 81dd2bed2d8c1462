//! The FTL alone on a file store that loses power: writes that were not synced may be lost, but the
//! changes found are a prefix of the batches that includes all durable ones.
use crate::support::{format, recover, zones_of};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageNo, PageRange, Payload, Rng};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::wrappers::ReadOnly;
use tantalum_media::{CutPlan, ErasedZones, Fate, FileZones, FileZonesOptions};
use tantalum_runtime::sync::Semaphore;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

type Media = FileZones<CrashStore<MemoryStore, Virtual>>;

/// A load of batches; a batch writes pages, trims one range, or shares pairs of pages.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub seed: u64,
    pub pages: u64,
    pub zones: u32,
    pub batches: usize,
    pub batch_pages: u64,
    /// Consecutive pages; otherwise random ones.
    pub sequential: bool,
    /// Tasks that write.
    pub clients: u32,
    /// Chance of a trim instead of a write.
    pub trims: f64,
    /// Chance of a share instead of a write.
    pub shares: f64,
    /// Entries in the table of reference lists.
    pub share_entries_max: Option<u32>,
    /// Chance that a client makes its batch durable.
    pub durable: f64,
    /// Chance that a client flushes after its batch.
    pub flushes: f64,
    pub checkpoint_interval_slots: u64,
    /// Free zones at which cleaning starts and stops.
    pub cleaning_zones: u32,
    /// Hosts write behind copies.
    pub one_log: bool,
    /// Recoveries that are cut before the one that is checked.
    pub recovery_cuts: u32,
    pub style: CutStyle,
}

/// A sequential load of one client.
pub const LOAD: Load = Load {
    seed: 0,
    pages: 120,
    zones: 14,
    batches: 60,
    batch_pages: 10,
    sequential: true,
    clients: 1,
    trims: 0.0,
    shares: 0.0,
    share_entries_max: None,
    durable: 0.0,
    flushes: 0.0,
    checkpoint_interval_slots: 1 << 40,
    cleaning_zones: 1,
    one_log: false,
    recovery_cuts: 0,
    style: CutStyle::DropAll,
};

const SLOTS_PER_ZONE: u32 = 32;

fn content(page: u64, number: u64) -> PageBuf {
    if number == 0 {
        return PageBuf::zero();
    }
    let mut bytes = [number as u8; PAGE_BYTES];
    bytes[..8].copy_from_slice(&page.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    PageBuf::copy_from(&bytes)
}

fn open(
    runtime: &Virtual,
    disk: &MemoryStore,
    load: &Load,
) -> (CrashStore<MemoryStore, Virtual>, Media) {
    let options = CrashOptions {
        seed: load.seed,
        read_ns: (10_000, 100_000),
        write_ns: (20_000, 400_000),
        sync_ns: (100_000, 500_000),
    };
    let store = CrashStore::new(runtime.clone(), disk.clone(), options);
    let options = FileZonesOptions {
        volume_id: 7,
        first_byte: 0,
        zones: load.zones,
        slots_per_zone: SLOTS_PER_ZONE,
    };
    (store.clone(), FileZones::new(store, options).unwrap())
}

#[derive(Clone, Debug)]
enum Batch {
    Write(Vec<u64>),
    Trim(u64, u64),
    Share(Vec<(u64, u64)>),
}

/// For each page, the page whose content it holds, and the number of the batch that wrote it; 0 for none.
type Held = Vec<(u64, u64)>;

impl Batch {
    /// Applies the batch, with `number` from 1, to the contents of the pages.
    fn apply(&self, held: &mut Held, number: u64) {
        match self {
            Batch::Write(pages) => {
                pages.iter().for_each(|page| held[*page as usize] = (*page, number))
            }
            Batch::Trim(first, len) => {
                held[*first as usize..(first + len) as usize].fill((0, 0));
            }
            Batch::Share(pairs) => {
                pairs.iter().for_each(|(left, right)| held[*left as usize] = held[*right as usize])
            }
        }
    }
}

/// Random pairs of pages whose right pages have content.
fn pairs(rng: &mut Rng, held: &Held, len: u64) -> Vec<(u64, u64)> {
    let pages = held.len() as u64;
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for _ in 0..len {
        let (left, right) = (rng.below(pages), rng.below(pages));
        let fits = left != right
            && held[right as usize].1 > 0
            && pairs.iter().all(|(l, r)| *l != left && *r != left && *l != right);
        if fits {
            pairs.push((left, right));
        }
    }
    pairs
}

fn batches(load: &Load) -> Vec<Batch> {
    let mut rng = Rng::split(load.seed, "batches");
    // First all pages are written.
    let mut batches: Vec<Batch> = (0..load.pages)
        .step_by(10)
        .map(|first| Batch::Write((first..(first + 10).min(load.pages)).collect()))
        .collect();
    let mut held: Held = vec![(0, 0); load.pages as usize];
    (1..).zip(&batches).for_each(|(number, batch)| batch.apply(&mut held, number));
    let mut next = 0;
    for number in batches.len() as u64 + 1..=(batches.len() + load.batches) as u64 {
        let len = if load.sequential { load.batch_pages } else { 1 + rng.below(load.batch_pages) };
        if rng.chance(load.trims) {
            let first = rng.below(load.pages - len);
            batches.push(Batch::Trim(first, len));
            batches[number as usize - 1].apply(&mut held, number);
            continue;
        }
        if load.shares > 0.0 && rng.chance(load.shares) {
            batches.push(Batch::Share(pairs(&mut rng, &held, len)));
            batches[number as usize - 1].apply(&mut held, number);
            continue;
        }
        let mut pages = Vec::new();
        while (pages.len() as u64) < len {
            let page = if load.sequential { next % load.pages } else { rng.below(load.pages) };
            next += 1;
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        batches.push(Batch::Write(pages));
        batches[number as usize - 1].apply(&mut held, number);
    }
    batches
}

struct Progress {
    issued: Cell<usize>,
    durable: Cell<usize>,
    /// A share uses the contents that a read would see: earlier batches have returned when it is issued.
    /// Later batches wait until it has its versions, later shares until it has returned.
    turns: Semaphore,
    share_turn: Semaphore,
}

const TURNS: u64 = 64;

async fn client(
    ftl: Rc<Ftl<ErasedZones<PageBuf>>>,
    load: Load,
    batches: Rc<Vec<Batch>>,
    progress: Rc<Progress>,
    number: u32,
) {
    let mut rng = Rng::split(load.seed, &format!("client {number}"));
    loop {
        let mut at = progress.issued.get();
        let Some(batch) = batches.get(at) else { return };
        let alone = matches!(batch, Batch::Share(_));
        let share_turn = progress.share_turn.acquire(u64::from(alone)).await;
        let mut turn = Some(progress.turns.acquire(if alone { TURNS } else { 1 }).await);
        if progress.issued.get() != at {
            at = progress.issued.get();
            let next = batches.get(at);
            if next.is_none_or(|batch| matches!(batch, Batch::Share(_)) && !alone) {
                continue;
            }
        }
        let Some(batch) = batches.get(at) else { return };
        progress.issued.set(at + 1);
        let durable = rng.chance(load.durable);
        let written = match batch {
            Batch::Write(pages) => {
                let pages: Vec<_> = pages
                    .iter()
                    .map(|page| (PageNo(*page), content(*page, at as u64 + 1)))
                    .collect();
                ftl.write(&pages, durable).await
            }
            Batch::Trim(first, len) => {
                ftl.trim(PageRange::new(PageNo(*first), *len), durable).await
            }
            Batch::Share(pairs) => {
                let pair = |(left, right): &(u64, u64)| (PageNo(*left), PageNo(*right));
                let pairs: Vec<_> = pairs.iter().map(pair).collect();
                ftl.share(&pairs, durable, || drop(turn.take())).await
            }
        };
        drop((turn, share_turn));
        if let Err(error) = written {
            let cut = [ErrorKind::PowerCut, ErrorKind::Latched].contains(&error.kind());
            assert!(cut, "a write failed: {error:?}: {load:?}");
            return;
        }
        // A flush makes earlier batches durable, and all before them in the log.
        let flushed = rng.chance(load.flushes);
        if flushed && ftl.sync().await.is_err() {
            return;
        }
        if durable || flushed {
            progress.durable.set(progress.durable.get().max(at + 1));
        }
    }
}

/// Runs the load, cuts power at operation `cut`, recovers and compares. Returns the number of operations.
pub fn run(load: &Load, cut: Option<u64>) -> Result<u64, String> {
    let disk = MemoryStore::new(u64::from(load.zones) * u64::from(SLOTS_PER_ZONE) * 4096);
    let options = FtlOptions {
        checkpoint_interval_slots: load.checkpoint_interval_slots,
        cleaning_low_zones: load.cleaning_zones,
        cleaning_high_zones: load.cleaning_zones,
        copies_with_writes: load.one_log,
        // Cold zones are moved, too.
        wear_spread_max: 3,
        share_entries_max: load.share_entries_max,
        ..FtlOptions::new(load.pages)
    };
    let batches = Rc::new(batches(load));
    let progress = Rc::new(Progress {
        issued: Cell::new(0),
        durable: Cell::new(0),
        turns: Semaphore::new("a turn", TURNS),
        share_turn: Semaphore::new("a share's turn", 1),
    });
    let runtime = Virtual::new(Schedule::Shuffled(load.seed));
    let (store, media) = open(&runtime, &disk, load);
    let ftl = runtime.run(async move { format(media, options).await }).unwrap().unwrap();
    let whole = load.pages.div_ceil(10) as usize;
    let main = {
        let (load, runtime, batches, progress) =
            (*load, runtime.clone(), Rc::clone(&batches), Rc::clone(&progress));
        let (ftl, store) = (Rc::clone(&ftl), store.clone());
        async move {
            let first = Rc::new(batches[..whole].to_vec());
            client(Rc::clone(&ftl), load, first, Rc::clone(&progress), 0).await;
            ftl.sync().await.unwrap();
            progress.durable.set(whole);
            if let Some(cut) = cut {
                store.plan_cut(CutPlan { after_operations: cut, fate: Fate::Land });
            }
            let cleaner = Rc::clone(&ftl);
            runtime.spawn("cleaner", async move { cleaner.run_cleaner().await });
            let checkpointer = Rc::clone(&ftl);
            runtime.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            let before = store.operations();
            let clients: Vec<_> = (0..load.clients)
                .map(|number| {
                    let client = client(
                        Rc::clone(&ftl),
                        load,
                        Rc::clone(&batches),
                        Rc::clone(&progress),
                        number,
                    );
                    runtime.spawn("client", client)
                })
                .collect();
            for client in clients {
                client.await;
            }
            store.operations() - before
        }
    };
    let operations = runtime.run(main).map_err(|deadlock| deadlock.to_string())?;
    if cut.is_none() {
        ftl.validate();
    }
    runtime.drop_tasks();
    drop(ftl);
    let mut rng = Rng::split(load.seed ^ cut.unwrap_or(u64::MAX), "cut");
    let (style, mut fates) = (load.style, Rng::new(rng.next_u64()));
    runtime.run(async move { store.cut(&mut fates, style).await }).unwrap().unwrap();
    for _ in 0..load.recovery_cuts {
        cut_recovery(load, &disk, options, &mut rng)?;
    }
    let read_only = read_only(load, &disk, options)?;
    let found = verify(load, &disk, options, &batches, &progress)?;
    if found != read_only {
        return Err("opened read-only it held something else".into());
    }
    Ok(operations)
}

/// A recovery that is cut.
fn cut_recovery(
    load: &Load,
    disk: &MemoryStore,
    options: FtlOptions,
    rng: &mut Rng,
) -> Result<(), String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let (store, media) = open(&runtime, disk, load);
    store.plan_cut(CutPlan { after_operations: rng.below(8), fate: Fate::Tear });
    let recovered = runtime.run(async move { recover(media, options).await.map(|_| ()) });
    if let (Ok(Err(error)), false) = (recovered, store.is_cut()) {
        return Err(format!("the first recovery: {error:?}"));
    }
    runtime.drop_tasks();
    let (style, mut fates) = (load.style, Rng::new(rng.next_u64()));
    runtime.run(async move { store.cut(&mut fates, style).await }).unwrap().unwrap();
    Ok(())
}

/// The contents of the pages if the device is opened read-only, which must write nothing, and find no
/// problem.
fn read_only(load: &Load, disk: &MemoryStore, options: FtlOptions) -> Result<Vec<PageBuf>, String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let (_, media) = open(&runtime, disk, load);
    let options = FtlOptions { read_only: true, ..options };
    let read = async move {
        let (ftl, _) = recover(ReadOnly::new(Rc::new(media)), options).await?;
        let problems = ftl.check(|_, _| {}).await?;
        let refused = zones_of::<ReadOnly<Media>>(&ftl).refused();
        assert_eq!(refused, 0, "something was to be written");
        Ok::<_, tantalum_base::Error>((problems, contents(&ftl).await?))
    };
    let read = runtime.run(read).map_err(|deadlock| deadlock.to_string())?;
    match read.map_err(|error| format!("read-only after the cut: {error:?}"))? {
        (problems, found) if problems.is_empty() => Ok(found),
        (problems, _) => Err(format!("read-only after the cut: {problems:?}")),
    }
}

async fn contents(ftl: &Ftl<ErasedZones<PageBuf>>) -> tantalum_base::Result<Vec<PageBuf>> {
    let mut found = vec![PageBuf::zero(); ftl.options().pages as usize];
    for (page, out) in (0..).zip(&mut found) {
        ftl.read(&[PageNo(page)], std::slice::from_mut(out)).await?;
    }
    Ok(found)
}

/// Opens the device; returns the contents of its pages, which must be a prefix of the batches.
fn verify(
    load: &Load,
    disk: &MemoryStore,
    options: FtlOptions,
    batches: &[Batch],
    progress: &Progress,
) -> Result<Vec<PageBuf>, String> {
    let runtime = Virtual::new(Schedule::Fifo);
    let (_, media) = open(&runtime, disk, load);
    let pages = load.pages;
    let read = async move {
        let (ftl, _) = recover(media, options).await?;
        ftl.validate();
        contents(&ftl).await
    };
    let read = runtime.run(read).map_err(|deadlock| deadlock.to_string())?;
    let found = read.map_err(|error| format!("after the cut: {error:?}"))?;
    let mut expected: Held = vec![(0, 0); pages as usize];
    let mut nearest = (usize::MAX, 0);
    for number in 0..=progress.issued.get() {
        if number >= progress.durable.get() {
            let differs = |at: &u64| {
                let (page, written) = expected[*at as usize];
                found[*at as usize] != content(page, written)
            };
            let wrong = (0..pages).filter(differs).count();
            if wrong == 0 {
                return Ok(found);
            }
            nearest = nearest.min((wrong, number));
        }
        if let Some(batch) = batches.get(number) {
            batch.apply(&mut expected, number as u64 + 1);
        }
    }
    Err(format!(
        "no prefix matches; nearest: {} pages differ after {} batches",
        nearest.0, nearest.1
    ))
}

/// Cuts the load at every `step`th operation, up to the first problem.
pub fn every_cut(load: Load, step: usize) -> Result<u64, String> {
    let operations = run(&load, None).map_err(|problem| format!("{problem}: {load:?}"))?;
    for cut in (0..operations).step_by(step) {
        run(&load, Some(cut))
            .map_err(|problem| format!("{problem}: cut at {cut} of {operations}: {load:?}"))?;
    }
    Ok(operations.div_ceil(step as u64) + 1)
}

/// The random load of `seed`.
pub fn random_load(seed: u64) -> Load {
    let mut rng = Rng::split(seed, "loads");
    Load {
        seed,
        sequential: rng.chance(0.3),
        clients: 1 + rng.below(4) as u32,
        batch_pages: 1 + rng.below(40),
        trims: [0.0, 0.1][rng.below(2) as usize],
        durable: [0.0, 0.05, 0.5][rng.below(3) as usize],
        flushes: [0.0, 0.1, 0.5][rng.below(3) as usize],
        checkpoint_interval_slots: [64, 300, 1 << 40][rng.below(3) as usize],
        cleaning_zones: 1 + rng.below(3) as u32,
        one_log: seed % 2 == 1,
        recovery_cuts: rng.below(4) as u32,
        style: [CutStyle::DropAll, CutStyle::Random, CutStyle::TearAll][rng.below(3) as usize],
        ..LOAD
    }
}

/// The random load of `seed`, with shares.
pub fn random_shares(seed: u64) -> Load {
    let mut rng = Rng::split(seed, "shares");
    Load {
        shares: [0.2, 0.5, 0.8][rng.below(3) as usize],
        share_entries_max: [None, None, Some(30), Some(4)][rng.below(4) as usize],
        batches: 80,
        ..random_load(seed)
    }
}
