//! Replays a trace on a device in virtual time, every read checked.
//!
//! ```text
//! trace      page events in memory, pages numbered densely
//! expected   what each page must hold, and who is using it
//! clients    closed-loop clients: each has one request outstanding
//! age        fills and overwrites the device until cleaning is steady
//! row        what a run gives: throughput, latencies, wear
//! ```
mod age;
mod clients;
mod expected;
mod row;
#[cfg(test)]
mod tests;
mod trace;

pub use age::Age;
pub use row::{DeviceReplayRow, Latency};
pub use trace::DeviceTrace;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result, Stamp};
use tantalum_models::{DeviceSpec, SimulatedDevice};
use tantalum_runtime::Virtual;

use crate::work::Work;
pub use age::{age as age_device, age_bare};
use clients::Replay;
pub use expected::Expected;

/// The simulated device that is replayed on.
pub type Device = SimulatedDevice<Stamp>;

/// How to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReplayOptions {
    /// Clients; each sends its next request when the one before is done.
    pub clients: u32,
    /// The writes since the last commit point become one device transaction, and the commit point
    /// its commit; only with one client. Without, a commit point is a flush.
    pub transactions: bool,
    /// Preconditioning; `None` replays on a fresh device.
    pub age: Option<Age>,
    /// Seed of everything that is left to chance.
    pub seed: u64,
}

impl Default for DeviceReplayOptions {
    fn default() -> Self {
        DeviceReplayOptions { clients: 1, transactions: false, age: None, seed: 1 }
    }
}

/// Replays `trace` on a new device of `config`, and tells `work` how far it is.
///
/// # Errors
/// `InvalidInput` where the options contradict each other or the device; `Corrupt` where a read
/// does not give back what was written; the device's own; `Interrupted`
/// where runs are asked to end.
pub fn replay(
    trace: &Rc<DeviceTrace>,
    config: &DeviceSpec,
    options: &DeviceReplayOptions,
    work: &Arc<Work>,
) -> Result<DeviceReplayRow> {
    let what = format!("replay of {} on {}", trace.name, config.name());
    let (trace, config, options) = (Rc::clone(trace), config.clone(), options.clone());
    let work = Arc::clone(work);
    Virtual::alone(what, |runtime| async move {
        replay_on(&runtime, &trace, &config, &options, &work).await
    })
}

async fn replay_on(
    runtime: &Virtual,
    trace: &Rc<DeviceTrace>,
    config: &DeviceSpec,
    options: &DeviceReplayOptions,
    work: &Arc<Work>,
) -> Result<DeviceReplayRow> {
    if options.clients == 0 || (options.transactions && options.clients != 1) {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "a replay has one client at least, and one only with transactions, not {}",
                options.clients
            ),
        ));
    }
    let simulated = config.build(runtime, options.seed).await?;
    let device = &simulated.device;
    if options.transactions && device.limits().transactions_max == 0 {
        let context = format!("{} has no transactions", config.name());
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    let expected = Rc::new(RefCell::new(Expected::new(device.limits().pages)));
    if let Some(age) = &options.age {
        age::age(runtime, &simulated, &expected, age, options.seed).await?;
    }
    let start = row::Counters::of(runtime, &simulated);
    let tally = Replay::run(runtime, trace, device, &expected, options, work).await?;
    let end = row::Counters::of(runtime, &simulated);
    Ok(row::DeviceReplayRow::new(trace, config, options, &tally, &start, &end))
}
