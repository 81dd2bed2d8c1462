//! The formats, and the registry of them.
//!
//! ```text
//! page level (pages)                     block level (bytes of volumes)
//!   page_csv     op,page, our own          block_csv  system calls on kinds of files, our own
//!   page_binary  the same in 16 bytes      msr        MSR Cambridge
//!   plain_text   one number per line       spc        SPC-1, UMass Financial
//!   csv          columns, as libCacheSim   alibaba    Alibaba block traces
//!   oracle_general  libCacheSim's binary   tencent    Tencent block traces
//!   lis          the traces of ARC         vscsi      CloudPhysics, versions 1 and 2
//!   cachelib_kv  Meta's key-value caches   blkparse   text of Linux's blktrace
//!                                          fiu        Florida International University
//!
//! head    the beginning of a trace, shows its format       lines    lines and their fields
//! number  decimal numbers                                  records  binary fields
//! volumes names of volumes to numbers     volume_lines  one request to a volume per line
//! ids     ids of objects to pages                          plausible  recognizes impossible binary records
//! ```
pub mod alibaba;
pub mod blkparse;
pub mod block_csv;
pub mod cachelib_kv;
pub mod csv;
pub mod fiu;
pub mod head;
mod ids;
pub(crate) mod lines;
pub mod lis;
pub mod msr;
pub mod number;
pub mod oracle_general;
pub mod page_binary;
pub mod page_csv;
pub mod plain_text;
mod plausible;
pub(crate) mod records;
pub mod spc;
pub mod tencent;
mod volume_lines;
pub(crate) mod volumes;
pub mod vscsi;

pub use head::Head;

use crate::event::{BlockEvent, PageEvent};
use std::fmt::Debug;
use std::path::Path;
use tantalum_base::spec::is_same;
use tantalum_base::{Error, ErrorKind, Result, Spec};

/// A trace format whose events are `E` ([`PageEvent`] or [`BlockEvent`]).
pub trait Format<E>: Sync + Debug {
    /// The name by which users select the format.
    fn name(&self) -> &'static str;

    /// Whether a trace that begins with `head` is certainly of this format.
    fn detect(&self, head: &Head<'_>) -> bool;

    /// Whether the file ending `.ending`, after removal of a compression's ending, means this format; used if the
    /// content does not decide.
    fn detect_ending(&self, _ending: &str) -> bool {
        false
    }

    /// A decoder for one trace, from its beginning, with the parameters of `spec`.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range.
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<E>>>;

    /// An encoder for one trace with the parameters of `spec`; `None` if the format can only be read.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range.
    fn encoder(&self, spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<E>>>> {
        let _ = spec;
        Ok(None)
    }

    /// Whether a trace has a single volume, so that no layout is needed.
    fn is_one_volume(&self) -> bool {
        false
    }
}

/// Turns the bytes of one trace into events, a chunk at a time.
pub trait Decode<E>: Send {
    /// Decodes as many whole records of `chunk` as possible, appends the events to `out` and returns the number of
    /// bytes used. The rest is passed again, with more data behind it; `last` means that there is no more.
    fn decode(&mut self, chunk: &[u8], last: bool, out: &mut Vec<E>) -> Result<usize, Fault>;

    /// The volumes (of `block_csv`: kinds of file) seen so far, by number; none in page formats.
    fn names(&self) -> &[String] {
        &[]
    }

    /// Whether it stopped before the end of the chunk because `out` had become long: the caller must call again with
    /// the rest.
    fn is_full(&self) -> bool {
        false
    }

    /// From now on, an object is as many pages of `page_bytes` bytes as its size needs. Returns whether that is
    /// possible: the trace must have sizes. Called before anything is decoded.
    fn size_objects(&mut self, _page_bytes: u32) -> bool {
        false
    }

    /// Kinds of data of the trace, as far as it was read, that no event holds.
    fn dropped(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether positions in the trace are reported in bytes, not in lines.
    fn is_binary(&self) -> bool {
        false
    }
}

/// Turns events into the bytes of one trace.
pub trait Encode<E>: Send {
    /// Appends the beginning of a trace to `out`.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// Appends `event` to `out`, or keeps it for later; `names` are the volumes by number.
    fn encode(&mut self, event: &E, names: &[String], out: &mut Vec<u8>);

    /// Appends some of the kept data to `out`; returns whether there is more. It must be called until there is no more.
    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }
}

/// A record that is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Offset of the record, in bytes from the start of the chunk.
    pub at: usize,
    /// The reason, as text.
    pub reason: String,
}

/// A format of either level.
#[derive(Clone, Copy, Debug)]
pub enum AnyFormat {
    /// At the level of pages.
    Page(&'static dyn Format<PageEvent>),
    /// At the level of bytes in volumes.
    Block(&'static dyn Format<BlockEvent>),
}

/// Every format.
pub const ALL: &[AnyFormat] = &[
    AnyFormat::Page(&page_csv::PageCsv),
    AnyFormat::Block(&block_csv::BlockCsv),
    AnyFormat::Page(&page_binary::PageBinary),
    AnyFormat::Page(&plain_text::PlainText),
    AnyFormat::Page(&csv::Csv),
    AnyFormat::Page(&cachelib_kv::CachelibKv),
    AnyFormat::Page(&oracle_general::OracleGeneral),
    AnyFormat::Page(&lis::Lis),
    AnyFormat::Block(&msr::Msr),
    AnyFormat::Block(&spc::Spc),
    AnyFormat::Block(&alibaba::Alibaba),
    AnyFormat::Block(&tencent::Tencent),
    AnyFormat::Block(&vscsi::Vscsi),
    AnyFormat::Block(&blkparse::Blkparse),
    AnyFormat::Block(&fiu::Fiu),
];

impl AnyFormat {
    /// The name by which users select the format.
    pub fn name(&self) -> &'static str {
        match self {
            AnyFormat::Page(format) => format.name(),
            AnyFormat::Block(format) => format.name(),
        }
    }

    /// Whether a trace that begins with `head` is certainly of this format.
    pub fn detect(&self, head: &Head<'_>) -> bool {
        match self {
            AnyFormat::Page(format) => format.detect(head),
            AnyFormat::Block(format) => format.detect(head),
        }
    }

    /// The format that the name of the file `path` indicates; `None` if it indicates none.
    pub fn by_ending(path: &Path) -> Option<AnyFormat> {
        let name = path.file_name()?.to_str()?;
        let is_packed = |end: &str| name.strip_suffix(end);
        let name = is_packed(".zst").or_else(|| is_packed(".gz")).unwrap_or(name);
        let (_, ending) = name.rsplit_once('.')?;
        let found = ALL.iter().find(|format| match format {
            AnyFormat::Page(format) => format.detect_ending(ending),
            AnyFormat::Block(format) => format.detect_ending(ending),
        });
        found.copied()
    }

    /// Whether traces of this format can be written.
    pub fn is_written(&self) -> bool {
        let Ok(mut spec) = Spec::parse(self.name()) else { return false };
        match self {
            AnyFormat::Page(format) => matches!(format.encoder(&mut spec), Ok(Some(_))),
            AnyFormat::Block(format) => matches!(format.encoder(&mut spec), Ok(Some(_))),
        }
    }

    /// The format that `text` names (`msr`, or with parameters `blkparse:action=C`, which are not checked here); an
    /// unknown name is refused with the list of names.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn by_name(text: &str) -> Result<AnyFormat> {
        let spec = Spec::parse(text)?;
        let found = ALL.iter().find(|format| is_same(format.name(), spec.name()));
        let names: Vec<&str> = ALL.iter().map(AnyFormat::name).collect();
        found.copied().ok_or_else(|| spec.unknown_name("trace format", &names))
    }

    /// The same for a trace that will be written: an unknown name is refused with the names of formats that can be.
    ///
    /// # Errors
    /// `InvalidInput`, and `Unsupported` for a format that can only be read.
    pub fn by_written_name(text: &str) -> Result<AnyFormat> {
        let spec = Spec::parse(text)?;
        let written: Vec<&str> = written().map(AnyFormat::name).collect();
        match ALL.iter().find(|format| is_same(format.name(), spec.name())) {
            Some(format) if format.is_written() => Ok(*format),
            Some(format) => Err(only_read(format.name())),
            None => Err(spec.unknown_name("trace format for writing", &written)),
        }
    }

    /// The format of a trace that begins with `head`, if it is certain; `None` if it matches no format.
    ///
    /// # Errors
    /// `InvalidInput` if it matches several: none is chosen without the user.
    pub fn by_content(head: &Head<'_>) -> Result<Option<AnyFormat>> {
        let found: Vec<&AnyFormat> = ALL.iter().filter(|format| format.detect(head)).collect();
        match found[..] {
            [] => Ok(None),
            [format] => Ok(Some(*format)),
            _ => {
                let names: Vec<&str> = found.iter().map(|format| format.name()).collect();
                let names = names.join(" or ");
                Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("it could be {names}; name the format with --trace-format"),
                ))
            }
        }
    }
}

/// The names of all formats, for messages.
pub fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(AnyFormat::name).collect();
    names.join(", ")
}

fn written() -> impl Iterator<Item = &'static AnyFormat> {
    ALL.iter().filter(|format| format.is_written())
}

/// The names of the formats that can be written, for messages.
pub fn written_names() -> String {
    let names: Vec<&str> = written().map(AnyFormat::name).collect();
    names.join(", ")
}

/// The error for a trace that would be written in the format `name`.
pub(crate) fn only_read(name: &str) -> Error {
    let context = format!("{name} can only be read; formats for writing: {}", written_names());
    Error::new(ErrorKind::Unsupported, context)
}

/// The first line of `head`, without its end.
pub(crate) fn first_line(head: &[u8]) -> &[u8] {
    let end = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
    head[..end].trim_ascii_end()
}

/// The length of the whole lines in `chunk`: up to and including the last line end, or all of it if `last`.
pub(crate) fn whole_lines(chunk: &[u8], last: bool) -> usize {
    if last {
        return chunk.len();
    }
    memchr::memrchr(b'\n', chunk).map_or(0, |at| at + 1)
}

/// The length of the part of `lines` in which each line has its end: all of it if only blanks follow the last end.
pub(crate) fn ended_lines(lines: &[u8]) -> usize {
    let ended = whole_lines(lines, false);
    if lines[ended..].trim_ascii().is_empty() { lines.len() } else { ended }
}
