//! The requests that a file system received for its single file, in order. Each request has a beginning and an end, and
//! both are events. A position in the journal is the number of events before it. So a position read after an answer is
//! behind every event that led to the answer.

/// The kind of a request.
#[derive(Debug)]
pub enum Kind {
    /// Bytes at an offset; `durable` if the answer promises that they survive (`O_DSYNC`).
    Write { offset: u64, bytes: Vec<u8>, durable: bool },
    /// The file's new length.
    Resize { bytes: u64 },
    /// `fsync` or `fdatasync`.
    Sync,
}

#[derive(Debug)]
pub struct Request {
    pub kind: Kind,
    begun: usize,
    ended: Option<usize>,
    /// It was answered with an error; for a write, `bytes` is the part that was done nevertheless.
    pub failed: bool,
}

impl Request {
    /// Whether it was answered before `other` was issued.
    pub fn came_before(&self, other: &Request) -> bool {
        self.ended.is_some_and(|ended| ended < other.begun)
    }
}

/// Index of a request in its journal.
pub type RequestNo = usize;

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Begun(RequestNo),
    Ended(RequestNo),
}

#[derive(Debug, Default)]
pub struct Journal {
    pub requests: Vec<Request>,
    pub events: Vec<Event>,
}

impl Journal {
    pub fn position(&self) -> usize {
        self.events.len()
    }

    pub fn begin(&mut self, kind: Kind) -> RequestNo {
        let request = self.requests.len();
        self.requests.push(Request { kind, begun: self.position(), ended: None, failed: false });
        self.events.push(Event::Begun(request));
        request
    }

    pub fn end(&mut self, request: RequestNo) {
        self.requests[request].ended = Some(self.position());
        self.events.push(Event::Ended(request));
    }
}
