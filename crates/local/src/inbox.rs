//! Receives frames from a connection.
use crate::protocol::{HEAD_BYTES, Head};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::ByteStream;
use tantalum_runtime::sync::WaitQueue;

/// Limit on the bytes of one receive, except for long bodies.
const BUFFER_BYTES: usize = 16 << 10;

/// Requests of other tasks to the receiving task: report that everything sent until now has been received, or stop.
pub(crate) struct Look {
    /// Number of requests for a report.
    asked: Cell<u64>,
    /// The number of the latest request that was answered: at some time after it, nothing was left to receive.
    answered: Cell<u64>,
    stopped: Cell<bool>,
    /// Woken when any of these fields changes.
    changed: WaitQueue,
}

impl Look {
    pub(crate) fn new() -> Look {
        let changed = WaitQueue::new("a look at what a client has sent");
        Look { asked: Cell::new(0), answered: Cell::new(0), stopped: Cell::new(false), changed }
    }

    /// Completes when everything that the client sent before this call was received, or nothing more can be received.
    pub(crate) async fn taken(&self) {
        let number = self.asked.get().saturating_add(1);
        self.asked.set(number);
        self.changed.wake_all();
        self.changed.until(|| (self.answered.get() >= number).then_some(())).await;
    }

    fn answer(&self, number: u64) {
        if self.answered.get() < number {
            self.answered.set(number);
            self.changed.wake_all();
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        self.changed.wake_all();
    }

    pub(crate) async fn until_stopped(&self) {
        self.changed.until(|| self.stopped.get().then_some(())).await;
    }

    /// Records that nothing more will be received.
    pub(crate) fn end(&self) {
        self.answer(u64::MAX);
    }
}

/// The received part of a connection's data.
pub(crate) struct Inbox<S> {
    stream: S,
    buffer: Box<[u8]>,
    // Received and unread bytes: `buffer[start..end]`.
    start: usize,
    end: usize,
}

impl<S: ByteStream> Inbox<S> {
    pub(crate) fn new(stream: S) -> Inbox<S> {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Inbox { stream, buffer, start: 0, end: 0 }
    }

    /// Waits until a frame begins; `false` if the client has closed the connection instead.
    pub(crate) async fn begun(&mut self, look: &Look) -> Result<bool> {
        if self.start < self.end {
            return Ok(true);
        }
        (self.start, self.end) = (0, 0);
        self.end = receive(&self.stream, &mut self.buffer, look).await?;
        Ok(self.end > 0)
    }

    /// The head of the frame that has begun.
    pub(crate) async fn head(&mut self, look: &Look) -> Result<Head> {
        if self.buffer.len() - self.start < HEAD_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < HEAD_BYTES {
            let received = receive(&self.stream, &mut self.buffer[self.end..], look).await?;
            self.end += more(received)?;
        }
        let (head, _) = self.buffer[self.start..self.end]
            .split_first_chunk::<HEAD_BYTES>()
            .expect("as many were received");
        self.start += HEAD_BYTES;
        Head::decode(head)
    }

    /// The body of the frame whose head was read.
    pub(crate) async fn body(&mut self, body_bytes: usize, look: &Look) -> Result<Vec<u8>> {
        let here = body_bytes.min(self.end - self.start);
        let mut body = Vec::with_capacity(body_bytes);
        body.extend_from_slice(&self.buffer[self.start..self.start + here]);
        self.start += here;
        if here == body_bytes {
            return Ok(body);
        }
        body.resize(body_bytes, 0);
        let mut end = here;
        while end < body_bytes {
            end += more(receive(&self.stream, &mut body[end..], look).await?)?;
        }
        Ok(body)
    }
}

/// Checks the number of bytes `received` within an incomplete message: 0 means that the client closed.
fn more(received: usize) -> Result<usize> {
    match received {
        0 => Err(Error::new(ErrorKind::Closed, "the client closed in the middle of a message")),
        _ => Ok(received),
    }
}

/// Receives bytes, and meanwhile answers tasks that call `taken`.
async fn receive(stream: &impl ByteStream, into: &mut [u8], look: &Look) -> Result<usize> {
    loop {
        let asked = look.asked.get();
        let mut receiving = pin!(stream.recv(&mut *into));
        let mut again = pin!(look.changed.until(|| (look.asked.get() > asked).then_some(())));
        let received = poll_fn(|context| {
            if let Poll::Ready(received) = receiving.as_mut().poll(context) {
                return Poll::Ready(Some(received));
            }
            // The socket was empty when this receive began.
            look.answer(asked);
            again.as_mut().poll(context).map(|()| None)
        })
        .await;
        // The next receive sees everything that has arrived since.
        if let Some(received) = received {
            return received;
        }
    }
}
