//! A trace as an iterator of events, in constant memory.
use crate::encoding;
use crate::formats::{Decode, Fault, Format};
use crate::rescue::{self, Rescue};
use crate::source::Source;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result, Spec};

/// Bytes decoded at a time. An event has at least two bytes, so this also limits the number of events in memory.
const CHUNK_BYTES: usize = 1 << 18;

/// Longest record accepted, so that a file without line ends cannot fill the memory.
const RECORD_BYTES_MAX: usize = 1 << 16;

/// Most bytes of a bad line that an error quotes.
const QUOTE_BYTES: usize = 60;

/// Reads the events of one trace. After an error there are no more events.
pub struct Reader<E> {
    path: PathBuf,
    source: Source,
    decoder: Box<dyn Decode<E>>,
    /// `buffer[start..end]` is read and not yet decoded.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// The failure of the source before its end, if there was one.
    broken: Option<std::io::Error>,
    rescue: Option<Rescue>,
    is_one_volume: bool,
    /// Lines (of a binary format: bytes) decoded in the previous chunks.
    lines: u64,
    batch: Vec<E>,
    next: usize,
    failed: Option<Error>,
}

/// A trace whose beginning has been examined.
pub struct Start<'a> {
    /// The file, for messages.
    pub path: &'a Path,
    /// The bytes already read from the source.
    pub head: &'a [u8],
    /// The rest.
    pub source: Source,
    /// The failure of the source after the head, if there was one: then there are no more bytes.
    pub broken: Option<std::io::Error>,
    /// If set, a trace that was cut off ends without an error.
    pub rescue: Option<Rescue>,
    /// If set, objects become pages of this many bytes.
    pub object_page_bytes: Option<u32>,
}

impl<E: Copy> Reader<E> {
    /// Reads the trace of `start` as `format`, whose name and parameters are in `text`.
    ///
    /// # Errors
    /// `InvalidInput` for parameters that the format does not have, and for objects as pages if it has no sizes.
    pub fn new(start: Start<'_>, format: &dyn Format<E>, text: &str) -> Result<Self> {
        let Start { path, head, source, broken, rescue, object_page_bytes } = start;
        let mut spec = Spec::parse(text)?;
        let mut decoder = format.decoder(&mut spec)?;
        spec.finish()?;
        if object_page_bytes.is_some_and(|bytes| !decoder.size_objects(bytes)) {
            return Err(no_sizes(path, format.name()));
        }
        let mut buffer = vec![0; CHUNK_BYTES.max(head.len())];
        buffer[..head.len()].copy_from_slice(head);
        let mut begin = 0;
        if !decoder.is_binary() {
            encoding::check(path, head)?;
            begin = head.len() - encoding::without_mark(head).len();
        }
        Ok(Reader {
            path: path.to_owned(),
            source,
            decoder,
            buffer,
            start: begin,
            end: head.len(),
            at_end: broken.is_some(),
            broken,
            rescue,
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

    /// Kinds of data of the trace, as far as it was read, that no event holds.
    pub fn dropped(&self) -> Vec<&'static str> {
        self.decoder.dropped()
    }

    /// Whether the trace has a single volume.
    pub fn is_one_volume(&self) -> bool {
        self.is_one_volume
    }

    /// Some of the next events; empty only at the end. This is faster than one event at a time.
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

    /// Decodes one more chunk into `batch`. A failure is reported after the events before it.
    fn refill(&mut self) {
        self.batch.clear();
        self.next = 0;
        self.read_more();
        if let Err(error) = self.decode() {
            self.failed = Some(error);
        }
    }

    /// If the source fails, the bytes that it returned before are still decoded.
    fn read_more(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while !self.at_end && self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => (self.at_end, self.broken) = (true, Some(error)),
            }
        }
    }

    fn decode(&mut self) -> Result<()> {
        let chunk = &self.buffer[..self.end];
        let last = self.at_end && self.broken.is_none();
        match self.decoder.decode(chunk, last, &mut self.batch) {
            Ok(used) => {
                if self.decoder.is_full() {
                    self.lines += self.passed(used);
                    self.start = used;
                    return Ok(());
                }
                if chunk.len() - used > RECORD_BYTES_MAX {
                    let reason = format!("a record is longer than {RECORD_BYTES_MAX} bytes");
                    return Err(self.fault(Fault { at: used, reason }));
                }
                let torn = (last && used < chunk.len()).then(|| self.torn(used));
                self.lines += self.passed(used);
                self.start = used;
                let failure = torn.or_else(|| self.broken.take().map(|error| self.broke(error)));
                failure.map_or(Ok(()), |failure| self.cut_off(failure))
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// The trace ends here, by `failure`. If it was only cut off, and is to be rescued, that is not an error.
    fn cut_off(&mut self, failure: Failure) -> Result<()> {
        (self.start, self.end) = (0, 0);
        match &self.rescue {
            Some(rescue) if failure.is_cut_off => {
                let path = self.path.display();
                rescue.tell(format!("{path}: cut off behind {} {}", self.unit(), self.lines));
                Ok(())
            }
            _ => Err(failure.error),
        }
    }

    /// The failure if the rest of the trace, from `at` on, is an incomplete record.
    fn torn(&self, at: usize) -> Failure {
        let reason = match self.decoder.is_binary() {
            true => format!("the trace ends inside a record ({})", rescue::HOW),
            false => format!(
                "this line is cut off, as it has no end ({}; if it is complete, add the end of the line)",
                rescue::HOW
            ),
        };
        Failure { error: self.fault(Fault { at, reason }), is_cut_off: true }
    }

    /// The failure if the source failed after the decoded data, perhaps within a record.
    fn broke(&self, error: std::io::Error) -> Failure {
        let (path, unit, lines) = (self.path.display(), self.unit(), self.lines);
        let is_cut_off = error.kind() == std::io::ErrorKind::UnexpectedEof;
        let context = match is_cut_off {
            true => format!("{path}: cut off behind {unit} {lines} ({})", rescue::HOW),
            false => format!("{path}: cannot read past {unit} {lines}"),
        };
        Failure { error: Error::io(context, error), is_cut_off }
    }

    /// The unit of positions in the trace.
    fn unit(&self) -> &'static str {
        if self.decoder.is_binary() { "byte" } else { "line" }
    }

    /// The first `bytes` of the chunk in the unit of positions: bytes of a binary format, lines of a text.
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

/// The error for objects as pages in a trace without objects, or without sizes.
pub(crate) fn no_sizes(path: &Path, format: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "{}: {format} has no sizes of objects, which --objects as-pages needs; csv with a column of sizes, cachelib_kv and \
             oracle_general have",
            path.display()
        ),
    )
}

/// The reason why there are no more events.
struct Failure {
    error: Error,
    /// The trace was cut off; otherwise it cannot be read, or is invalid.
    is_cut_off: bool,
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
