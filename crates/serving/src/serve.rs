//! Serves a device over NBD, and its metrics, until the end is requested.
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PageBuf, Result};
use tantalum_console::output::print_line;
use tantalum_nbd::Server;
use tantalum_runtime::{LifeCycle, Live};

use crate::{About, Listeners, watched};

/// Serves NBD and metrics at `listeners` until `stop`.
///
/// # Errors
/// If connections cannot be accepted any more.
pub async fn serve_until<D: LifeCycle<Page = PageBuf>>(
    live: &Live,
    about: About,
    device: Rc<D>,
    server: Server<D>,
    listeners: Listeners,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let endpoint = listeners.metrics.map(|listener| {
        tell(&format!("metrics at {}", listener.local_address()));
        watched::start(live, listener, about, device, server.clone())
    });
    let stop = async {
        stop.await;
        tracing::info!("stopping: requests in flight are answered");
    };
    let served = match listeners.nbd {
        Some(listener) => server.clone().serve(live, listener, stop).await,
        None => {
            stop.await;
            Ok(())
        }
    };
    if let Some(endpoint) = endpoint {
        endpoint.stop().await;
    }
    let statistics = server.statistics();
    if let Some(last) = statistics.last_error {
        eprintln!("tantalum: {} requests failed, the last: {last}", statistics.errors);
    }
    served
}

/// Prints a line on the standard output.
pub fn tell(line: &str) {
    if let Err(error) = print_line(line) {
        // A server whose standard output has no reader still has clients.
        eprintln!("tantalum: the standard output cannot be written: {error}");
    }
}
