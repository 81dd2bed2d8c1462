//! Opening a trace: find out what it is, and read it as what the caller wants.
use crate::event::{BlockEvent, PageEvent};
use crate::formats::{self, AnyFormat};
use crate::generate::{self, Generator};
use crate::layout::{Layout, Sizes};
use crate::reader::Reader;
use crate::source::{self, Source};
use std::io::Read;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

/// Bytes looked at to tell the format.
const HEAD_BYTES: u64 = 4096;

/// How to read a trace.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Name of the format; told from the content where `None`.
    pub format: Option<String>,
    /// Page size that block events are cut into, in bytes. Page traces are taken as they are.
    pub page_bytes: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { format: None, page_bytes: tantalum_base::PAGE_BYTES as u32 }
    }
}

/// A reader of either level.
#[derive(Debug)]
pub enum AnyReader {
    /// Of pages.
    Page(Reader<PageEvent>),
    /// Of bytes in kinds of files.
    Block(Reader<BlockEvent>),
}

/// Opens the trace at `path` (`-` is the standard input) in its own terms.
pub fn open(path: &Path, options: &OpenOptions) -> Result<AnyReader> {
    read(path, source::open(path)?, options)
}

/// Reads a trace from `source`, plain or compressed; `path` is for messages.
pub fn read(path: &Path, source: Source, options: &OpenOptions) -> Result<AnyReader> {
    let mut source = source::decompress(path, source)?;
    let mut head = Vec::new();
    source
        .by_ref()
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
    let format = match &options.format {
        Some(name) => AnyFormat::by_name(name)?,
        None => AnyFormat::by_content(&head).ok_or_else(|| unknown(path, &head))?,
    };
    Ok(match format {
        AnyFormat::Page(format) => AnyReader::Page(Reader::new(path, &head, source, format)),
        AnyFormat::Block(format) => AnyReader::Block(Reader::new(path, &head, source, format)),
    })
}

fn unknown(path: &Path, head: &[u8]) -> Error {
    let line = formats::first_line(head);
    let line = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "{}:1: no known trace begins with {line:?}; name the format: {}",
            path.display(),
            formats::names()
        ),
    )
}

/// The generator that `path` names, where it is the text of one (`zipf:pages=1m`) and no file.
pub fn as_generator(path: &Path) -> Option<&str> {
    let text = path.to_str().filter(|_| !path.exists())?;
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    generate::NAMES.contains(&name).then_some(text)
}

/// Opens the trace at `path` as page events; the text of a generator is one, too. The block events of a block trace become pages of
/// `options.page_bytes`, kinds of files laid end to end; for their sizes the trace is read once
/// before, together with its map where there is one, so it must be a file.
pub fn open_pages(path: &Path, options: &OpenOptions) -> Result<PageEvents> {
    if let Some(text) = as_generator(path) {
        return Ok(PageEvents::Generated(Generator::parse(text)?));
    }
    let reader = match open(path, options)? {
        AnyReader::Page(reader) => return Ok(PageEvents::Page(reader)),
        AnyReader::Block(reader) => reader,
    };
    if path == Path::new("-") {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a block trace is read twice to become pages: give it as a file, not as standard input",
        ));
    }
    let mut sizes = Sizes::default();
    let map = map_path(path);
    if map.exists() {
        sizes.add_map(&map)?;
    }
    sizes.add_trace(reader)?;
    let layout = Layout::new(options.page_bytes, &sizes)?;
    match open(path, options)? {
        AnyReader::Block(reader) => Ok(PageEvents::Block(layout.pages(reader))),
        AnyReader::Page(_) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{} changed while it was read", path.display()),
        )),
    }
}

/// What a trace is called: its file's name without the endings, or the name of its generator.
pub fn trace_name(path: &Path) -> String {
    if let Some(text) = as_generator(path) {
        return text.split_once(':').map_or(text, |(name, _)| name).to_owned();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = name.as_ref();
    for end in [".zst", ".gz", ".csv"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    stem.to_owned()
}

/// Where the map of a block trace lies: `name.csv.zst` has `name.map.csv`.
pub fn map_path(path: &Path) -> PathBuf {
    let stem = trace_name(path);
    path.with_file_name(format!("{stem}.map.csv"))
}

/// The page events of a trace, wherever they come from.
#[derive(Debug)]
pub enum PageEvents {
    /// As they stand in the trace.
    Page(Reader<PageEvent>),
    /// Made from block events.
    Block(crate::layout::PagesOfBlocks),
    /// Made up.
    Generated(Generator),
}

impl Iterator for PageEvents {
    type Item = Result<PageEvent>;

    #[inline]
    fn next(&mut self) -> Option<Result<PageEvent>> {
        match self {
            PageEvents::Page(reader) => reader.next(),
            PageEvents::Block(pages) => pages.next(),
            PageEvents::Generated(generator) => generator.next().map(Ok),
        }
    }
}
