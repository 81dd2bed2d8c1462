//! A trace as an iterator of events, in constant memory.
use crate::formats::{Decode, Fault, Format};
use crate::source::Source;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result, Spec};

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
    is_one_volume: bool,
    /// Lines (of a binary format: bytes) decoded in the chunks before this one.
    lines: u64,
    batch: Vec<E>,
    next: usize,
    failed: Option<Error>,
}

impl<E: Copy> Reader<E> {
    /// Reads `source` as `format`, which `text` names, perhaps with parameters. `head` was already
    /// taken from the source; `path` is for messages.
    ///
    /// # Errors
    /// `InvalidInput` for parameters that the format does not have.
    pub fn new(
        path: &Path,
        head: &[u8],
        source: Source,
        format: &dyn Format<E>,
        text: &str,
    ) -> Result<Self> {
        let mut spec = Spec::parse(text)?;
        let decoder = format.decoder(&mut spec)?;
        spec.finish()?;
        let mut buffer = vec![0; CHUNK_BYTES.max(head.len())];
        buffer[..head.len()].copy_from_slice(head);
        Ok(Reader {
            path: path.to_owned(),
            source,
            decoder,
            buffer,
            start: 0,
            end: head.len(),
            at_end: false,
            is_one_volume: format.is_one_volume(),
            lines: 0,
            batch: Vec::new(),
            next: 0,
            failed: None,
        })
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The volumes seen so far, by number.
    pub fn names(&self) -> &[String] {
        self.decoder.names()
    }

    /// Whether all of the trace is of one volume.
    pub fn is_one_volume(&self) -> bool {
        self.is_one_volume
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
                    let unit = if self.decoder.is_binary() { "byte" } else { "line" };
                    let path = self.path.display();
                    let context = format!("{path}: cannot read past {unit} {}", self.lines);
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
                    let reason = format!("a record is longer than {RECORD_BYTES_MAX} bytes");
                    return Err(self.fault(Fault { at: used, reason }));
                }
                if self.at_end && used < chunk.len() {
                    let reason = "the trace ends inside a record".to_owned();
                    return Err(self.fault(Fault { at: used, reason }));
                }
                self.lines += self.passed(used);
                self.start = used;
                Ok(())
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// What the first `bytes` of the chunk count: bytes of a binary format, lines of a text.
    fn passed(&self, bytes: usize) -> u64 {
        if self.decoder.is_binary() { bytes as u64 } else { count_lines(&self.buffer[..bytes]) }
    }

    /// `file:line: reason: "text"`, or `file: byte 48: reason: 2a 00 ...` in a binary format.
    fn fault(&self, fault: Fault) -> Error {
        let chunk = &self.buffer[..self.end];
        let at = self.lines + self.passed(fault.at);
        let (path, reason) = (self.path.display(), fault.reason);
        let text = if self.decoder.is_binary() {
            let bytes = chunk[fault.at..].iter().take(QUOTE_BYTES / 3);
            let shown: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
            format!("{path}: byte {at}: {reason}: {}", shown.join(" "))
        } else {
            let text = crate::formats::first_line(&chunk[fault.at..]);
            let shown = String::from_utf8_lossy(&text[..text.len().min(QUOTE_BYTES)]);
            let more = if text.len() > QUOTE_BYTES { "..." } else { "" };
            format!("{path}:{}: {reason}: {shown:?}{more}", at + 1)
        };
        Error::new(ErrorKind::InvalidInput, text)
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
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
