//! Opens a trace: recognizes its format, and reads it at the level that the caller requests.
use crate::account::Account;
use crate::compression::Packing;
use crate::concat::ConcatEvents;
use crate::encoding;
use crate::event::{BlockEvent, PageEvent};
use crate::expression::Expression;
use crate::formats::{self, AnyFormat, Head};
use crate::generate::Generator;
use crate::layout::{Layout, PagesOfBlocks, Sizes, no_such_volume};
use crate::objects::Objects;
use crate::reader::{Reader, Start, no_sizes};
use crate::rescue::Rescue;
use crate::reshape::{Expand, Reshape};
use crate::source::{self, Source};
use std::io::Read;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result};

/// The options for reading a trace.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Format, perhaps with parameters (`blkparse:action=C`); `None`: recognized by the content.
    pub format: Option<String>,
    /// Page size that block events are cut into, in bytes. Page traces are read as they are.
    pub page_bytes: u32,
    /// The treatment of requests of several pages.
    pub expand: Expand,
    /// The volumes of a block trace to read; all if empty.
    pub volumes: Vec<String>,
    /// Renumber the pages from 0, in the order of first occurrence.
    pub renumber: bool,
    /// One or several pages per object of a trace of objects.
    pub objects: Objects,
    /// Receives the number of requests of the trace, and the data that are left out.
    pub account: Account,
    /// Reads a trace that was cut off up to that point; if `None`, that is an error.
    pub rescue: Option<Rescue>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            format: None,
            page_bytes: tantalum_base::PAGE_BYTES as u32,
            expand: Expand::default(),
            volumes: Vec::new(),
            renumber: false,
            objects: Objects::default(),
            account: Account::default(),
            rescue: None,
        }
    }
}

impl OpenOptions {
    /// Whether the volume called `name` is to be read.
    pub fn has_volume(&self, name: &str) -> bool {
        self.volumes.is_empty() || self.volumes.iter().any(|volume| volume == name)
    }
}

/// A reader of either level.
#[derive(Debug)]
pub enum AnyReader {
    /// At the level of pages.
    Page(Reader<PageEvent>),
    /// At the level of bytes in volumes.
    Block(Reader<BlockEvent>),
}

/// Opens the trace at `path` (`-` is the standard input) at its own level.
pub fn open(path: &Path, options: &OpenOptions) -> Result<AnyReader> {
    read(path, source::open(path)?, options)
}

/// Reads a trace from `source`, plain or compressed; `path` is for messages.
pub fn read(path: &Path, source: Source, options: &OpenOptions) -> Result<AnyReader> {
    let mut source = source::decompress(path, source)?;
    let mut head = Vec::new();
    let read = source.by_ref().take(Head::BYTES_MAX).read_to_end(&mut head);
    let broken = match read {
        Ok(_) => None,
        Err(error) if head.is_empty() => return Err(no_beginning(path, error)),
        Err(error) => Some(error),
    };
    // The file was packed twice, such as an archive in a compressed file.
    if let Some(packing) = Packing::of(&head) {
        return Err(packing.refuse(path, true));
    }
    let whole = (head.len() as u64) < Head::BYTES_MAX && broken.is_none();
    let format = match &options.format {
        Some(text) => AnyFormat::by_name(text)?,
        None => told(path, &Head { bytes: &head, whole })?,
    };
    let text = options.format.as_deref().unwrap_or(format.name());
    let rescue = options.rescue.clone();
    let object_page_bytes = (options.objects == Objects::AsPages).then_some(options.page_bytes);
    let start = Start { path, head: &head, source, broken, rescue, object_page_bytes };
    Ok(match format {
        AnyFormat::Page(format) => AnyReader::Page(Reader::new(start, format, text)?),
        AnyFormat::Block(format) => AnyReader::Block(Reader::new(start, format, text)?),
    })
}

/// The format recognized by `head`, or else by the name of the file.
fn told(path: &Path, head: &Head<'_>) -> Result<AnyFormat> {
    let text = Head { bytes: encoding::without_mark(head.bytes), whole: head.whole };
    let found = AnyFormat::by_content(&text);
    match found.map_err(|error| error.wrap(path.display().to_string()))? {
        Some(format) => Ok(format),
        None => {
            encoding::check(path, head.bytes)?;
            AnyFormat::by_ending(path).ok_or_else(|| unknown(path, text.bytes))
        }
    }
}

/// The error if nothing of the trace can be read.
fn no_beginning(path: &Path, error: std::io::Error) -> Error {
    let path = path.display();
    let context = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            format!("{path} is cut off before its first line: nothing of it can be read")
        }
        _ => format!("cannot read {path}"),
    };
    Error::io(context, error)
}

fn unknown(path: &Path, head: &[u8]) -> Error {
    if head.is_empty() {
        let context = format!(
            "{} is empty: it has no requests; if that is right, name its format with --trace-format",
            path.display()
        );
        return Error::new(ErrorKind::InvalidInput, context);
    }
    let names = formats::names();
    let line = formats::first_line(head);
    let line = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "{}:1: the format is not recognized from {line:?}; name the format with \
             --trace-format: {names}",
            path.display()
        ),
    )
}

/// Opens the trace at `path` as page events; `path` may also be the text of a generator, or `concat:` ([`Expression`]).
/// The block events of a block trace become pages of `options.page_bytes`, with volumes laid end to end. To learn their
/// sizes, the trace is first read once, together with its map if there is one, so it must be a file. A single volume
/// begins at page 0, and the trace is read only once.
pub fn open_pages(path: &Path, options: &OpenOptions) -> Result<PageEvents> {
    Expression::parse(path)?.open(options)
}

impl Expression {
    /// Opens the trace as page events, like [`open_pages`].
    pub fn open(&self, options: &OpenOptions) -> Result<PageEvents> {
        let origin = match self {
            Expression::File(path) => open_file(path, options)?,
            Expression::Generator(text) if options.objects == Objects::AsPages => {
                return Err(no_sizes(Path::new(text), "a generator"));
            }
            Expression::Generator(text) => Origin::Generated(Box::new(Generator::parse(text)?)),
            Expression::Concat(parts) => {
                Origin::Concat(Box::new(ConcatEvents::open(parts, options)?))
            }
        };
        let reshape = Reshape::new(options.expand, options.renumber);
        let origin = Counted { origin, account: options.account.clone(), requests: 0 };
        Ok(PageEvents { origin, reshape, has_sized_objects: options.objects == Objects::AsPages })
    }
}

fn open_file(path: &Path, options: &OpenOptions) -> Result<Origin> {
    let reader = match open(path, options)? {
        AnyReader::Page(_) if !options.volumes.is_empty() => {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} has pages, and no volumes to choose from", path.display()),
            ));
        }
        AnyReader::Page(reader) => return Ok(Origin::Page(Box::new(reader))),
        AnyReader::Block(reader) => reader,
    };
    if let [volume] = &options.volumes[..] {
        return Ok(Origin::Block(Box::new(
            Layout::of_one(options.page_bytes, volume)?.pages(reader),
        )));
    }
    if let (true, [volume]) = (reader.is_one_volume(), reader.names()) {
        let layout = Layout::of_one(options.page_bytes, volume)?;
        return Ok(Origin::Block(Box::new(layout.pages(reader))));
    }
    if path == Path::new("-") {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a trace of several volumes is read twice to become pages: give it as a file, not as \
             standard input, or choose one with --volume",
        ));
    }
    let mut sizes = Sizes::default();
    let map = map_path(path);
    if map.exists() {
        sizes.add_map(&map)?;
    }
    sizes.add_trace(reader)?;
    let names: Vec<String> = sizes.names().map(str::to_owned).collect();
    if let Some(volume) = options.volumes.iter().find(|volume| !names.contains(volume)) {
        return Err(no_such_volume(path, volume, &names));
    }
    let layout = Layout::new(options.page_bytes, &sizes, |name| options.has_volume(name))?;
    match open(path, options)? {
        AnyReader::Block(reader) => Ok(Origin::Block(Box::new(layout.pages(reader)))),
        AnyReader::Page(_) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{} changed while it was read", path.display()),
        )),
    }
}

/// The name of a trace: its file's name without the endings, or the name of its generator.
pub fn trace_name(path: &Path) -> String {
    match Expression::parse(path) {
        Ok(expression) => expression.name(),
        // The text is invalid; opening it reports the reason.
        Err(_) => path.display().to_string(),
    }
}

/// The path of the map of a block trace: `name.csv.zst` has `name.map.csv`.
pub fn map_path(path: &Path) -> PathBuf {
    let stem = Expression::File(path.to_owned()).name();
    path.with_file_name(format!("{stem}.map.csv"))
}

/// The page events of a trace, from any origin.
#[derive(Debug)]
pub struct PageEvents {
    origin: Counted,
    reshape: Reshape,
    has_sized_objects: bool,
}

/// Events before they are reshaped; their number is reported at their end.
#[derive(Debug)]
struct Counted {
    origin: Origin,
    account: Account,
    requests: u64,
}

impl Iterator for Counted {
    type Item = Result<PageEvent>;

    #[inline]
    fn next(&mut self) -> Option<Result<PageEvent>> {
        let event = self.origin.next();
        match &event {
            Some(Ok(PageEvent::Read { .. } | PageEvent::Write { .. })) => self.requests += 1,
            Some(_) => {}
            None => {
                self.account.set_requests(self.requests);
                self.account.add_dropped(&self.origin.dropped());
                self.account.set_truncations(self.origin.truncations());
            }
        }
        event
    }
}

#[derive(Debug)]
enum Origin {
    /// Page events of the trace.
    Page(Box<Reader<PageEvent>>),
    /// Converted from block events.
    Block(Box<PagesOfBlocks>),
    /// Generated.
    Generated(Box<Generator>),
    /// Parts of other traces.
    Concat(Box<ConcatEvents>),
}

impl PageEvents {
    /// The positions of the volumes of a block trace; `None` for any other trace.
    pub fn layout(&self) -> Option<&Layout> {
        match &self.origin.origin {
            Origin::Block(pages) => Some(pages.layout()),
            _ => None,
        }
    }

    /// Whether bytes of the trace, or of a part or an object of it, were cut into pages of [`OpenOptions::page_bytes`].
    /// Otherwise it has page numbers, whose meaning does not depend on that size.
    pub fn is_of_bytes(&self) -> bool {
        self.has_sized_objects || self.origin.origin.is_of_bytes()
    }
}

impl Origin {
    /// Whether any of it is cut into pages of the requested size.
    fn is_of_bytes(&self) -> bool {
        match self {
            Origin::Block(_) => true,
            Origin::Concat(events) => events.is_of_bytes(),
            Origin::Page(_) | Origin::Generated(_) => false,
        }
    }
}

impl Origin {
    /// Kinds of data of a trace that no event holds; parts of traces have already reported theirs.
    fn dropped(&self) -> Vec<&'static str> {
        match self {
            Origin::Page(reader) => reader.dropped(),
            Origin::Block(pages) => pages.dropped(),
            Origin::Generated(_) | Origin::Concat(_) => Vec::new(),
        }
    }

    /// The number of truncations that were left out; 0 if it is not known.
    fn truncations(&self) -> u64 {
        match self {
            Origin::Block(pages) => pages.truncations(),
            Origin::Page(_) | Origin::Generated(_) | Origin::Concat(_) => 0,
        }
    }
}

impl Iterator for Origin {
    type Item = Result<PageEvent>;

    #[inline]
    fn next(&mut self) -> Option<Result<PageEvent>> {
        match self {
            Origin::Page(reader) => reader.next(),
            Origin::Block(pages) => pages.next(),
            Origin::Generated(generator) => generator.next().map(Ok),
            Origin::Concat(events) => events.next(),
        }
    }
}

impl Iterator for PageEvents {
    type Item = Result<PageEvent>;

    #[inline]
    fn next(&mut self) -> Option<Result<PageEvent>> {
        self.reshape.next(&mut self.origin)
    }
}
