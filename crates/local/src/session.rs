//! One client, from its greeting to its end.
//!
//! One task receives the client's requests, and a task for each request performs it and sends the answer. When the
//! client has disconnected, its requests are completed first, then its open transactions are aborted, and only then
//! its locks are released. So no other client sees a half-done change.
use crate::fault_points::Fault;
use crate::inbox::{Inbox, Look};
use crate::locks::Level;
use crate::open::Bounds;
use crate::protocol::{BODY_BYTES_MAX, Hello, Kind, Welcome, decode_call, encode_reply};
use crate::request::{Answer, Call, Raise, Request};
use crate::server::{Holder, Peer, Shared, VIEW_PAGES_MAX};
use crate::service::Service;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Result};
use tantalum_runtime::rounds::{Seat, request_cost, scan_cost};
use tantalum_runtime::sync::{Permit, Semaphore, Waiting};
use tantalum_runtime::{ByteStream, First, Runtime, Stage, first};

/// Maximum number of a client's requests in progress; further ones are not received.
const REQUESTS_MAX: u64 = 64;
/// Memory of each client for its small requests, so that its large ones do not delay them.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;
/// Memory of each client for its large requests: two of the longest.
const LARGE_BYTES: u64 = 2 * BODY_BYTES_MAX as u64;
/// Pages trimmed in one step, during which the device does nothing else.
pub(crate) const TRIM_PAGES_MAX: u64 = 8192;
/// Maximum number of a client's requests that wait for a lock.
const WAITING_MAX: u32 = REQUESTS_MAX as u32 / 2;
/// Maximum number of lock holders of one client.
const HOLDERS_MAX: usize = 1 << 14;

pub(crate) struct Session<R, S, D> {
    runtime: R,
    stream: S,
    number: u64,
    shared: Rc<Shared<D>>,
    service: Service<D>,
    read_only: Cell<bool>,
    /// Takes turns with the seats of other clients.
    seat: Seat,
    /// The client has greeted.
    greeted: Cell<bool>,
    /// The server has cut it off.
    cut: Cell<bool>,
    /// The client has disconnected, or broken the protocol.
    gone: Cell<bool>,
    look: Look,
    /// Permits for requests in progress.
    requests: Semaphore,
    /// The number of these that raise a lock.
    waiting: Cell<u32>,
    small_memory: Semaphore,
    large_memory: Semaphore,
    /// Held while sending.
    sending: Semaphore,
}

impl<R: Runtime, S: ByteStream, D: PageDevice<Page = PageBuf>> Peer for Session<R, S, D> {
    fn look(&self) -> &Look {
        &self.look
    }

    fn stop(&self) {
        self.look.stop();
    }

    fn cut(&self) {
        self.cut.set(true);
        self.stream.shutdown();
    }

    fn stage(&self) -> Stage {
        match (self.greeted.get(), self.cut.get()) {
            (true, _) => Stage::Served,
            (false, true) => Stage::Cut,
            (false, false) => Stage::Silent,
        }
    }
}

impl<R: Runtime, S: ByteStream, D: PageDevice<Page = PageBuf>> Session<R, S, D> {
    pub(crate) fn new(runtime: R, stream: S, number: u64, shared: Rc<Shared<D>>) -> Rc<Self> {
        let (clock, idle_ms_max) = (runtime.clone(), shared.options.transaction_idle_ms_max);
        let bounds = Bounds {
            places: shared.places.of_client(),
            idle_ns_max: (idle_ms_max > 0).then(|| idle_ms_max.saturating_mul(1_000_000)),
            clock: Box::new(move || clock.now_ns()),
        };
        let service = Service::bounded(Rc::clone(&shared.device), bounds);
        let seat = shared.options.rounds.seat(&runtime);
        Rc::new(Session {
            runtime,
            stream,
            number,
            service,
            read_only: Cell::new(shared.options.read_only),
            shared,
            seat,
            greeted: Cell::new(false),
            cut: Cell::new(false),
            gone: Cell::new(false),
            look: Look::new(),
            requests: Semaphore::new("a local client's requests", REQUESTS_MAX),
            waiting: Cell::new(0),
            small_memory: Semaphore::new("memory of a local client", SMALL_BYTES),
            large_memory: Semaphore::new("memory of a local client", LARGE_BYTES),
            sending: Semaphore::new("its turn to answer a local client", 1),
        })
    }

    /// Serves the client until it disconnects.
    pub(crate) async fn run(self: Rc<Self>) {
        let client = self.number;
        let served = first(self.serve(), self.abort_idle());
        match first(self.look.until_stopped(), served).await {
            // Requests received before are still answered.
            First::One(()) => {}
            First::Other(First::Other(never)) => match never {},
            First::Other(First::One(ended)) => {
                self.gone.set(true);
                if let Err(error) = ended {
                    if error.kind() == ErrorKind::Locked {
                        self.shared.turned_away();
                    } else {
                        tracing::warn!(client, %error, "a local client is cut off");
                        self.shared.counters.cut_off();
                    }
                    // The client gets the reason, if possible.
                    let refusal = encode_reply(0, &Err(error));
                    let _ = self.send(&refusal).await;
                }
                self.stream.shutdown();
            }
        }
        self.end().await;
        self.stream.shutdown();
        tracing::info!(client, "a local client has gone");
        self.shared.remove(client);
    }

    /// Aborts transactions that are idle for too long, until the session ends.
    async fn abort_idle(&self) -> Infallible {
        loop {
            let until_ns = self.service.idle_until_ns().await;
            self.runtime.sleep_until(until_ns).await;
            let aborted = self.service.abort_idle().await;
            if aborted > 0 {
                tracing::warn!(client = self.number, aborted, "idle transactions were aborted");
            }
        }
    }

    async fn end(&self) {
        if Fault::LocksFreeBeforeRequestsEnd.is_planted() {
            self.shared.release(self.number);
        }
        drop(self.requests.acquire(REQUESTS_MAX).await);
        if !Fault::TransactionsOutliveClients.is_planted() {
            self.service.abort_open().await;
        }
        if !Fault::LocksOutliveClients.is_planted() {
            self.shared.release(self.number);
        }
        // From here on, tasks that wait for this client find its locks released.
        self.look.end();
    }

    async fn serve(self: &Rc<Self>) -> Result<()> {
        let mut inbox = Inbox::new(self.stream.clone());
        if !self.greet(&mut inbox).await? {
            return Ok(());
        }
        while inbox.begun(&self.look).await? {
            let head = self.in_time(inbox.head(&self.look)).await?;
            // The permit comes first. If this task held memory while it waited for a permit, requests in progress might
            // wait for that memory, and none would end.
            let permit = self.requests.acquire(1).await;
            let memory = self.memory_for(head.body_bytes).await;
            let body = self.in_time(inbox.body(head.body_bytes, &self.look)).await?;
            let call = decode_call(head.kind, &body)?;
            drop(body);
            // A client that sends without a pause waits here.
            let received = head.body_bytes.div_ceil(PAGE_BYTES) as u64;
            let cost = request_cost(call.pages_moved()) + scan_cost(call.pages_examined());
            self.seat.turn(received + cost).await;
            if let Call::Lower { holder, wanted } = call {
                self.shared.lower((self.number, holder), wanted);
                continue;
            }
            let session = Rc::clone(self);
            let request = session.answer(head.number, call, memory, permit);
            drop(self.runtime.spawn("local request", request));
        }
        Ok(())
    }

    /// Exchanges greetings; `false` if the client closed without a message.
    async fn greet(&self, inbox: &mut Inbox<S>) -> Result<bool> {
        let greeting = async {
            if !inbox.begun(&self.look).await? {
                return Ok(None);
            }
            let head = inbox.head(&self.look).await?;
            if head.kind != Kind::Hello || head.body_bytes > 256 {
                return Err(Error::new(ErrorKind::Format, "the other side sent no greeting"));
            }
            Hello::decode(head.kind, &inbox.body(head.body_bytes, &self.look).await?).map(Some)
        };
        let options = &self.shared.options;
        let late = self.runtime.sleep(options.greeting_ms_max.saturating_mul(1_000_000));
        let hello = match first(greeting, late).await {
            First::One(greeting) => greeting?,
            First::Other(()) => return Err(stalled("greet")),
        };
        let Some(hello) = hello else { return Ok(false) };
        self.shared.check_place()?;
        self.greeted.set(true);
        tracing::info!(client = self.number, pid = hello.pid, "a local client connected");
        self.read_only.set(options.read_only || hello.read_only);
        let welcome = Welcome {
            read_only: options.read_only,
            pid: std::process::id(),
            limits: self.shared.limits.clone(),
            last_change: self.shared.changes.last(),
            file: options.file,
        };
        self.send(&welcome.encode()).await?;
        Ok(true)
    }

    /// Waits until memory for `bytes` of a request or its answer is available.
    async fn memory_for(&self, bytes: usize) -> Permit {
        let bytes = bytes as u64;
        match bytes <= SMALL_BYTES {
            true => self.small_memory.acquire(bytes).await,
            false => self.large_memory.acquire(bytes).await,
        }
    }

    /// Performs a call and sends the answer.
    async fn answer(self: Rc<Self>, number: u64, call: Call, memory: Permit, permit: Permit) {
        let counters = &self.shared.counters;
        let timed = counters.begin(&call, self.runtime.now_ns());
        let pages_read = match &call {
            Call::Device(Request::Read { pages, .. }) => *pages,
            _ => 0,
        };
        // The memory of the request is released before that of the answer is acquired: a task that held memory while it
        // waited for more could wait for itself.
        let _memory = match (&call, pages_read) {
            // Memory for the view is acquired after the wait for the lock.
            (Call::Raise(_), _) => {
                drop(memory);
                None
            }
            (_, 0) => Some(memory),
            (_, pages) => {
                drop(memory);
                Some(self.memory_for(pages * PAGE_BYTES).await)
            }
        };
        let reply = self.perform(call).await;
        counters.end(&timed, self.runtime.now_ns(), reply.as_ref().err().map(Error::kind));
        // If this fails, the client has gone, and the next receive will notice.
        let _ = self.send(&encode_reply(number, &reply)).await;
        drop(permit);
    }

    async fn perform(&self, call: Call) -> Result<Answer> {
        match call {
            Call::Device(request) if self.read_only.get() && request.changes() => {
                Err(Error::new(ErrorKind::ReadOnly, "the volume is open read-only"))
            }
            Call::Device(Request::Trim(range)) => {
                self.trim(range).await?;
                Ok(Answer { last_change: self.shared.changes.last(), ..Answer::default() })
            }
            Call::Device(request) => {
                let _step = self.seat.step(request.pages_moved()).await;
                let mut answer = self.service.handle(request).await?;
                // There is no await since the request ended. So if this number is one above the change that the client
                // knew, it is the client's own change.
                answer.last_change = self.shared.changes.last();
                Ok(answer)
            }
            Call::Raise(raise) => self.raise(raise).await,
            Call::IsReserved => {
                let reserved = self.shared.locks.borrow().is_reserved();
                let level = if reserved { Level::Reserved } else { Level::None };
                Ok(Answer { level, ..Answer::default() })
            }
            Call::Lower { .. } => Ok(Answer::default()),
        }
    }

    /// Trims `range` in steps that are each all or nothing; requests of others run in between. A client that has gone,
    /// or is cut off, gets no further step.
    async fn trim(&self, range: PageRange) -> Result<()> {
        self.service.device().limits().check_range(range)?;
        let (mut first, end) = (range.first.0, range.end().0);
        loop {
            let step = PageRange::new(PageNo(first), TRIM_PAGES_MAX.min(end - first));
            self.service.handle(Request::Trim(step)).await?;
            first += step.pages;
            if first == end {
                return Ok(());
            }
            self.seat.turn(scan_cost(TRIM_PAGES_MAX.min(end - first))).await;
            if self.gone.get() || self.cut.get() {
                let context = "the client has gone before the end of a long trim";
                return Err(Error::new(ErrorKind::Closed, context));
            }
        }
    }

    /// Raises a lock, and returns the changes. If that fails, the lock is as it was before.
    async fn raise(&self, raise: Raise) -> Result<Answer> {
        let shared = &self.shared;
        let holder = (self.number, raise.holder);
        let mine = |locks: &crate::Locks<Holder>| {
            locks.holders().filter(|(client, _)| *client == self.number).count()
        };
        if mine(&shared.locks.borrow()) >= HOLDERS_MAX {
            let context = format!("{HOLDERS_MAX} connections of one client hold locks");
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        let held = shared.locks.borrow().level(holder);
        let level = {
            // The holder of the lock may belong to the same client. So requests that wait must not occupy all permits.
            let may_wait = self.waiting.get() < WAITING_MAX;
            let _waiting = Waiting::new(&self.waiting, 1);
            shared.reach(&self.runtime, holder, raise.wanted, may_wait).await
        };
        if level < raise.wanted {
            shared.counters.lock_refused();
        }
        let view_pages = raise.view.pages.min(VIEW_PAGES_MAX) as usize;
        let _memory = self.memory_for(view_pages * PAGE_BYTES).await;
        let news = shared.news(&raise, level).await;
        if news.is_err() && held == Level::None {
            shared.lower(holder, Level::None);
        }
        news
    }

    /// Sends all of `bytes`, after other sends in progress.
    async fn send(&self, bytes: &[u8]) -> Result<()> {
        let _turn = self.sending.acquire(1).await;
        let sending = async {
            let mut left = bytes;
            while !left.is_empty() {
                match self.stream.send(left).await? {
                    0 => return Err(Error::new(ErrorKind::Closed, "the client has gone")),
                    sent => left = &left[sent..],
                }
            }
            Ok(())
        };
        let sent = self.in_time(sending).await;
        if sent.is_err() {
            // An incomplete answer ends the connection: otherwise the next answer would be taken for its rest.
            self.stream.shutdown();
        }
        sent
    }

    /// Fails if the client does not complete `what` within the time limit.
    async fn in_time<T>(&self, what: impl Future<Output = Result<T>>) -> Result<T> {
        let stall_ns = self.shared.options.stall_ms_max.saturating_mul(1_000_000);
        match first(what, self.runtime.sleep(stall_ns)).await {
            First::One(done) => done,
            First::Other(()) => Err(stalled("complete a message")),
        }
    }
}

fn stalled(what: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("the client did not {what} in time"))
}
