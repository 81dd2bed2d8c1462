//! Every cut of one load, or every passing error in it, on a new device or on one that is already being cleaned.
use tantalum_base::{Error, ErrorKind, Limits, PageNo, PageRange, Result, Rng};
use tantalum_media::{Fate, IoClass, Reach};

use super::campaign::{CampaignOptions, PAGES};
use super::command::Command;
use super::generate::Workload;
use super::life::{Cut, CutAt, End, Life, PowerOn};
use super::passing::{Passing, Span};
use super::registry::Lives;
use super::run::Outcome;

/// Minimum number of zones or blocks that are emptied while a device is aged: all have been used then, most of them again.
const CLEANED_MIN: u64 = 12;
/// Maximum number of rounds of overwrites for that.
const ROUNDS_MAX: u64 = 64;

/// The faults at every operation of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhaustive {
    /// A power cut at every operation with every fate; then at every operation of each recovery, with fates in turn; and
    /// after each of those another cut in the next recovery.
    Cuts,
    /// I/O errors at every operation, including reads and scans, one and three in a row: of the load, of the recovery after
    /// it, and of the load after that.
    Errors,
}

/// The lives with all faults of one load.
pub(super) struct Every {
    /// The outcome of the load without faults.
    pub(super) dry: Outcome,
    pub(super) lives: Vec<Life>,
}

/// One load with the faults of `exhaustive` everywhere. An aged device loses its power after the aging, so that the load's
/// first operations are those of a recovery.
///
/// # Errors
/// `InvalidInput` if the device does not fit, or is never cleaned.
pub(super) fn every(
    lives: &dyn Lives,
    options: &CampaignOptions,
    exhaustive: Exhaustive,
) -> Result<Every> {
    let (life, first) = load(lives, options)?;
    let dry = lives.live(&life);
    let lives = match exhaustive {
        Exhaustive::Cuts => every_cut(lives, &life, first, &dry),
        Exhaustive::Errors => every_error(lives, &life, first),
    };
    Ok(Every { dry, lives })
}

/// A life with the load and a second one, to continue with, both of the workload's full size; and the number of the power-on
/// period of the first.
fn load(lives: &dyn Lives, options: &CampaignOptions) -> Result<(Life, usize)> {
    let pages = lives.pages().unwrap_or(*PAGES.last().expect("there are some"));
    let limits = lives.limits(pages)?;
    let workload = Workload { power_ons: 2, ..options.workload.clone() };
    let mut life = workload.life(&limits, options.seed)?;
    let mut rng = Rng::split(options.seed, "exhaustive");
    let loads = (0..2).map(|_| workload.load(&limits, &mut rng)).collect::<Vec<_>>();
    life.power_ons =
        loads.into_iter().map(|clients| PowerOn { clients, ..PowerOn::default() }).collect();
    let mut first = 0;
    if options.aged {
        life.power_ons.insert(0, aging(lives, &limits, options.seed)?);
        first = 1;
    }
    Ok((life, first))
}

fn every_cut(lives: &dyn Lives, life: &Life, first: usize, dry: &Outcome) -> Vec<Life> {
    let mut all = Vec::new();
    let Some(operations) = dry.operations.get(first).copied() else { return all };
    for at in CutAt::ALL {
        for after in 0..operations.at(at) {
            for fate in Fate::ALL {
                let mut cut = life.clone();
                cut.power_ons[first].end = End::Cut(Cut { at, after, fate });
                if fate == Fate::ALL[(after % 3) as usize] {
                    cut_recoveries(lives, &cut, first + 1, after, &mut all);
                }
                all.push(cut);
            }
        }
    }
    all
}

/// Number of operations that fail in a row: one, or enough that an immediate retry fails, too.
const ERRORS_IN_A_ROW: [u64; 2] = [1, 3];

/// Lives of the device with errors at one operation each, up to the last operation. If the device has no part beside its
/// medium, no error occurs there.
fn every_error(lives: &dyn Lives, life: &Life, first: usize) -> Vec<Life> {
    let mut all = Vec::new();
    for power_on in first..life.power_ons.len() {
        for at in CutAt::ALL.into_iter().filter(|at| *at != CutAt::Nvram) {
            for (class, errors) in IoClass::ALL
                .into_iter()
                .flat_map(|class| ERRORS_IN_A_ROW.map(|errors| (class, errors)))
            {
                let failing = (0..).map(|nth: u64| {
                    let span = Span::Operations(nth..nth + errors);
                    let reach = Reach::Everything;
                    let mut failing = life.clone();
                    let passing = Passing { at, classes: vec![class], span, reach };
                    failing.power_ons[power_on].passing = vec![passing];
                    failing
                });
                all.extend(failing.take_while(|life| lives.live(life).io_errors > 0));
            }
        }
    }
    all
}

/// The lives in which the recovery after the cut of `life`, in the power-on period with number `recovery`, is cut too, at
/// each of its operations.
fn cut_recoveries(
    lives: &dyn Lives,
    life: &Life,
    recovery: usize,
    number: u64,
    all: &mut Vec<Life>,
) {
    let operations = lives.live(life).recovery_operations;
    let Some(operations) = operations.get(recovery) else { return };
    for at in CutAt::ALL {
        let operations = operations.at(at);
        for after in 0..operations {
            let fate = Fate::ALL[((after + number) % 3) as usize];
            let cut = PowerOn { end: End::Cut(Cut { at, after, fate }), ..PowerOn::default() };
            let mut once = life.clone();
            once.power_ons.insert(recovery, cut);
            let mut twice = once.clone();
            let again = (after * 7 + number) % operations;
            let end = End::Cut(Cut { at, after: again, fate });
            twice.power_ons.insert(recovery + 1, PowerOn { end, ..PowerOn::default() });
            all.extend([once, twice]);
        }
    }
}

/// A power-on period in which every page is written, and then random pages until enough zones were emptied that the device
/// counts as old.
///
/// # Errors
/// `InvalidInput` if it is never cleaned.
fn aging(lives: &dyn Lives, limits: &Limits, seed: u64) -> Result<PowerOn> {
    let mut rng = Rng::split(seed, "aging");
    let len = u64::from(limits.atomic_write_pages_max).clamp(1, 8);
    let fill = (0..limits.pages)
        .step_by(len as usize)
        .map(|first| Command::Write(PageRange::new(PageNo(first), len.min(limits.pages - first))));
    let mut commands: Vec<Command> = fill.collect();
    for _ in 0..ROUNDS_MAX {
        commands.extend(
            (0..limits.pages)
                .map(|_| Command::Write(PageRange::new(PageNo(rng.below(limits.pages)), 1))),
        );
        let power_on = PowerOn { clients: vec![commands.clone()], ..PowerOn::default() };
        let life = Life { seed, pages: limits.pages, power_ons: vec![power_on.clone()] };
        if lives.live(&life).coverage.cleaned >= CLEANED_MIN {
            return Ok(power_on);
        }
    }
    let context = format!("{} is not cleaned, however often it is written", lives.device());
    Err(Error::new(ErrorKind::InvalidInput, context))
}
