//! Sends the bytes that a session has to send. The writer of a connection sends data, and its reader answers messages of TLS itself. Their
//! bytes must not mix.
use crate::lent::Lent;
use rustls::ServerConnection;
use std::cell::{Cell, RefCell};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::ByteStream;
use tantalum_runtime::sync::WaitQueue;

/// Encrypted bytes that are being sent.
pub(crate) struct Outgoing {
    pending: Cell<Pending>,
    is_busy: Cell<bool>,
    freed: WaitQueue,
}

/// Bytes taken from the session, and the number of them that are sent.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        let freed = WaitQueue::new("the other sender of a TLS connection");
        Outgoing { pending: Cell::default(), is_busy: Cell::new(false), freed }
    }

    /// Whether a task is sending. It goes on until the session has nothing more to send.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.get()
    }

    /// Sends all bytes that `session` has to send. The rest of an earlier call that was dropped goes first: a dropped call loses or mixes
    /// no bytes.
    ///
    /// # Errors
    /// `Closed` if the client has gone; those of `plain`.
    pub(crate) async fn flush<S: ByteStream>(
        &self,
        session: &RefCell<ServerConnection>,
        plain: &S,
    ) -> Result<()> {
        let _busy = self.take_turn().await;
        loop {
            let mut pending = Lent::new(&self.pending);
            if pending.sent == pending.bytes.len() {
                pending.refill(&mut session.borrow_mut())?;
            }
            if pending.bytes.is_empty() {
                return Ok(());
            }
            match plain.send(&pending.bytes[pending.sent..]).await? {
                0 => return Err(Error::new(ErrorKind::Closed, "the client has gone")),
                sent => pending.sent += sent,
            }
        }
    }

    async fn take_turn(&self) -> Busy<'_> {
        self.freed.until(|| (!self.is_busy.get()).then_some(())).await;
        self.is_busy.set(true);
        Busy(self)
    }
}

impl Pending {
    /// Takes all bytes that the session has to send.
    fn refill(&mut self, session: &mut ServerConnection) -> Result<()> {
        self.bytes.clear();
        self.sent = 0;
        while session.wants_write() {
            session.write_tls(&mut self.bytes).map_err(|error| Error::io("TLS", error))?;
        }
        Ok(())
    }
}

/// The turn of one sender; it ends when this is dropped.
struct Busy<'a>(&'a Outgoing);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.is_busy.set(false);
        self.0.freed.wake_all();
    }
}
