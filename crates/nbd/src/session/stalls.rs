//! Limits the time for which a client may stall in the middle of a message, in either direction. Between two requests a
//! client may be silent: a disk may be idle.
use super::link::Link;
use crate::signal::Signal;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tantalum_runtime::ByteStream;
use tantalum_runtime::Runtime;

/// Slowest average rate at which a client may send or receive a message.
const BYTES_PER_S_MIN: u64 = 64 << 10;

/// A message in progress that waits for the client.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    started_ns: u64,
    moved_ns: u64,
    bytes: u64,
}

impl Wait {
    /// The wait for a message of `bytes`, from `now_ns` on.
    pub(crate) fn new(now_ns: u64, bytes: u64) -> Self {
        Wait { started_ns: now_ns, moved_ns: now_ns, bytes }
    }

    /// Notes progress at `now_ns`.
    pub(crate) fn moved(&mut self, now_ns: u64) {
        self.moved_ns = now_ns;
    }

    /// The time at which the client is cut off: nothing moved for `stall_ns`, or the rate is too low.
    fn due_ns(&self, stall_ns: u64) -> u64 {
        let slowest_ns = u128::from(self.bytes) * 1_000_000_000 / u128::from(BYTES_PER_S_MIN);
        let slowest_ns = u64::try_from(slowest_ns).unwrap_or(u64::MAX);
        let stalled_ns = self.moved_ns.saturating_add(stall_ns);
        stalled_ns.min(self.started_ns.saturating_add(stall_ns).saturating_add(slowest_ns))
    }
}

/// The messages of a connection that wait for the client.
#[derive(Default)]
pub(crate) struct Waits {
    receiving: Cell<Option<Wait>>,
    sending: Cell<Option<Wait>>,
    over: Cell<bool>,
    // There are two signals, as the reader begins to wait many times while the watch sleeps.
    began: Signal,
    ended: Signal,
}

impl Waits {
    /// Notes that the client began or continued a message; `None` when the message is complete.
    pub(crate) fn receive(&self, wait: Option<Wait>) {
        self.receiving.set(wait);
        self.began.wake();
    }

    /// Notes that a reply is being sent and waits for the client; `None` when it is complete.
    pub(crate) fn send(&self, wait: Option<Wait>) {
        self.sending.set(wait);
        self.began.wake();
    }

    /// Ends the watch with the connection.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.began.wake();
        self.ended.wake();
    }

    /// The time at which the client will be cut off, and the reason.
    fn due(&self, stall_ns: u64) -> Option<(u64, &'static str)> {
        let receiving = self.receiving.get().map(|wait| (wait, "left a request unfinished"));
        let sending = self.sending.get().map(|wait| (wait, "did not take its replies"));
        let both = receiving.into_iter().chain(sending);
        both.map(|(wait, what)| (wait.due_ns(stall_ns), what)).min()
    }
}

/// Cuts the connection off if the client stalls too long; ends with the connection.
pub(crate) async fn watch<R: Runtime, S: ByteStream>(runtime: &R, link: &Link<S>, stall_ns: u64) {
    let waits = &link.waits;
    loop {
        let due = || {
            let due = waits.due(stall_ns);
            (waits.over.get() || due.is_some()).then_some(due)
        };
        let Some((due_ns, _)) = waits.began.until(due).await else { return };
        // One timer lasts until then, even if many messages complete meanwhile.
        let mut sleep = pin!(runtime.sleep_until(due_ns));
        poll_fn(|context| {
            if waits.over.get() {
                return Poll::Ready(());
            }
            waits.ended.register(context);
            sleep.as_mut().poll(context)
        })
        .await;
        if waits.over.get() {
            return;
        }
        if let Some((due_ns, what)) = waits.due(stall_ns)
            && due_ns <= runtime.now_ns()
        {
            return link.cut(what);
        }
    }
}
