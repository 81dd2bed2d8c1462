//! Listens for readers of the metrics.
use crate::connection::{self, Link, Pace};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::live::Live;
use tantalum_runtime::live::net::{Address, Listener};
use tantalum_runtime::metrics::Readings;
use tantalum_runtime::sync::WaitQueue;
use tantalum_runtime::{Accept, Admission, JoinHandle, Places, Runtime, accept_each, first};

/// The options of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Also listen on TCP addresses that other machines can reach, without authentication.
    pub allow_remote: bool,
    /// Maximum number of connections that have sent their request; further ones are closed. As many more may not have
    /// sent it yet; one more replaces the oldest of these.
    pub connections_max: usize,
    /// Time limit of a connection, from its beginning to its end.
    pub connection_ms_max: u64,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        EndpointOptions { allow_remote: false, connections_max: 16, connection_ms_max: 10_000 }
    }
}

impl EndpointOptions {
    /// Listens at `address`.
    ///
    /// # Errors
    /// `InvalidInput` if other machines can reach the address and `allow_remote` is not set; `Io` if it is in use or
    /// cannot be bound.
    pub fn listen(&self, live: &Live, address: &Address) -> Result<Listener> {
        if !address.is_local() && !self.allow_remote {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "metrics address {address} can be reached from other machines, which could \
                     then read the metrics: serve them on 127.0.0.1, [::1] or a Unix socket, or \
                     set allow_remote (--allow-remote) if the network is trusted"
                ),
            ));
        }
        Listener::bind(live, address)
    }
}

/// Serves metrics over HTTP, in tasks of an executor that has other work.
pub struct Endpoint<S> {
    shared: Rc<Shared<S>>,
    accepting: JoinHandle<()>,
}

/// State that the tasks of an endpoint share.
struct Shared<S> {
    options: EndpointOptions,
    links: RefCell<Vec<Rc<Link<S>>>>,
    pace: Pace,
    stopping: Cell<bool>,
    scrapes: Cell<u64>,
    // Woken when the endpoint stops, or a connection ends.
    changed: WaitQueue,
}

impl<S: tantalum_runtime::ByteStream> Endpoint<S> {
    /// Serves the metrics that `tell` collects on `listener`, until [`stop`](Self::stop).
    pub fn start<R, A, T>(runtime: &R, listener: A, options: EndpointOptions, tell: T) -> Self
    where
        R: Runtime,
        A: Accept<Stream = S> + 'static,
        T: Fn(&mut Readings) + 'static,
    {
        let shared = Rc::new(Shared {
            options,
            links: RefCell::default(),
            pace: Pace::default(),
            stopping: Cell::new(false),
            scrapes: Cell::new(0),
            changed: WaitQueue::new("the end of the metrics endpoint"),
        });
        let (clock, accepted) = (runtime.clone(), Rc::clone(&shared));
        let accepting = runtime.spawn("metrics endpoint", async move {
            accepted.accept_until_stopped(&clock, listener, Rc::new(tell)).await;
        });
        Endpoint { shared, accepting }
    }

    /// Stops listening, cuts off all clients, and waits until no task is left.
    pub async fn stop(self) {
        self.shared.stopping.set(true);
        self.shared.links.borrow().iter().for_each(|link| link.cut());
        self.shared.changed.wake_all();
        self.accepting.await;
        let emptied = || self.shared.links.borrow().is_empty().then_some(());
        self.shared.changed.until(emptied).await;
    }
}

impl<S: tantalum_runtime::ByteStream> Shared<S> {
    async fn accept_until_stopped<R, A, T>(self: Rc<Self>, runtime: &R, listener: A, tell: Rc<T>)
    where
        R: Runtime,
        A: Accept<Stream = S>,
        T: Fn(&mut Readings) + 'static,
    {
        let stopped = self.changed.until(|| self.stopping.get().then_some(()));
        let accepting = accept_each(runtime, &listener, |accepted| {
            // A failure may be temporary, such as too many open files.
            if let Ok(stream) = accepted {
                self.admit(runtime, stream, &tell);
            }
        });
        first(stopped, accepting).await;
    }

    /// Begins to serve a connection, unless there are too many.
    fn admit<R, T>(self: &Rc<Self>, runtime: &R, stream: S, tell: &Rc<T>)
    where
        R: Runtime,
        T: Fn(&mut Readings) + 'static,
    {
        match self.admission() {
            Admission::Full => return stream.shutdown(),
            Admission::Replaces(oldest) => oldest.cut(),
            Admission::Free => {}
        }
        let link = Rc::new(Link::new(stream));
        self.links.borrow_mut().push(Rc::clone(&link));
        let (runtime_of_task, shared, tell) = (runtime.clone(), Rc::clone(self), Rc::clone(tell));
        // The task is detached: it removes itself from the list.
        drop(runtime.spawn("metrics connection", async move {
            let limit_ns = shared.options.connection_ms_max.saturating_mul(1_000_000);
            let tell = |out: &mut Readings| {
                tell(out);
                shared.scrapes.set(shared.scrapes.get() + 1);
                let help = "Scrapes of these metrics, this one included";
                out.counter("tantalum_metrics_scrapes_total", help, shared.scrapes.get());
            };
            connection::serve(&runtime_of_task, &link, limit_ns, &shared.pace, tell).await;
            shared.links.borrow_mut().retain(|other| !Rc::ptr_eq(other, &link));
            shared.changed.wake_all();
        }));
    }

    /// Decides whether one more connection is admitted.
    fn admission(&self) -> Admission<Rc<Link<S>>> {
        let max = self.options.connections_max;
        let links = self.links.borrow();
        // The list is in order of arrival.
        Places { served_max: max, silent_max: max }
            .admission(links.iter().map(|link| (Rc::clone(link), link.stage())))
    }
}
