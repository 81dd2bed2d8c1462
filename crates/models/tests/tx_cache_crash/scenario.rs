//! One scenario: load, cut, recover (with another cut if requested), verify, continue, close,
//! verify.
use crate::tx_cache_crash::clients::{self, Client, Shape};
use crate::tx_cache_crash::rig::{Cut, Device, Rig};
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Payload, Stamp};
use tantalum_models::TxCacheOptions;
use tantalum_models::tx_cache::{TxCacheStatistics, TxRecoveryReport};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{LifeCycle, Runtime, Virtual};

#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub options: TxCacheOptions,
    pub shape: Shape,
    pub seed: u64,
    pub cut: Option<Cut>,
    pub cut_in_recovery: Option<Cut>,
}

/// Its result.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Numbers of NVRAM stores and medium operations in the load.
    pub load: (u64, u64),
    /// The same for the recovery that was not cut.
    pub recovery: (u64, u64),
    pub report: TxRecoveryReport,
    pub statistics: TxCacheStatistics,
}

type Clients = Rc<RefCell<Vec<Client>>>;

/// Runs `scenario`. Returns the broken promise, if there is one.
pub fn run(scenario: &Scenario) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let Scenario { options, shape, seed, .. } = *scenario;
    let mut rig = Rig::new(options, shape.pages(), seed);
    let clients: Vec<Client> = (0..shape.clients).map(|at| Client::new(&shape, at, seed)).collect();
    let clients = Rc::new(RefCell::new(clients));
    let runtime = Virtual::new(Schedule::Shuffled(seed ^ 1));
    let device = rig.format(&runtime);
    device.start(&runtime);
    rig.plan(&runtime, scenario.cut);
    load(&mut rig, &runtime, &device, &clients, shape)?;
    outcome.load = rig.counts();
    outcome.statistics = device.statistics();
    device.validate_cache();
    drop(device);
    rig.power_off(&runtime);
    if scenario.cut_in_recovery.is_some() {
        let runtime = Virtual::new(Schedule::Shuffled(seed ^ 2));
        let recovered = rig.recover(&runtime, scenario.cut_in_recovery);
        if let (Err(error), false) = (recovered, rig.is_cut()) {
            return Err(format!("the first recovery failed: {error}"));
        }
        rig.power_off(&runtime);
    }
    for round in 0..2 {
        let runtime = Virtual::new(Schedule::Shuffled(seed ^ 3));
        let (device, report) =
            rig.recover(&runtime, None).map_err(|error| format!("opening {round}: {error}"))?;
        if round == 0 {
            (outcome.recovery, outcome.report) = (rig.counts(), report);
        } else if (report.redone, report.undone, report.trim_redone) != (0, 0, false) {
            return Err(format!("a closed device had something to recover: {report:?}"));
        }
        device.validate_cache();
        device.start(&runtime);
        verify(&runtime, &device, &clients, &shape)
            .map_err(|text| format!("opening {round}: {text}; {report:?}"))?;
        if round == 0 {
            let commands = shape.commands.min(6);
            load(&mut rig, &runtime, &device, &clients, Shape { commands, ..shape })?;
            device.validate_cache();
            verify(&runtime, &device, &clients, &shape)?;
        }
        let closing = Rc::clone(&device);
        let closed = runtime.run(async move { closing.close().await });
        closed.map_err(|text| format!("closing: {text}"))?.map_err(|text| text.to_string())?;
        device.ftl().validate();
        drop(device);
        rig.power_off(&runtime);
    }
    Ok(outcome)
}

/// Runs the clients until all are done or the power is cut.
fn load(
    rig: &mut Rig,
    runtime: &Virtual,
    device: &Rc<Device>,
    clients: &Clients,
    shape: Shape,
) -> Result<(), String> {
    let mut states = Vec::new();
    let mut tasks = Vec::new();
    for client in clients.borrow().iter() {
        let client = Rc::new(RefCell::new(client.clone()));
        states.push(Rc::clone(&client));
        let run = clients::run(Rc::clone(device), client, shape, rig.watch());
        tasks.push(runtime.spawn("client", run));
    }
    let (handle, is_cut) = (runtime.clone(), rig.watch());
    let mut done = runtime.spawn("clients", async move {
        for task in tasks {
            task.await;
        }
    });
    let end = async move {
        // Polls now and then, because no one signals a power cut.
        let mut done = std::pin::pin!(&mut done);
        while !is_cut() {
            let ready = std::future::poll_fn(|context| {
                std::task::Poll::Ready(done.as_mut().poll(context).is_ready())
            });
            if ready.await {
                break;
            }
            handle.sleep(100_000).await;
        }
    };
    runtime.run(end).map_err(|deadlock| deadlock.to_string())?;
    *clients.borrow_mut() = states.iter().map(|state| state.borrow().clone()).collect();
    Ok(())
}

/// Checks the whole device.
fn verify(
    runtime: &Virtual,
    device: &Rc<Device>,
    clients: &Clients,
    shape: &Shape,
) -> Result<(), String> {
    let (reader, pages) = (Rc::clone(device), shape.pages());
    let contents = runtime.run(async move {
        let mut contents = Vec::new();
        for page in (0..pages).map(PageNo) {
            let mut out = [Stamp::zero()];
            reader.read(page, &mut out, None).await.map_err(|error| error.to_string())?;
            let [content] = out;
            if content != Stamp::zero() && content != Stamp::new(page, content.count) {
                return Err(format!("page {page} holds {content:?}"));
            }
            contents.push(content.count);
        }
        Ok(contents)
    });
    let contents = contents.map_err(|deadlock| deadlock.to_string())??;
    clients.borrow_mut().iter_mut().try_for_each(|client| client.verify(&contents))
}
