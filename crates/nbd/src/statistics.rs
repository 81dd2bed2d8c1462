//! The counters of a server.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind};
use tantalum_runtime::metrics::Histogram;

use crate::protocol::transmission::Command;

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the server was made.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
            /// Connections open now in TLS.
            pub tls_connections_open: u64,
            /// Bytes now held for connections: received requests, requests in progress, and unsent replies.
            pub bytes_held: u64,
            /// The largest `bytes_held` so far.
            pub bytes_held_max: u64,
            /// Requests of each kind that the device failed, by `ErrorKind as usize`.
            pub errors_by_kind: [u64; ErrorKind::ALL.len()],
            /// The last error of the device that was reported to a client, as text (NBD's simple replies carry only a
            /// number; a structured one includes the text).
            pub last_error: Option<String>,
            /// The reason for closing the last connection that failed.
            pub last_failure: Option<String>,
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Count,)*
            pub(crate) tls_connections_open: Rc<Gauge>,
            pub(crate) bytes_held: Rc<Gauge>,
            pub(crate) last_error: RefCell<Option<Error>>,
            errors_by_kind: [Count; ErrorKind::ALL.len()],
            /// Durations of requests, indexed by [`timed`].
            pub(crate) durations: [Histogram; TIMED.len()],
            pub(crate) last_failure: RefCell<Option<String>>,
        }

        impl Counters {
            /// Counts a request that the device failed with `error`.
            pub(crate) fn failed(&self, error: Error) {
                self.errors.add(1);
                self.errors_by_kind[error.kind() as usize].add(1);
                *self.last_error.borrow_mut() = Some(error);
            }

            pub(crate) fn snapshot(&self) -> Statistics {
                Statistics {
                    $($name: self.$name.get(),)*
                    tls_connections_open: self.tls_connections_open.now.get(),
                    bytes_held: self.bytes_held.now.get(),
                    bytes_held_max: self.bytes_held.max.get(),
                    errors_by_kind: self.errors_by_kind.each_ref().map(Count::get),
                    last_error: self.last_error.borrow().as_ref().map(Error::to_string),
                    last_failure: self.last_failure.borrow().clone(),
                }
            }
        }
    };
}

statistics! {
    /// Connections accepted.
    connections_accepted,
    /// Connections refused at the limit.
    connections_refused,
    /// Connections closed during negotiation, to make room for another client at the limit.
    connections_evicted,
    /// Connections open now.
    connections_open,
    /// Connections closed for breaking the protocol, idling in negotiation, or failing.
    connections_failed,
    /// TLS handshakes that were completed.
    tls_connections,
    /// TLS handshakes that failed or did not end in time.
    tls_handshakes_failed,
    /// READ requests.
    reads,
    /// WRITE requests.
    writes,
    /// FLUSH requests.
    flushes,
    /// TRIM requests.
    trims,
    /// WRITE_ZEROES requests.
    write_zeroes,
    /// BLOCK_STATUS requests.
    block_statuses,
    /// Bytes read by clients.
    bytes_read,
    /// Bytes written by clients.
    bytes_written,
    /// Partial writes of a page, which had to read it first.
    read_modify_writes,
    /// Bytes trimmed by clients.
    bytes_trimmed,
    /// Bytes that clients set to zero.
    bytes_zeroed,
    /// Requests answered with an error.
    errors,
    /// Requests refused before the device saw them, such as unsupported ones or ones past the end; included in
    /// `errors`.
    refused,
    /// Times that memory was returned to the operating system after clients with much memory had left.
    memory_given_back,
}

/// The commands that are timed.
pub(crate) const TIMED: [Command; 6] = [
    Command::Read,
    Command::Write,
    Command::Flush,
    Command::Trim,
    Command::WriteZeroes,
    Command::BlockStatus,
];

/// The index of `command` in [`TIMED`].
pub(crate) fn timed(command: Command) -> Option<usize> {
    TIMED.iter().position(|timed| *timed == command)
}

/// A counter for one thread.
#[derive(Default)]
pub(crate) struct Count(Cell<u64>);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }

    pub(crate) fn subtract(&self, less: u64) {
        self.0.set(self.0.get() - less);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Memory in use, in bytes, or a number of connections, for one thread.
#[derive(Default)]
pub(crate) struct Gauge {
    now: Cell<u64>,
    max: Cell<u64>,
    // The maximum since `fell_by` was last true.
    peak: Cell<u64>,
}

impl Gauge {
    pub(crate) fn add(&self, more: u64) {
        let now = self.now.get() + more;
        self.now.set(now);
        self.max.set(self.max.get().max(now));
        self.peak.set(self.peak.get().max(now));
    }

    pub(crate) fn subtract(&self, less: u64) {
        self.now.set(self.now.get() - less);
    }

    /// Whether usage is `bytes` below its maximum since this was last true.
    pub(crate) fn fell_by(&self, bytes: u64) -> bool {
        let fell = self.peak.get() - self.now.get() >= bytes;
        if fell {
            self.peak.set(self.now.get());
        }
        fell
    }
}

/// A fixed amount, counted in a gauge until it is dropped.
pub(crate) struct Hold(Rc<Gauge>, u64);

impl Hold {
    pub(crate) fn new(gauge: Rc<Gauge>, amount: u64) -> Self {
        gauge.add(amount);
        Hold(gauge, amount)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.subtract(self.1);
    }
}
