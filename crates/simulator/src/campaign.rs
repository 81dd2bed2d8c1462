//! Many lives of one device: random ones until enough cuts were verified, or every cut of a small load. A life
//! that breaks a promise is shrunk.
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

/// The options of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignOptions {
    /// The device, in the form that [`registry::find`] accepts.
    pub device: String,
    /// The medium.
    pub media: String,
    /// The distribution of lives.
    pub workload: Workload,
    /// Number of verified cuts to reach; a campaign continues to the end of the life that reaches it. An
    /// exhaustive campaign ignores it and ends when everything was done.
    pub cuts: u64,
    /// Faults at every operation of one load, in place of random lives.
    pub exhaustive: Option<Exhaustive>,
    /// Whether the device of an exhaustive campaign is aged first: filled, and overwritten until it is cleaned.
    pub aged: bool,
    /// Seed of everything.
    pub seed: u64,
    /// Number of violations after which the campaign ends.
    pub violations_max: usize,
    /// Maximum number of smaller lives to try for each violation; 0: it is reported as it was found.
    pub shrink_tries: u32,
    /// Maximum number of threads; the outcome does not depend on it.
    pub threads: usize,
}

/// Number of lives that run before the number of cuts is checked.
const LIVES_AT_ONCE: usize = 64;
/// Index of the life in each batch that has a large medium, if the device supports one.
const LARGE_AT: usize = 7;
/// Logical pages of the devices: with few, commands often meet; with many, the medium fills.
pub(super) const PAGES: [u64; 3] = [24, 60, 120];

/// A broken promise, and a way to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The seed of the life in which it was found.
    pub seed: u64,
    /// A description of the violation in the shrunk life.
    pub violation: String,
    /// The shrunk life.
    pub replay: Replay,
    /// Number of commands of the life before it was shrunk.
    pub commands_before: usize,
    /// Number of cuts that had been verified when it was found.
    pub after_cuts: u64,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campaign {
    /// The device, with every parameter.
    pub device: String,
    /// The medium.
    pub media: String,
    /// Number of lives.
    pub lives: u64,
    /// Number of these on a large medium.
    pub lives_large: u64,
    /// Power cuts after which the device was recovered and every page of it verified.
    pub cuts: u64,
    /// Power cuts during a recovery.
    pub cuts_in_recovery: u64,
    /// Commands.
    pub commands: u64,
    /// The parts of the device that the loads reached.
    pub coverage: Coverage,
    /// Openings that were refused because something that recovery needs was damaged.
    pub refused: u64,
    /// Slots of the medium that were damaged or lost.
    pub decayed: u64,
    /// Operations that failed because of errors that pass.
    pub io_errors: u64,
    /// Checks that were given up; none of them counts as a broken promise.
    pub undecided: u64,
    /// Number of comparisons of the content that remains without the medium.
    pub rescued: u64,
    /// Number of these in which it was newer than the time before.
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

/// Checks that a campaign of `device` on `media` is possible.
///
/// # Errors
/// `InvalidInput`, which says what is accepted.
pub fn check(device: &str, media: &str) -> Result<()> {
    limits(&*registry::find(device, media)?).map(drop)
}

/// The limits of the device for each number of pages that lives use.
fn limits(lives: &dyn Lives) -> Result<Vec<Limits>> {
    match lives.pages() {
        Some(pages) => Ok(vec![lives.limits(pages)?]),
        None => PAGES.iter().map(|pages| lives.limits(*pages)).collect(),
    }
}

/// The limits of the device on a large medium, if it supports one.
fn large(lives: &dyn Lives) -> Option<Limits> {
    if lives.pages().is_some() {
        return None;
    }
    lives.limits(LARGE_PAGES).ok()
}

/// Runs a campaign. Calls `progress` with (cuts made, cuts in total), from this thread. If runs are requested to
/// end, it ends with the lives that were complete by then.
///
/// # Errors
/// `InvalidInput` if there is no such device or medium, or a device does not fit.
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
            campaign.lives_large += u64::from(life.pages == LARGE_PAGES);
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

/// The source of lives.
enum Next {
    Random { rng: Rng, limits: Vec<Limits>, large: Option<Limits>, cut_at: &'static [CutAt] },
    Listed(std::vec::IntoIter<Life>),
}

impl Next {
    /// The total number of lives, if it is known.
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

/// Runs all lives of `batch`, on several threads if requested; returns the outcomes in the same order. A life has
/// no outcome if runs were requested to end during it.
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

/// Shrinks a life that breaks a promise, until runs are requested to end.
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
