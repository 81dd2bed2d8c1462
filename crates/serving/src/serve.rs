//! Serves a device over NBD, and its metrics, until the end is requested.
use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PageBuf, Result};
use tantalum_console::output::print_line;
use tantalum_nbd::Server;
use tantalum_runtime::live::signal::Endings;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{First, LifeCycle, Live, Runtime, first};

use crate::{About, Listeners, watched};

/// The actions when a server is asked to stop.
pub struct Ending<B, H, R> {
    /// Called at the first signal: stops other servers beside this one.
    pub begin: B,
    /// Called at the second signal: makes them stop sooner.
    pub hasten: H,
    /// Completes when they have stopped; awaited after `begin`.
    pub rest: R,
}

/// Serves NBD and metrics at `listeners` until a signal asks for the end. After a second signal it does not wait for clients,
/// so that the process ends soon.
///
/// # Errors
/// If connections cannot be accepted any more.
pub async fn serve_until<D, B, H, R>(
    live: &Live,
    endings: Endings,
    about: About,
    (device, server): (Rc<D>, Server<D>),
    listeners: Listeners,
    ending: Ending<B, H, R>,
) -> Result<()>
where
    D: LifeCycle<Page = PageBuf>,
    B: FnOnce(),
    H: Fn(),
    R: Future<Output = Result<()>>,
{
    let served_device = Rc::clone(&device);
    let endpoint = listeners.metrics.map(|listener| {
        tell(&format!("metrics at {}", listener.local_address()));
        watched::start(live, listener, about, device, server.clone())
    });
    let begun = (Cell::new(false), WaitQueue::new("the end of a server"));
    let grace_ns = server.options().stop_ms_max.saturating_mul(1_000_000);
    let stop = async {
        endings.next().await;
        (ending.begin)();
        let (clock, device) = (live.clone(), Rc::clone(&served_device));
        // The task is detached: it may end after the device is closed.
        drop(live.spawn("the limit on stopping", async move {
            clock.sleep(grace_ns).await;
            device.wait_no_longer();
        }));
        tracing::info!("stopping: requests in flight are answered");
        begun.0.set(true);
        begun.1.wake_all();
    };
    let serving = async {
        let served = match listeners.nbd {
            Some(listener) => server.clone().serve(live, listener, stop).await,
            None => {
                stop.await;
                Ok(())
            }
        };
        let rest = ending.rest.await;
        served.and(rest)
    };
    let hastening = async {
        begun.1.until(|| begun.0.get().then_some(())).await;
        endings.next().await;
        server.hasten();
        (ending.hasten)();
        std::future::pending::<Infallible>().await
    };
    let served = match first(serving, hastening).await {
        First::One(served) => served,
        First::Other(never) => match never {},
    };
    if let Some(endpoint) = endpoint {
        endpoint.stop().await;
    }
    let statistics = server.statistics();
    if let Some(last) = statistics.last_error {
        tracing::warn!(requests = statistics.errors, last, "requests failed");
    }
    served
}

/// Prints a line on the standard output.
pub fn tell(line: &str) {
    if let Err(error) = print_line(line) {
        // A server goes on even if its standard output cannot be written: it has clients.
        eprintln!("tantalum: the standard output cannot be written: {error}");
    }
}
