//! The receive buffer: many requests per system call, payloads copied once.
use super::End;
use super::link::Link;
use super::stalls::Wait;
use crate::span::Span;
use crate::statistics::{Gauge, Hold};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tantalum_base::{PAGE_BYTES, PageBuf};
use tantalum_runtime::ByteStream;

/// Maximum bytes of one `recv`; more than any `take` needs.
const INBOX_BYTES: usize = 256 << 10;

pub(crate) struct Inbox<S> {
    link: Rc<Link<S>>,
    bytes: Box<[u8]>,
    // Received and not consumed: `bytes[start..end]`.
    start: usize,
    end: usize,
    // Bytes received since the connection's last turn.
    received_bytes: u64,
    // Bytes left of the payload being received.
    payload_bytes: Option<u64>,
    // The message in progress, while the reader waits for the client.
    wait: Option<Wait>,
    _held: Hold,
}

impl<S: ByteStream> Inbox<S> {
    pub(crate) fn new(link: Rc<Link<S>>, held: Rc<Gauge>) -> Self {
        Inbox {
            link,
            _held: Hold::new(held, INBOX_BYTES as u64),
            payload_bytes: None,
            wait: None,
            bytes: vec![0; INBOX_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            received_bytes: 0,
        }
    }

    /// Consumes the next `count` bytes; `count` is at most a message's header or a page.
    pub(crate) async fn take(&mut self, count: usize) -> Result<&[u8], End> {
        while self.end - self.start < count {
            self.receive(count).await?;
        }
        if self.payload_bytes.is_none() {
            self.wait = None;
        }
        self.start += count;
        Ok(&self.bytes[self.start - count..self.start])
    }

    /// Whether everything received was consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Consumes `count` bytes without reading them.
    pub(crate) async fn discard(&mut self, mut count: u64) -> Result<(), End> {
        self.payload_bytes = Some(count);
        loop {
            let step = count.min((self.end - self.start) as u64);
            self.start += step as usize;
            count -= step;
            if count == 0 {
                self.end_payload();
                return Ok(());
            }
            self.receive(1).await?;
        }
    }

    /// Reads a write's payload into its covering pages; the uncovered rest of a page is zero.
    pub(crate) async fn take_pages(
        &mut self,
        span: Span,
        pages: &mut Vec<PageBuf>,
    ) -> Result<(), End> {
        let mut left = span.length as usize;
        let mut skip = span.skip();
        self.payload_bytes = Some(span.length);
        while left > 0 {
            let count = left.min(PAGE_BYTES - skip);
            let bytes = self.take(count).await?;
            if count == PAGE_BYTES {
                pages.push(PageBuf::copy_from(bytes));
            } else {
                let mut page = [0; PAGE_BYTES];
                page[skip..skip + count].copy_from_slice(bytes);
                pages.push(PageBuf::copy_from(&page));
            }
            left -= count;
            skip = 0;
        }
        self.end_payload();
        Ok(())
    }

    fn end_payload(&mut self) {
        self.payload_bytes = None;
        self.wait = None;
    }

    /// Receives at least one byte, with contiguous room for `count`. A stop of the server ends the
    /// wait; bytes received but not consumed are dropped.
    async fn receive(&mut self, count: usize) -> Result<(), End> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + count > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let link = &self.link;
        let received_pages = std::mem::take(&mut self.received_bytes).div_ceil(PAGE_BYTES as u64);
        link.client.seat.turn(received_pages + link.decryption_cost()).await;
        // Between two messages the client may be silent without limit.
        let begun = self.payload_bytes.or((self.start < self.end).then_some(count as u64));
        let wait = &mut self.wait;
        let mut receiving = pin!(link.recv(&mut self.bytes[self.end..]));
        let received = poll_fn(|context| {
            if link.is_stopping() {
                return Poll::Ready(Err(End::Stopped));
            }
            let received = receiving.as_mut().poll(context).map_err(End::Failed);
            if received.is_pending() {
                link.reader.register(context);
                if let Some(bytes) = begun {
                    let wait = wait.get_or_insert_with(|| Wait::new(link.now_ns(), bytes));
                    link.waits.receive(Some(*wait));
                }
            }
            received
        })
        .await?;
        if let Some(wait) = wait {
            wait.moved(link.now_ns());
            link.waits.receive(None);
        }
        if received == 0 {
            return Err(if self.start == self.end { End::Closed } else { End::Truncated });
        }
        self.end += received;
        self.received_bytes += received as u64;
        Ok(())
    }
}
