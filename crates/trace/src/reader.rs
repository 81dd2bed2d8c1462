//! A trace as an iterator of events, in constant memory.
use crate::formats::{Decode, Fault, Format};
use crate::source::Source;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

/// Bytes decoded at a time. At least two bytes make an event, so this bounds those held, too.
const CHUNK_BYTES: usize = 1 << 18;

/// Longest record accepted, so that a file without line ends cannot fill the memory.
const RECORD_BYTES_MAX: usize = 1 << 16;

/// How much of a bad line an error quotes.
const QUOTE_BYTES: usize = 60;

/// Reads the events of one trace. After an error it gives nothing more.
pub struct Reader<E> {
    path: PathBuf,
    source: Source,
    decoder: Box<dyn Decode<E>>,
    /// `buffer[start..end]` is read and not yet decoded.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// Lines decoded in the chunks before this one.
    lines: u64,
    batch: Vec<E>,
    next: usize,
    failed: Option<Error>,
}

impl<E: Copy> Reader<E> {
    /// Reads `source` as `format`. `head` was already taken from the source; `path` is for
    /// messages.
    pub fn new(path: &Path, head: &[u8], source: Source, format: &dyn Format<E>) -> Self {
        let mut buffer = vec![0; CHUNK_BYTES.max(head.len())];
        buffer[..head.len()].copy_from_slice(head);
        Reader {
            path: path.to_owned(),
            source,
            decoder: format.decoder(),
            buffer,
            start: 0,
            end: head.len(),
            at_end: false,
            lines: 0,
            batch: Vec::new(),
            next: 0,
            failed: None,
        }
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kinds of file seen so far, by number.
    pub fn names(&self) -> &[String] {
        self.decoder.names()
    }

    /// Some of the next events: never empty but at the end. Quicker than one at a time.
    pub fn next_batch(&mut self) -> Result<&[E]> {
        while self.next == self.batch.len() {
            if let Some(error) = self.failed.take() {
                self.at_end = true;
                (self.start, self.end) = (0, 0);
                return Err(error);
            }
            if self.at_end && self.start == self.end {
                return Ok(&[]);
            }
            self.refill();
        }
        let from = std::mem::replace(&mut self.next, self.batch.len());
        Ok(&self.batch[from..])
    }

    /// Decodes one more chunk into `batch`. A failure waits until the events before it are taken.
    fn refill(&mut self) {
        self.batch.clear();
        self.next = 0;
        if let Err(error) = self.read_more().and_then(|()| self.decode()) {
            self.failed = Some(error);
        }
    }

    fn read_more(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while !self.at_end && self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let context =
                        format!("{}: cannot read past line {}", self.path.display(), self.lines);
                    return Err(Error::io(context, error));
                }
            }
        }
        Ok(())
    }

    fn decode(&mut self) -> Result<()> {
        let chunk = &self.buffer[..self.end];
        match self.decoder.decode(chunk, self.at_end, &mut self.batch) {
            Ok(used) => {
                if chunk.len() - used > RECORD_BYTES_MAX {
                    let reason = format!("a line is longer than {RECORD_BYTES_MAX} bytes");
                    return Err(self.fault(Fault { at: used, reason }));
                }
                if self.at_end && used < chunk.len() {
                    let reason = "the trace ends inside a record".to_owned();
                    return Err(self.fault(Fault { at: used, reason }));
                }
                self.lines += count_lines(&chunk[..used]);
                self.start = used;
                Ok(())
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// `file:line: reason: "text"`.
    fn fault(&self, fault: Fault) -> Error {
        let chunk = &self.buffer[..self.end];
        let line = self.lines + count_lines(&chunk[..fault.at]) + 1;
        let text = crate::formats::first_line(&chunk[fault.at..]);
        let shown = String::from_utf8_lossy(&text[..text.len().min(QUOTE_BYTES)]);
        let more = if text.len() > QUOTE_BYTES { "..." } else { "" };
        Error::new(
            ErrorKind::InvalidInput,
            format!("{}:{line}: {}: {shown:?}{more}", self.path.display(), fault.reason),
        )
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

impl<E: Copy> Iterator for Reader<E> {
    type Item = Result<E>;

    #[inline]
    fn next(&mut self) -> Option<Result<E>> {
        if let Some(&event) = self.batch.get(self.next) {
            self.next += 1;
            return Some(Ok(event));
        }
        match self.next_batch() {
            Ok([]) => None,
            Ok(batch) => {
                let first = batch[0];
                self.next = 1;
                Some(Ok(first))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl<E> Debug for Reader<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("lines", &self.lines).finish()
    }
}
