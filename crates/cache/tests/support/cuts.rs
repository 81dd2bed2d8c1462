//! A journal and a home that lose power together, at a chosen operation of either.
use super::contents::content;
use super::epochs::{Epoch, HOME_BYTES, HOME_PAGES, JOURNAL_BYTES, PAIR, first_difference, models};
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, Rng};
use tantalum_cache::journal::{Closed, apply};
use tantalum_cache::{Image, Journal};
use tantalum_media::block_store::{CrashOptions, CrashStore, CutStyle, MemoryStore};
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Virtual, spawn_all};

pub type Store = CrashStore<MemoryStore, Virtual>;
pub type TestJournal = Journal<Store, PageBuf>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    Journal,
    Home,
}

/// The power cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub at: Where,
    pub operation: u64,
    pub fate: Fate,
    pub style: CutStyle,
    pub seed: u64,
}

pub const STYLES: [CutStyle; 4] =
    [CutStyle::DropAll, CutStyle::LandAll, CutStyle::Random, CutStyle::TearAll];

/// The media, which survive the cuts.
struct Rig {
    journal: MemoryStore,
    home: MemoryStore,
    seed: u64,
}

/// The progress of the epochs.
#[derive(Default)]
struct Progress {
    committing: Cell<u64>,
    committed: Cell<u64>,
    applied: Cell<u64>,
}

/// The time between two cuts.
struct Life {
    runtime: Virtual,
    journal: Store,
    home: Store,
}

impl Rig {
    fn life(&self, number: u64) -> Life {
        let runtime = Virtual::new(Schedule::Shuffled(self.seed ^ number));
        let store = |inner: &MemoryStore, seed| {
            let options = CrashOptions {
                seed,
                read_ns: (100, 3000),
                write_ns: (1000, 30_000),
                sync_ns: (5000, 50_000),
            };
            CrashStore::new(runtime.clone(), inner.clone(), options)
        };
        let journal = store(&self.journal, 2 * self.seed + number);
        let home = store(&self.home, 3 * self.seed + number);
        Life { journal, home, runtime }
    }
}

impl Life {
    fn plan(&self, cut: &Cut) {
        let plan = CutPlan { after_operations: cut.operation, fate: cut.fate };
        match cut.at {
            Where::Journal => self.journal.plan_cut(plan),
            Where::Home => self.home.plan_cut(plan),
        }
    }

    /// Runs `main`; returns whether it ended, or met the cut.
    fn run<T: 'static>(
        &self,
        main: impl Future<Output = Result<T>> + 'static,
    ) -> Result<Option<T>> {
        match self.runtime.run(main).expect("no deadlock") {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == ErrorKind::PowerCut => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Cuts the power of both.
    fn end(self, style: CutStyle, seed: u64) {
        let (journal, home) = (self.journal.clone(), self.home.clone());
        self.runtime.drop_tasks();
        let main = async move {
            let mut rng = Rng::split(seed, "the cut");
            journal.cut(&mut rng, style).await?;
            home.cut(&mut rng, style).await
        };
        self.runtime.run(main).expect("no deadlock").expect("memory does not fail");
    }
}

/// Appends an epoch in several tasks, commits it, applies it, and forgets it.
async fn pass(
    runtime: &Virtual,
    journal: &Rc<TestJournal>,
    home: &Image<Store>,
    (number, epoch): (u64, &Epoch),
    progress: &Progress,
) -> Result<()> {
    journal.begin(number);
    let appends: Vec<_> = epoch
        .contents
        .chunks(70)
        .map(|chunk| {
            let journal = Rc::clone(journal);
            let pages = chunk.iter().map(|(page, number)| (*page, content(*number))).collect();
            async move { journal.append(pages).await }
        })
        .collect();
    spawn_all(runtime, "append", appends.into_iter()).await?;
    for range in &epoch.zeros {
        journal.append_zeros(*range).await?;
    }
    progress.committing.set(number);
    journal.commit(Closed { epoch: number, unix_ms: 1000 + number, ..Closed::default() }).await?;
    progress.committed.set(number);
    apply(journal, home, 4).await?;
    progress.applied.set(number);
    journal.forget();
    Ok(())
}

/// Runs the epochs on new media.
async fn work(
    runtime: Virtual,
    stores: (Store, Store),
    epochs: Vec<Epoch>,
    progress: Rc<Progress>,
) -> Result<()> {
    // Some contents are read back from the store, the others from memory.
    let journal = Rc::new(Journal::format(stores.0, PAIR, 40).await?);
    let home = Image::new(stores.1, HOME_PAGES)?;
    for (number, epoch) in (1..).zip(&epochs) {
        pass(&runtime, &journal, &home, (number, epoch), &progress).await?;
    }
    Ok(())
}

/// The number of operations of each store without a cut.
pub fn operations(epochs: &[Epoch], seed: u64) -> [(Where, u64); 2] {
    let (rig, progress) = (rig(seed), Rc::default());
    let life = rig.life(0);
    let stores = (life.journal.clone(), life.home.clone());
    let main = work(life.runtime.clone(), stores, epochs.to_vec(), progress);
    assert!(life.run(main).unwrap().is_some());
    [(Where::Journal, life.journal.operations()), (Where::Home, life.home.operations())]
}

fn rig(seed: u64) -> Rig {
    let (journal, home) = (MemoryStore::new(JOURNAL_BYTES), MemoryStore::new(HOME_BYTES));
    Rig { journal, home, seed }
}

/// Cuts power, opens and checks the remains, is cut again meanwhile, and continues.
///
/// # Errors
/// The first broken promise.
pub fn survive(epochs: &[Epoch], cut: Cut) -> Result<(), String> {
    let told = |what: String| format!("{cut:?}: {what}");
    let rig = rig(cut.seed);
    let progress = Rc::new(Progress::default());
    let life = rig.life(0);
    life.plan(&cut);
    let stores = (life.journal.clone(), life.home.clone());
    let main = work(life.runtime.clone(), stores, epochs.to_vec(), Rc::clone(&progress));
    life.run(main).map_err(|error| told(format!("before the cut: {error:?}")))?;
    life.end(cut.style, cut.seed);

    let found = look(&rig, &progress, cut).map_err(told)?;
    // A cut while the epoch is being written to the home: the journal must still have all of it.
    if found.is_some_and(|epoch| epoch != progress.applied.get()) {
        let mut rng = Rng::split(cut.seed, "the second cut");
        let second = Cut { at: Where::Home, operation: rng.below(12), ..cut };
        let life = rig.life(2);
        life.plan(&second);
        life.run(rescue(life.journal.clone(), life.home.clone()))
            .map_err(|error| told(format!("writing home: {error:?}")))?;
        life.end(cut.style, cut.seed + 1);
        let again = look(&rig, &progress, cut).map_err(told)?;
        if again != found {
            return Err(told(format!("epoch {found:?} has become {again:?}")));
        }
    }
    let epoch = found.unwrap_or(progress.applied.get());
    let life = rig.life(3);
    if found.is_some() {
        life.run(rescue(life.journal.clone(), life.home.clone()))
            .map_err(|error| told(format!("writing home: {error:?}")))?;
    }
    life.end(CutStyle::DropAll, 0);
    same(&rig.home, epochs, epoch).map_err(told)?;
    go_on(&rig, epochs, epoch).map_err(told)
}

/// Opens the journal and applies its epoch to the home; returns the number of the epoch.
async fn rescue(journal: Store, home: Store) -> Result<Option<u64>> {
    let (journal, closed) = TestJournal::open(journal, PAIR, 40).await?;
    if let Some(closed) = closed {
        if closed.unix_ms != 1000 + closed.epoch {
            return Err(Error::new(ErrorKind::Corrupt, format!("another time: {closed:?}")));
        }
        apply(&journal, &Image::new(home, HOME_PAGES)?, 4).await?;
    }
    Ok(closed.map(|closed| closed.epoch))
}

/// Checks the journal after a cut: it must have at least an epoch that was being committed, or none
/// if everything committed is on the home.
fn look(rig: &Rig, progress: &Progress, cut: Cut) -> Result<Option<u64>, String> {
    let (committing, committed) = (progress.committing.get(), progress.committed.get());
    let life = rig.life(1);
    let journal = life.journal.clone();
    let opened = life.run(async move {
        let (journal, closed) = TestJournal::open(journal, PAIR, 40).await?;
        let damaged = journal.check().await?;
        match damaged.is_empty() {
            true => Ok((journal, closed)),
            false => Err(Error::new(ErrorKind::Corrupt, format!("told as damaged: {damaged:?}"))),
        }
    });
    let found = match opened {
        Ok(opened) => {
            let Some((journal, closed)) = opened else { return Err("no cut is planned".into()) };
            let last = journal.last_committed().map_or(0, |last| last.epoch);
            let found = closed.map(|closed| closed.epoch);
            if last != found.unwrap_or(progress.applied.get()) {
                return Err(format!("epoch {last} is said to be the last, {found:?} is there"));
            }
            found
        }
        Err(_) if cut.is_at_formatting() => return Ok(None),
        Err(error) => return Err(format!("after the cut: {error:?}")),
    };
    let home = progress.applied.get();
    match found {
        Some(epoch) if epoch == committed || epoch == committing => Ok(found),
        None if committed == home => Ok(found),
        _ => Err(format!("epoch {found:?}, where {committed} was committed, {home} is home")),
    }
}

impl Cut {
    /// Formatting makes two writes.
    fn is_at_formatting(&self) -> bool {
        self.at == Where::Journal && self.operation < 2
    }
}

fn same(home: &MemoryStore, epochs: &[Epoch], epoch: u64) -> Result<(), String> {
    match first_difference(&home.image(), &models(epochs)[epoch as usize]) {
        None => Ok(()),
        Some(page) => Err(format!("the home is not that of epoch {epoch}: page {page} differs")),
    }
}

/// Applies the epoch in the journal, and runs the next one, if there is one.
fn go_on(rig: &Rig, epochs: &[Epoch], last: u64) -> Result<(), String> {
    let life = rig.life(4);
    let (runtime, journal, home) = (life.runtime.clone(), life.journal.clone(), life.home.clone());
    let next = epochs.get(last as usize).cloned();
    let expected = last + u64::from(next.is_some());
    let main = async move {
        let opened = TestJournal::open(journal.clone(), PAIR, 40).await;
        let opened = match opened {
            // Power was cut before there was a journal.
            Err(_) if last == 0 => (TestJournal::format(journal, PAIR, 40).await?, None),
            opened => opened?,
        };
        let (journal, home) = (Rc::new(opened.0), Image::new(home, HOME_PAGES)?);
        apply(&journal, &home, 4).await?;
        let Some(next) = next else { return Ok(()) };
        pass(&runtime, &journal, &home, (last + 1, &next), &Progress::default()).await
    };
    let done = life.run(main).map_err(|error| format!("going on: {error:?}"))?;
    assert!(done.is_some(), "no cut is planned");
    life.end(CutStyle::DropAll, 0);
    same(&rig.home, epochs, expected)
}
