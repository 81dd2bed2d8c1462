//! What the tasks of one connection share: the reader, the workers, the writer.
use super::budget::{Budget, Held};
use super::patience::{Wait, Waits};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::transmission::{Request, SIMPLE_REPLY_BYTES, simple_reply};
use crate::signal::Signal;
use crate::span::Span;
use crate::transport::ByteStream;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf};

/// Memory that an output buffer keeps between turns; larger ones are given back.
const OUTPUT_BYTES_KEPT: usize = 256 << 10;
/// Places for pages that a worker keeps between requests.
pub(super) const PAGES_KEPT: usize = 256;
/// Steps in which a large output buffer grows: doubling would hold twice what the replies need.
const OUTPUT_BYTES_STEP: usize = 1 << 20;

/// Replies not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    // What the requests behind these replies still hold of the connection's budget.
    pub(crate) held: Held,
}

impl Outbox {
    /// Makes room for `bytes` more.
    fn make_room(&mut self, bytes: usize) {
        let (used, capacity) = (self.bytes.len(), self.bytes.capacity());
        if used + bytes > capacity.max(OUTPUT_BYTES_STEP) {
            self.bytes.reserve_exact(bytes.max(OUTPUT_BYTES_STEP));
        }
    }
}

/// A request on its way to a worker.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) held: Held,
}

/// A worker's place: the request it shall do next, and the pages that belong to it.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) job: Cell<Option<Job>>,
    // The vector goes back and forth between reader and worker, so none is allocated a request.
    pub(crate) pages: RefCell<Vec<PageBuf>>,
    pub(crate) posted: Signal,
}

/// Tells the time, in nanoseconds.
type Clock = Box<dyn Fn() -> u64>;

/// One connection.
pub(crate) struct Link<S> {
    pub(crate) stream: S,
    outbox: RefCell<Outbox>,
    budget: Budget,
    pub(crate) waits: Waits,
    clock: Clock,
    slots: RefCell<Vec<Rc<Slot>>>,
    idle: RefCell<Vec<usize>>,
    // The server asked to read no more requests.
    stopping: Cell<bool>,
    // Replies cannot be sent any more.
    broken: Cell<bool>,
    // What the client did wrong, where the server cut it off for that.
    cut: Cell<Option<&'static str>>,
    negotiated: Cell<bool>,
    // No request will follow: workers and writer end when they have nothing left to do.
    closing: Cell<bool>,
    // The reader waits for the client, or (rarely) for a worker or for budget: apart, so that a
    // finished request does not wake a reader that waits for the client.
    pub(crate) reader: Signal,
    room: Signal,
    writer: Signal,
}

impl<S: ByteStream> Link<S> {
    pub(crate) fn new(stream: S, budget: Budget, clock: impl Fn() -> u64 + 'static) -> Self {
        Link {
            stream,
            outbox: RefCell::default(),
            budget,
            waits: Waits::default(),
            clock: Box::new(clock),
            slots: RefCell::default(),
            idle: RefCell::default(),
            stopping: Cell::new(false),
            broken: Cell::new(false),
            cut: Cell::new(None),
            negotiated: Cell::new(false),
            closing: Cell::new(false),
            reader: Signal::default(),
            room: Signal::default(),
            writer: Signal::default(),
        }
    }

    /// Asks the reader to take no further request.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        self.reader.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Gives the connection up: replies are dropped from here on.
    pub(crate) fn give_up(&self) {
        self.broken.set(true);
        self.stream.shutdown();
        self.reader.wake();
        self.room.wake();
        self.writer.wake();
    }

    /// Gives the connection up for what the client did, or did not do.
    pub(crate) fn cut(&self, what: &'static str) {
        self.cut.set(Some(what));
        self.give_up();
    }

    /// Why the connection was cut off, where it was.
    pub(crate) fn cut_for(&self) -> Option<&'static str> {
        self.cut.get()
    }

    /// The client may send requests now.
    pub(crate) fn negotiated(&self) {
        self.negotiated.set(true);
    }

    /// Whether the client has not come to requests yet.
    pub(crate) fn is_negotiating(&self) -> bool {
        !self.negotiated.get()
    }

    /// The time, for what is noted in `waits`.
    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    /// Says that no request will follow.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.slots.borrow().iter().for_each(|slot| slot.posted.wake());
        self.writer.wake();
    }

    /// Waits for `bytes` of the budget and of memory, and takes them; `None` where the connection is
    /// gone.
    pub(crate) async fn reserve(&self, bytes: u64) -> Option<Held> {
        let taken = || {
            if self.broken.get() { Some(None) } else { self.budget.try_take(bytes).map(Some) }
        };
        let mut held = self.room.until(taken).await?;
        {
            let mut fill = pin!(self.budget.fill(&mut held));
            poll_fn(|context| {
                if self.broken.get() {
                    return Poll::Ready(());
                }
                self.room.register(context);
                fill.as_mut().poll(context)
            })
            .await;
        }
        if self.broken.get() {
            self.give_back(&mut held);
            return None;
        }
        Some(held)
    }

    /// What `held` took goes back.
    pub(crate) fn give_back(&self, held: &mut Held) {
        self.budget.give_back(held);
        self.room.wake();
    }

    /// A worker with nothing to do, where there is one.
    pub(crate) fn idle_worker(&self) -> Option<usize> {
        self.idle.borrow_mut().pop()
    }

    /// Waits for a worker to become idle.
    pub(crate) async fn next_idle_worker(&self) -> usize {
        self.room.until(|| self.idle_worker()).await
    }

    /// Workers that there are.
    pub(crate) fn workers(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Makes a place for another worker, who counts as busy.
    pub(crate) fn add_worker(&self) -> (usize, Rc<Slot>) {
        let slot = Rc::new(Slot::default());
        let mut slots = self.slots.borrow_mut();
        slots.push(Rc::clone(&slot));
        (slots.len() - 1, slot)
    }

    /// Hands `job` to a worker taken with `idle_worker` or `add_worker`; `pages` comes back empty.
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

    /// Puts a worker back among the idle ones.
    pub(crate) fn rest(&self, worker: usize) {
        self.idle.borrow_mut().push(worker);
        self.room.wake();
        if self.closing.get() {
            self.writer.wake();
        }
    }

    /// Queues the reply to a request. `payload` is a read's bytes: a span of its covering pages.
    pub(crate) fn reply(
        &self,
        mut job: Job,
        error: Option<ErrorCode>,
        payload: Option<(Span, &[PageBuf])>,
    ) {
        if self.broken.get() {
            self.give_back(&mut job.held);
            return;
        }
        let mut outbox = self.outbox.borrow_mut();
        outbox.held.absorb(&mut job.held);
        let payload_bytes = payload.map_or(0, |(span, _)| span.length as usize);
        outbox.make_room(SIMPLE_REPLY_BYTES + payload_bytes);
        outbox.bytes.extend_from_slice(&simple_reply(job.request.cookie, error));
        if let Some((span, pages)) = payload {
            let (mut skip, mut left) = (span.skip(), span.length as usize);
            for page in pages {
                let bytes = left.min(PAGE_BYTES - skip);
                outbox.bytes.extend_from_slice(&page[skip..skip + bytes]);
                left -= bytes;
                skip = 0;
            }
        }
        self.writer.wake();
    }

    /// The writer: sends what the others queue, all of it in one go, until the connection closes.
    pub(crate) async fn write_replies(&self) {
        let mut sending = Outbox::default();
        while self.take_replies(&mut sending).await {
            if !self.broken.get() && self.send_watched(&sending.bytes).await.is_err() {
                self.give_up();
            }
            sending.bytes.clear();
            sending.bytes.shrink_to(OUTPUT_BYTES_KEPT);
            self.give_back(&mut sending.held);
        }
    }

    /// Sends all of `bytes`, while how fast the client takes them is watched.
    async fn send_watched(&self, mut bytes: &[u8]) -> tantalum_base::Result<()> {
        let mut wait: Option<Wait> = None;
        while !bytes.is_empty() {
            let sent = {
                let mut sending = pin!(self.stream.send(bytes));
                poll_fn(|context| {
                    let sent = sending.as_mut().poll(context);
                    if sent.is_pending() {
                        let wait = *wait
                            .get_or_insert_with(|| Wait::new(self.now_ns(), bytes.len() as u64));
                        self.waits.send(Some(wait));
                    }
                    sent
                })
                .await
            };
            if let Some(wait) = &mut wait {
                wait.moved(self.now_ns());
                self.waits.send(None);
            }
            bytes = &bytes[some(sent?)?..];
        }
        Ok(())
    }

    /// Waits for replies and swaps them for an empty outbox; false when none will come.
    async fn take_replies(&self, into: &mut Outbox) -> bool {
        self.writer
            .until(|| {
                let mut outbox = self.outbox.borrow_mut();
                if !outbox.bytes.is_empty() {
                    std::mem::swap(&mut *outbox, into);
                    return Some(true);
                }
                let idle = self.idle.borrow().len() == self.slots.borrow().len();
                (self.closing.get() && idle).then_some(false)
            })
            .await
    }
}

/// Sends all of `bytes`.
pub(crate) async fn send_all<S: ByteStream>(
    stream: &S,
    mut bytes: &[u8],
) -> tantalum_base::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[some(stream.send(bytes).await?)?..];
    }
    Ok(())
}

/// `sent`, which is not 0 while the client is there.
fn some(sent: usize) -> tantalum_base::Result<usize> {
    if sent == 0 {
        return Err(Error::new(ErrorKind::Closed, "the NBD client has gone"));
    }
    Ok(sent)
}
