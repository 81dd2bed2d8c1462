//! One client changes pages, one reads several at once, and an order must explain the reads: every
//! read shows the pages as they are between two commands of the first client.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Rng, Stamp};
use tantalum_runtime::{Runtime, Virtual};

/// Number of pages that both clients use. Others are written in the meantime, so that zones are
/// cleaned.
pub const AREA: u64 = 12;

/// The commands of the first client.
#[derive(Clone, Copy)]
pub struct Load {
    pub seed: u64,
    pub commands: u32,
    /// Number of other pages of the device that are written.
    pub others: u64,
    /// Maximum pause between two commands of a client.
    pub pause_ns: u64,
    /// Number of trims in ten commands. Shares and commits occur if the device supports them.
    pub trims: u64,
}

/// The states that the area went through.
struct History {
    /// The state before the first command, and after each command; the last may be in flight.
    states: Vec<[Stamp; AREA as usize]>,
    /// The oldest state that a read beginning now may show.
    oldest: usize,
    ended: bool,
}

impl History {
    /// Records that the command in flight has ended.
    fn settled(&mut self) {
        self.oldest = self.states.len() - 1;
    }

    /// Finds the state that a read of `range` shows; `oldest` was the oldest state when the read
    /// began. Returns whether a command was in flight at the same time.
    fn explain(&mut self, range: PageRange, out: &[Stamp], oldest: usize, seed: u64) -> bool {
        let part = |state: &[Stamp; AREA as usize]| {
            state[range.first.index()..range.end().index()].to_vec()
        };
        let explains = |at: &usize| part(&self.states[*at]) == out;
        let Some(at) = (oldest..self.states.len()).find(explains) else {
            let states: Vec<_> = self.states[oldest..].iter().map(part).collect();
            panic!("seed {seed}: {range:?} read as {out:?}, and was in turn {states:?}");
        };
        // No later read may show an older state than this one.
        self.oldest = self.oldest.max(at);
        self.states.len() - oldest > 1
    }
}

/// The coverage of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub reads: u64,
    /// Reads during which at least one command was in flight.
    pub overlapped: u64,
}

/// Runs both clients.
///
/// # Panics
/// If a read shows a state that the area never had during that read.
pub async fn check<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    load: Load,
) -> Seen {
    let history = Rc::new(RefCell::new(History {
        states: vec![[Stamp::zero(); AREA as usize]],
        oldest: 0,
        ended: false,
    }));
    let (rt, dev, shared) = (runtime.clone(), Rc::clone(device), Rc::clone(&history));
    let changes = runtime.spawn("changes", async move { change(rt, dev, load, shared).await });
    let (rt, dev, shared) = (runtime.clone(), Rc::clone(device), Rc::clone(&history));
    let others = runtime.spawn("others", async move { stir(rt, dev, load, shared).await });
    let seen = read(runtime, &**device, load, &history).await;
    changes.await;
    others.await;
    seen
}

async fn change<D: PageDevice<Page = Stamp>>(
    runtime: Virtual,
    device: Rc<D>,
    load: Load,
    history: Rc<RefCell<History>>,
) {
    let mut rng = Rng::split(load.seed, "changes");
    for count in 1..=u64::from(load.commands) {
        command(&*device, &mut rng, count, load, &history).await;
        history.borrow_mut().settled();
        runtime.sleep(rng.below(load.pause_ns + 1)).await;
    }
    history.borrow_mut().ended = true;
}

/// Runs one command. It may take effect as soon as its state is recorded.
async fn command<D: PageDevice<Page = Stamp>>(
    device: &D,
    rng: &mut Rng,
    count: u64,
    load: Load,
    history: &RefCell<History>,
) {
    let limits = device.limits().clone();
    let mut state = *history.borrow().states.last().unwrap();
    let note = |state| history.borrow_mut().states.push(state);
    let kind = rng.below(10);
    if kind < load.trims {
        let range = range(rng, AREA);
        range.iter().for_each(|page| state[page.index()] = Stamp::zero());
        note(state);
        return device.trim(range).await.unwrap();
    }
    if kind < 5 && limits.share_pairs_max > 0 {
        let half = AREA / 2;
        let pages = 1 + rng.below(u64::from(limits.share_pairs_max).min(half));
        let pairs: Vec<(PageNo, PageNo)> =
            (0..pages).map(|page| (PageNo(page), PageNo(half + page))).collect();
        if pairs.iter().all(|(_, right)| state[right.index()] != Stamp::zero()) {
            pairs.iter().for_each(|(left, right)| state[left.index()] = state[right.index()]);
            note(state);
            return device.share(&pairs).await.unwrap();
        }
    }
    if kind < 7 && limits.transactions_max > 0 {
        let tx = device.begin().await.unwrap();
        for page in (0..AREA).map(PageNo).filter(|_| rng.chance(0.6)) {
            state[page.index()] = Stamp::new(page, count);
            device.write(page, &[state[page.index()]], Some(tx)).await.unwrap();
        }
        note(state);
        return device.commit(tx).await.unwrap();
    }
    let range = range(rng, u64::from(limits.atomic_write_pages_max));
    let pages: Vec<Stamp> = range.iter().map(|page| Stamp::new(page, count)).collect();
    state[range.first.index()..range.end().index()].copy_from_slice(&pages);
    note(state);
    device.write(range.first, &pages, None).await.unwrap();
}

/// A range of at most `pages_max` pages of the area.
fn range(rng: &mut Rng, pages_max: u64) -> PageRange {
    let first = rng.below(AREA);
    PageRange::new(PageNo(first), 1 + rng.below(pages_max.min(AREA - first)))
}

/// Writes other pages, so that caches and zones fill up and are cleaned.
async fn stir<D: PageDevice<Page = Stamp>>(
    runtime: Virtual,
    device: Rc<D>,
    load: Load,
    history: Rc<RefCell<History>>,
) {
    let mut rng = Rng::split(load.seed, "others");
    while load.others > 0 && !history.borrow().ended {
        let page = PageNo(AREA + rng.below(load.others));
        device.write(page, &[Stamp::new(page, 1)], None).await.unwrap();
        runtime.sleep(rng.below(load.pause_ns + 1)).await;
    }
}

async fn read<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &D,
    load: Load,
    history: &RefCell<History>,
) -> Seen {
    let mut rng = Rng::split(load.seed, "reads");
    let mut seen = Seen::default();
    while !history.borrow().ended {
        let range = range(&mut rng, AREA);
        let mut out = vec![Stamp::zero(); range.pages as usize];
        let oldest = history.borrow().oldest;
        device.read(range.first, &mut out, None).await.unwrap();
        seen.reads += 1;
        seen.overlapped += u64::from(history.borrow_mut().explain(range, &out, oldest, load.seed));
        runtime.sleep(rng.below(load.pause_ns + 1)).await;
    }
    seen
}
