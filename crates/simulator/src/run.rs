//! Runs the life of a device and checks every promise in every power-on period.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_media::IoClass;
use tantalum_models::SimulatedDevice;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Virtual};

use super::bench::{Bench, Ended, powered};
use super::command::Command;
use super::damage::Damage;
use super::excuses::Latching;
use super::history::History;
use super::life::{End, Life, Operations, PowerOn, Violation};
use super::moments;
use super::rig::Rig;
use super::stay::Stay;
use super::subject::{Coverage, Damaged, FailedProgram, Kept, Subject, Tested, WithoutMedium};
use super::verify::{self, Sure};

/// The result of a life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Power cuts after which the device was recovered and every page of it verified.
    pub cuts: u64,
    /// Power cuts during a recovery; the recovery after it was cut again or verified.
    pub cuts_in_recovery: u64,
    /// Commands that were issued.
    pub commands: u64,
    /// Numbers of operations of the medium and the parts beside it, in each power-on period (since
    /// the format, the first time), at which a cut can occur. The last entry is the verification at
    /// the end.
    pub operations: Vec<Operations>,
    /// Number of these that belong to the recovery.
    pub recovery_operations: Vec<Operations>,
    /// The parts of the device that the loads reached.
    pub coverage: Coverage,
    /// Checks, of a read or after a cut, that were given up: there are too many orders of the
    /// commands, and those tried explain nothing.
    pub undecided: u64,
    /// Slots of the medium that were damaged or lost.
    pub decayed: u64,
    /// Operations that failed because of errors that pass.
    pub io_errors: u64,
    /// Openings that were refused because something that recovery needs was damaged; a life ends with
    /// one.
    pub refused: u64,
    /// Number of comparisons of the content that remains without the medium.
    pub rescued: u64,
    /// Number of these in which it was newer than the time before.
    pub rescued_newer: u64,
    /// Broken promises; a life ends with the first power-on period that breaks one.
    pub violations: Vec<Violation>,
}

/// Runs `life` on a fresh rig.
pub fn run<R: Rig, K: Tested<R::Page>>(subject: &Subject<K>, life: &Life) -> Outcome {
    run_looking::<R, K>(subject, life, verify::STATES_MAX)
}

/// Runs `life`; checks visit at most `states_max` states of a search.
fn run_looking<R: Rig, K: Tested<R::Page>>(
    subject: &Subject<K>,
    life: &Life,
    states_max: usize,
) -> Outcome {
    let mut living = Living::<R, K>::new(subject, life, states_max);
    for (number, power_on) in life.power_ons.iter().enumerate() {
        if !living.go_through(number, power_on) {
            return living.outcome;
        }
    }
    let last = PowerOn { end: End::Close, ..PowerOn::default() };
    living.go_through(life.power_ons.len(), &last);
    living.outcome
}

struct Living<R: Rig, K: Tested<R::Page>> {
    bench: Bench<R, K>,
    seed: u64,
    history: Rc<RefCell<History<R::Page>>>,
    violations: Rc<RefCell<Vec<Violation>>>,
    next_content: u64,
    /// Power cuts since the device was last verified.
    unverified_cuts: u64,
    states_max: usize,
    outcome: Outcome,
}

/// The results of a power-on period so far, also if the power is cut.
struct Session<D> {
    device: RefCell<Option<Rc<D>>>,
    verified: Cell<bool>,
    recovery: Cell<Operations>,
    refused: Cell<bool>,
}

impl<R: Rig, K: Tested<R::Page>> Living<R, K> {
    fn new(subject: &Subject<K>, life: &Life, states_max: usize) -> Self {
        let is_told = subject.promises.damaged != Damaged::IsNotTold;
        let mut bench = Bench::new(subject, life.seed, life.pages)
            .unwrap_or_else(|error| panic!("the device's limits were asked for: {error}"));
        let mut history = History::new(life.pages);
        if subject.promises.without_medium != WithoutMedium::Nothing {
            bench.kept.tell_time(Rc::new(history.keep_moments()));
        }
        if is_told && life.is_damaged() {
            bench.damage = Damage::new(history.clock(), subject.promises.acknowledges_early);
        }
        Living {
            bench,
            seed: life.seed,
            history: Rc::new(RefCell::new(history)),
            violations: Rc::default(),
            next_content: 1,
            unverified_cuts: 0,
            states_max,
            outcome: Outcome::default(),
        }
    }

    /// One power-on period from the first operation until the power is off. Returns whether all was
    /// well.
    fn go_through(&mut self, number: usize, power_on: &PowerOn) -> bool {
        let seed = self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let runtime = Virtual::new(Schedule::Shuffled(seed));
        let session = Rc::new(Session {
            device: RefCell::new(None),
            verified: Cell::new(false),
            recovery: Cell::default(),
            refused: Cell::new(false),
        });
        let mut before = self.bench.counts()().beside_the_medium();
        let mut ended = Ended::Done(());
        if number == 0 {
            ended = self.format(&runtime, &session, power_on);
            before = self.bench.counts()();
        }
        if matches!(ended, Ended::Done(())) {
            ended = self.live(&runtime, &session, power_on, number == 0);
        }
        self.outcome.io_errors += self.bench.errors().failed(&IoClass::ALL);
        self.outcome.operations.push(self.bench.counts()().since(before));
        self.outcome.recovery_operations.push(session.recovery.get().since(before));
        let is_cut = matches!(ended, Ended::Cut);
        if let Ended::Wrong(wrong) = ended {
            self.violate(number, wrong);
        }
        let device = session.device.take();
        if let Some(device) = &device {
            self.outcome.coverage.add(device.counters().into());
        }
        if let Err(wrong) = self.bench.dark(runtime, device, &power_on.strikes) {
            self.violate(number, wrong);
        }
        if let Err(wrong) = self.look_without_medium() {
            self.violate(number, format!("without the medium: {wrong}"));
        }
        self.outcome.undecided += std::mem::take(&mut self.history.borrow_mut().undecided);
        self.count_cuts(is_cut, session.verified.get(), power_on.end);
        let violations: Vec<Violation> = self.violations.borrow_mut().drain(..).collect();
        violations.into_iter().for_each(|violation| self.violate(number, violation.0));
        self.outcome.decayed = self.bench.damage.count();
        self.outcome.refused += u64::from(session.refused.get());
        self.outcome.violations.is_empty() && !session.refused.get()
    }

    fn count_cuts(&mut self, is_cut: bool, verified: bool, end: End) {
        if verified && self.unverified_cuts > 0 {
            self.outcome.cuts += 1;
            self.outcome.cuts_in_recovery += self.unverified_cuts - 1;
            self.unverified_cuts = 0;
        }
        // A close in good order leaves nothing that could be cut.
        if is_cut || end != End::Close {
            self.unverified_cuts += 1;
        }
    }

    /// Pretends that the medium is lost, and checks the remaining content.
    fn look_without_medium(&mut self) -> Result<(), String> {
        let promised = self.bench.subject.promises.without_medium;
        if promised == WithoutMedium::Nothing {
            return Ok(());
        }
        let alone = self.bench.kept.without_medium().map_err(|error| format!("{error:?}"))?;
        let Some(alone) = alone else { return Ok(()) };
        let mut history = self.history.borrow_mut();
        let lost = self.bench.damage.excuses_in(&history).lost;
        let all = promised == WithoutMedium::Everything;
        let (sure, is_newer) = moments::check(&alone, &mut history, &lost, all, self.states_max)?;
        history.undecided += u64::from(sure == Sure::Undecided);
        self.outcome.rescued += 1;
        self.outcome.rescued_newer += u64::from(is_newer);
        Ok(())
    }

    fn violate(&mut self, number: usize, wrong: String) {
        let violation = Violation(format!("power-on {number}: {wrong}"));
        self.outcome.violations.push(violation);
    }

    fn format(
        &mut self,
        runtime: &Virtual,
        session: &Rc<Session<K::Device>>,
        power_on: &PowerOn,
    ) -> Ended<()> {
        let (kind, on) = self.bench.open(runtime, power_on);
        match powered(runtime, async move { kind.format(on).await }) {
            Ended::Done(Ok(device)) => {
                *session.device.borrow_mut() = Some(device);
                Ended::Done(())
            }
            Ended::Done(Err(error)) => Ended::Wrong(format!("formatting failed: {error:?}")),
            Ended::Cut => Ended::Wrong("formatting: no cut falls there".to_owned()),
            Ended::Wrong(wrong) => Ended::Wrong(format!("formatting: {wrong}")),
        }
    }

    /// Recovery (except the first time), verification, the clients, and the end.
    fn live(
        &mut self,
        runtime: &Virtual,
        session: &Rc<Session<K::Device>>,
        power_on: &PowerOn,
        is_new: bool,
    ) -> Ended<()> {
        let opening = (!is_new).then(|| self.bench.open(runtime, power_on));
        if let End::Cut(cut) = power_on.end {
            self.bench.plan(cut);
        }
        self.bench.rig.fail_programs(&power_on.failing_programs);
        self.bench.rig.fail_io(&power_on.io_faults);
        self.bench.pass(runtime, &power_on.passing);
        let promises = self.bench.subject.promises;
        let clients = self.number(&power_on.clients);
        let closes = power_on.end == End::Close;
        let fails = !power_on.failing_programs.is_empty();
        let may_latch = Latching {
            programs: fails && promises.failed_program == FailedProgram::Latches,
            io: R::FAILS_IO && !power_on.io_faults.is_empty(),
            passing: !power_on.passing.is_empty(),
            awaits_home: promises.without_medium == WithoutMedium::Everything,
            is_damaged: false,
        };
        let (counts, is_cut) = (self.bench.counts(), self.bench.cut_watch());
        let stay = Stay {
            runtime: runtime.clone(),
            history: Rc::clone(&self.history),
            violations: Rc::clone(&self.violations),
            is_cut: Rc::new(is_cut),
            promises,
            may_latch,
            errors: self.bench.errors(),
            damage: self.bench.damage.clone(),
            states_max: self.states_max,
        };
        let (rt, session) = (runtime.clone(), Rc::clone(session));
        let main = async move {
            let device = match opening {
                None => session.device.borrow().clone().expect("formatted just now"),
                Some((kind, on)) => match kind.open(on).await {
                    // Nothing was checked; the next power-on period finds everything unchanged.
                    Err(error) if may_latch.excuses(&error) => return Ok(()),
                    Err(error) if stay.may_refuse(&error) => {
                        session.refused.set(true);
                        return Ok(());
                    }
                    opened => opened?.0,
                },
            };
            session.recovery.set(counts());
            *session.device.borrow_mut() = Some(Rc::clone(&device));
            // Type erasure: the rest is compiled once for all kinds.
            let any = SimulatedDevice::new(Rc::clone(&device));
            if !is_new && !stay.verify(&any, &session.verified).await? {
                return Ok(());
            }
            device.start(&rt);
            stay.go_on(&any, clients).await?;
            if closes { stay.close(&any).await } else { Ok(()) }
        };
        match powered(runtime, main) {
            Ended::Done(Ok(())) => Ended::Done(()),
            Ended::Done(Err(error)) => Ended::Wrong(format!("{error:?}")),
            Ended::Cut => Ended::Cut,
            Ended::Wrong(wrong) => Ended::Wrong(wrong),
        }
    }

    /// Gives every command the numbers of its contents.
    fn number(&mut self, clients: &[Vec<Command>]) -> Vec<Vec<(Command, u64)>> {
        let mut next = |command: &Command| {
            let first = self.next_content;
            self.next_content += command.pages_written();
            self.outcome.commands += 1;
            (command.clone(), first)
        };
        // A client without commands does not count, as in the text.
        let clients = clients.iter().filter(|client| !client.is_empty());
        clients.map(|client| client.iter().map(&mut next).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NandRig, Workload, registry, subjects};
    use tantalum_base::Stamp;
    use tantalum_ssd::CacheKind;

    #[test]
    fn checks_that_are_given_up_are_counted_and_break_nothing() {
        let subject = subjects::ssd(CacheKind::Ordered);
        // Not by name: the tests of this crate would compile every device once more.
        let limits =
            registry::kind::<NandRig<Stamp>, _>("nand", subject.clone()).limits(24).unwrap();
        let workload = Workload::parse("mixed:clients=4").unwrap();
        let mut given_up = 0;
        for seed in 0..40 {
            let life = workload.life(&limits, seed).unwrap();
            let live = |states_max| run_looking::<NandRig<Stamp>, _>(&subject, &life, states_max);
            let (hasty, thorough) = (live(0), live(verify::STATES_MAX));
            assert_eq!(thorough.undecided, 0);
            assert_eq!((&hasty.violations, &thorough.violations), (&vec![], &vec![]));
            // The life continues after such a check.
            assert_eq!(hasty.cuts, thorough.cuts);
            given_up += hasty.undecided;
        }
        assert!(given_up > 0);
    }
}
