//! Frames off a connection.
use crate::protocol::{HEAD_BYTES, Head};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::ByteStream;
use tantalum_runtime::sync::WaitQueue;

/// Most bytes of one receive, but for long bodies.
const BUFFER_BYTES: usize = 16 << 10;

/// What others want of the task that receives: to know that all which was sent until now has been taken, and to stop.
pub(crate) struct Look {
    /// How often it was asked for.
    asked: Cell<u64>,
    /// Up to which of these nothing was left.
    answered: Cell<u64>,
    stopped: Cell<bool>,
    /// Woken when any of these changes.
    changed: WaitQueue,
}

impl Look {
    pub(crate) fn new() -> Look {
        let changed = WaitQueue::new("a look at what a client has sent");
        Look { asked: Cell::new(0), answered: Cell::new(0), stopped: Cell::new(false), changed }
    }

    /// Completes when all that the client sent before this call was taken, or will never be.
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

    /// Nothing will be taken any more.
    pub(crate) fn end(&self) {
        self.answer(u64::MAX);
    }
}

/// What was received of a connection.
pub(crate) struct Inbox<S> {
    stream: S,
    buffer: Box<[u8]>,
    // Received and not taken: `buffer[start..end]`.
    start: usize,
    end: usize,
}

impl<S: ByteStream> Inbox<S> {
    pub(crate) fn new(stream: S) -> Inbox<S> {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Inbox { stream, buffer, start: 0, end: 0 }
    }

    /// Waits until a frame begins; `false` where the client has closed instead.
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

    /// The body of the frame whose head was taken.
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

/// Bytes of a message that is not over.
fn more(received: usize) -> Result<usize> {
    match received {
        0 => Err(Error::new(ErrorKind::Closed, "the client closed in the middle of a message")),
        _ => Ok(received),
    }
}

/// Receives, and answers those who look meanwhile.
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
        // A receive that begins anew sees what has come since.
        if let Some(received) = received {
            return received;
        }
    }
}
