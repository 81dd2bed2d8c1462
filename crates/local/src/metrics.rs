//! Counters of local clients, and their metrics.
use crate::request::{Call, Request};
use crate::server::Server;
use std::cell::Cell;
use tantalum_base::{ErrorKind, PAGE_BYTES, PageBuf, PageDevice};
use tantalum_runtime::metrics::{Histogram, MetricKind, Readings};

/// The labels of clients' requests.
const COMMANDS: [&str; 11] = [
    "read",
    "write",
    "write_scattered",
    "flush",
    "trim",
    "share",
    "begin",
    "commit",
    "abort",
    "lock",
    "is_reserved",
];

/// The index of a call in [`COMMANDS`]; `None` for calls without an answer.
fn command(call: &Call) -> Option<usize> {
    Some(match call {
        Call::Device(Request::Read { .. }) => 0,
        Call::Device(Request::Write { .. }) => 1,
        Call::Device(Request::WriteScattered(_)) => 2,
        Call::Device(Request::Flush) => 3,
        Call::Device(Request::Trim(_)) => 4,
        Call::Device(Request::Share(_)) => 5,
        Call::Device(Request::Begin) => 6,
        Call::Device(Request::Commit(_)) => 7,
        Call::Device(Request::Abort(_)) => 8,
        Call::Raise(_) => 9,
        Call::IsReserved => 10,
        Call::Lower { .. } => return None,
    })
}

/// The commands that move or discard pages: their indices in [`COMMANDS`].
const WITH_PAGES: [usize; 4] = [0, 1, 2, 4];

/// Bytes that a request reads, writes or discards.
fn bytes(call: &Call) -> u64 {
    let pages = match call {
        Call::Device(Request::Read { pages, .. }) => *pages as u64,
        Call::Device(Request::Write { pages, .. }) => pages.len() as u64,
        Call::Device(Request::WriteScattered(pages)) => pages.len() as u64,
        Call::Device(Request::Trim(range)) => range.pages,
        _ => 0,
    };
    pages.saturating_mul(PAGE_BYTES as u64)
}

fn more(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// The counters of a server.
#[derive(Default)]
pub(crate) struct Counters {
    clients_accepted: Cell<u64>,
    clients_refused: Cell<u64>,
    clients_failed: Cell<u64>,
    requests: Cell<u64>,
    durations: [Histogram; COMMANDS.len()],
    bytes: [Cell<u64>; COMMANDS.len()],
    errors_by_kind: [Cell<u64>; ErrorKind::ALL.len()],
    locks_refused: Cell<u64>,
}

/// A request in progress.
pub(crate) struct Timed {
    command: Option<usize>,
    bytes: u64,
    came_ns: u64,
}

impl Counters {
    pub(crate) fn accepted(&self) {
        more(&self.clients_accepted);
    }

    pub(crate) fn turned_away(&self) {
        more(&self.clients_refused);
    }

    pub(crate) fn cut_off(&self) {
        more(&self.clients_failed);
    }

    /// A lock was not raised to the requested level.
    pub(crate) fn lock_refused(&self) {
        more(&self.locks_refused);
    }

    /// A request was received completely.
    pub(crate) fn begin(&self, call: &Call, now_ns: u64) -> Timed {
        let command = command(call);
        if command.is_some() {
            more(&self.requests);
        }
        Timed { command, bytes: bytes(call), came_ns: now_ns }
    }

    /// The answer to a request is ready to be sent.
    pub(crate) fn end(&self, timed: &Timed, now_ns: u64, failed: Option<ErrorKind>) {
        if let Some(command) = timed.command {
            self.durations[command].record(now_ns.saturating_sub(timed.came_ns));
            let total = &self.bytes[command];
            total.set(total.get().saturating_add(timed.bytes));
        }
        if let Some(kind) = failed
            && let Some(at) = ErrorKind::ALL.iter().position(|known| *known == kind)
        {
            more(&self.errors_by_kind[at]);
        }
    }
}

impl<D: PageDevice<Page = PageBuf>> Server<D> {
    /// Reports the requests of local clients, their durations and their errors.
    pub fn metrics(&self, out: &mut Readings) {
        let counters = &self.0.counters;
        self.tell_clients(counters, out);
        let help = "Time from a whole request of a local client to its answer, ready to be sent";
        let name = "tantalum_local_request_duration_seconds";
        let metric = out.metric(MetricKind::Histogram, name, help);
        let mut answered = 0;
        for (command, histogram) in COMMANDS.into_iter().zip(&counters.durations) {
            let reading = histogram.read();
            answered += reading.count();
            metric.with(&[("command", command)], reading);
        }
        let help = "Bytes of these requests";
        let metric = out.metric(MetricKind::Counter, "tantalum_local_request_bytes_total", help);
        for at in WITH_PAGES {
            metric.with(&[("command", COMMANDS[at])], counters.bytes[at].get());
        }
        let in_flight = counters.requests.get().saturating_sub(answered);
        let help = "Requests of local clients not answered yet";
        out.gauge("tantalum_local_requests_in_flight", help, in_flight);
        let help = "Requests of local clients answered with an error, by kind";
        let metric = out.metric(MetricKind::Counter, "tantalum_local_errors_total", help);
        for (kind, count) in ErrorKind::ALL.into_iter().zip(&counters.errors_by_kind) {
            metric.with(&[("kind", kind.name())], count.get());
        }
        let holders = self.0.locks.borrow().holders().count() as u64;
        out.gauge(
            "tantalum_local_lock_holders",
            "Connections to the database that hold a lock",
            holders,
        );
        let help = "Locks refused because others held them: SQLite tries again, or reports that it is busy";
        out.counter("tantalum_local_locks_refused_total", help, counters.locks_refused.get());
    }

    fn tell_clients(&self, counters: &Counters, out: &mut Readings) {
        let clients = self.clients() as u64;
        out.gauge("tantalum_local_clients", "Connected local clients", clients);
        for (name, help, count) in [
            (
                "tantalum_local_clients_accepted_total",
                "Local clients that connected",
                &counters.clients_accepted,
            ),
            (
                "tantalum_local_clients_refused_total",
                "Local clients turned away at the limit",
                &counters.clients_refused,
            ),
            (
                "tantalum_local_clients_failed_total",
                "Local clients cut off for breaking the protocol, stalling, or failing",
                &counters.clients_failed,
            ),
        ] {
            out.counter(name, help, count.get());
        }
    }
}
