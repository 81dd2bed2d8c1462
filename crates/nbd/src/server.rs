//! Accepts, limits and stops connections.
use crate::client::Client;
use crate::export::Export;
use crate::options::ServerOptions;
use crate::session::{self, Budget, Link, UNFINISHED};
use crate::signal::Signal;
use crate::statistics::Statistics;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, Result};
use tantalum_runtime::metrics::Histogram;
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::{
    Accept, Admission, ByteStream, First, Places, Runtime, Stage, accept_each, first,
};

/// Memory is returned to the operating system once connections hold this many bytes less.
const GIVE_BACK_BYTES_MIN: u64 = 32 << 20;

/// Serves one device to NBD clients. A clone is another handle on the same server.
pub struct Server<D> {
    export: Rc<Export<D>>,
}

impl<D> Clone for Server<D> {
    fn clone(&self) -> Self {
        Server { export: Rc::clone(&self.export) }
    }
}

impl<D: PageDevice<Page = PageBuf>> Server<D> {
    /// A server for `device`. Checks the options and the page size (`InvalidInput`).
    pub fn new(device: Rc<D>, options: ServerOptions) -> Result<Self> {
        Self::beside(Rounds::default(), device, options)
    }

    /// As [`new`](Self::new), for a server whose clients take turns with others that have seats of `rounds`.
    pub fn beside(rounds: Rounds, device: Rc<D>, options: ServerOptions) -> Result<Self> {
        Ok(Server { export: Rc::new(Export::new(device, options, rounds)?) })
    }

    /// Shortens the stop, now or later: clients get no time to receive their replies.
    pub fn hasten(&self) {
        self.export.hurry.0.set(true);
        self.export.hurry.1.wake_all();
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.export.counters.snapshot()
    }

    /// Durations of requests, in the order of `TIMED`.
    pub(crate) fn durations(&self) -> &[Histogram] {
        &self.export.counters.durations
    }

    /// The options of the server.
    pub fn options(&self) -> &ServerOptions {
        &self.export.options
    }

    /// Serves until `stop` completes, then accepts no further request, sends the replies to those in flight, and
    /// closes. Clients that do not receive their replies are disconnected after `stop_ms_max`, and long commands end at
    /// their next step. Fails only when the listener has closed (`Closed`).
    pub async fn serve<R: Runtime, A: Accept>(
        self,
        runtime: &R,
        listener: A,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let open = Rc::new(Open::default());
        let result = match first(stop, self.accept_all(runtime, &listener, &open)).await {
            First::One(()) => Ok(()),
            First::Other(closed) => closed,
        };
        drop(listener);
        open.each(|link| link.stop());
        let grace_ns = self.export.options.stop_ms_max.saturating_mul(1_000_000);
        let hurry = self.export.hurry.1.until(|| self.export.hurry.0.get().then_some(()));
        let late = first(hurry, runtime.sleep(grace_ns));
        if let First::Other(_) = first(open.emptied(), late).await {
            self.export.wait_no_longer();
            open.each(|link| link.give_up());
            open.emptied().await;
        }
        result
    }

    /// Accepts connections until the listener closes.
    async fn accept_all<R: Runtime, A: Accept>(
        &self,
        runtime: &R,
        listener: &A,
        open: &Rc<Open<A::Stream>>,
    ) -> Result<()> {
        let take = |accepted| match accepted {
            Ok(stream) => self.admit::<R, A>(runtime, stream, open),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                *self.export.counters.last_error.borrow_mut() = Some(error);
            }
        };
        Err(accept_each(runtime, listener, take).await)
    }

    fn admit<R: Runtime, A: Accept>(
        &self,
        runtime: &R,
        stream: A::Stream,
        open: &Rc<Open<A::Stream>>,
    ) {
        let counters = &self.export.counters;
        match open.admission(self.export.places()) {
            Admission::Full => {
                counters.connections_refused.add(1);
                tell_turned_away();
                return stream.shutdown();
            }
            Admission::Replaces(oldest) => {
                counters.connections_evicted.add(1);
                oldest.cut(UNFINISHED);
            }
            Admission::Free => {}
        }
        self.start::<R, A>(runtime, stream, open);
    }

    fn start<R: Runtime, A: Accept>(
        &self,
        runtime: &R,
        stream: A::Stream,
        open: &Rc<Open<A::Stream>>,
    ) {
        let export = Rc::clone(&self.export);
        let held = Rc::clone(&export.counters.bytes_held);
        let bytes_max = export.options.in_flight_bytes_max;
        let budget = Budget::new(bytes_max, held);
        let client = Client::new(export.rounds.seat(runtime));
        let clock = runtime.clone();
        let link = Rc::new(Link::new(stream, budget, client, move || clock.now_ns()));
        open.links.borrow_mut().push(Rc::clone(&link));
        export.counters.connections_accepted.add(1);
        export.counters.connections_open.add(1);
        let connection = export.counters.connections_accepted.get();
        tracing::info!(connection, "a client connected");
        let (session_runtime, open) = (runtime.clone(), Rc::clone(open));
        // The task is detached: it removes itself from the list of open connections.
        drop(runtime.spawn("nbd connection", async move {
            let is_room = || !open.admission(export.places()).is_full();
            let end = session::run(&session_runtime, &link, &export, is_room).await;
            tell_end(connection, &end);
            if matches!(end, session::End::TurnedAway) {
                export.counters.connections_refused.add(1);
            }
            if let Some(failure) = end.failure() {
                export.counters.connections_failed.add(1);
                *export.counters.last_failure.borrow_mut() = Some(failure);
            }
            export.counters.connections_open.subtract(1);
            open.remove(&link);
            drop(link);
            if export.counters.bytes_held.fell_by(GIVE_BACK_BYTES_MIN) {
                A::give_back_memory();
                export.counters.memory_given_back.add(1);
            }
        }));
    }
}

fn tell_turned_away() {
    tracing::warn!("a client was turned away: too many are connected");
}

fn tell_end(connection: u64, end: &session::End) {
    match end.failure() {
        None if matches!(end, session::End::TurnedAway) => tell_turned_away(),
        None => tracing::info!(connection, "a client disconnected"),
        // The log limits lines by kind. This kind is separate, so that strangers' handshakes do not hide other failures.
        Some(failure) if matches!(end, session::End::Handshake(_)) => {
            tracing::warn!(connection, failure, "a TLS handshake failed");
        }
        Some(failure) => tracing::warn!(connection, failure, "a connection failed"),
    }
}

/// The open connections.
struct Open<S> {
    links: RefCell<Vec<Rc<Link<S>>>>,
    removed: Signal,
}

impl<S> Default for Open<S> {
    fn default() -> Self {
        Open { links: RefCell::default(), removed: Signal::default() }
    }
}

impl<S: ByteStream> Open<S> {
    fn remove(&self, link: &Rc<Link<S>>) {
        self.links.borrow_mut().retain(|other| !Rc::ptr_eq(other, link));
        self.removed.wake();
    }

    /// Decides whether one more connection is admitted. A connection that was cut off keeps its place until its commands
    /// have ended.
    fn admission(&self, places: Places) -> Admission<Rc<Link<S>>> {
        let links = self.links.borrow();
        // The list is in order of arrival.
        places.admission(links.iter().map(|link| {
            let stage = match link.is_negotiating() {
                false => Stage::Served,
                true if link.cut_for().is_some() => Stage::Cut,
                true => Stage::Silent,
            };
            (Rc::clone(link), stage)
        }))
    }

    fn each(&self, visit: impl Fn(&Link<S>)) {
        // `visit` only wakes tasks, so the list is not borrowed again meanwhile.
        self.links.borrow().iter().for_each(|link| visit(link));
    }

    async fn emptied(&self) {
        self.removed.until(|| self.links.borrow().is_empty().then_some(())).await;
    }
}
