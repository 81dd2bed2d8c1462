//! One connection: negotiation, then three kinds of task.
//!
//! ```text
//! reader    parses requests, reads payloads into pages, posts each to an idle worker
//! worker    at most a fixed number, made as needed: does a request, queues its reply
//! writer    sends all queued replies in one system call
//! ```
//!
//! The reader stops reading while no worker is idle or the budget of bytes in flight is used up.
mod budget;
mod inbox;
mod link;
mod negotiation;
mod replies;
mod reply;
mod stalls;
mod tls;

pub(crate) use budget::Budget;
pub(crate) use link::Link;

use crate::block_status::REPLY_PAGES;
use crate::export::{Done, Export};
use crate::failure_log;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::transmission::{Command, REQUEST_BYTES, Request};
use crate::span::Span;
use crate::statistics::timed;
use crate::terms::Terms;
use inbox::Inbox;
use link::{Job, PAGES_KEPT, Slot};
use reply::Outcome;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageDevice};
use tantalum_runtime::rounds::request_cost;
use tantalum_runtime::{ByteStream, First, JoinHandle, Runtime, first};
use tantalum_tls::Failure;

/// The reason given for cutting off a client that does not finish negotiation.
pub(crate) const UNFINISHED: &str = "did not finish negotiation";

/// The reason for the end of a session.
#[derive(Debug)]
pub(crate) enum End {
    /// The client disconnected.
    Disconnected,
    /// The client closed between two messages.
    Closed,
    /// The client finished negotiation when all places were taken.
    TurnedAway,
    /// The server is stopping.
    Stopped,
    /// The client closed in the middle of a message.
    Truncated,
    /// The client broke the protocol.
    Violation(&'static str),
    /// The server cut the client off, for this reason.
    Cut(&'static str),
    /// The TLS handshake failed, for this reason.
    Handshake(Failure),
    /// The connection failed.
    Failed(Error),
}

impl End {
    /// The fault of the client or the network, if there is one.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            End::Disconnected | End::Closed | End::TurnedAway | End::Stopped => None,
            End::Truncated => Some("the client closed in the middle of a message".into()),
            End::Violation(what) => Some(format!("the client sent {what}")),
            End::Cut(what) => Some(format!("the client {what} in time")),
            End::Handshake(failure) => Some(failure.to_string()),
            End::Failed(error) => Some(error.to_string()),
        }
    }
}

/// Serves one connection to its end, if there `is_room` for it when it has finished negotiation. Every request is done,
/// and every reply is sent if possible. If the client has gone, long commands end early.
pub(crate) async fn run<R, S, D>(
    runtime: &R,
    link: &Rc<Link<S>>,
    export: &Rc<Export<D>>,
    is_room: impl FnOnce() -> bool,
) -> End
where
    R: Runtime,
    S: ByteStream,
    D: PageDevice<Page = PageBuf>,
{
    let mut inbox = Inbox::new(Rc::clone(link), Rc::clone(&export.counters.bytes_held));
    let negotiated = negotiate_in_time(runtime, link, export, &mut inbox).await;
    let terms = match negotiated {
        Ok(_) if !is_room() => {
            link.shutdown().await;
            return End::TurnedAway;
        }
        Ok(terms) => terms,
        Err(end) => {
            if matches!(end, End::Handshake(_)) {
                tls::linger(runtime, link).await;
            }
            link.shutdown().await;
            return link.cut_for().map_or(end, End::Cut);
        }
    };
    link.negotiated(terms);
    let watch = {
        let (link, runtime) = (Rc::clone(link), runtime.clone());
        let stall_ns = export.options.stall_ms_max.saturating_mul(1_000_000);
        runtime.clone().spawn("nbd watch", async move {
            stalls::watch(&runtime, &link, stall_ns).await;
        })
    };
    let writer = {
        let link = Rc::clone(link);
        runtime.spawn("nbd writer", async move { link.write_replies().await })
    };
    let mut reader = Reader {
        runtime: runtime.clone(),
        link: Rc::clone(link),
        export: Rc::clone(export),
        inbox,
        terms,
        pages: Vec::new(),
        workers: Vec::new(),
    };
    let end = reader.read_requests().await;
    if matches!(end, End::Closed | End::Truncated | End::Failed(_)) {
        link.client.leave();
    }
    link.close();
    for worker in reader.workers {
        worker.await;
    }
    writer.await;
    link.waits.end();
    watch.await;
    link.shutdown().await;
    link.cut_for().map_or(end, End::Cut)
}

async fn negotiate_in_time<R, S, D>(
    runtime: &R,
    link: &Link<S>,
    export: &Export<D>,
    inbox: &mut Inbox<S>,
) -> Result<Terms, End>
where
    R: Runtime,
    S: ByteStream,
    D: PageDevice<Page = PageBuf>,
{
    let options = &export.options;
    let negotiating = negotiation::negotiate(runtime, link, inbox, export);
    let late = runtime.sleep(options.negotiation_ms_max.saturating_mul(1_000_000));
    match first(negotiating, late).await {
        First::One(negotiated) => negotiated,
        First::Other(()) => Err(End::Cut(UNFINISHED)),
    }
}

struct Reader<R, S, D> {
    runtime: R,
    link: Rc<Link<S>>,
    export: Rc<Export<D>>,
    inbox: Inbox<S>,
    terms: Terms,
    // Pages of the request being read; swapped with a worker's.
    pages: Vec<PageBuf>,
    workers: Vec<JoinHandle<()>>,
}

impl<R: Runtime, S: ByteStream, D: PageDevice<Page = PageBuf>> Reader<R, S, D> {
    async fn read_requests(&mut self) -> End {
        loop {
            if let Err(end) = self.read_request().await {
                return end;
            }
        }
    }

    async fn read_request(&mut self) -> Result<(), End> {
        let Some(request) = Request::parse(self.inbox.take(REQUEST_BYTES).await?) else {
            return Err(End::Violation("a request without its magic"));
        };
        if request.command == Command::Disconnect {
            return Err(End::Disconnected);
        }
        let span = Span { offset: request.offset, length: request.length.into() };
        let refusal = self.export.check(&request, &self.terms);
        let pages = match request.command {
            Command::Read | Command::Write if refusal.is_none() => span.covering().pages,
            _ => 0,
        };
        self.link.client.seat.turn(request_cost(pages)).await;
        // Each request costs at least one page, so that the number of small requests is limited too.
        let cost_bytes = match request.command {
            Command::BlockStatus => REPLY_PAGES,
            _ => pages.max(1),
        } * PAGE_BYTES as u64;
        let Some(mut held) = self.link.reserve(cost_bytes).await else { return Err(End::Closed) };
        if request.command == Command::Write {
            let read = match refusal {
                None => self.inbox.take_pages(span, &mut self.pages).await,
                Some(_) => self.inbox.discard(span.length).await,
            };
            if let Err(end) = read {
                self.pages = Vec::new();
                self.link.give_back(&mut held);
                return Err(end);
            }
        }
        let job = Job { request, held, came_ns: self.link.now_ns() };
        if let Some(refusal) = refusal {
            self.export.counters.errors.add(1);
            self.export.counters.refused.add(1);
            self.link.reply(job, Outcome::Failed(refusal.code, refusal.why));
            return Ok(());
        }
        let worker = self.worker().await;
        self.link.post(worker, job, &mut self.pages);
        Ok(())
    }

    /// A worker for the next request: an idle one, a new one, or the first to become idle.
    async fn worker(&mut self) -> usize {
        if let Some(worker) = self.link.idle_worker() {
            return worker;
        }
        if self.link.workers() == self.export.options.requests_max {
            return self.link.next_idle_worker().await;
        }
        let (worker, slot) = self.link.add_worker();
        let (link, export) = (Rc::clone(&self.link), Rc::clone(&self.export));
        let first_byte = self.terms.part.first_byte;
        let work = work(link, export, first_byte, worker, slot);
        self.workers.push(self.runtime.spawn("nbd worker", work));
        worker
    }
}

/// Performs one request after the other, for a client whose offsets count from `first_byte` of the device.
async fn work<S, D>(
    link: Rc<Link<S>>,
    export: Rc<Export<D>>,
    first_byte: u64,
    worker: usize,
    slot: Rc<Slot>,
) where
    S: ByteStream,
    D: PageDevice<Page = PageBuf>,
{
    let mut pages = Vec::new();
    while let Some(job) = link.next_job(&slot).await {
        std::mem::swap(&mut pages, &mut slot.pages.borrow_mut());
        let (timed, came_ns) = (timed(job.request.command), job.came_ns);
        let asked = Request { offset: first_byte + job.request.offset, ..job.request };
        match export.perform(&asked, &mut pages, &link.client).await {
            Ok(Done::Changed) => link.reply(job, Outcome::Done),
            Ok(Done::Read) => {
                let Request { offset, length, .. } = job.request;
                link.reply(job, Outcome::Read(Span { offset, length: length.into() }, &pages));
            }
            Ok(Done::Status(extents)) => link.reply(job, Outcome::Status(&extents)),
            Err(error) => {
                let code = ErrorCode::of(error.kind());
                link.reply(job, Outcome::Failed(code, &error.to_string()));
                // It is no failure that a client has gone. If it has closed only its sending direction, it still gets the error.
                if !(link.client.is_gone() && error.kind() == ErrorKind::Closed) {
                    failure_log::tell(&asked, &error);
                    export.counters.failed(error);
                }
            }
        }
        if let Some(timed) = timed {
            export.counters.durations[timed].record(link.now_ns().saturating_sub(came_ns));
        }
        pages.clear();
        pages.shrink_to(PAGES_KEPT);
        std::mem::swap(&mut pages, &mut slot.pages.borrow_mut());
        link.rest(worker);
    }
}
