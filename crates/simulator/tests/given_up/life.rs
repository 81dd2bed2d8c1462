//! A device whose commands are given up while others are in progress: it continues, is cut, and is
//! recovered.
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Durability, PageDevice, PageNo, PageRange, Payload, Result, Stamp};
use tantalum_media::{ErasedZones, ZoneMedia};
use tantalum_models::{HostQueue, HostQueueOptions};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Opening, Runtime, Virtual};
use tantalum_simulator::{Kept, Medium, NandRig, Powered, Rig, Subject, Tested};

use crate::operation::{Operation, PAGES, REWRITTEN, RIGHT, stamp};

/// Pages of the device; pages from 84 on belong to the other clients.
const DEVICE_PAGES: u64 = 96;
const OTHERS: u64 = 84;
/// Number of times that the operation is given up, each on pages of its own: more than the depth of
/// the queue.
const ROUNDS: u64 = 3;
const QUEUE_DEPTH: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub operation: Operation,
    pub polls: u32,
    /// The power is cut this long after the operation was first given up; otherwise when the device is
    /// idle.
    pub cut_after_ns: Option<u64>,
    /// Whether the device is behind a command queue.
    pub queue: bool,
    pub schedule: Schedule,
    pub seed: u64,
}

/// The facts that the host knows.
#[derive(Default)]
struct Known {
    /// Rounds that have begun.
    rounds: u64,
    /// Rounds in which the operation ended.
    ended: Vec<bool>,
    /// Rounds whose effect was seen, page by page.
    seen: [[bool; PAGES as usize]; ROUNDS as usize],
    /// Rounds in which one page was written again.
    rewritten: u64,
    /// The contents of all pages when the device was idle.
    quiet: Option<Vec<Stamp>>,
    is_unoffered: bool,
    /// Whether the device writes and trims page by page, each page atomically.
    is_by_pages: bool,
}

impl Case {
    /// Checks that `content` of the pages of `round` is the result of the operation, or the content
    /// before it; except for the page that is written again.
    fn check(&self, round: u64, content: &[Stamp], known: &mut Known) {
        let first = round * 2 * PAGES;
        let after = self.operation.leaves(first);
        let pages: Vec<usize> = (0..PAGES as usize).filter(|at| *at as u64 != REWRITTEN).collect();
        let changes = |at: usize| after[at] != stamp(first + at as u64, 1);
        let is_done = |at: usize| content[at] == after[at];
        let is_whole = pages.iter().all(|at| is_done(*at) || !changes(*at))
            || pages.iter().all(|at| !is_done(*at) || !changes(*at));
        assert!(
            known.is_by_pages || is_whole,
            "{self:?}: a part of it, round {round}: {content:?}"
        );
        let ended = known.ended.get(round as usize).copied().unwrap_or(false);
        for at in pages {
            let seen = &mut known.seen[round as usize][at];
            if is_done(at) {
                *seen |= changes(at);
                continue;
            }
            let before = stamp(first + at as u64, 1);
            assert_eq!(content[at], before, "{self:?}: round {round}, page {at}: neither");
            assert!(!*seen, "{self:?}: seen, and gone again, round {round}: {content:?}");
            assert!(!ended, "{self:?}: it ended, and is not there, round {round}: {content:?}");
        }
    }
}

/// Runs one case; returns whether the operation ended before it was given up.
pub fn live<K: Tested<Stamp>>(subject: &Subject<K>, case: Case) -> bool {
    let medium = subject.medium(DEVICE_PAGES).unwrap();
    let Medium::Lab { more_zones } = medium else { panic!("{medium:?} is not the lab's") };
    let mut rig = NandRig::<Stamp>::with_more_zones(case.seed, more_zones);
    let kept = K::Kept::default();
    let known = Rc::new(RefCell::new(Known::default()));
    let runtime = Virtual::new(case.schedule);
    kept.power_on(&runtime, case.seed);
    let (kind, on) = open(subject, &mut rig, &runtime, &kept);
    let (told, handle) = (Rc::clone(&known), runtime.clone());
    let device = run(case, &runtime, async move {
        let device = kind.format(on).await?;
        device.start(&handle);
        load(&handle, Rc::clone(&device), case, told).await?;
        Ok(device)
    });
    if case.cut_after_ns.is_none() {
        device.validate();
    }
    runtime.drop_tasks();
    kept.cut();
    rig.power_off(&runtime).unwrap();
    kept.power_off(&runtime).unwrap();
    if K::HAS_STORED_ENERGY {
        let runtime = Virtual::new(Schedule::Fifo);
        let (kind, on) = open(subject, &mut rig, &runtime, &kept);
        run(case, &runtime, async move { kind.on_stored_energy(device, on).await });
        rig.power_off(&runtime).unwrap();
    }
    let runtime = Virtual::new(case.schedule);
    kept.power_on(&runtime, case.seed);
    let (kind, on) = open(subject, &mut rig, &runtime, &kept);
    let (told, handle) = (Rc::clone(&known), runtime.clone());
    run(case, &runtime, async move {
        let (device, _) = kind.open(on).await?;
        device.validate();
        device.start(&handle);
        verify(&*device, case, &told).await?;
        device.close().await
    });
    runtime.drop_tasks();
    let known = known.borrow();
    known.is_unoffered || known.ended.iter().all(|ended| *ended)
}

/// The device kind, and the means to make or open the device.
fn open<K: Tested<Stamp>>(
    subject: &Subject<K>,
    rig: &mut NandRig<Stamp>,
    runtime: &Virtual,
    kept: &K::Kept,
) -> (K, Opening<Virtual, ErasedZones<Stamp>, K::Kept>) {
    let media = rig.open(runtime);
    let media = ErasedZones::new(Powered::new(media, rig.cut_watch()));
    let kind = subject.kind(&media.geometry(), DEVICE_PAGES);
    (kind, Opening { runtime: runtime.clone(), media, kept: kept.clone() })
}

fn run<T: 'static>(
    case: Case,
    runtime: &Virtual,
    main: impl Future<Output = Result<T>> + 'static,
) -> T {
    let done = runtime.run(main).unwrap_or_else(|deadlock| panic!("{case:?}: {deadlock}"));
    done.unwrap_or_else(|error| panic!("{case:?}: {error:?}"))
}

async fn load<D: LifeCycle + PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: Rc<D>,
    case: Case,
    known: Rc<RefCell<Known>>,
) -> Result<()> {
    if !case.queue {
        return give_up_rounds(runtime, device, case, known).await;
    }
    let options = HostQueueOptions {
        depth: QUEUE_DEPTH,
        command_ns: 10_000,
        page_ns: 1_000,
        write_ns: 0,
        link_command_ns: 1_000,
        link_bytes_per_second: 300_000_000,
        flush_ns: 0,
        flush_alone: true,
        barrier: true,
    };
    let queue = Rc::new(HostQueue::new(runtime.clone(), device, options)?);
    give_up_rounds(runtime, queue, case, known).await
}

/// Gives the operation up in every round, while other clients write and read.
async fn give_up_rounds<D: LifeCycle + PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: Rc<D>,
    case: Case,
    known: Rc<RefCell<Known>>,
) -> Result<()> {
    if !case.operation.is_offered(device.limits()) {
        known.borrow_mut().is_unoffered = true;
        return Ok(());
    }
    let together = device.limits().atomic_write_pages_max.min(2) as usize;
    known.borrow_mut().is_by_pages = together == 1;
    for first in (0..DEVICE_PAGES).step_by(together) {
        let pages = [stamp(first, 1), stamp(first + 1, 1)];
        device.write(PageNo(first), &pages[..together], None).await?;
    }
    device.flush().await?;
    let writer = runtime.spawn("other writer", write_others(Rc::clone(&device)));
    let reader = read_rounds(runtime.clone(), Rc::clone(&device), case, Rc::clone(&known));
    let reader = runtime.spawn("reader", reader);
    for round in 0..ROUNDS {
        let first = round * 2 * PAGES;
        known.borrow_mut().rounds = round + 1;
        // So that the cache has older contents of some of the pages.
        device.write(PageNo(first), &[stamp(first, 1)], None).await?;
        let ended = case.operation.give_up(&*device, first, case.polls).await?;
        known.borrow_mut().ended.push(ended);
        if let Some(cut_after_ns) = case.cut_after_ns {
            runtime.sleep(cut_after_ns).await;
            return Ok(());
        }
        let page = first + REWRITTEN;
        device.write(PageNo(page), &[stamp(page, 3)], None).await?;
        known.borrow_mut().rewritten = round + 1;
    }
    writer.await?;
    reader.await?;
    use_all(&*device).await?;
    // Operations that were given up have come to their end.
    runtime.sleep(1_000_000_000).await;
    device.flush().await?;
    let found = read_all(&*device).await?;
    check_all(&found, case, &mut known.borrow_mut());
    known.borrow_mut().quiet = Some(found);
    Ok(())
}

async fn write_others<D: PageDevice<Page = Stamp>>(device: Rc<D>) -> Result<()> {
    for count in 2..12 {
        let page = OTHERS + count % 8;
        device.write(PageNo(page), &[stamp(page, count)], None).await?;
    }
    Ok(())
}

/// Reads the pages that are being changed: never only a part of the change, and never the old content
/// after the new.
async fn read_rounds<D: PageDevice<Page = Stamp>>(
    runtime: Virtual,
    device: Rc<D>,
    case: Case,
    known: Rc<RefCell<Known>>,
) -> Result<()> {
    for _ in 0..10 {
        let (rounds, ended) = {
            let known = known.borrow();
            (known.rounds, known.ended.clone())
        };
        for round in 0..rounds {
            let mut out = vec![Stamp::zero(); PAGES as usize];
            device.read(PageNo(round * 2 * PAGES), &mut out, None).await?;
            // An operation that ended during this read may not be included in it.
            let now = std::mem::replace(&mut known.borrow_mut().ended, ended.clone());
            case.check(round, &out, &mut known.borrow_mut());
            known.borrow_mut().ended = now;
        }
        runtime.sleep(300_000).await;
    }
    Ok(())
}

/// Runs every kind of command once more, and the maximum number of transactions.
async fn use_all<D: PageDevice<Page = Stamp>>(device: &D) -> Result<()> {
    let limits = device.limits().clone();
    let mut open = Vec::new();
    for _ in 0..limits.transactions_max {
        open.push(device.begin().await?);
    }
    if let [first, others @ ..] = &open[..] {
        // No pages are held for a command that was given up.
        for round in 0..ROUNDS {
            let mut page = [Stamp::zero()];
            let number = PageNo(round * 2 * PAGES);
            device.read(number, &mut page, None).await?;
            device.write(number, &page, Some(*first)).await?;
        }
        device.commit(*first).await?;
        for tx in others {
            device.abort(*tx).await?;
        }
    }
    if limits.share_pairs_max > 0 {
        for _ in 0..8 {
            device.share(&[(PageNo(OTHERS + 9), PageNo(RIGHT))]).await?;
        }
    }
    device.trim(PageRange::new(PageNo(OTHERS + 10), 1)).await?;
    device.flush().await
}

async fn read_all<D: PageDevice<Page = Stamp>>(device: &D) -> Result<Vec<Stamp>> {
    let mut found = vec![Stamp::zero(); DEVICE_PAGES as usize];
    for (page, out) in (0..).map(PageNo).zip(&mut found) {
        device.read(page, std::slice::from_mut(out), None).await?;
    }
    Ok(found)
}

fn check_all(found: &[Stamp], case: Case, known: &mut Known) {
    for round in 0..known.rounds {
        let first = (round * 2 * PAGES) as usize;
        case.check(round, &found[first..first + PAGES as usize], known);
        if round < known.rewritten {
            let page = first as u64 + REWRITTEN;
            assert_eq!(found[page as usize], stamp(page, 3), "{case:?}: overtaken, page {page}");
        }
    }
}

async fn verify<D: PageDevice<Page = Stamp>>(
    device: &D,
    case: Case,
    known: &RefCell<Known>,
) -> Result<()> {
    if known.borrow().is_unoffered {
        return Ok(());
    }
    let found = read_all(device).await?;
    if check_found(&found, device.limits().durability, case, &mut known.borrow_mut()) {
        return use_all(device).await;
    }
    Ok(())
}

/// Checks the contents of a device; returns whether they include anything promised.
fn check_found(found: &[Stamp], durability: Durability, case: Case, known: &mut Known) -> bool {
    if known.quiet.is_none() {
        // Changes that were seen but not acknowledged may be gone again.
        known.seen = Default::default();
        match durability {
            Durability::OnAck => {}
            // And so may changes that were acknowledged but not flushed.
            Durability::OnFlush => known.ended.clear(),
            Durability::Volatile => return false,
        }
    }
    check_all(found, case, known);
    if let Some(quiet) = &known.quiet {
        assert_eq!(found, quiet, "{case:?}: what was there when it was quiet");
    }
    true
}
