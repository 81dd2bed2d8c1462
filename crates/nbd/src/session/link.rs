//! State shared by the tasks of one connection: the reader, the workers, the writer.
use super::budget::{Budget, Held};
use super::replies::Replies;
use super::reply::Outcome;
use super::stalls::{Wait, Waits};
use super::tls::Secure;
use crate::client::Client;
use crate::protocol::transmission::Request;
use crate::signal::Signal;
use crate::terms::Terms;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf};
use tantalum_runtime::ByteStream;
use tantalum_tls::SENT_BYTES;

/// Bytes of records besides their content that cost a unit of credit: a few tiny records, which are decrypted one by one.
const OVERHEAD_BYTES: u64 = 128;
/// Maximum memory that an output buffer keeps between turns.
const OUTPUT_BYTES_KEPT: usize = 256 << 10;
/// Maximum pages whose memory a worker keeps between requests.
pub(super) const PAGES_KEPT: usize = 256;

/// Replies that are not yet sent.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) replies: Replies,
    // The part of the connection's budget that the requests of these replies still hold.
    pub(crate) held: Held,
}

/// A request on its way to a worker.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) held: Held,
    // The time at which the request was completely received.
    pub(crate) came_ns: u64,
}

/// A worker's slot: its next request, and that request's pages.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) job: Cell<Option<Job>>,
    // The reader and the worker exchange this vector, so that none is allocated per request.
    pub(crate) pages: RefCell<Vec<PageBuf>>,
    pub(crate) posted: Signal,
}

/// Returns the time in nanoseconds.
type Clock = Box<dyn Fn() -> u64>;

/// One connection.
pub(crate) struct Link<S> {
    pub(crate) stream: S,
    // The TLS connection over `stream`, if TLS has begun. Then everything goes through it.
    pub(super) secure: OnceCell<Secure<S>>,
    outbox: RefCell<Outbox>,
    budget: Budget,
    pub(crate) client: Client,
    pub(crate) waits: Waits,
    clock: Clock,
    slots: RefCell<Vec<Rc<Slot>>>,
    idle: RefCell<Vec<usize>>,
    // The server told the reader to accept no more requests.
    stopping: Cell<bool>,
    // Replies can no longer be sent.
    broken: Cell<bool>,
    // The reason for which the server cut the client off, if it did.
    cut: Cell<Option<&'static str>>,
    // The negotiated terms, once negotiation has ended.
    terms: Cell<Option<Terms>>,
    // No request will follow: workers and writer end when they are idle.
    closing: Cell<bool>,
    // Events that wake the reader: data of the client, or (rarely) a worker or the budget. Two signals, so that a finished
    // request does not wake a reader that waits for the client.
    pub(crate) reader: Signal,
    room: Signal,
    writer: Signal,
}

impl<S: ByteStream> Link<S> {
    pub(crate) fn new(
        stream: S,
        budget: Budget,
        client: Client,
        clock: impl Fn() -> u64 + 'static,
    ) -> Self {
        Link {
            stream,
            secure: OnceCell::new(),
            outbox: RefCell::default(),
            budget,
            client,
            waits: Waits::default(),
            clock: Box::new(clock),
            slots: RefCell::default(),
            idle: RefCell::default(),
            stopping: Cell::new(false),
            broken: Cell::new(false),
            cut: Cell::new(None),
            terms: Cell::new(None),
            closing: Cell::new(false),
            reader: Signal::default(),
            room: Signal::default(),
            writer: Signal::default(),
        }
    }

    /// Receives as [`ByteStream::recv`] does, decrypted if the connection is in TLS.
    pub(crate) async fn recv(&self, into: &mut [u8]) -> tantalum_base::Result<usize> {
        match self.secure.get() {
            None => self.stream.recv(into).await,
            Some(secure) => secure.stream.recv(into).await,
        }
    }

    /// The cost of decrypting overhead since the last call, in units of credit. The received content is charged elsewhere.
    pub(crate) fn decryption_cost(&self) -> u64 {
        let overhead = |secure: &Secure<S>| secure.stream.take_overhead_bytes();
        self.secure.get().map_or(0, overhead) / OVERHEAD_BYTES
    }

    /// Sends as [`ByteStream::send`] does, encrypted if the connection is in TLS.
    async fn send(&self, bytes: &[u8]) -> tantalum_base::Result<usize> {
        match self.secure.get() {
            None => self.stream.send(bytes).await,
            Some(secure) => secure.stream.send(bytes).await,
        }
    }

    /// Sends all of `bytes`.
    pub(crate) async fn send_all(&self, mut bytes: &[u8]) -> tantalum_base::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[unless_closed(self.send(bytes).await?)?..];
        }
        Ok(())
    }

    /// Whether the connection is in TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.secure.get().is_some()
    }

    /// Closes the connection, after a goodbye if it is in TLS.
    pub(crate) async fn shutdown(&self) {
        if let Some(secure) = self.secure.get() {
            secure.stream.say_goodbye().await;
        }
        self.stream.shutdown();
    }

    /// Makes the reader accept no further request.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        self.reader.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Abandons the connection: later replies are dropped.
    pub(crate) fn give_up(&self) {
        self.broken.set(true);
        self.client.leave();
        self.stream.shutdown();
        self.reader.wake();
        self.room.wake();
        self.writer.wake();
    }

    /// Abandons the connection because of the client's behaviour.
    pub(crate) fn cut(&self, what: &'static str) {
        self.cut.set(Some(what));
        self.give_up();
    }

    /// The reason for which the client was cut off, if it was.
    pub(crate) fn cut_for(&self) -> Option<&'static str> {
        self.cut.get()
    }

    /// Ends negotiation: the client may send requests.
    pub(crate) fn negotiated(&self, terms: Terms) {
        self.terms.set(Some(terms));
    }

    /// Whether the client is still in negotiation.
    pub(crate) fn is_negotiating(&self) -> bool {
        self.terms.get().is_none()
    }

    /// The time, for `waits`.
    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    /// Notes that no request will follow.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.slots.borrow().iter().for_each(|slot| slot.posted.wake());
        self.writer.wake();
    }

    /// Waits for `bytes` of the budget, and takes them; `None` if the connection is gone.
    pub(crate) async fn reserve(&self, bytes: u64) -> Option<Held> {
        let taken = || {
            if self.broken.get() { Some(None) } else { self.budget.try_take(bytes).map(Some) }
        };
        self.room.until(taken).await
    }

    /// Returns the bytes of `held` to the budget.
    pub(crate) fn give_back(&self, held: &mut Held) {
        self.budget.give_back(held);
        self.room.wake();
    }

    /// Takes an idle worker, if there is one.
    pub(crate) fn idle_worker(&self) -> Option<usize> {
        self.idle.borrow_mut().pop()
    }

    /// Waits for a worker to become idle.
    pub(crate) async fn next_idle_worker(&self) -> usize {
        self.room.until(|| self.idle_worker()).await
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Adds a worker, which counts as busy.
    pub(crate) fn add_worker(&self) -> (usize, Rc<Slot>) {
        let slot = Rc::new(Slot::default());
        let mut slots = self.slots.borrow_mut();
        slots.push(Rc::clone(&slot));
        (slots.len() - 1, slot)
    }

    /// Hands `job` to a worker from `idle_worker` or `add_worker`; `pages` comes back empty.
    pub(crate) fn post(&self, worker: usize, job: Job, pages: &mut Vec<PageBuf>) {
        let slots = self.slots.borrow();
        let slot = &slots[worker];
        std::mem::swap(pages, &mut slot.pages.borrow_mut());
        slot.job.set(Some(job));
        slot.posted.wake();
    }

    /// Waits for a worker's next job; `None` when none will come.
    pub(crate) async fn next_job(&self, slot: &Slot) -> Option<Job> {
        slot.posted
            .until(|| match slot.job.take() {
                Some(job) => Some(Some(job)),
                None => self.closing.get().then_some(None),
            })
            .await
    }

    /// Makes a worker idle.
    pub(crate) fn rest(&self, worker: usize) {
        self.idle.borrow_mut().push(worker);
        self.room.wake();
        if self.closing.get() {
            self.writer.wake();
        }
    }

    /// Queues the reply to a request.
    pub(crate) fn reply(&self, mut job: Job, outcome: Outcome<'_>) {
        if self.broken.get() {
            self.give_back(&mut job.held);
            return;
        }
        let structured = self.terms.get().is_some_and(|terms| terms.structured);
        let mut outbox = self.outbox.borrow_mut();
        outbox.held.absorb(&mut job.held);
        outbox.replies.make_room(outcome.bytes(&job.request, structured));
        outcome.write(&mut outbox.replies, &job.request, structured);
        self.writer.wake();
    }

    /// The writer task: sends all queued replies together, until the connection closes.
    pub(crate) async fn write_replies(&self) {
        let (mut sending, mut piece) = (Outbox::default(), Vec::new());
        while self.take_replies(&mut sending).await {
            let bytes = sending.replies.total_bytes();
            let mut wait = None;
            while let Some(copied) = sending.replies.next(&mut piece) {
                if copied > 0 {
                    self.client.seat.turn(copied as u64).await;
                }
                let is_broken = self.broken.get();
                if !is_broken && self.send_watched(&piece, &mut wait, bytes).await.is_err() {
                    self.give_up();
                }
            }
            piece.clear();
            piece.shrink_to(OUTPUT_BYTES_KEPT);
            self.give_back(&mut sending.held);
        }
    }

    /// Sends all of `bytes`, which are a part of `all`, and lets `waits` watch how fast the client receives them.
    async fn send_watched(
        &self,
        mut bytes: &[u8],
        wait: &mut Option<Wait>,
        all: u64,
    ) -> tantalum_base::Result<()> {
        while !bytes.is_empty() {
            if self.is_secure() {
                // Encryption takes time of the thread, in addition to the copy.
                let pages = bytes.len().min(SENT_BYTES).div_ceil(PAGE_BYTES);
                self.client.seat.turn(pages as u64).await;
            }
            let sent = {
                let mut sending = pin!(self.send(bytes));
                poll_fn(|context| {
                    let sent = sending.as_mut().poll(context);
                    if sent.is_pending() {
                        let wait = *wait.get_or_insert_with(|| Wait::new(self.now_ns(), all));
                        self.waits.send(Some(wait));
                    }
                    sent
                })
                .await
            };
            if let Some(wait) = wait {
                wait.moved(self.now_ns());
                self.waits.send(None);
            }
            bytes = &bytes[unless_closed(sent?)?..];
        }
        Ok(())
    }

    /// Waits for replies and swaps them for an empty outbox; false when no more will come.
    async fn take_replies(&self, into: &mut Outbox) -> bool {
        self.writer
            .until(|| {
                let mut outbox = self.outbox.borrow_mut();
                if !outbox.replies.is_empty() {
                    std::mem::swap(&mut *outbox, into);
                    return Some(true);
                }
                let idle = self.idle.borrow().len() == self.slots.borrow().len();
                (self.closing.get() && idle).then_some(false)
            })
            .await
    }
}

/// Checks that `sent` is not 0, which means that the client has closed.
fn unless_closed(sent: usize) -> tantalum_base::Result<usize> {
    if sent == 0 {
        return Err(Error::new(ErrorKind::Closed, "the NBD client has gone"));
    }
    Ok(sent)
}
