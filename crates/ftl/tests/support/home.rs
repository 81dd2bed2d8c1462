//! A cache over a home that is a list in memory, which loses power again and again.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Payload, Result, Rng};
use tantalum_ftl::{CacheOptions, Ftl, FtlOptions, kept_pages_max};
use tantalum_media::{CutPlan, Fate, ZoneMedia};
use tantalum_models::rig::Rig;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{Runtime, Virtual};

/// Pages of the home: far more than the flash holds.
const PAGES: u64 = 4000;

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most operations between two cuts.
    after_max: u64,
    /// The most pages of a batch.
    batch_max: u64,
    /// Pages of the home that are used.
    pages: u64,
}

impl Limits {
    /// The limits for `seed`.
    pub fn of(seed: u64) -> Limits {
        let pages = [PAGES, PAGES / 8, 60][(seed % 3) as usize];
        Limits { after_max: 20 + 40 * (seed % 5), batch_max: 1 + 3 * (seed % 6), pages }
    }
}

/// The events of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub let_go: u64,
    pub admitted: u64,
    pub read_home: u64,
    pub changes: u64,
}

impl Counts {
    pub fn plus(self, more: Counts) -> Counts {
        Counts {
            let_go: self.let_go + more.let_go,
            admitted: self.admitted + more.admitted,
            read_home: self.read_home + more.read_home,
            changes: self.changes + more.changes,
        }
    }
}

fn content<P: Payload>(page: u64, count: u64) -> P {
    if count == 0 {
        return P::zero();
    }
    let mut bytes = [count as u8; 4096];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    P::from_bytes(&bytes)
}

/// The state that survives a cut, and the contents that must be read.
struct World<P> {
    /// The pages at home, as they were written there.
    home: RefCell<BTreeMap<u64, P>>,
    /// For each page the number of its last write; 0 for none.
    known: RefCell<Vec<u64>>,
    /// The change in flight.
    pending: RefCell<Vec<(u64, u64)>>,
    count: Cell<u64>,
    done: Cell<Counts>,
}

impl<P: Payload> World<P> {
    fn at_home(&self, page: u64) -> P {
        self.home.borrow().get(&page).cloned().unwrap_or_else(P::zero)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.done.get();
        change(&mut counts);
        self.done.set(counts);
    }

    /// The content of `page` that a reader sees.
    async fn read<M: ZoneMedia<Page = P>>(&self, ftl: &Ftl<M>, page: u64) -> Result<P> {
        if ftl.at_home(PageNo(page)).is_some() {
            self.count(|counts| counts.read_home += 1);
            return Ok(self.at_home(page));
        }
        let mut out = [P::zero()];
        ftl.read(&[PageNo(page)], &mut out).await?;
        ftl.used([PageNo(page)]);
        let [out] = out;
        Ok(out)
    }

    /// Compares all pages after a recovery: the change in flight is there as a whole or not at all.
    async fn check<M: ZoneMedia<Page = P>>(&self, ftl: &Ftl<M>) -> Result<()> {
        let wrong = |context: String| Error::new(ErrorKind::Corrupt, context);
        let (mut newer, mut older) = (0, 0);
        let pages = self.known.borrow().len() as u64;
        for page in 0..pages {
            let seen = self.read(ftl, page).await?;
            let old = self.known.borrow()[page as usize];
            let pending = self.pending.borrow().iter().find(|(at, _)| *at == page).copied();
            match pending {
                Some((_, new)) if new != old && seen == content(page, new) => newer += 1,
                Some((_, new)) if new != old => older += 1,
                _ => {}
            }
            let is_old = newer == 0 || older > 0 || pending.is_none();
            if is_old && seen != content(page, old) {
                return Err(wrong(format!("page {page} is {seen:?}, not that of write {old}")));
            }
        }
        if newer > 0 && older > 0 {
            return Err(wrong("a change is there in part".into()));
        }
        for (page, new) in self.pending.take() {
            if newer > 0 {
                self.known.borrow_mut()[page as usize] = new;
            }
        }
        Ok(())
    }

    /// Writes up to `most` dirty pages home, from `first` on.
    async fn write_home<M: ZoneMedia<Page = P>>(
        &self,
        ftl: &Ftl<M>,
        first: u64,
        most: u64,
    ) -> Result<()> {
        let mut next = PageNo(first);
        let mut written = Vec::new();
        for _ in 0..most {
            let Some(page) = ftl.next_dirty(next) else { break };
            let mut out = [P::zero()];
            ftl.read(&[page], &mut out).await?;
            let [out] = out;
            self.home.borrow_mut().insert(page.0, out);
            written.push(page);
            next = PageNo(page.0 + 1);
        }
        ftl.mark_clean(written);
        Ok(())
    }

    async fn step<M: ZoneMedia<Page = P>>(
        &self,
        ftl: &Ftl<M>,
        load: &mut Rng,
        limits: &Limits,
    ) -> Result<()> {
        let page = load.below(limits.pages);
        match load.below(10) {
            0..4 => {
                let count = self.count.get() + 1;
                self.count.set(count);
                let mut batch = BTreeMap::new();
                for _ in 0..1 + load.below(limits.batch_max) {
                    batch.insert(load.below(limits.pages), count);
                }
                self.pending.replace(batch.iter().map(|(page, count)| (*page, *count)).collect());
                let pages =
                    batch.iter().map(|(page, count)| (PageNo(*page), content(*page, *count)));
                ftl.write(&pages.collect::<Vec<_>>(), true).await?;
            }
            4 => {
                let range =
                    PageRange::new(PageNo(page), 1 + load.below(4.min(limits.pages - page)));
                self.pending.replace(range.iter().map(|page| (page.0, 0)).collect());
                ftl.trim(range, true).await?;
            }
            5 => self.write_home(ftl, page, 20).await?,
            _ => {
                let seen = self.read(ftl, page).await?;
                let known = self.known.borrow()[page as usize];
                assert_eq!(seen, content(page, known), "page {page}");
                let taken = ftl.take_in(&mut vec![(PageNo(page), seen)], |_| true).await?;
                self.count(|counts| counts.admitted += taken);
            }
        }
        self.count(|counts| counts.changes += 1);
        for (page, new) in self.pending.take() {
            self.known.borrow_mut()[page as usize] = new;
        }
        let dirty = ftl.statistics().pages_mapped - ftl.statistics().pages_clean;
        if dirty + limits.batch_max > ftl.options().cache.unwrap().dirty_pages_max {
            self.write_home(ftl, 0, limits.batch_max).await?;
        }
        Ok(())
    }
}

/// Opens, checks every page, changes and reads until power is cut; `cycles` times.
///
/// # Errors
/// The first promise that was broken.
pub fn cycles<R: Rig>(
    seed: u64,
    cycles: u64,
    limits: Limits,
) -> std::result::Result<Counts, String> {
    let mut rng = Rng::split(seed, "a cache");
    let mut rig = R::new(seed);
    let runtime = Virtual::new(Schedule::Fifo);
    let media = rig.open(&runtime);
    let kept = kept_pages_max(&media.geometry(), media.retired().len() as u32);
    assert!(kept > 40, "the medium is too small: {kept}");
    let cache =
        CacheOptions { dirty_pages_max: kept / 2, kept_pages_max: kept * 3 / 4, staging_pages: 0 };
    let options =
        FtlOptions { checkpoint_interval_slots: 200, cache: Some(cache), ..FtlOptions::new(PAGES) };
    runtime.run(async move { Ftl::format(media, options).await }).unwrap().unwrap();
    runtime.drop_tasks();
    rig.power_off(&runtime).unwrap();
    let world = Rc::new(World {
        home: RefCell::default(),
        known: RefCell::new(vec![0; PAGES as usize]),
        pending: RefCell::default(),
        count: Cell::new(0),
        done: Cell::default(),
    });
    for cycle in 0..cycles {
        let runtime = Virtual::new(Schedule::Shuffled(seed + cycle));
        let media = rig.open(&runtime);
        let after = rng.below(limits.after_max);
        rig.plan(CutPlan { after_operations: after, fate: Fate::ALL[rng.below(3) as usize] });
        let (rt, mut load) = (runtime.clone(), Rng::new(rng.next_u64()));
        let world = Rc::clone(&world);
        let session = async move {
            let (ftl, _) = Ftl::recover(media, options).await?;
            ftl.validate();
            world.check(&ftl).await?;
            let (cleaner, checkpointer) = (Rc::clone(&ftl), Rc::clone(&ftl));
            rt.spawn("cleaner", async move { cleaner.run_cleaner().await });
            rt.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
            let mut let_go = 0;
            loop {
                world.step(&ftl, &mut load, &limits).await?;
                let now = ftl.statistics().pages_let_go;
                world.count(|counts| counts.let_go += now - let_go);
                let_go = now;
            }
            #[allow(unreachable_code)]
            Ok::<(), Error>(())
        };
        let failed = match runtime.run(session) {
            Ok(Err(error)) => format!("{error:?}"),
            Ok(Ok(())) => unreachable!(),
            Err(deadlock) => deadlock.to_string(),
        };
        let power_cut = failed.contains("PowerCut") || failed.contains("Latched");
        if !rig.is_cut() || !(power_cut || failed.contains("wait")) {
            return Err(format!("seed {seed} cycle {cycle}, cut after {after}: {failed}"));
        }
        runtime.drop_tasks();
        rig.power_off(&runtime).unwrap();
    }
    Ok(world.done.get())
}
