//! Many lives of one device: random ones until so many cuts were verified, or every cut of a small
//! load. What breaks a promise is shrunk.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tantalum_base::{Limits, Result, Rng};
use tantalum_runtime::supervision;

use super::exhaustive::{Exhaustive, every};
use super::generate::Workload;
use super::life::{CutAt, Life};
use super::registry::{self, Lives};
use super::rig::LARGE_PAGES;
use super::run::Outcome;
use super::shrink::shrink;
use super::subject::Coverage;
use super::text::Replay;

/// What to run.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignOptions {
    /// The device, as [`registry::find`] takes it.
    pub device: String,
    /// The medium.
    pub media: String,
    /// What lives look like.
    pub workload: Workload,
    /// Verified cuts to reach; a campaign goes on to the end of the life that reaches them. Nothing
    /// to an exhaustive one, which ends when all was done.
    pub cuts: u64,
    /// What befalls one load everywhere, in place of random lives.
    pub exhaustive: Option<Exhaustive>,
    /// The exhaustive one's device is aged before: filled, and written over until it is cleaned.
    pub aged: bool,
    /// Seed of everything.
    pub seed: u64,
    /// Violations after which the campaign ends.
    pub violations_max: usize,
    /// Smaller lives to try for each violation; 0: it is given as it was found.
    pub shrink_tries: u32,
    /// Threads to use at most; the outcome does not depend on it.
    pub threads: usize,
}

/// Lives that are begun before it is looked whether enough cuts were made.
const LIVES_AT_ONCE: usize = 64;
/// Which of them has a large medium, where the device can be had on one.
const LARGE_AT: usize = 7;
/// Logical pages of the devices: few meet often, many fill the medium.
pub(super) const PAGES: [u64; 3] = [24, 60, 120];

/// A broken promise and how to break it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The seed of the life in which it was found.
    pub seed: u64,
    /// What was broken, in the life as it was shrunk.
    pub violation: String,
    /// The shrunk life.
    pub replay: Replay,
    /// Commands of the life before it was shrunk.
    pub commands_before: usize,
    /// Cuts that had been verified when it was found.
    pub after_cuts: u64,
}

/// What a campaign came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campaign {
    /// The device, with every parameter.
    pub device: String,
    /// The medium.
    pub media: String,
    /// Lives.
    pub lives: u64,
    /// Power cuts after which the device was recovered and every page of it verified.
    pub cuts: u64,
    /// Power cuts in a recovery.
    pub cuts_in_recovery: u64,
    /// Commands.
    pub commands: u64,
    /// What the loads reached.
    pub coverage: Coverage,
    /// Openings that were refused, as something was damaged that recovery needs.
    pub refused: u64,
    /// Slots of the medium that were damaged or lost.
    pub decayed: u64,
    /// Operations that failed as I/O errors passed.
    pub io_errors: u64,
    /// Checks that were given up; none of them is taken for a broken promise.
    pub undecided: u64,
    /// Times that what is left without the medium was compared.
    pub rescued: u64,
    /// Of those, how many were newer than the time before.
    pub rescued_newer: u64,
    /// Broken promises.
    pub found: Vec<Found>,
}

impl Campaign {
    fn add(&mut self, outcome: &Outcome) {
        self.lives += 1;
        self.cuts += outcome.cuts;
        self.cuts_in_recovery += outcome.cuts_in_recovery;
        self.commands += outcome.commands;
        self.coverage.add(outcome.coverage);
        self.refused += outcome.refused;
        self.decayed += outcome.decayed;
        self.io_errors += outcome.io_errors;
        self.undecided += outcome.undecided;
        self.rescued += outcome.rescued;
        self.rescued_newer += outcome.rescued_newer;
    }
}

/// Refuses what a campaign of `device` on `media` would refuse.
///
/// # Errors
/// `InvalidInput`, which says what is accepted.
pub fn check(device: &str, media: &str) -> Result<()> {
    limits(&*registry::find(device, media)?).map(drop)
}

/// What the device offers with each number of pages that lives have.
fn limits(lives: &dyn Lives) -> Result<Vec<Limits>> {
    match lives.pages() {
        Some(pages) => Ok(vec![lives.limits(pages)?]),
        None => PAGES.iter().map(|pages| lives.limits(*pages)).collect(),
    }
}

/// What the device offers on a large medium, where it can be had there.
fn large(lives: &dyn Lives) -> Option<Limits> {
    if lives.pages().is_some() {
        return None;
    }
    lives.limits(LARGE_PAGES).ok()
}

/// Runs a campaign. `progress` is told (cuts made, cuts in all), from this thread. Where runs are asked to end, it
/// ends with the lives that were whole by then.
///
/// # Errors
/// `InvalidInput` where there is no such device or medium, or a device does not fit.
pub fn campaign(options: &CampaignOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Campaign> {
    let lives = registry::find(&options.device, &options.media)?;
    let mut campaign =
        Campaign { device: lives.device(), media: lives.media().to_owned(), ..Campaign::default() };
    let mut next = if let Some(exhaustive) = options.exhaustive {
        let every = every(&*lives, options, exhaustive)?;
        campaign.add(&every.dry);
        Next::Listed(every.lives.into_iter())
    } else {
        let (limits, large) = (limits(&*lives)?, large(&*lives));
        let label = format!("{} on {}", lives.device(), lives.media());
        let rng = Rng::split(options.seed, &label);
        Next::Random { rng, limits, large, cut_at: lives.cut_at() }
    };
    let goal = next.goal().unwrap_or(options.cuts);
    loop {
        let batch = next.take(LIVES_AT_ONCE, &options.workload)?;
        if batch.is_empty() {
            break;
        }
        let outcomes = live_all(&*lives, options, &batch)?;
        for (life, outcome) in batch.iter().zip(&outcomes) {
            let Some(outcome) = outcome else { continue };
            campaign.add(outcome);
            if !outcome.violations.is_empty() {
                campaign.found.push(found(&*lives, options, life, campaign.cuts));
            }
            let is_enough = options.exhaustive.is_none() && campaign.cuts >= options.cuts;
            if is_enough || campaign.found.len() >= options.violations_max {
                return Ok(campaign);
            }
        }
        if supervision::is_stopped() {
            break;
        }
        progress(if options.exhaustive.is_some() { campaign.lives } else { campaign.cuts }, goal);
    }
    Ok(campaign)
}

/// Where lives come from.
enum Next {
    Random { rng: Rng, limits: Vec<Limits>, large: Option<Limits>, cut_at: &'static [CutAt] },
    Listed(std::vec::IntoIter<Life>),
}

impl Next {
    /// Lives there are, where that is known.
    fn goal(&self) -> Option<u64> {
        match self {
            Next::Random { .. } => None,
            Next::Listed(lives) => Some(lives.len() as u64),
        }
    }

    fn take(&mut self, count: usize, workload: &Workload) -> Result<Vec<Life>> {
        match self {
            Next::Listed(lives) => Ok(lives.take(count).collect()),
            Next::Random { rng, limits, large, cut_at } => (0..count)
                .map(|at| {
                    let seed = rng.next_u64();
                    let small = &limits[(seed % limits.len() as u64) as usize];
                    let large = large.as_ref().filter(|_| at == LARGE_AT);
                    let mut life = workload.life(large.unwrap_or(small), seed)?;
                    Workload::go_beside(&mut life, cut_at);
                    Ok(life)
                })
                .collect(),
        }
    }
}

/// Lives all of `batch`, on several threads where asked; the outcomes in its order. A life during which runs were
/// asked to end has none.
fn live_all(
    lives: &dyn Lives,
    options: &CampaignOptions,
    batch: &[Life],
) -> Result<Vec<Option<Outcome>>> {
    let live = |lives: &dyn Lives, life| {
        let outcome = (!supervision::is_stopped()).then(|| lives.live(life));
        outcome.filter(|_| !supervision::is_stopped())
    };
    if options.threads <= 1 {
        return Ok(batch.iter().map(|life| live(lives, life)).collect());
    }
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; batch.len()]);
    let work = || -> Result<()> {
        let lives = registry::find(&options.device, &options.media)?;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(life) = batch.get(at) else { return Ok(()) };
            let outcome = live(&*lives, life);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[at] = outcome;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads {
            scope.spawn(work);
        }
        work()
    })?;
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Shrinks a life that breaks a promise, until runs are asked to end.
fn found(lives: &dyn Lives, options: &CampaignOptions, life: &Life, after_cuts: u64) -> Found {
    let breaks = |life: &Life| {
        let violated = !supervision::is_stopped() && !lives.live(life).violations.is_empty();
        violated && !supervision::is_stopped()
    };
    let shrunk = shrink(life, options.shrink_tries, breaks);
    let violations = lives.live(&shrunk.life).violations;
    Found {
        seed: life.seed,
        violation: violations.first().map_or(String::new(), |violation| violation.0.clone()),
        replay: Replay {
            device: lives.device(),
            media: lives.media().to_owned(),
            life: shrunk.life,
        },
        commands_before: life.commands(),
        after_cuts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileRig, NandRig, Rig, Size};
    use tantalum_base::Stamp;
    use tantalum_media::ZoneMedia;
    use tantalum_runtime::Virtual;
    use tantalum_runtime::virtual_time::Schedule;

    /// Zones in a page of the zone table (`docs/format.md`).
    const ZONES_IN_A_PAGE: u32 = 169;

    #[test]
    fn a_campaign_has_lives_on_large_media() {
        fn zones<R: Rig>() -> u32 {
            R::of_size(1, Size::Large, 0).open(&Virtual::new(Schedule::Fifo)).geometry().zones
        }
        assert!(zones::<FileRig>() > ZONES_IN_A_PAGE);
        assert!(zones::<NandRig<Stamp>>() > ZONES_IN_A_PAGE);
        let mut cleaned = 0;
        for (device, media) in [
            ("ssd:cache=through", "file"),
            ("ssd:cache=ordered", "file"),
            ("ssd:cache=durable", "nand"),
            ("ssd:cache=volatile", "nand"),
            ("txcache", "nand"),
            ("tx-flash", "file"),
        ] {
            let lives = registry::find(device, media).unwrap();
            let large = large(&*lives);
            assert!(large.is_some(), "{device} on {media}");
            let limits = limits(&*lives).unwrap();
            let mut next = Next::Random { rng: Rng::new(1), limits, large, cut_at: lives.cut_at() };
            let batch = next.take(LIVES_AT_ONCE, &Workload::parse("mixed").unwrap()).unwrap();
            let is_large = |life: &&Life| life.pages == LARGE_PAGES;
            let life = batch.iter().find(is_large).expect("one of them is large");
            let outcome = lives.live(life);
            assert_eq!((outcome.violations, outcome.undecided), (vec![], 0), "{device} on {media}");
            println!("{device} on {media}: {:?}", outcome.coverage);
            assert!(outcome.coverage.checkpoints > 2, "{device} on {media}");
            cleaned += outcome.coverage.cleaned;
        }
        assert!(cleaned > 10);
    }
}
