//! One scenario: load, cut, recover (cut again where asked), verify, go on, verify.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Durability, Error, ErrorKind, PageDevice, PageNo, Payload, Result};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ZoneMedia;
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_ssd::{CacheKind, Ssd, SsdOptions, WriteCache};

use super::rig::{Fate, Rig};
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
    /// The device's promise.
    pub cache: CacheKind,
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
    /// Zones cleaned and checkpoints written during the load.
    pub cleaned_and_checkpoints: (u64, u64),
    /// Commands that the recovered state holds.
    pub recovered_commands: usize,
    /// Broken promises.
    pub violations: Vec<Violation>,
}

type SharedCache<M> = Option<Rc<RefCell<WriteCache<<M as ZoneMedia>::Page>>>>;

fn ssd_options(cache: CacheKind) -> SsdOptions {
    let mut options = SsdOptions::new(cache, 24);
    options.write_back_start_pages = 8;
    options.write_backs_in_flight = 2;
    options
}

fn ftl_options(pages: u64) -> FtlOptions {
    // Often enough that a small load crosses several checkpoints.
    FtlOptions { checkpoint_interval_slots: 64, ..FtlOptions::new(pages) }
}

/// Runs `scenario` on a fresh rig.
pub fn run<R: Rig>(scenario: &Scenario) -> CrashOutcome {
    let mut outcome = CrashOutcome::default();
    let mut rig = R::new(scenario.seed);
    let client = Rc::new(RefCell::new(Client::default()));
    let commands = Rc::new(commands(&scenario.shape, scenario.seed));
    let survived = load(&mut rig, scenario, &client, &commands, &mut outcome);
    let mut durable_cache = survived;
    if let Some(cut) = scenario.cut_in_recovery {
        let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 2));
        let media = rig.open(&runtime);
        rig.plan(cut.after, cut.fate);
        let options = ftl_options(scenario.shape.pages);
        // It fails where the cut falls into it, and succeeds where it is over before.
        let recovered = runtime.run(async move { Ftl::recover(media, options).await.map(|_| ()) });
        outcome.recovery_operations = rig.operations();
        if let (Ok(Err(error)), false) = (&recovered, rig.is_cut()) {
            outcome.violations.push(Violation(format!("the first recovery failed: {error}")));
        }
        runtime.drop_tasks();
        settle(&mut rig, &runtime, &mut outcome);
    }
    for round in 0..2 {
        let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 3));
        let media = rig.open(&runtime);
        let opened = {
            let (options, scenario) = (ftl_options(scenario.shape.pages), *scenario);
            let cache = durable_cache.take();
            let rt = runtime.clone();
            let client = Rc::clone(&client);
            let commands = Rc::clone(&commands);
            runtime.run(async move {
                let (ftl, _) = Ftl::recover(media, options).await?;
                ftl.validate();
                let ssd = Rc::new(Ssd::new(ftl, ssd_options(scenario.cache), cache)?);
                ssd.start(&rt);
                let found = find_state(&*ssd, &scenario, &client, &commands, round).await?;
                if round == 0 {
                    go_on(&*ssd, &scenario).await?;
                }
                ssd.close().await?;
                ssd.ftl().validate();
                Ok::<_, Error>((found, ssd.write_cache()))
            })
        };
        if scenario.cut_in_recovery.is_none() && round == 0 {
            outcome.recovery_operations = rig.operations();
        }
        match opened {
            Ok(Ok((found, cache))) => {
                match found {
                    Ok(commands) => outcome.recovered_commands = commands,
                    Err(violation) => outcome.violations.push(violation),
                }
                durable_cache = (scenario.cache == CacheKind::Durable).then_some(cache);
            }
            Ok(Err(error)) => {
                outcome.violations.push(Violation(format!("opening {round} failed: {error:?}")));
                break;
            }
            Err(deadlock) => {
                outcome.violations.push(Violation(format!("opening {round}: {deadlock}")));
                break;
            }
        }
        runtime.drop_tasks();
        settle(&mut rig, &runtime, &mut outcome);
    }
    outcome.violations.append(&mut client.borrow_mut().violations);
    outcome
}

/// Runs `scenario` without any cut and returns how many operations load and recovery have.
pub fn dry_run<R: Rig>(scenario: &Scenario) -> CrashOutcome {
    run::<R>(&Scenario { cut: None, cut_in_recovery: None, ..*scenario })
}

fn settle<R: Rig>(rig: &mut R, runtime: &Virtual, outcome: &mut CrashOutcome) {
    if let Err(error) = rig.settle(runtime) {
        outcome.violations.push(Violation(format!("the rig failed: {error}")));
    }
}

/// The load, up to the cut; what a durable cache holds then.
fn load<R: Rig>(
    rig: &mut R,
    scenario: &Scenario,
    client: &Rc<RefCell<Client>>,
    commands: &Rc<Vec<Command>>,
    outcome: &mut CrashOutcome,
) -> SharedCache<R::Media> {
    let runtime = Virtual::new(Schedule::Shuffled(scenario.seed ^ 1));
    let media = rig.open(&runtime);
    let options = ftl_options(scenario.shape.pages);
    let formatted = runtime.run(async move { Ftl::format(media, options).await });
    let ssd = match formatted {
        Ok(Ok(ftl)) => Ssd::new(ftl, ssd_options(scenario.cache), None).map(Rc::new),
        Ok(Err(error)) => Err(error),
        Err(deadlock) => Err(Error::with_source(ErrorKind::Corrupt, "formatting", deadlock)),
    };
    let ssd = match ssd {
        Ok(ssd) => ssd,
        Err(error) => {
            outcome.violations.push(Violation(format!("formatting failed: {error}")));
            return None;
        }
    };
    ssd.start(&runtime);
    let before = rig.operations();
    if let Some(cut) = scenario.cut {
        rig.plan(cut.after, cut.fate);
    }
    let durability = ssd.limits().durability;
    let mut contents = Contents::empty(scenario.shape.pages);
    for command in commands.iter() {
        client.borrow_mut().issued += 1;
        let (device, task, number) =
            (Rc::clone(&ssd), Rc::clone(commands), client.borrow().issued - 1);
        let expected = contents.clone();
        let ended = runtime.run(async move { perform(&*device, &task[number], &expected).await });
        if rig.is_cut() {
            // An answer that came after the cut never reached anybody.
            break;
        }
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => client
                .borrow_mut()
                .violations
                .push(Violation(format!("command {number} {command:?} failed: {error:?}"))),
            Err(deadlock) => {
                client
                    .borrow_mut()
                    .violations
                    .push(Violation(format!("command {number}: {deadlock}")));
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
    outcome.operations = rig.operations() - before;
    let statistics = ssd.statistics().ftl;
    outcome.cleaned_and_checkpoints = (statistics.zones_cleaned, statistics.checkpoints);
    runtime.drop_tasks();
    settle(rig, &runtime, outcome);
    (scenario.cache == CacheKind::Durable).then(|| ssd.write_cache())
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
