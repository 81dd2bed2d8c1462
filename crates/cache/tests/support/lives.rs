//! A cache that survives power cuts at any operation of flash, home or journal.
use super::history::{Change, History, content, count_of};
use super::large;
use super::media::{At, Device, Media};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_cache::journal::{Journal, apply};
use tantalum_cache::{Destage, Image, Mode};
use tantalum_media::block_store::MemoryStore;
use tantalum_media::{CutPlan, Fate};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

/// Maximum commands of a client per power-on.
const STEPS_MAX: u32 = 3000;

/// Maximum changes of the mode per power-on.
const MODES: u32 = 40;

/// Clients, each with a third of the pages.
const CLIENTS: usize = 3;

/// Counts of events in a life.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub cuts: u64,
    pub rounds: u64,
    pub let_go: u64,
    pub admitted: u64,
    pub preserved: u64,
    pub rescued: u64,
    pub rescued_older: u64,
    /// Operations of home and journal that failed.
    pub failed: u64,
    /// Reads of the flash that failed.
    pub flash_reads: u64,
    /// Changes that were promised to be safe without the flash at the time of a rescue.
    pub safe: u64,
}

impl Seen {
    pub fn plus(self, more: Seen) -> Seen {
        Seen {
            cuts: self.cuts + more.cuts,
            rounds: self.rounds + more.rounds,
            let_go: self.let_go + more.let_go,
            admitted: self.admitted + more.admitted,
            preserved: self.preserved + more.preserved,
            rescued: self.rescued + more.rescued,
            rescued_older: self.rescued_older + more.rescued_older,
            failed: self.failed + more.failed,
            flash_reads: self.flash_reads + more.flash_reads,
            safe: self.safe + more.safe,
        }
    }
}

/// The parameters of a life.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub seed: u64,
    pub destage: Destage,
    pub power_ons: u64,
    pub pages: u64,
    /// Maximum operations between two cuts.
    pub after_max: u64,
    /// Whether writes and syncs of home and journal, and reads of the flash, fail now and then.
    pub fails: bool,
}

impl Life {
    pub fn of(seed: u64, destage: Destage) -> Life {
        let pages = [900, 240, 60][(seed % 3) as usize];
        let after_max = 60 + 150 * (seed % 4);
        Life { seed, destage, power_ons: 8, pages, after_max, fails: false }
    }

    /// A life in which all three fail now and then.
    pub fn failing(seed: u64, destage: Destage) -> Life {
        Life { fails: true, ..Life::of(seed, destage) }
    }
}

/// Changes and reads of one client until the power goes.
async fn client(
    device: Rc<Device>,
    history: Rc<RefCell<History>>,
    me: usize,
    pages: u64,
    mut rng: Rng,
) -> Result<(), String> {
    let own = pages / CLIENTS as u64;
    let first = own * me as u64;
    for _ in 0..STEPS_MAX {
        let page = first + rng.below(own);
        if rng.chance(0.04) {
            let pages = PageRange::new(PageNo(first), own);
            if let Err(error) = large::change(&device, &history, me, pages, &mut rng).await {
                return stopped(&error);
            }
            continue;
        }
        match rng.below(8) {
            0..5 => {
                let mut changed = BTreeMap::new();
                let run = rng.chance(0.5);
                let count = 1 + rng.below(6);
                for at in 0..count {
                    let page = if run { page + at } else { first + rng.below(own) };
                    if page < first + own {
                        changed.insert(page, 0);
                    }
                }
                let trim = run && rng.chance(0.2);
                {
                    let history = &mut *history.borrow_mut();
                    history.writes += 1;
                    let write = if trim { 0 } else { history.writes };
                    changed.values_mut().for_each(|count| *count = write);
                    let (issued, acknowledged) = (history.tick(), None);
                    let pages = changed.clone();
                    let change = Change { pages, issued, acknowledged, safe: false };
                    history.clients[me].push(change);
                }
                let contents: Vec<(PageNo, PageBuf)> = changed
                    .iter()
                    .map(|(page, count)| (PageNo(*page), content(*page, *count)))
                    .collect();
                let range = PageRange::new(contents[0].0, contents.len() as u64);
                let waits = device.mode().waits_for_home();
                let mode_changes = history.borrow().mode_changes;
                let done = if trim {
                    device.trim(range).await
                } else if run {
                    let bodies: Vec<PageBuf> =
                        contents.into_iter().map(|(_, content)| content).collect();
                    device.write(range.first, &bodies, None).await
                } else {
                    device.write_scattered(contents, || ()).await
                };
                let is_safe = match done {
                    Ok(()) => waits,
                    // The flash has the change.
                    Err(error) if passes(&error) => false,
                    Err(error) => return stopped(&error),
                };
                history.borrow_mut().acknowledge(me, is_safe, mode_changes);
            }
            _ => {
                let count = (1 + rng.below(5)).min(first + own - page);
                let mut out = vec![PageBuf::zero(); count as usize];
                if let Err(error) = device.read(PageNo(page), &mut out, None).await {
                    if passes(&error) {
                        continue;
                    }
                    return stopped(&error);
                }
                for (page, seen) in (page..).zip(&out) {
                    let last = history.borrow().last(me, page);
                    let found = count_of(page, &seen[..]);
                    if found != Some(last) {
                        return Err(format!("page {page} has {found:?} and was written by {last}"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Changes the mode now and then, until the power goes.
async fn change_modes(
    runtime: Virtual,
    device: Rc<Device>,
    history: Rc<RefCell<History>>,
    mut rng: Rng,
) {
    // Not forever: after the power is gone, nothing else makes progress.
    for _ in 0..MODES {
        let mode = Mode::ALL[rng.below(4) as usize];
        history.borrow_mut().mode_changes += 1;
        let changed = device.set_mode(mode).await;
        if changed.as_ref().is_err_and(|error| !passes(error)) {
            return;
        }
        if changed.is_ok() && mode.waits_for_home() {
            history.borrow_mut().all_are_safe();
        }
        runtime.sleep(rng.below(20_000_000)).await;
    }
}

/// Whether this is an injected error, which passes.
pub fn passes(error: &tantalum_base::Error) -> bool {
    format!("{error:?}").contains("(injected)")
}

/// Accepts errors that the power cut explains.
fn stopped(error: &tantalum_base::Error) -> Result<(), String> {
    match error.kind() {
        ErrorKind::PowerCut | ErrorKind::Latched => Ok(()),
        _ if format!("{error:?}").contains("PowerCut") => Ok(()),
        _ => Err(format!("{error:?}")),
    }
}

/// Runs `life`.
///
/// # Errors
/// The first broken promise.
pub fn live(life: Life) -> Result<Seen, String> {
    let Life { seed, destage, pages, .. } = life;
    let mut media = Media::new(seed, pages, destage);
    let mut rng = Rng::split(seed, "lives of a cache");
    media.format(&Virtual::new(Schedule::Fifo));
    let history = History { clients: vec![Vec::new(); CLIENTS], ..History::default() };
    let history = Rc::new(RefCell::new(history));
    let mut seen = Seen::default();
    for power_on in 0..life.power_ons {
        let wrong = |wrong: String| format!("{life:?}, power-on {power_on}: {wrong}");
        let runtime = Virtual::new(Schedule::Shuffled(seed * 100 + power_on));
        let on = media.power_on(&runtime);
        let places = if destage == Destage::Ordered { 4 } else { 3 };
        let at = [At::Flash, At::Flash, At::Home, At::Journal][rng.below(places) as usize];
        // The journal gets few operations.
        let most = match at {
            At::Journal => life.after_max / 12,
            _ => life.after_max,
        };
        let plan = CutPlan {
            after_operations: rng.below(most + 2),
            fate: Fate::ALL[rng.below(3) as usize],
        };
        media.plan(at, plan);
        if life.fails {
            media.fail_some(life.after_max);
        }
        let opened = media.open(&runtime, on, |_| ());
        let told = Rc::new(RefCell::new(Seen::default()));
        let session = session(
            runtime.clone(),
            opened,
            Rc::clone(&history),
            pages,
            Rng::new(rng.next_u64()),
            Rc::clone(&told),
        );
        let (mut session, mut cut) = (Box::pin(session), Box::pin(media.until_cut()));
        let either = async move {
            poll_fn(move |context| {
                let done = session.as_mut().poll(context);
                if done.is_ready() { done } else { cut.as_mut().poll(context).map(|()| Ok(())) }
            })
            .await
        };
        match runtime.run(either) {
            Ok(done) => done.map_err(&wrong)?,
            Err(deadlock) if media.is_cut() => drop(deadlock),
            Err(deadlock) => return Err(wrong(deadlock.to_string())),
        }
        seen = seen.plus(*told.borrow());
        seen.cuts += u64::from(media.is_cut());
        let [failed, flash_reads] = media.failed();
        seen.failed += failed;
        seen.flash_reads += flash_reads;
        media.power_off(&runtime);
        match destage {
            Destage::Ordered => rescue(&media, &history.borrow(), &mut seen).map_err(&wrong)?,
            Destage::Dense => home_alone(&media, &history.borrow()).map_err(&wrong)?,
        }
    }
    Ok(seen)
}

/// Opens the device, checks every page, and runs the clients.
async fn session(
    runtime: Virtual,
    opened: impl Future<Output = tantalum_base::Result<Rc<Device>>>,
    history: Rc<RefCell<History>>,
    pages: u64,
    mut rng: Rng,
    told: Rc<RefCell<Seen>>,
) -> Result<(), String> {
    let device = match opened.await {
        Ok(device) => device,
        Err(error) if passes(&error) => return Ok(()),
        Err(error) => return stopped(&error),
    };
    device.validate();
    let mut image = BTreeMap::new();
    for page in 0..pages {
        let mut out = [PageBuf::zero()];
        while let Err(error) = device.read(PageNo(page), &mut out, None).await {
            if !passes(&error) {
                return stopped(&error);
            }
            runtime.sleep(1_000_000).await;
        }
        image.insert(page, count_of(page, &out[0][..]));
    }
    {
        let history = &mut *history.borrow_mut();
        let seen = history.prefix(|page| image[&page])?;
        let acknowledged = history.acknowledged();
        if seen.iter().zip(&acknowledged).any(|(seen, acknowledged)| seen < acknowledged) {
            return Err(format!("acknowledged {acknowledged:?}, seen {seen:?}"));
        }
        history.settle(&seen);
    }
    if rng.chance(0.5) {
        let (device, history) = (Rc::clone(&device), Rc::clone(&history));
        let modes = change_modes(runtime.clone(), device, history, Rng::new(rng.next_u64()));
        drop(runtime.spawn("modes", modes));
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|me| {
            let (device, history) = (Rc::clone(&device), Rc::clone(&history));
            let client = client(device, history, me, pages, Rng::new(rng.next_u64()));
            runtime.spawn("client", client)
        })
        .collect();
    let mut done = Ok(());
    for client in clients {
        done = done.and(client.await);
        let statistics = device.statistics();
        let ftl = device.drive().ftl().statistics();
        *told.borrow_mut() = Seen {
            rounds: statistics.rounds,
            preserved: statistics.journal_pages_preserved,
            let_go: ftl.pages_let_go,
            admitted: ftl.pages_admitted,
            ..Seen::default()
        };
    }
    done
}

/// The flash is lost: each page on the home must have the promised content, or a newer one.
fn home_alone(media: &Media, history: &History) -> Result<(), String> {
    let image = media.home.image();
    let own = media.pages / CLIENTS as u64;
    let pages = (0..own * CLIENTS as u64).map(|page| (page, (page / own) as usize));
    for (page, client) in pages {
        // A write in flight at the power cut may be torn: the flash has that page.
        if let Some(found) = count_of(page, &image[page as usize * PAGE_BYTES..][..PAGE_BYTES])
            && !history.may_be_at_home(client, page, found)
        {
            return Err(format!("home alone has page {page} as of {found}, which is too old"));
        }
    }
    Ok(())
}

/// The flash is lost: journal and home together must contain the state of one moment.
fn rescue(media: &Media, history: &History, seen: &mut Seen) -> Result<(), String> {
    // Copies, as the other life continues.
    let home = MemoryStore::with_image(&media.home.image());
    let journal = MemoryStore::with_image(&media.journal.image());
    let (pair, pages, image) = (media.pair(), media.pages, home.clone());
    let rescued = Virtual::new(Schedule::Fifo).run(async move {
        let (journal, committed) = Journal::<_, PageBuf>::open(journal, pair, 0).await?;
        let home = Image::new(home, pages)?;
        apply(&journal, &home, 4).await?;
        Ok::<_, tantalum_base::Error>(committed.is_some())
    });
    let committed = rescued.map_err(|deadlock| deadlock.to_string())?;
    committed.map_err(|error| format!("rescue: {error:?}"))?;
    let image = image.image();
    let bytes = |page: u64| &image[page as usize * PAGE_BYTES..][..PAGE_BYTES];
    let found = history
        .prefix(|page| count_of(page, bytes(page)))
        .map_err(|wrong| format!("without the flash: {wrong}"))?;
    let safe = history.safe();
    if found.iter().zip(&safe).any(|(found, safe)| found < safe) {
        return Err(format!("without the flash: {found:?}, and {safe:?} were promised"));
    }
    seen.rescued += 1;
    seen.safe += safe.iter().sum::<usize>() as u64;
    seen.rescued_older += u64::from(found.iter().zip(history.acknowledged()).any(|(a, b)| *a < b));
    Ok(())
}
