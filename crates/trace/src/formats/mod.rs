//! The formats, and the registry of them.
pub mod block_csv;
pub mod number;
pub mod page_csv;

use crate::event::{BlockEvent, PageEvent};
use std::fmt::Debug;
use tantalum_base::{Error, ErrorKind, Result};

/// A trace format whose events are `E` ([`PageEvent`] or [`BlockEvent`]).
pub trait Format<E>: Sync + Debug {
    /// The name a user gives it.
    fn name(&self) -> &'static str;

    /// Whether a trace that begins with `head` (its first bytes, decompressed, cut anywhere) looks
    /// like this format.
    fn detect(&self, head: &[u8]) -> bool;

    /// A decoder for one trace, from its beginning.
    fn decoder(&self) -> Box<dyn Decode<E>>;

    /// Appends what a trace begins with to `out`.
    fn begin(&self, out: &mut Vec<u8>);

    /// Appends `event` to `out`; `names` are the kinds of file by number.
    fn encode(&self, event: &E, names: &[String], out: &mut Vec<u8>);
}

/// Turns the bytes of one trace into events, a chunk at a time.
pub trait Decode<E>: Send {
    /// Decodes as much of `chunk` as makes whole records, appends the events to `out` and returns
    /// how many bytes it used. The rest comes again, with more behind it; `last` says that there
    /// is no more.
    fn decode(&mut self, chunk: &[u8], last: bool, out: &mut Vec<E>) -> Result<usize, Fault>;

    /// The kinds of file seen so far, by number; none in page formats.
    fn names(&self) -> &[String] {
        &[]
    }
}

/// Why a record makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where the record begins, in bytes from the start of the chunk.
    pub at: usize,
    /// The reason, in words.
    pub reason: String,
}

/// A format of either level.
#[derive(Clone, Copy, Debug)]
pub enum AnyFormat {
    /// Of pages.
    Page(&'static dyn Format<PageEvent>),
    /// Of bytes in kinds of files.
    Block(&'static dyn Format<BlockEvent>),
}

/// Every format, in the order they are tried when a trace does not say which it is.
pub const ALL: &[AnyFormat] =
    &[AnyFormat::Page(&page_csv::PageCsv), AnyFormat::Block(&block_csv::BlockCsv)];

impl AnyFormat {
    /// The name a user gives it.
    pub fn name(&self) -> &'static str {
        match self {
            AnyFormat::Page(format) => format.name(),
            AnyFormat::Block(format) => format.name(),
        }
    }

    /// Whether a trace that begins with `head` looks like this format.
    pub fn detect(&self, head: &[u8]) -> bool {
        match self {
            AnyFormat::Page(format) => format.detect(head),
            AnyFormat::Block(format) => format.detect(head),
        }
    }

    /// The format called `name`; a refusal lists the names.
    pub fn by_name(name: &str) -> Result<AnyFormat> {
        let found = ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("{name:?} is not a trace format; accepted: {}", names()),
            )
        })
    }

    /// The format that a trace beginning with `head` looks like.
    pub fn by_content(head: &[u8]) -> Option<AnyFormat> {
        ALL.iter().find(|format| format.detect(head)).copied()
    }
}

/// The names of all formats, for messages.
pub fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(AnyFormat::name).collect();
    names.join(", ")
}

/// The first line of `head`, without its end.
pub(crate) fn first_line(head: &[u8]) -> &[u8] {
    let end = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
    head[..end].trim_ascii_end()
}

/// The part of `chunk` that is whole lines: up to and with the last line end, or all where `last`.
pub(crate) fn whole_lines(chunk: &[u8], last: bool) -> usize {
    if last {
        return chunk.len();
    }
    chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}
