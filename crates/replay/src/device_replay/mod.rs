//! Replays a trace on a device in virtual time, every read checked.
//!
//! ```text
//! trace      page events in memory, pages numbered densely
//! expected   the expected content of each page, and its users
//! clients    closed-loop clients: each has one request outstanding
//! age        fills and overwrites the device until cleaning is steady
//! row        the result of a run: throughput, latencies, wear
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

/// The simulated device on which the trace is replayed.
pub type Device = SimulatedDevice<Stamp>;

/// The options of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReplayOptions {
    /// Number of clients; each sends its next request when the previous one is done.
    pub clients: u32,
    /// Whether the writes since the last commit point form one device transaction, which the commit
    /// point commits; only with one client. Otherwise a commit point is a flush.
    pub transactions: bool,
    /// Preconditioning; `None` replays on a fresh device.
    pub age: Option<Age>,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for DeviceReplayOptions {
    fn default() -> Self {
        DeviceReplayOptions { clients: 1, transactions: false, age: None, seed: 1 }
    }
}

/// Replays `trace` on a new device of `config`, and reports its progress to `work`.
///
/// # Errors
/// `InvalidInput` if the options contradict each other or the device; `Corrupt` if a read does not
/// return the content that was written; those of the device; `Interrupted` if runs are requested to
/// end.
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
                "a replay has at least one client, and exactly one with transactions, not {}",
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
