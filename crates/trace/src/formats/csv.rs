//! `csv`: columns in any order, as libCacheSim's CSV traces. Each line gives the object's number and, if there is one,
//! the operation; also the size if objects are to be as many pages as they need. The time is dropped.
//!
//! The columns are named by a header, or given by number, from 1:
//! `csv:obj_id=5,op=3,obj_size=4,header=yes,delimiter=tab`. Without a column of operations, each line is a read. The
//! first id decides whether ids are numbers, which are pages, or text, which is numbered; a later id of the other kind
//! is refused, not guessed at.
//! A written trace is `time,obj_id,obj_size,op`: the time is the request's number, the size that of a page.
use super::ids::Ids;
use super::lines::{Fields, Line, Lines};
use super::{Decode, Encode, Format, Head, cachelib_kv, number};
use crate::event::PageEvent;
use crate::objects::ObjectPages;
use std::borrow::Cow;
use tantalum_base::{Error, ErrorKind, PageNo, Result, Spec};

/// The format `csv`.
#[derive(Debug)]
pub struct Csv;

/// Names of the object's column in a header.
const OBJECT_NAMES: [&[u8]; 9] =
    [b"obj_id", b"object_id", b"object", b"obj", b"id", b"key", b"lbn", b"lba", b"block"];
/// Names of the operation's column in a header.
const OP_NAMES: [&[u8]; 5] = [b"op", b"operation", b"op_type", b"type", b"opcode"];
/// Names of the size's column in a header.
const SIZE_NAMES: [&[u8]; 6] =
    [b"obj_size", b"object_size", b"size", b"value_size", b"length", b"bytes"];
/// Names of the time's column in a header.
const TIME_NAMES: [&[u8]; 5] = [b"time", b"timestamp", b"clock_time", b"ts", b"op_time"];

const DELIMITERS: [(&str, u8); 6] = [
    ("comma", b','),
    ("tab", b'\t'),
    ("semicolon", b';'),
    ("pipe", b'|'),
    ("colon", b':'),
    ("space", b' '),
];
const DELIMITER_NAMES: [&str; 6] = ["comma", "tab", "semicolon", "pipe", "colon", "space"];

/// Columns by number, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Columns {
    object: usize,
    op: Option<usize>,
    size: Option<usize>,
    has_times: bool,
}

impl Columns {
    /// The columns that `line` names, if it is a header with a column of objects.
    fn of_header(line: &[u8], delimiter: u8) -> Option<Columns> {
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let names: Vec<&[u8]> = line.split(|&byte| byte == delimiter).map(clean).collect();
        let column = |wanted: &[&[u8]]| {
            names
                .iter()
                .position(|name| wanted.iter().any(|known| name.eq_ignore_ascii_case(known)))
        };
        Some(Columns {
            object: column(&OBJECT_NAMES)?,
            op: column(&OP_NAMES),
            size: column(&SIZE_NAMES),
            has_times: column(&TIME_NAMES).is_some(),
        })
    }
}

/// A header's field without blanks and quotes.
fn clean(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(field)
}

impl Format<PageEvent> for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    /// A header of at least two columns separated by commas, one of them with a name of the object's column. A comment
    /// may precede it. A header with CacheLib's columns is `cachelib_kv`.
    fn detect(&self, head: &Head<'_>) -> bool {
        let is_header =
            |line: &[u8]| line.contains(&b',') && Columns::of_header(line, b',').is_some();
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let is_kv = cachelib_kv::is_header(first);
        !is_kv && is_header(first) || first.starts_with(b"#") && lines.next().is_some_and(is_header)
    }

    /// Accepts `obj_id`, `op` and `obj_size` (numbers of columns; by default 0: the header names them), `header`
    /// (`auto`, `yes`, `no`), `ids` (`auto`, `number`, `text`) and `delimiter` (`comma`, `tab`, `semicolon`, `pipe`,
    /// `colon`, `space`).
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        let object = spec.count("obj_id", 0..=1000, 0)? as usize;
        let op = spec.count("op", 0..=1000, 0)? as usize;
        let size = spec.count("obj_size", 0..=1000, 0)? as usize;
        let header = spec.word("header", &["auto", "yes", "no"])?;
        let ids = Ids::of(spec)?;
        let delimiter = spec.word("delimiter", &DELIMITER_NAMES)?;
        let delimiter = DELIMITERS.iter().find(|(name, _)| *name == delimiter);
        let delimiter = delimiter.map_or(b',', |(_, byte)| *byte);
        if object == 0 && (op > 0 || size > 0 || header == "no") {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "csv: no header names the column of objects: give it, as csv:obj_id=2",
            ));
        }
        let columns = Columns {
            object: object.wrapping_sub(1),
            op: op.checked_sub(1),
            size: size.checked_sub(1),
            has_times: false,
        };
        let columns = (object > 0).then_some(columns);
        Ok(Box::new(Lines::new(Parser {
            columns,
            header,
            delimiter,
            ids,
            sized: None,
            first_is_unsure: false,
        })))
    }

    /// Accepts `size`, the bytes of an object (4096).
    fn encoder(&self, spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        let object_bytes = spec.count("size", 1..=u64::from(u32::MAX), 4096)?;
        Ok(Some(Box::new(Encoder { object_bytes, requests: 0 })))
    }
}

struct Parser {
    /// `None` until the header is read.
    columns: Option<Columns>,
    header: &'static str,
    delimiter: u8,
    ids: Ids,
    /// Lays objects out by their sizes, if that is requested.
    sized: Option<ObjectPages>,
    /// Whether the first line was skipped as a presumed header, which the second line must confirm.
    first_is_unsure: bool,
}

impl Line<PageEvent> for Parser {
    fn read_header(&mut self, line: &[u8]) -> Result<bool, String> {
        if self.header == "no" {
            return Ok(false);
        }
        let named = Columns::of_header(line, self.delimiter);
        if self.columns.is_none() {
            self.columns = named;
            // A line without known names is a comment above the header, or an error.
            return match named.is_some() || line.starts_with(b"#") {
                true => Ok(true),
                false => Err(NO_OBJECT_NAMED.to_owned()),
            };
        }
        if self.header == "yes" || named.is_some() || line.starts_with(b"#") {
            return Ok(true);
        }
        if self.has_number(line) {
            return Ok(false);
        }
        self.first_is_unsure = !self.ids.are_numbers();
        Ok(true)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<PageEvent>) -> Result<(), String> {
        let Some(columns) = self.columns else {
            self.columns = Columns::of_header(line, self.delimiter);
            return self.columns.map(|_| ()).ok_or_else(|| NO_OBJECT_NAMED.to_owned());
        };
        if self.first_is_unsure && !self.has_number(line) {
            return Err("neither this line nor the one before it has a number, so that a header \
                        cannot be recognized; say header=yes or header=no"
                .to_owned());
        }
        self.first_is_unsure = false;
        let (page, op, bytes) = self.object(line, columns)?;
        let event = event(PageNo(page), &op)?;
        out.push(match &mut self.sized {
            Some(objects) => objects.event(event, bytes)?,
            None => event,
        });
        Ok(())
    }

    fn size_objects(&mut self, page_bytes: u32) -> bool {
        self.sized = Some(ObjectPages::new(page_bytes));
        true
    }

    fn dropped(&self) -> Vec<&'static str> {
        let Some(columns) = self.columns else { return Vec::new() };
        let times = columns.has_times.then_some("times");
        let sizes = (columns.size.is_some() && self.sized.is_none()).then_some("sizes");
        times.into_iter().chain(sizes).collect()
    }
}

const NO_OBJECT_NAMED: &str = "the header names no column of objects (obj_id, id, lbn, ...); give it \
                               by number, as csv:obj_id=2";

const NO_SIZE_NAMED: &str = "--objects as-pages needs a column of sizes, and the header names none (obj_size, size, \
                             ...); give it by number, as csv:obj_id=2,obj_size=3";

impl Parser {
    /// The object's page; the operation's field, empty if there is no such column; and the size, if it is needed.
    #[inline]
    fn object<'a>(
        &mut self,
        line: &'a [u8],
        columns: Columns,
    ) -> Result<(u64, Cow<'a, [u8]>, u64), String> {
        let mut fields = Fields::new(line, self.delimiter);
        let (mut object, mut op, mut bytes) = (None, Cow::Borrowed(&b""[..]), 0);
        let size = match self.sized {
            Some(_) => Some(columns.size.ok_or(NO_SIZE_NAMED)?),
            None => None,
        };
        for column in 0..=columns.object.max(columns.op.unwrap_or(0)).max(size.unwrap_or(0)) {
            if column == columns.object {
                object = Some(self.ids.next(&mut fields)?);
                continue;
            }
            let field = fields.quoted().map_err(|why| format!("column {} {why}", column + 1))?;
            if Some(column) == size {
                bytes = number::whole(&field).ok_or("the size is not a number of bytes")?;
            }
            if Some(column) == columns.op {
                op = field;
            }
        }
        Ok((object.ok_or("no column of objects")?, op, bytes))
    }

    /// Whether a field of `line` is a number, perhaps with a decimal point.
    fn has_number(&self, line: &[u8]) -> bool {
        let is_number = |field: &[u8]| {
            field.first().is_some_and(u8::is_ascii_digit)
                && field.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        };
        line.split(|&byte| byte == self.delimiter).map(clean).any(is_number)
    }
}

const READS: [&[u8]; 7] = [b"r", b"read", b"get", b"gets", b"get_lease", b"28", b"88"];
const WRITES: [&[u8]; 14] = [
    b"w",
    b"write",
    b"set",
    b"set_lease",
    b"add",
    b"cas",
    b"replace",
    b"append",
    b"prepend",
    b"update",
    b"incr",
    b"decr",
    b"2a",
    b"8a",
];
const DELETES: [&[u8]; 2] = [b"delete", b"del"];

/// The event of operation `op` on `page`: words of libCacheSim, Twitter and CacheLib, letters, or SCSI codes in
/// hexadecimal.
#[inline]
pub(super) fn event(page: PageNo, op: &[u8]) -> Result<PageEvent, String> {
    let is_one_of = |words: &[&[u8]]| words.iter().any(|word| op.eq_ignore_ascii_case(word));
    if op.is_empty() || is_one_of(&READS) {
        Ok(PageEvent::one(page, false))
    } else if is_one_of(&WRITES) {
        Ok(PageEvent::one(page, true))
    } else if is_one_of(&DELETES) {
        Ok(PageEvent::Trim { page, pages: 1 })
    } else {
        Err("the op is none of R, W, read, write, get, set, add, replace, update, delete, 28, 2a"
            .to_owned())
    }
}

struct Encoder {
    object_bytes: u64,
    requests: u64,
}

impl Encode<PageEvent> for Encoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"time,obj_id,obj_size,op\n");
    }

    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        for (page, is_write) in event.requests() {
            self.requests += 1;
            for value in [self.requests, page.0, self.object_bytes] {
                number::write(value, out);
                out.push(b',');
            }
            out.extend_from_slice(if is_write { b"write\n" } else { b"read\n" });
        }
    }
}
