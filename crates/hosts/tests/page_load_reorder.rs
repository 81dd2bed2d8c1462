//! The forms on the worst device that the contract allows: of what was not flushed, each page
//! survives a cut or does not, whatever came before or after. So each flush of an engine is needed.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{
    Durability, Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Payload, Result, Rng,
    Stamp, TxId,
};
use tantalum_hosts::double_write::{Form, PageLoad, PageOptions, restore, versions};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

const DATABASE_PAGES: u64 = 40;
const DEVICE_PAGES: u64 = 200;

fn engine_options(form: Form) -> PageOptions {
    PageOptions {
        form,
        database_pages: DATABASE_PAGES,
        device_pages_per_page: 4,
        pool_pages: 16,
        batch_pages: 4,
        metadata_per_page: 0.1,
        metadata_pages: 8,
    }
}

enum Change {
    Write(PageNo, Stamp),
    Share(Vec<(PageNo, PageNo)>),
}

struct Disk {
    durable: RefCell<Vec<Stamp>>,
    /// What was not flushed, in the order in which it came.
    pending: RefCell<Vec<Change>>,
    /// Page writes and commands until the power goes.
    left: Cell<u64>,
    limits: Limits,
}

impl Disk {
    fn new() -> Disk {
        let limits = Limits {
            page_bytes: 4096,
            pages: DEVICE_PAGES,
            atomic_write_pages_max: 64,
            transaction_pages_max: 0,
            transactions_max: 0,
            share_pairs_max: 64,
            durability: Durability::Volatile,
        };
        Disk {
            durable: RefCell::new(vec![Stamp::zero(); DEVICE_PAGES as usize]),
            pending: RefCell::default(),
            left: Cell::new(u64::MAX),
            limits,
        }
    }

    fn step(&self) -> Result<()> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(Error::new(ErrorKind::PowerCut, "the power was cut"));
        };
        self.left.set(left);
        Ok(())
    }

    /// Content of `page` after the first `changes` of what is pending.
    fn content(&self, page: PageNo, changes: usize) -> Stamp {
        let pending = self.pending.borrow();
        for (at, change) in pending[..changes].iter().enumerate().rev() {
            match change {
                Change::Write(written, stamp) if *written == page => return *stamp,
                Change::Share(pairs) => {
                    if let Some((_, right)) = pairs.iter().find(|(left, _)| *left == page) {
                        return self.content(*right, at);
                    }
                }
                Change::Write(..) => {}
            }
        }
        self.durable.borrow()[page.index()]
    }

    fn apply(&self, survives: &mut dyn FnMut() -> bool) {
        let mut durable = self.durable.borrow_mut();
        for change in self.pending.borrow_mut().drain(..) {
            if !survives() {
                continue;
            }
            match change {
                Change::Write(page, stamp) => durable[page.index()] = stamp,
                Change::Share(pairs) => {
                    let rights: Vec<Stamp> =
                        pairs.iter().map(|(_, right)| durable[right.index()]).collect();
                    for ((left, _), content) in pairs.iter().zip(rights) {
                        durable[left.index()] = content;
                    }
                }
            }
        }
    }

    /// The power is back.
    fn cut(&self, rng: &mut Rng) {
        self.apply(&mut || rng.chance(0.5));
        self.left.set(u64::MAX);
    }
}

impl PageDevice for Disk {
    type Page = Stamp;

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn read(&self, first: PageNo, out: &mut [Stamp], _: Option<TxId>) -> Result<()> {
        self.step()?;
        let changes = self.pending.borrow().len();
        for (at, page) in out.iter_mut().enumerate() {
            *page = self.content(PageNo(first.0 + at as u64), changes);
        }
        Ok(())
    }

    async fn write(&self, first: PageNo, pages: &[Stamp], _: Option<TxId>) -> Result<()> {
        for (at, page) in pages.iter().enumerate() {
            self.step()?;
            let change = Change::Write(PageNo(first.0 + at as u64), *page);
            self.pending.borrow_mut().push(change);
        }
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.step()?;
        self.apply(&mut || true);
        Ok(())
    }

    async fn trim(&self, _: PageRange) -> Result<()> {
        unsupported("trim")
    }

    async fn share(&self, pairs: &[(PageNo, PageNo)]) -> Result<()> {
        self.limits.check_share(pairs)?;
        self.step()?;
        self.apply(&mut || true);
        self.pending.borrow_mut().push(Change::Share(pairs.to_vec()));
        // The power may go here: then it is there as a whole or not at all.
        self.step()?;
        self.apply(&mut || true);
        Ok(())
    }
}

/// The answer to what this disk does not have, as any device gives it.
fn unsupported<T>(what: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, format!("this disk has no {what}")))
}

/// Torn pages that are left after a cut, a recovery that is cut as well, and a whole one.
async fn torn_after_a_cut(runtime: &Virtual, form: Form, seed: u64) -> usize {
    let mut rng = Rng::split(seed, "cut");
    let disk = Rc::new(Disk::new());
    let options = engine_options(form);
    let engine = PageLoad::create(runtime, &disk, options).await.unwrap();
    disk.left.set(rng.below(1_000));
    while disk.left.get() > 0 {
        // What fails is the cut; whoever asked is not there any more.
        let page = PageNo(rng.below(DATABASE_PAGES));
        if engine.access(page, rng.chance(0.8)).await.is_err() {
            break;
        }
    }
    let bounds: Vec<_> = (0..DATABASE_PAGES).map(|page| engine.bounds(PageNo(page))).collect();
    disk.cut(&mut rng);
    disk.left.set(rng.below(30));
    let first = restore(runtime, &disk, options).await;
    assert!(first.is_ok() || disk.left.get() == 0, "{form:?}, seed {seed}: {first:?}");
    disk.cut(&mut rng);
    restore(runtime, &disk, options).await.unwrap();
    let found = versions(runtime, &disk, options).await.unwrap();
    for (page, (version, (least, most))) in found.iter().zip(&bounds).enumerate() {
        if let Some(version) = version {
            assert!(
                (least..=most).contains(&version),
                "{form:?}, seed {seed}: page {page} has version {version} of {least} to {most}"
            );
        }
    }
    found.iter().filter(|version| version.is_none()).count()
}

fn torn(form: Form) -> usize {
    let seeds = if std::env::var_os("TANTALUM_NIGHTLY").is_some() { 20_000 } else { 500 };
    let mut torn = 0;
    for seed in 0..seeds {
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let rt = runtime.clone();
        let run = runtime.run(async move { torn_after_a_cut(&rt, form, seed).await });
        runtime.drop_tasks();
        let left = run.unwrap();
        assert!(left == 0 || form == Form::Off, "{form:?}, seed {seed}: {left} torn pages");
        torn += left;
    }
    torn
}

#[test]
fn double_write_leaves_no_torn_page() {
    torn(Form::On);
}

#[test]
fn share_leaves_no_torn_page() {
    torn(Form::Share);
}

/// The protection switched off.
#[test]
fn without_double_write_pages_are_torn() {
    assert!(torn(Form::Off) > 0);
}
