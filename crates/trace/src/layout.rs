//! Block events as page events: the address spaces of the kinds of files are laid end to end.
//!
//! Reads and writes become the pages they touch, a sync or the removal of a file a commit point
//! (SQLite's DELETE journal commits by removing it). Truncation is left out: the trace does not
//! say how long the file was.
use crate::event::{BlockEvent, BlockOp, PageEvent};
use crate::reader::Reader;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, PageNo, Result, ResultExt};

/// How many bytes each kind of file needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes(Vec<(String, u64)>);

impl Sizes {
    /// Notes that `kind` reaches up to byte `end`.
    pub fn cover(&mut self, kind: &str, end: u64) {
        match self.0.iter_mut().find(|(name, _)| name == kind) {
            Some((_, bytes)) => *bytes = end.max(*bytes),
            None => self.0.push((kind.to_owned(), end)),
        }
    }

    /// Covers what the map at `path` lists: header `file_kind,first_offset,bytes,file`.
    pub fn add_map(&mut self, path: &Path) -> Result<()> {
        let name = path.display();
        let text =
            std::fs::read_to_string(path).context(|| format!("cannot read the map {name}"))?;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if at == 0 && line.starts_with("file_kind,") {
                continue;
            }
            let mut fields = line.split(',').map(str::trim);
            let kind = fields.next().unwrap_or_default();
            let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok());
            let end = number().zip(number()).and_then(|(first, bytes)| first.checked_add(bytes));
            let Some(end) = end.filter(|_| !kind.is_empty()) else {
                let shown: String = line.chars().take(60).collect();
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("{name}:{}: not file_kind,first_offset,bytes,file: {shown:?}", at + 1),
                ));
            };
            self.cover(kind, end);
        }
        Ok(())
    }

    /// Covers every read and write of a whole trace.
    pub fn add_trace(&mut self, mut reader: Reader<BlockEvent>) -> Result<()> {
        let mut ends: Vec<u64> = Vec::new();
        loop {
            let batch = reader.next_batch()?;
            if batch.is_empty() {
                break;
            }
            for event in batch {
                let kind = usize::from(event.file_kind.0);
                if ends.len() <= kind {
                    ends.resize(kind + 1, 0);
                }
                if matches!(event.op, BlockOp::Read | BlockOp::Write) {
                    ends[kind] = ends[kind].max(event.offset + u64::from(event.length));
                }
            }
        }
        for (name, end) in reader.names().iter().zip(ends) {
            self.cover(name, end);
        }
        Ok(())
    }
}

/// Where each kind of file begins in the one address space of pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    page_bytes: u32,
    extents: Vec<Extent>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Extent {
    kind: String,
    first_page: u64,
    pages: u64,
}

impl Layout {
    /// Lays the kinds of `sizes` end to end in pages of `page_bytes` (512 to 1 MiB, a power of
    /// two).
    pub fn new(page_bytes: u32, sizes: &Sizes) -> Result<Layout> {
        if !page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&page_bytes) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("a page of {page_bytes} bytes; accepted: powers of two, 512 to 1048576"),
            ));
        }
        let mut extents = Vec::new();
        let mut first_page = 0;
        for (kind, bytes) in &sizes.0 {
            let pages = bytes.div_ceil(u64::from(page_bytes));
            extents.push(Extent { kind: kind.clone(), first_page, pages });
            first_page += pages;
        }
        Ok(Layout { page_bytes, extents })
    }

    /// Pages of all kinds together.
    pub fn pages_end(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.first_page + extent.pages)
    }

    /// Reads `reader` as page events.
    pub fn pages(self, reader: Reader<BlockEvent>) -> PagesOfBlocks {
        PagesOfBlocks { layout: self, reader, extent_of: Vec::new() }
    }

    /// The page event that `event` becomes, if it becomes one; `extent` is its kind's.
    fn page_event(&self, event: BlockEvent, extent: &Extent) -> Result<Option<PageEvent>> {
        match event.op {
            BlockOp::Flush | BlockOp::Unlink => return Ok(Some(PageEvent::Commit)),
            BlockOp::Truncate => return Ok(None),
            BlockOp::Read | BlockOp::Write if event.length == 0 => return Ok(None),
            BlockOp::Read | BlockOp::Write => {}
        }
        let page_bytes = u64::from(self.page_bytes);
        let first = event.offset / page_bytes;
        let end = (event.offset + u64::from(event.length)).div_ceil(page_bytes);
        if end > extent.pages {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!(
                    "{} bytes at {} lie outside the {} pages laid out for {}",
                    event.length, event.offset, extent.pages, extent.kind
                ),
            ));
        }
        let page = PageNo(extent.first_page + first);
        let pages = (end - first) as u32;
        Ok(Some(match event.op {
            BlockOp::Write => PageEvent::Write { page, pages },
            _ => PageEvent::Read { page, pages },
        }))
    }
}

/// The page events of a block trace.
#[derive(Debug)]
pub struct PagesOfBlocks {
    layout: Layout,
    reader: Reader<BlockEvent>,
    /// Index of the extent of each kind of file seen so far.
    extent_of: Vec<usize>,
}

impl PagesOfBlocks {
    /// Where the kinds of files lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn convert(&mut self, event: BlockEvent) -> Result<Option<PageEvent>> {
        // Kinds get their numbers in order of appearance, and each is looked up by name once.
        while self.extent_of.len() <= usize::from(event.file_kind.0) {
            let name = &self.reader.names()[self.extent_of.len()];
            let found = self.layout.extents.iter().position(|extent| extent.kind == *name);
            self.extent_of.push(found.ok_or_else(|| {
                Error::new(
                    ErrorKind::OutOfRange,
                    format!("{}: no pages laid out for {name}", self.reader.path().display()),
                )
            })?);
        }
        let extent = &self.layout.extents[self.extent_of[usize::from(event.file_kind.0)]];
        self.layout.page_event(event, extent)
    }
}

impl Iterator for PagesOfBlocks {
    type Item = Result<PageEvent>;

    fn next(&mut self) -> Option<Result<PageEvent>> {
        loop {
            let event = match self.reader.next()? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            if let Some(page_event) = self.convert(event).transpose() {
                return Some(page_event);
            }
        }
    }
}
