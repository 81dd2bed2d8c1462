//! What a server has done so far.
use std::cell::{Cell, RefCell};
use tantalum_base::Error;

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the server was made.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
            /// The last error of the device that a client was told of, in words (NBD's simple
            /// replies carry only a number).
            pub last_error: Option<String>,
            /// Why the last connection that failed was closed.
            pub last_failure: Option<String>,
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Count,)*
            pub(crate) last_error: RefCell<Option<Error>>,
            pub(crate) last_failure: RefCell<Option<String>>,
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Statistics {
                Statistics {
                    $($name: self.$name.get(),)*
                    last_error: self.last_error.borrow().as_ref().map(Error::to_string),
                    last_failure: self.last_failure.borrow().clone(),
                }
            }
        }
    };
}

statistics! {
    /// Connections taken.
    connections_accepted,
    /// Connections turned away at the limit.
    connections_refused,
    /// Connections open now.
    connections_open,
    /// Connections closed for breaking the protocol, idling in negotiation, or failing.
    connections_failed,
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
    /// Bytes read by clients.
    bytes_read,
    /// Bytes written by clients.
    bytes_written,
    /// Writes that had to read a page first, as they covered only a part of it.
    read_modify_writes,
    /// Requests answered with an error.
    errors,
}

/// A counter inside one thread.
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
