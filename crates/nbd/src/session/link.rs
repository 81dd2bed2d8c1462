//! What the tasks of one connection share: the reader, the workers, the writer.
use crate::protocol::error_code::ErrorCode;
use crate::protocol::transmission::{Request, simple_reply};
use crate::signal::Signal;
use crate::span::Span;
use crate::transport::ByteStream;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{PAGE_BYTES, PageBuf};

/// Memory that an output buffer keeps between turns; larger ones are given back.
const OUTPUT_BYTES_KEPT: usize = 1 << 20;

/// Replies not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    // What the requests behind these replies still hold of the connection's budget.
    pub(crate) cost_bytes: u64,
}

impl Outbox {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(OUTPUT_BYTES_KEPT);
        self.cost_bytes = 0;
    }
}

/// A request on its way to a worker.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) cost_bytes: u64,
}

/// A worker's place: the request it shall do next, and the pages that belong to it.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) job: Cell<Option<Job>>,
    // The vector goes back and forth between reader and worker, so none is allocated a request.
    pub(crate) pages: RefCell<Vec<PageBuf>>,
    pub(crate) posted: Signal,
}

/// One connection.
pub(crate) struct Link<S> {
    pub(crate) stream: S,
    outbox: RefCell<Outbox>,
    free_bytes: Cell<u64>,
    slots: RefCell<Vec<Rc<Slot>>>,
    idle: RefCell<Vec<usize>>,
    // The server asked to read no more requests.
    stopping: Cell<bool>,
    // Replies cannot be sent any more.
    broken: Cell<bool>,
    // No request will follow: workers and writer end when they have nothing left to do.
    closing: Cell<bool>,
    // The reader waits for the client, or (rarely) for a worker or for budget: apart, so that a
    // finished request does not wake a reader that waits for the client.
    pub(crate) reader: Signal,
    room: Signal,
    writer: Signal,
}

impl<S: ByteStream> Link<S> {
    pub(crate) fn new(stream: S, in_flight_bytes_max: u64) -> Self {
        Link {
            stream,
            outbox: RefCell::default(),
            free_bytes: Cell::new(in_flight_bytes_max),
            slots: RefCell::default(),
            idle: RefCell::default(),
            stopping: Cell::new(false),
            broken: Cell::new(false),
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

    /// Says that no request will follow.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.slots.borrow().iter().for_each(|slot| slot.posted.wake());
        self.writer.wake();
    }

    /// Waits for `cost_bytes` of the budget and takes them; false where the connection is gone.
    pub(crate) async fn reserve(&self, cost_bytes: u64) -> bool {
        self.room
            .until(|| {
                if self.broken.get() {
                    return Some(false);
                }
                let left = self.free_bytes.get().checked_sub(cost_bytes)?;
                self.free_bytes.set(left);
                Some(true)
            })
            .await
    }

    fn give_back(&self, cost_bytes: u64) {
        self.free_bytes.set(self.free_bytes.get() + cost_bytes);
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
        job: &Job,
        error: Option<ErrorCode>,
        payload: Option<(Span, &[PageBuf])>,
    ) {
        if self.broken.get() {
            self.give_back(job.cost_bytes);
            return;
        }
        let mut outbox = self.outbox.borrow_mut();
        outbox.cost_bytes += job.cost_bytes;
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
            if !self.broken.get() && send_all(&self.stream, &sending.bytes).await.is_err() {
                self.give_up();
            }
            self.give_back(sending.cost_bytes);
            sending.clear();
        }
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
        let sent = stream.send(bytes).await?;
        if sent == 0 {
            return Err(tantalum_base::Error::new(
                tantalum_base::ErrorKind::Closed,
                "the NBD client has gone",
            ));
        }
        bytes = &bytes[sent..];
    }
    Ok(())
}
