//! A connection in TLS, as a byte stream over another one.
use crate::certificates::Certificates;
use crate::failure::Failure;
use crate::lent::Lent;
use crate::outgoing::Outgoing;
use rustls::{Error as Fault, ServerConnection};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io::{ErrorKind as Io, Read, Write};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tantalum_base::{Error, Result};
use tantalum_runtime::{ByteStream, First, first, yield_now};

/// Maximum encrypted bytes that are received at once: four records.
const RECEIVED_BYTES: usize = 64 << 10;
/// Maximum bytes that are encrypted and sent at once: four records.
pub const SENT_BYTES: usize = 64 << 10;
/// Length of a record.
const RECORD_BYTES: i64 = 16 << 10;
/// Maximum memory of a connection's buffers: bytes received but not decrypted, here and in the session; one decrypted record; bytes
/// encrypted but not sent, in the session and here.
pub const HELD_BYTES: usize = 2 * RECEIVED_BYTES + 2 * SENT_BYTES + (64 << 10);

/// The server's end of a connection in TLS. Clones are handles to the same connection: one task may receive while another sends.
pub struct TlsStream<S>(Rc<Inner<S>>);

impl<S> Clone for TlsStream<S> {
    fn clone(&self) -> Self {
        TlsStream(Rc::clone(&self.0))
    }
}

struct Inner<S> {
    plain: S,
    session: RefCell<ServerConnection>,
    incoming: Cell<Incoming>,
    outgoing: Outgoing,
    // Encrypted bytes that the session took, minus the decrypted bytes that it returned.
    overhead_bytes: Cell<i64>,
    // The client has closed the connection below.
    is_at_end: Cell<bool>,
    failed: RefCell<Option<Fault>>,
}

/// Encrypted bytes that were received and not decrypted: `bytes[start..end]`.
#[derive(Default)]
struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl<S: ByteStream> TlsStream<S> {
    /// Does the handshake on `plain`, on which nothing of TLS was received yet. `turn` is awaited before each step that costs work.
    ///
    /// # Errors
    /// The reason for the failure. It was sent to the client, if the client still receives.
    pub async fn accept(
        plain: S,
        certificates: &Certificates,
        mut turn: impl AsyncFnMut(),
    ) -> std::result::Result<Self, Failure> {
        let session = ServerConnection::new(Arc::clone(&certificates.config));
        let mut session = session.map_err(Failure::Tls)?;
        session.set_buffer_limit(Some(SENT_BYTES));
        let stream = TlsStream(Rc::new(Inner {
            plain,
            session: RefCell::new(session),
            incoming: Cell::default(),
            outgoing: Outgoing::new(),
            overhead_bytes: Cell::new(0),
            is_at_end: Cell::new(false),
            failed: RefCell::new(None),
        }));
        let inner = &stream.0;
        while inner.session.borrow().is_handshaking() {
            inner.flush().await.map_err(Failure::Connection)?;
            inner.receive().await.map_err(Failure::Connection)?;
            if inner.is_at_end.get() {
                return Err(Failure::BrokeOff);
            }
            turn().await;
            if let Err(fault) = inner.shake_hands() {
                // This sends the client the reason for the end.
                let _ = inner.flush().await;
                return Err(Failure::Tls(fault));
            }
        }
        inner.flush().await.map_err(Failure::Connection)?;
        Ok(stream)
    }

    /// Bytes of received records besides their content, since the last call: headers, checksums, padding. They cost work: a client
    /// that sends its requests in tiny or padded records causes many of them.
    pub fn take_overhead_bytes(&self) -> u64 {
        // The session may hold an incomplete record, which is not overhead.
        let beyond = self.0.overhead_bytes.get() - RECORD_BYTES;
        if beyond <= 0 {
            return 0;
        }
        self.0.overhead_bytes.set(RECORD_BYTES);
        beyond as u64
    }

    /// Sends the client TLS's notice of the end, if it can be sent without waiting.
    pub async fn say_goodbye(&self) {
        self.0.session.borrow_mut().send_close_notify();
        self.0.flush_without_waiting().await;
    }
}

impl<S: ByteStream> Inner<S> {
    async fn flush(&self) -> Result<()> {
        self.outgoing.flush(&self.session, &self.plain).await
    }

    async fn flush_without_waiting(&self) {
        let mut flushing = pin!(self.flush());
        poll_fn(|context| {
            // If it fails, the client has gone.
            let _ = flushing.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Receives encrypted bytes. Meanwhile sends the session's bytes, unless another task does.
    async fn receive(&self) -> Result<()> {
        let answering = async {
            if !self.outgoing.is_busy() && self.session.borrow().wants_write() {
                // If it fails, the client has gone, and receiving reports that.
                let _ = self.flush().await;
            }
            pending::<Infallible>().await
        };
        let receiving = async {
            let mut incoming = Lent::new(&self.incoming);
            incoming.bytes.resize(RECEIVED_BYTES, 0);
            (incoming.start, incoming.end) = (0, 0);
            incoming.end = self.plain.recv(&mut incoming.bytes).await?;
            if incoming.end == 0 {
                self.is_at_end.set(true);
            }
            Ok(())
        };
        match first(answering, receiving).await {
            First::One(never) => match never {},
            First::Other(received) => received,
        }
    }

    /// Gives the session received bytes, until the handshake is complete.
    fn shake_hands(&self) -> std::result::Result<(), Fault> {
        let mut session = self.session.borrow_mut();
        let mut incoming = Lent::new(&self.incoming);
        while session.is_handshaking() && incoming.start < incoming.end {
            incoming.give_to(&mut session)?;
        }
        Ok(())
    }

    fn count_overhead(&self, bytes: i64) {
        self.overhead_bytes.set(self.overhead_bytes.get() + bytes);
    }

    /// Decrypts received bytes, as many as fit into `into`. `None` if more must be received first; 0 at the end.
    fn decrypt(&self, into: &mut [u8]) -> Result<Option<usize>> {
        let mut session = self.session.borrow_mut();
        let mut incoming = Lent::new(&self.incoming);
        let mut decrypted = 0;
        let mut is_over = false;
        while decrypted < into.len() && !is_over {
            match session.reader().read(&mut into[decrypted..]) {
                Ok(0) => is_over = true,
                Ok(more) => decrypted += more,
                Err(error) if error.kind() != Io::WouldBlock => is_over = true,
                Err(_) if self.failed.borrow().is_some() => is_over = true,
                Err(_) if incoming.start == incoming.end => break,
                Err(_) => {
                    let before = incoming.start;
                    let given = incoming.give_to(&mut session);
                    *self.failed.borrow_mut() = given.err();
                    self.count_overhead((incoming.start - before) as i64);
                }
            }
        }
        self.count_overhead(-(decrypted as i64));
        match &*self.failed.borrow() {
            _ if decrypted > 0 => Ok(Some(decrypted)),
            Some(fault) => Err(Error::from(Failure::Tls(fault.clone()))),
            None => Ok((is_over || self.is_at_end.get()).then_some(0)),
        }
    }
}

impl Incoming {
    /// Gives the session a few of the bytes, at least one.
    fn give_to(&mut self, session: &mut ServerConnection) -> std::result::Result<(), Fault> {
        let mut rest = &self.bytes[self.start..self.end];
        let given = session.read_tls(&mut rest);
        self.start += given.map_err(|error| Fault::General(error.to_string()))?;
        session.process_new_packets().map(|_| ())
    }
}

impl<S: ByteStream> ByteStream for TlsStream<S> {
    async fn recv(&self, into: &mut [u8]) -> Result<usize> {
        let mut has_received = false;
        loop {
            match self.0.decrypt(into) {
                Ok(Some(decrypted)) => return Ok(decrypted),
                Ok(None) => {}
                Err(error) => {
                    // This sends the client the reason.
                    self.0.flush_without_waiting().await;
                    return Err(error);
                }
            }
            if has_received {
                // A flood of records without content must not keep others waiting.
                yield_now().await;
            }
            self.0.receive().await?;
            has_received = true;
        }
    }

    async fn send(&self, bytes: &[u8]) -> Result<usize> {
        // The session may still have an answer of the reader. It is sent first, to make room.
        self.0.flush().await?;
        let sent = self.0.session.borrow_mut().writer().write(bytes);
        let sent = sent.map_err(|error| Error::io("TLS", error))?;
        self.0.flush().await?;
        Ok(sent)
    }

    fn shutdown(&self) {
        self.0.plain.shutdown();
    }
}
