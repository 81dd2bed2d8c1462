//! Text traces: decodes lines, and the fields of a line.
use super::{Decode, Fault, ended_lines, number, whole_lines};
use std::borrow::Cow;

/// Turns one line into events.
pub(crate) trait Line<E>: Send {
    /// Parses `line`, the first of the trace, as a header; returns whether it is one. Called once.
    fn read_header(&mut self, line: &[u8]) -> Result<bool, String>;

    /// Appends the events of `line` to `out`; the line is trimmed and not blank.
    fn line(&mut self, line: &[u8], out: &mut Vec<E>) -> Result<(), String>;

    /// Whether a trace with a header ends all its lines, so that a line without an end was cut off.
    const ENDS_LINES_BELOW_HEADER: bool = false;

    /// As [`Decode::size_objects`].
    fn size_objects(&mut self, _page_bytes: u32) -> bool {
        false
    }

    /// As [`Decode::dropped`].
    fn dropped(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The volumes seen so far, by number.
    fn names(&self) -> &[String] {
        &[]
    }
}

/// Events made from one chunk, after which decoding pauses: one line may represent many events.
const EVENTS_MAX: usize = 1 << 18;

/// Decodes a trace of lines.
pub(crate) struct Lines<L> {
    parser: L,
    begun: bool,
    /// Whether a line without an end was cut off.
    ends_lines: bool,
    /// Whether decoding of the last chunk paused before its end.
    is_full: bool,
}

impl<L> Lines<L> {
    pub(crate) fn new(parser: L) -> Self {
        Lines { parser, begun: false, ends_lines: false, is_full: false }
    }
}

impl<E, L: Line<E>> Decode<E> for Lines<L> {
    fn decode(&mut self, chunk: &[u8], last: bool, out: &mut Vec<E>) -> Result<usize, Fault> {
        let mut lines = &chunk[..whole_lines(chunk, last)];
        if self.ends_lines {
            lines = &lines[..ended_lines(lines)];
        }
        let mut at = 0;
        while at < lines.len() {
            self.is_full = out.len() >= EVENTS_MAX;
            if self.is_full {
                return Ok(at);
            }
            let end = memchr::memchr(b'\n', &lines[at..]).map_or(lines.len(), |length| at + length);
            let line = lines[at..end].trim_ascii();
            if !line.is_empty() {
                let fault = |reason| Fault { at, reason };
                let is_header = !self.begun && self.parser.read_header(line).map_err(fault)?;
                self.begun = true;
                if is_header && L::ENDS_LINES_BELOW_HEADER {
                    self.ends_lines = true;
                    lines = &lines[..ended_lines(lines)];
                } else if !is_header {
                    self.parser.line(line, out).map_err(fault)?;
                }
            }
            at = end + 1;
        }
        Ok(lines.len())
    }

    fn is_full(&self) -> bool {
        self.is_full
    }

    fn size_objects(&mut self, page_bytes: u32) -> bool {
        self.parser.size_objects(page_bytes)
    }

    fn dropped(&self) -> Vec<&'static str> {
        self.parser.dropped()
    }

    fn names(&self) -> &[String] {
        self.parser.names()
    }
}

/// The fields of one line, from left to right.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    delimiter: u8,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8], delimiter: u8) -> Self {
        Fields { line, at: 0, delimiter }
    }

    /// The position of the next field; past the end of the line if there is none.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next field, trimmed.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.line.get(self.at..)?;
        let length = rest.iter().position(|&byte| byte == self.delimiter).unwrap_or(rest.len());
        self.at += length + 1;
        Some(rest[..length].trim_ascii())
    }

    /// The next field; `name` is for the refusal.
    #[inline]
    pub(crate) fn text(&mut self, name: &str) -> Result<&'a [u8], String> {
        self.next().ok_or_else(|| format!("the column {name} is missing"))
    }

    /// The next field if it is digits up to the delimiter, as nearly every one is. Otherwise it is not consumed: it may
    /// contain blanks.
    #[inline]
    pub(crate) fn number_ahead(&mut self) -> Option<u64> {
        let (value, end) = number::read_long(self.line, self.at)?;
        if self.line.get(end).is_some_and(|&byte| byte != self.delimiter) {
            return None;
        }
        self.at = end + 1;
        Some(value)
    }

    /// The next field as a whole number of at most 64 bits.
    #[inline]
    pub(crate) fn number(&mut self, name: &str) -> Result<u64, String> {
        if let Some(value) = self.number_ahead() {
            return Ok(value);
        }
        let field = self.text(name)?;
        number::whole(field).ok_or_else(|| format!("the {name} is not a number of at most 64 bits"))
    }

    /// The next field, trimmed, and without enclosing double quotes: between these, delimiters may occur, and quotes
    /// are doubled. The error is a sentence without its subject.
    pub(crate) fn quoted(&mut self) -> Result<Cow<'a, [u8]>, &'static str> {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let is_blank = |byte: &&u8| byte.is_ascii_whitespace() && **byte != self.delimiter;
        let blanks = rest.iter().take_while(is_blank).count();
        let Some(inside) = rest[blanks..].strip_prefix(b"\"") else {
            return self.next().map(Cow::Borrowed).ok_or("is missing");
        };
        let mut text = Cow::Borrowed(&inside[..0]);
        let mut at = 0;
        loop {
            let quote = memchr::memchr(b'"', &inside[at..]).ok_or("has no closing quote")?;
            let quote = at + quote;
            let is_doubled = inside.get(quote + 1) == Some(&b'"');
            let piece = &inside[at..quote + usize::from(is_doubled)];
            match text.is_empty() {
                true => text = Cow::Borrowed(piece),
                false => text.to_mut().extend_from_slice(piece),
            }
            at = quote + 1 + usize::from(is_doubled);
            if !is_doubled {
                break;
            }
        }
        self.at += blanks + 1 + at;
        match self.next() {
            Some([]) => Ok(text),
            _ => Err("goes on behind its closing quote"),
        }
    }

    /// The next field as a whole number of at most 32 bits.
    #[inline]
    pub(crate) fn number_u32(&mut self, name: &str) -> Result<u32, String> {
        let value = self.number(name)?;
        u32::try_from(value).map_err(|_| format!("the {name} is over 32 bits"))
    }

    /// Skips the next field, which must exist.
    #[inline]
    pub(crate) fn skip(&mut self, name: &str) -> Result<(), String> {
        self.text(name).map(|_| ())
    }

    /// Refuses more fields than there are `columns`.
    #[inline]
    pub(crate) fn end(&self, columns: &str) -> Result<(), String> {
        if self.at > self.line.len() {
            return Ok(());
        }
        Err(format!("more columns than {columns}"))
    }
}

/// Refuses a range of bytes that ends past 64 bits.
#[inline]
pub(crate) fn check_end(offset: u64, length: u32) -> Result<(), String> {
    match offset.checked_add(u64::from(length)) {
        Some(_) => Ok(()),
        None => Err("offset and length together are over 64 bits".to_owned()),
    }
}

/// Bytes of a sector, the unit of many traces.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// `sectors` in bytes.
#[inline]
pub(crate) fn sectors(sectors: u64, name: &str) -> Result<u64, String> {
    sectors.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("the {name} is over 64 bits in bytes"))
}

/// Whether `line` is this header, in any case and with optional blanks around its fields.
pub(crate) fn is_header(line: &[u8], columns: &[&str]) -> bool {
    let line = line.strip_prefix(b"#").unwrap_or(line);
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    columns.iter().all(|column| {
        fields.next().is_some_and(|field| field.eq_ignore_ascii_case(column.as_bytes()))
    }) && fields.next().is_none()
}
