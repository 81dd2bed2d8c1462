//! Accepts, limits and stops clients; holds their shared state.
use crate::allowances::Allowances;
use crate::changes::Changes;
use crate::fault_points::Fault;
use crate::inbox::Look;
use crate::locks::{Level, Locks};
use crate::metrics::Counters;
use crate::places::Places;
use crate::protocol::{FileId, PAGES_MAX, RANGES_MAX, SHARE_PAIRS_MAX, encode_reply};
use crate::request::{Answer, Raise};
use crate::session;
use crate::turns::Turns;
use crate::waiting::WAIT_NS_MAX;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Limits, PageBuf, PageDevice, Payload, Result};
use tantalum_runtime::rounds::Rounds;
use tantalum_runtime::sync::{WaitQueue, Waiting};
use tantalum_runtime::{
    Accept, Admission, ByteStream, First, Places as ClientPlaces, Runtime, Stage, accept_each,
    first,
};

/// Time limit for sending the reason to a refused client.
const REFUSAL_NS_MAX: u64 = 50_000_000;
/// Maximum number of refused clients to which the reason is sent at a time; further ones are only disconnected.
const REFUSALS_MAX: u32 = 16;
/// Maximum number of pages of a view that a lock returns.
pub(crate) const VIEW_PAGES_MAX: u64 = 16;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Clients that have greeted, connected at once; further ones are refused.
    pub clients_max: usize,
    /// Additional clients that have not greeted yet. One more replaces the oldest.
    pub handshakes_max: usize,
    /// Time limit for a client to complete a request that it has begun to send, or to receive an answer.
    pub stall_ms_max: u64,
    /// Time limit for a client's greeting.
    pub greeting_ms_max: u64,
    /// Maximum idle time of an open transaction before it is aborted; 0 for no limit.
    pub transaction_idle_ms_max: u64,
    /// Time limit for clients to receive their answers when the server stops.
    pub stop_ms_max: u64,
    /// Changes are refused.
    pub read_only: bool,
    /// The file that contains the volume, so that clients can check that it is theirs.
    pub file: Option<FileId>,
    /// The seats of all clients on this executor, of any server: clients take turns.
    pub rounds: Rounds,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            clients_max: 100,
            handshakes_max: 64,
            stall_ms_max: 30_000,
            greeting_ms_max: 10_000,
            transaction_idle_ms_max: 600_000,
            stop_ms_max: 5_000,
            read_only: false,
            file: None,
            rounds: Rounds::default(),
        }
    }
}

/// Serves one device to local clients. A clone is another handle to the same server.
pub struct Server<D>(pub(crate) Rc<Shared<D>>);

impl<D> Clone for Server<D> {
    fn clone(&self) -> Self {
        Server(Rc::clone(&self.0))
    }
}

/// A lock holder: the number of a client, and a number chosen by the client.
pub(crate) type Holder = (u64, u64);

/// The state shared by all clients.
pub(crate) struct Shared<D> {
    pub(crate) device: Rc<D>,
    /// All changes of the device, including those made outside this server.
    pub(crate) changes: Rc<Changes>,
    pub(crate) options: ServerOptions,
    pub(crate) counters: Counters,
    /// The limits of a connection: the device's limits, reduced to the size of a frame.
    pub(crate) limits: Limits,
    pub(crate) locks: RefCell<Locks<Holder>>,
    /// The order of writing among refused clients.
    pub(crate) turns: RefCell<Turns<Holder>>,
    pub(crate) allowances: RefCell<Allowances<Holder>>,
    /// Woken when a lock is released, and when a writer waits for readers to finish.
    pub(crate) lock_freed: WaitQueue,
    /// Places for open transactions.
    pub(crate) places: Rc<Places>,
    clients: RefCell<BTreeMap<u64, Rc<dyn Peer>>>,
    next_client: Cell<u64>,
    /// Woken when a client has disconnected.
    gone: WaitQueue,
    /// Number of refused clients to which the reason is being sent.
    refusals: Cell<u32>,
    /// Set if a stop shall be quick.
    hurry: (Cell<bool>, WaitQueue),
}

/// A client, as seen by other clients' tasks.
pub(crate) trait Peer {
    /// The state of its receiving task.
    fn look(&self) -> &Look;
    /// Asks the client's task to end after it has sent its answers.
    fn stop(&self);
    /// Ends the connection.
    fn cut(&self);
    /// The stage of its connection.
    fn stage(&self) -> Stage;
}

impl<D: PageDevice<Page = PageBuf>> Server<D> {
    /// A server for `device`. From now on its `changes` are recorded, by [`Tracked`](crate::Tracked).
    pub fn new(device: Rc<D>, changes: Rc<Changes>, options: ServerOptions) -> Self {
        changes.watch();
        let offered = device.limits();
        let places = Places::new(offered.transactions_max, options.clients_max);
        let limits = Limits {
            transactions_max: places.client_max(),
            atomic_write_pages_max: offered.atomic_write_pages_max.min(PAGES_MAX as u32),
            share_pairs_max: offered.share_pairs_max.min(SHARE_PAIRS_MAX as u32),
            ..offered.clone()
        };
        Server(Rc::new(Shared {
            device,
            changes,
            options,
            counters: Counters::default(),
            limits,
            locks: RefCell::default(),
            turns: RefCell::default(),
            allowances: RefCell::new(Allowances::new(WAIT_NS_MAX)),
            lock_freed: WaitQueue::new("a lock of another client"),
            places,
            clients: RefCell::default(),
            next_client: Cell::new(1),
            gone: WaitQueue::new("the end of local clients"),
            refusals: Cell::new(0),
            hurry: (Cell::new(false), WaitQueue::new("haste")),
        }))
    }

    /// Number of connected clients.
    pub fn clients(&self) -> usize {
        self.0.clients.borrow().len()
    }

    /// Shortens the stop, now or later: clients get no time to receive their answers.
    pub fn hasten(&self) {
        self.0.hurry.0.set(true);
        self.0.hurry.1.wake_all();
    }

    /// Serves until `stop` completes; then answers the received requests, and closes.
    ///
    /// # Errors
    /// `Closed` if the listener has closed.
    pub async fn serve<R: Runtime, A: Accept>(
        self,
        runtime: &R,
        listener: A,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let served = match first(stop, self.accept_all(runtime, &listener)).await {
            First::One(()) => Ok(()),
            First::Other(closed) => closed,
        };
        drop(listener);
        let shared = &self.0;
        // `stop` only wakes the client's task, so the list is not borrowed again here.
        shared.clients.borrow().values().for_each(|client| client.stop());
        let gone = || shared.clients.borrow().is_empty().then_some(());
        let grace_ns = shared.options.stop_ms_max.saturating_mul(1_000_000);
        let hurry = shared.hurry.1.until(|| shared.hurry.0.get().then_some(()));
        let late = first(hurry, runtime.sleep(grace_ns));
        if let First::Other(_) = first(shared.gone.until(gone), late).await {
            shared.clients.borrow().values().for_each(|client| client.cut());
            shared.gone.until(gone).await;
        }
        served
    }

    async fn accept_all<R: Runtime, A: Accept>(&self, runtime: &R, listener: &A) -> Result<()> {
        let take = |accepted| match accepted {
            Ok(stream) => self.start(runtime, stream),
            Err(error) => tracing::warn!(%error, "a local client could not be accepted"),
        };
        Err(accept_each(runtime, listener, take).await)
    }

    fn start<R: Runtime, S: ByteStream>(&self, runtime: &R, stream: S) {
        let shared = &self.0;
        match shared.admission() {
            Admission::Free => {}
            Admission::Replaces(oldest) => oldest.cut(),
            Admission::Full if shared.refusals.get() < REFUSALS_MAX => {
                shared.turned_away();
                let refusing = refuse(shared.clone(), runtime.clone(), stream);
                drop(runtime.spawn("refusing a local client", refusing));
                return;
            }
            Admission::Full => {
                shared.turned_away();
                return stream.shutdown();
            }
        }
        let number = shared.next_client.get();
        shared.next_client.set(number + 1);
        let session = session::Session::new(runtime.clone(), stream, number, Rc::clone(shared));
        shared.clients.borrow_mut().insert(number, session.clone());
        shared.counters.accepted();
        // The task is detached: it removes itself from the clients.
        drop(runtime.spawn("local client", async move { session.run().await }));
    }
}

/// Sends the reason for the refusal, and hangs up.
async fn refuse<R: Runtime, S: ByteStream, D>(shared: Rc<Shared<D>>, runtime: R, stream: S) {
    let _refusing = Waiting::new(&shared.refusals, 1);
    let refusal = encode_reply(0, &Err(shared.refusal()));
    let sending = async {
        let mut left = &refusal[..];
        while let Ok(sent) = stream.send(left).await
            && sent > 0
            && sent < left.len()
        {
            left = &left[sent..];
        }
    };
    first(sending, runtime.sleep(REFUSAL_NS_MAX)).await;
    stream.shutdown();
}

impl<D> Shared<D> {
    /// Decides whether one more client is admitted.
    fn admission(&self) -> Admission<Rc<dyn Peer>> {
        let ServerOptions { clients_max, handshakes_max, .. } = self.options;
        let places = ClientPlaces { served_max: clients_max, silent_max: handshakes_max };
        let clients = self.clients.borrow();
        // Their numbers are in order of arrival.
        places.admission(clients.values().map(|client| (Rc::clone(client), client.stage())))
    }

    /// Fails if there is no place for a client that greets.
    pub(crate) fn check_place(&self) -> Result<()> {
        if self.admission().is_full() { Err(self.refusal()) } else { Ok(()) }
    }

    fn refusal(&self) -> Error {
        let context = format!(
            "{} local clients are connected, the limit of the server (--connections-max)",
            self.options.clients_max
        );
        Error::new(ErrorKind::Locked, context)
    }

    pub(crate) fn turned_away(&self) {
        tracing::warn!("a local client was turned away: too many are connected");
        self.counters.turned_away();
    }
}

impl<D: PageDevice<Page = PageBuf>> Shared<D> {
    /// A client's task as seen by other tasks; `None` if the client has gone.
    pub(crate) fn peer(&self, client: u64) -> Option<Rc<dyn Peer>> {
        self.clients.borrow().get(&client).cloned()
    }

    /// The answer to a lock request that reached `level`, with the changes.
    ///
    /// # Errors
    /// The device's, if the view cannot be read.
    pub(crate) async fn news(&self, raise: &Raise, level: Level) -> Result<Answer> {
        let Raise { wanted, seen, view, .. } = *raise;
        let changes = &self.changes;
        // The change number is taken before the view is read: the view may be newer than the number, but never older.
        let last_change = changes.last();
        let mut answer = Answer { level, last_change, ..Answer::default() };
        if wanted != Level::Shared || level == Level::None {
            return Ok(answer);
        }
        if !Fault::ChangesUntold.is_planted() {
            answer.changed = changes.since(seen, RANGES_MAX);
        }
        if view.pages <= VIEW_PAGES_MAX
            && answer.changed.concerns(view)
            && self.limits.check_range(view).is_ok()
        {
            let mut pages = vec![PageBuf::zero(); view.pages as usize];
            self.device.read(view.first, &mut pages, None).await?;
            answer.pages = pages;
        }
        Ok(answer)
    }

    /// Removes a client that has ended.
    pub(crate) fn remove(&self, client: u64) {
        self.clients.borrow_mut().remove(&client);
        self.gone.wake_all();
    }
}
