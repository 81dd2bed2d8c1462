//! `cachelib_kv`: Meta's traces of key-value caches, as CSV with the header `key,op,size,op_count,key_size`, or with
//! more columns in another order.
//!
//! Source: "Cachebench FB HW eval" of CacheLib's documentation, and its `KVReplayGenerator`. Each key is an object and
//! becomes a page: `GET` and `GET_LEASE` read it, `SET` and `SET_LEASE` write it, `DELETE` discards it. A line
//! represents `op_count` requests. Dropped: times, hits and times to live, and the size of the value unless objects are
//! to be as many pages as they need.
use super::ids::Ids;
use super::lines::{Fields, Line, Lines};
use super::{Decode, Format, Head, csv};
use crate::event::PageEvent;
use crate::objects::ObjectPages;
use tantalum_base::{PageNo, Result, Spec};

/// The format `cachelib_kv`.
#[derive(Debug)]
pub struct CachelibKv;

/// Most requests of one line: a larger number means that another column was mistaken for the count.
const OP_COUNT_MAX: u64 = 1 << 20;

/// Columns by number, from 0.
#[derive(Clone, Copy, Debug)]
struct Columns {
    key: usize,
    op: usize,
    op_count: usize,
    size: usize,
    has_times: bool,
}

impl Columns {
    /// The columns of the traces of 2022, if there is no header.
    const KNOWN: Columns = Columns { key: 0, op: 1, op_count: 3, size: 2, has_times: false };

    /// The columns that `line` names, if it is a header.
    fn of_header(line: &[u8]) -> Option<Columns> {
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let column = |wanted: &[u8]| {
            let mut names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            names.position(|name| name.eq_ignore_ascii_case(wanted))
        };
        Some(Columns {
            key: column(b"key")?,
            op: column(b"op")?,
            op_count: column(b"op_count")?,
            size: column(b"size")?,
            has_times: column(b"op_time").is_some(),
        })
    }
}

/// Whether `line` names the columns that only these traces have.
pub(super) fn is_header(line: &[u8]) -> bool {
    Columns::of_header(line).is_some()
}

impl Format<PageEvent> for CachelibKv {
    fn name(&self) -> &'static str {
        "cachelib_kv"
    }

    /// A header with columns `key`, `op`, `size` and `op_count`.
    fn detect(&self, head: &Head<'_>) -> bool {
        head.lines().next().is_some_and(is_header)
    }

    /// Accepts `ids` (`auto`, `number`, `text`).
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        Ok(Box::new(Lines::new(Parser {
            columns: Columns::KNOWN,
            ids: Ids::of(spec)?,
            sized: None,
        })))
    }
}

struct Parser {
    columns: Columns,
    ids: Ids,
    /// Lays objects out by their sizes, if that is requested.
    sized: Option<ObjectPages>,
}

impl Line<PageEvent> for Parser {
    fn read_header(&mut self, line: &[u8]) -> Result<bool, String> {
        let named = Columns::of_header(line);
        self.columns = named.unwrap_or(Columns::KNOWN);
        Ok(named.is_some())
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<PageEvent>) -> Result<(), String> {
        let Columns { key, op, op_count, size, .. } = self.columns;
        let mut fields = Fields::new(line, b',');
        let (mut page, mut word, mut count, mut bytes) = (0, &b""[..], 0, 0);
        for column in 0..=key.max(op).max(op_count).max(size) {
            if column == key {
                page = self.ids.next(&mut fields)?;
            } else if column == op {
                word = fields.text("op")?;
            } else if column == op_count {
                count = fields.number("op_count")?;
            } else if column == size {
                bytes = fields.number("size")?;
            } else {
                fields.skip(&(column + 1).to_string())?;
            }
        }
        if word.is_empty() {
            return Err("the op is empty".to_owned());
        }
        let event = csv::event(PageNo(page), word).map_err(|_| {
            "the op is none of GET, GET_LEASE, SET, SET_LEASE and DELETE".to_owned()
        })?;
        if count > OP_COUNT_MAX {
            return Err(format!("the op_count is over {OP_COUNT_MAX}"));
        }
        let event = match &mut self.sized {
            Some(objects) => objects.event(event, bytes)?,
            None => event,
        };
        out.extend(std::iter::repeat_n(event, count as usize));
        Ok(())
    }

    fn size_objects(&mut self, page_bytes: u32) -> bool {
        self.sized = Some(ObjectPages::new(page_bytes));
        true
    }

    fn dropped(&self) -> Vec<&'static str> {
        let times = self.columns.has_times.then_some("times");
        times.into_iter().chain(self.sized.is_none().then_some("sizes")).collect()
    }
}
