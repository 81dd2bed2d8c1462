//! Block events as page events: the address spaces of the volumes are laid end to end.
//!
//! Reads and writes become the pages that they touch, a discard the pages that it covers completely, a sync or the
//! removal of a file a commit point (SQLite's DELETE journal commits by removing it). Truncation is left out, and
//! counted: the trace does not contain the previous length of the file.
use crate::event::{BlockEvent, BlockOp, PageEvent};
use crate::reader::Reader;
use std::io::Read;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, PageNo, Result, ResultExt};

/// The kind of data in an [`Account`](crate::Account) that has a number.
pub const TRUNCATIONS: &str = "truncations";

/// The number of bytes that each volume needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes(Vec<(String, u64)>);

impl Sizes {
    /// The volumes' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Notes that volume `kind` extends at least to byte `end`.
    pub fn cover(&mut self, kind: &str, end: u64) {
        match self.0.iter_mut().find(|(name, _)| name == kind) {
            Some((_, bytes)) => *bytes = end.max(*bytes),
            None => self.0.push((kind.to_owned(), end)),
        }
    }

    /// Covers the files listed in the map at `path`: header `file_kind,first_offset,bytes,file`.
    pub fn add_map(&mut self, path: &Path) -> Result<()> {
        let name = path.display();
        let mut text = String::new();
        let mut source = crate::source::open(path)?;
        source.read_to_string(&mut text).context(|| format!("cannot read the map {name}"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
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
                if matches!(event.op, BlockOp::Read | BlockOp::Write | BlockOp::Discard) {
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

/// The position of each volume in the common address space of pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    page_bytes: u32,
    extents: Vec<Extent>,
}

/// The position of one volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The volume's name.
    pub volume: String,
    /// Its first page.
    pub first_page: u64,
    /// The number of its pages.
    pub pages: u64,
}

impl Layout {
    /// Lays those volumes of `sizes` that are `wanted` end to end in pages of `page_bytes` (512 to 1 MiB, a power of
    /// two).
    pub fn new(page_bytes: u32, sizes: &Sizes, wanted: impl Fn(&str) -> bool) -> Result<Layout> {
        Layout::check_page_bytes(page_bytes)?;
        let mut extents = Vec::new();
        let mut first_page = 0;
        for (volume, bytes) in sizes.0.iter().filter(|(volume, _)| wanted(volume)) {
            let pages = bytes.div_ceil(u64::from(page_bytes));
            extents.push(Extent { volume: volume.clone(), first_page, pages });
            first_page = u64::checked_add(first_page, pages).ok_or_else(|| {
                Error::new(ErrorKind::OutOfRange, "the volumes together are over 64 bits of pages")
            })?;
        }
        Ok(Layout { page_bytes, extents })
    }

    /// One volume of any size, from page 0 on: its size need not be known.
    pub fn of_one(page_bytes: u32, volume: &str) -> Result<Layout> {
        Layout::check_page_bytes(page_bytes)?;
        let extent = Extent { volume: volume.to_owned(), first_page: 0, pages: u64::MAX };
        Ok(Layout { page_bytes, extents: vec![extent] })
    }

    /// The volumes, in the order of their pages.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    fn check_page_bytes(page_bytes: u32) -> Result<()> {
        if !page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&page_bytes) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("a page of {page_bytes} bytes; accepted: powers of two, 512 to 1048576"),
            ));
        }
        Ok(())
    }

    /// Pages of all volumes together.
    pub fn pages_end(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.first_page + extent.pages)
    }

    /// Reads `reader` as page events. Requests to volumes without a position are skipped.
    pub fn pages(self, reader: Reader<BlockEvent>) -> PagesOfBlocks {
        PagesOfBlocks { layout: self, reader, extent_of: Vec::new(), truncations: 0, ended: false }
    }

    /// The page event for `event`, if there is one; `extent` is that of its volume.
    fn page_event(&self, event: BlockEvent, extent: &Extent) -> Result<Option<PageEvent>> {
        match event.op {
            BlockOp::Flush | BlockOp::Unlink => return Ok(Some(PageEvent::Commit)),
            BlockOp::Truncate => return Ok(None),
            _ if event.length == 0 => return Ok(None),
            BlockOp::Read | BlockOp::Write | BlockOp::Discard => {}
        }
        let page_bytes = u64::from(self.page_bytes);
        let end_bytes = event.offset + u64::from(event.length);
        // A write of a part of a page writes the page; a discard of a part has no effect on it.
        let (first, end) = if event.op == BlockOp::Discard {
            (event.offset.div_ceil(page_bytes), end_bytes / page_bytes)
        } else {
            (event.offset / page_bytes, end_bytes.div_ceil(page_bytes))
        };
        if first >= end {
            return Ok(None);
        }
        if end > extent.pages {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!(
                    "{} bytes at {} lie outside the {} pages laid out for {}",
                    event.length, event.offset, extent.pages, extent.volume
                ),
            ));
        }
        let page = PageNo(extent.first_page + first);
        let pages = (end - first) as u32;
        Ok(Some(match event.op {
            BlockOp::Write => PageEvent::Write { page, pages },
            BlockOp::Discard => PageEvent::Trim { page, pages },
            _ => PageEvent::Read { page, pages },
        }))
    }
}

/// The page events of a block trace.
#[derive(Debug)]
pub struct PagesOfBlocks {
    layout: Layout,
    reader: Reader<BlockEvent>,
    /// Index of the extent of each volume seen so far; `None` if it has no position.
    extent_of: Vec<Option<usize>>,
    /// Truncations so far, which are left out.
    truncations: u64,
    ended: bool,
}

impl PagesOfBlocks {
    /// Kinds of data of the trace, as far as it was read, that no event holds.
    pub fn dropped(&self) -> Vec<&'static str> {
        let truncations = (self.truncations > 0).then_some(TRUNCATIONS);
        self.reader.dropped().into_iter().chain(truncations).collect()
    }

    /// The number of truncations among them.
    pub fn truncations(&self) -> u64 {
        self.truncations
    }

    /// The positions of the volumes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn convert(&mut self, event: BlockEvent) -> Result<Option<PageEvent>> {
        // Volumes are numbered in the order of first occurrence, and each is looked up by name once.
        while self.extent_of.len() <= usize::from(event.file_kind.0) {
            let name = &self.reader.names()[self.extent_of.len()];
            let extents = &self.layout.extents;
            self.extent_of.push(extents.iter().position(|extent| extent.volume == *name));
        }
        let Some(extent) = self.extent_of[usize::from(event.file_kind.0)] else {
            return Ok(None);
        };
        self.truncations += u64::from(event.op == BlockOp::Truncate);
        self.layout.page_event(event, &self.layout.extents[extent])
    }

    /// An error if the only requested volume never occurred.
    fn check_seen(&self) -> Result<()> {
        let [extent] = &self.layout.extents[..] else { return Ok(()) };
        let names = self.reader.names();
        if names.is_empty() || names.contains(&extent.volume) {
            return Ok(());
        }
        Err(no_such_volume(self.reader.path(), &extent.volume, names))
    }
}

/// The error for a volume that is not in the trace.
pub(crate) fn no_such_volume(path: &Path, volume: &str, names: &[String]) -> Error {
    const SHOWN: usize = 20;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    Error::new(
        ErrorKind::InvalidInput,
        format!("{} has no volume {volume:?}; it has {shown}{more}", path.display()),
    )
}

impl Iterator for PagesOfBlocks {
    type Item = Result<PageEvent>;

    fn next(&mut self) -> Option<Result<PageEvent>> {
        loop {
            let event = match self.reader.next() {
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None if self.ended => return None,
                None => {
                    self.ended = true;
                    return self.check_seen().err().map(Err);
                }
            };
            if let Some(page_event) = self.convert(event).transpose() {
                return Some(page_event);
            }
        }
    }
}
