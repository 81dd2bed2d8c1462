//! One scenario: load, cut, recover (cut again where asked), verify, go on, verify.
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use tantalum_base::{Durability, Error, ErrorKind, PageDevice, PageNo, Payload, Result};
use tantalum_media::{CutPlan, Fate, PowerCut};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;

use super::powered::Powered;
use super::rig::Rig;
use super::subject::{Coverage, Opening, Subject};
use super::verify::{Client, find_state};
use super::workload::{Command, Contents, Shape, Violation, commands, content};

/// Where power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Media operations that complete before.
    pub after: u64,
    /// What becomes of the one that is cut.
    pub fate: Fate,
}

/// A workload on a device, and the cuts it must survive.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The load.
    pub shape: Shape,
    /// Seed of load, schedule and chance.
    pub seed: u64,
    /// The cut during the load; none: the power goes when the load is done.
    pub cut: Option<Cut>,
    /// A second cut, inside recovery.
    pub cut_in_recovery: Option<Cut>,
}

/// What a scenario came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashOutcome {
    /// Media operations of the load.
    pub operations: u64,
    /// Media operations of the (first) recovery.
    pub recovery_operations: u64,
    /// What the load reached.
    pub coverage: Coverage,
    /// Commands that the recovered state holds.
    pub recovered_commands: usize,
    /// Broken promises.
    pub violations: Vec<Violation>,
}

/// How a stretch of virtual time ended.
enum Ended<T> {
    /// The main future is done.
    Done(T),
    /// The power went in it.
    Cut,
    /// It stood still or panicked; what was wrong.
    Wrong(String),
}

/// Runs `main` until it is done or the power goes.
fn powered<T: 'static>(runtime: &Virtual, main: impl Future<Output = T> + 'static) -> Ended<T> {
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.run(main)));
    match ran {
        Ok(Ok(done)) => Ended::Done(done),
        Ok(Err(deadlock)) => Ended::Wrong(deadlock.to_string()),
        Err(payload) if PowerCut::is(&*payload) => Ended::Cut,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Ended::Wrong(format!("panicked: {}", text.unwrap_or("without a word")))
        }
    }
}

/// A device between two power-ons: its medium and what else survives.
struct Bench<R: Rig, S: Subject<Powered<R::Media>>> {
    rig: R,
    subject: S,
    kept: S::Kept,
    pages: u64,
}

impl<R: Rig, S: Subject<Powered<R::Media>>> Bench<R, S> {
    /// Power comes on.
    fn open(&mut self, runtime: &Virtual) -> Opening<Powered<R::Media>, S::Kept> {
        let media = self.rig.open(runtime);
        Opening {
            runtime: runtime.clone(),
            media: Powered::new(media, self.rig.cut_watch()),
            pages: self.pages,
            kept: self.kept.clone(),
        }
    }

    /// Power is gone: what was in flight meets its fate, and the device does what it does on
    /// stored energy.
    fn dark(
        &mut self,
        runtime: Virtual,
        device: Option<Rc<S::Device>>,
        outcome: &mut CrashOutcome,
    ) {
        runtime.drop_tasks();
        let mut settle = |rig: &mut R, runtime: &Virtual| {
            if let Err(error) = rig.settle(runtime) {
                outcome.violations.push(Violation(format!("the rig failed: {error}")));
            }
        };
        settle(&mut self.rig, &runtime);
        let Some(device) = device.filter(|_| S::HAS_STORED_ENERGY) else { return };
        let runtime = Virtual::new(Schedule::Fifo);
        let (subject, opening) = (self.subject.clone(), self.open(&runtime));
        let dumped =
            powered(&runtime, async move { subject.on_stored_energy(device, opening).await });
        runtime.drop_tasks();
        settle(&mut self.rig, &runtime);
        let wrong = match dumped {
            Ended::Done(Ok(())) => return,
            Ended::Done(Err(error)) => format!("{error:?}"),
            Ended::Cut => "no cut falls there".to_owned(),
            Ended::Wrong(wrong) => wrong,
        };
        outcome.violations.push(Violation(format!("on stored energy: {wrong}")));
    }
}

/// Runs `scenario` of `subject` on a fresh rig.
pub fn run<R: Rig, S: Subject<Powered<R::Media>>>(
    subject: &S,
    scenario: &Scenario,
) -> CrashOutcome {
    let mut outcome = CrashOutcome::default();
    let mut bench = Bench {
        rig: R::with_more_zones(scenario.seed, subject.more_zones()),
        subject: subject.clone(),
        kept: subject.kept(),
        pages: scenario.shape.pages,
    };
    let client = Rc::new(RefCell::new(Client::default()));
    let commands = Rc::new(commands(&scenario.shape, scenario.seed));
    load(&mut bench, scenario, &client, &commands, &mut outcome);
    if let Some(cut) = scenario.cut_in_recovery {
        cut_recovery(&mut bench, scenario, cut, &mut outcome);
    }
    for round in 0..2 {
        if !reopen(&mut bench, scenario, &client, &commands, round, &mut outcome) {
            break;
        }
    }
    outcome.violations.append(&mut client.borrow_mut().violations);
    outcome
}

/// A recovery into which a cut falls; it succeeds where it is over before.
fn cut_recovery<R: Rig, S: Subject<Powered<R::Media>>>(
    bench: &mut Bench<R, S>,
    scenario: &Scenario,
    cut: Cut,
    outcome: &mut CrashOutcome,
) {
    let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 2));
    let opening = bench.open(&runtime);
    bench.rig.plan(CutPlan { after_operations: cut.after, fate: cut.fate });
    let subject = bench.subject.clone();
    let ended = powered(&runtime, async move { subject.reopen(opening).await });
    outcome.recovery_operations = bench.rig.operations();
    let device = match ended {
        Ended::Done(Ok(device)) => Some(device),
        Ended::Cut => None,
        Ended::Done(Err(error)) => {
            outcome.violations.push(Violation(format!("the first recovery failed: {error}")));
            None
        }
        Ended::Wrong(wrong) => {
            outcome.violations.push(Violation(format!("the first recovery: {wrong}")));
            None
        }
    };
    bench.dark(runtime, device, outcome);
}

/// Opens the device, looks at what is there and writes on. Tells whether it went well.
fn reopen<R: Rig, S: Subject<Powered<R::Media>>>(
    bench: &mut Bench<R, S>,
    scenario: &Scenario,
    client: &Rc<RefCell<Client>>,
    commands: &Rc<Vec<Command>>,
    round: u32,
    outcome: &mut CrashOutcome,
) -> bool {
    let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 3));
    let opening = bench.open(&runtime);
    let (subject, scenario_of_task) = (bench.subject.clone(), *scenario);
    let (rt, client, commands) = (runtime.clone(), Rc::clone(client), Rc::clone(commands));
    let opened = powered(&runtime, async move {
        let device = subject.reopen(opening).await?;
        subject.validate(&device);
        subject.start(&rt, &device);
        let found = find_state(&*device, &scenario_of_task, &client, &commands, round).await?;
        if round == 0 {
            go_on(&*device, &scenario_of_task).await?;
        }
        subject.close(&device).await?;
        subject.validate(&device);
        Ok::<_, Error>((found, device))
    });
    if scenario.cut_in_recovery.is_none() && round == 0 {
        outcome.recovery_operations = bench.rig.operations();
    }
    let (found, device) = match opened {
        Ended::Done(Ok(found)) => found,
        Ended::Done(Err(error)) => {
            outcome.violations.push(Violation(format!("opening {round} failed: {error:?}")));
            return false;
        }
        Ended::Cut => {
            outcome.violations.push(Violation(format!("opening {round}: no cut falls there")));
            return false;
        }
        Ended::Wrong(wrong) => {
            outcome.violations.push(Violation(format!("opening {round}: {wrong}")));
            return false;
        }
    };
    match found {
        Ok(commands) => outcome.recovered_commands = commands,
        Err(violation) => outcome.violations.push(violation),
    }
    bench.dark(runtime, Some(device), outcome);
    true
}

/// Runs `scenario` without any cut and returns how many operations load and recovery have.
pub fn dry_run<R: Rig, S: Subject<Powered<R::Media>>>(
    subject: &S,
    scenario: &Scenario,
) -> CrashOutcome {
    run::<R, S>(subject, &Scenario { cut: None, cut_in_recovery: None, ..*scenario })
}

/// The load, up to the cut.
fn load<R: Rig, S: Subject<Powered<R::Media>>>(
    bench: &mut Bench<R, S>,
    scenario: &Scenario,
    client: &Rc<RefCell<Client>>,
    commands: &Rc<Vec<Command>>,
    outcome: &mut CrashOutcome,
) {
    let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 1));
    let opening = bench.open(&runtime);
    let subject = bench.subject.clone();
    let device = match powered(&runtime, async move { subject.format(opening).await }) {
        Ended::Done(Ok(device)) => device,
        Ended::Done(Err(error)) => {
            outcome.violations.push(Violation(format!("formatting failed: {error}")));
            return;
        }
        Ended::Cut => return,
        Ended::Wrong(wrong) => {
            outcome.violations.push(Violation(format!("formatting: {wrong}")));
            return;
        }
    };
    bench.subject.start(&runtime, &device);
    let before = bench.rig.operations();
    if let Some(cut) = scenario.cut {
        bench.rig.plan(CutPlan { after_operations: cut.after, fate: cut.fate });
    }
    let durability = device.limits().durability;
    let mut contents = Contents::empty(scenario.shape.pages);
    for command in commands.iter() {
        client.borrow_mut().issued += 1;
        let (task, number) = (Rc::clone(commands), client.borrow().issued - 1);
        let (of_task, expected) = (Rc::clone(&device), contents.clone());
        let ended =
            powered(&runtime, async move { perform(&*of_task, &task[number], &expected).await });
        match ended {
            Ended::Done(Ok(())) => {}
            Ended::Done(Err(error)) => client
                .borrow_mut()
                .violations
                .push(Violation(format!("command {number} {command:?} failed: {error:?}"))),
            Ended::Cut => break,
            Ended::Wrong(wrong) => {
                let violation = Violation(format!("command {number} {command:?}: {wrong}"));
                client.borrow_mut().violations.push(violation);
                break;
            }
        }
        contents.apply(command);
        let mut client = client.borrow_mut();
        client.acknowledged = number + 1;
        let flushed = matches!(command, Command::Flush | Command::Commit(_));
        if durability == Durability::OnAck || flushed {
            client.durable = number + 1;
        }
    }
    outcome.operations = bench.rig.operations() - before;
    outcome.coverage = bench.subject.coverage(&device);
    client.borrow_mut().durability = Some(durability);
    bench.dark(runtime, Some(device), outcome);
}

/// Performs one command; reads are compared with `expected`.
async fn perform<D: PageDevice>(device: &D, command: &Command, expected: &Contents) -> Result<()> {
    match command {
        Command::Write { first, counts } => {
            let numbered = counts.iter().enumerate();
            let pages: Vec<D::Page> =
                numbered.map(|(at, count)| content(PageNo(first.0 + at as u64), *count)).collect();
            device.write(*first, &pages, None).await
        }
        Command::Commit(pages) | Command::Abort(pages) => {
            let tx = device.begin().await?;
            for (page, count) in pages {
                device.write(*page, &[content::<D::Page>(*page, *count)], Some(tx)).await?;
                let mut seen = [D::Page::zero()];
                device.read(*page, &mut seen, None).await?;
                compare(*page, &seen[0], expected.get(*page), "outside of the transaction")?;
                device.read(*page, &mut seen, Some(tx)).await?;
                compare(*page, &seen[0], *count, "inside of the transaction")?;
            }
            match command {
                Command::Commit(_) => device.commit(tx).await,
                _ => device.abort(tx).await,
            }
        }
        Command::Trim(range) => device.trim(*range).await,
        Command::Flush => device.flush().await,
        Command::Read(page) => {
            let mut seen = [D::Page::zero()];
            device.read(*page, &mut seen, None).await?;
            compare(*page, &seen[0], expected.get(*page), "in the running load")
        }
    }
}

fn compare<P: Payload>(page: PageNo, seen: &P, count: u64, place: &str) -> Result<()> {
    if *seen == content::<P>(page, count) {
        return Ok(());
    }
    let context = format!("page {page} {place} is not write {count} but {seen:?}");
    Err(Error::new(ErrorKind::Checksum, context))
}

/// What is written after a recovery, to see that the device works on.
pub(super) fn later(scenario: &Scenario) -> Vec<Command> {
    let write = |page: u64| Command::Write {
        first: PageNo(page % scenario.shape.pages),
        counts: vec![1_000_000 + page],
    };
    (0..20).map(|number| write(number * 7)).chain([Command::Flush]).collect()
}

async fn go_on<D: PageDevice>(device: &D, scenario: &Scenario) -> Result<()> {
    let nothing = Contents::empty(scenario.shape.pages);
    for command in later(scenario) {
        perform(device, &command, &nothing).await?;
    }
    Ok(())
}
