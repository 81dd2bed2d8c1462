//! The two files of a store, and the directory that records which of them counts.
//!
//! ```text
//! device  | directory 2 pages | file in half 0 | file in half 1 |
//! ```
//!
//! A compaction writes its new file into the unused half, and the directory names the file once it is complete. The
//! directory's two pages are written in turn; the whole one with the higher number counts.
use tantalum_base::{Error, ErrorKind, Limits, PageDevice, PageNo, PageRange, Result};

use super::barrier::Barrier;
use super::block::{Block, Directory, Header};
use super::options::{DIRECTORY_PAGES, Mode};
use crate::records::{Codec, Draft, PAGE_ROOM, Place, RecordDevice, corrupt};
use crate::values::Value;

/// The state of a file at a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Snapshot {
    pub(super) file: PageRange,
    pub(super) half: u8,
    pub(super) header: Header,
}

impl Snapshot {
    /// Number of pages of the file so far.
    pub(super) fn used_pages(&self) -> u64 {
        self.header.end.0 - self.file.first.0
    }

    /// Number of these pages that a compaction would keep.
    pub(super) fn live_pages(&self) -> u64 {
        let documents = self.header.document_bytes.div_ceil(PAGE_ROOM as u64);
        (1 + documents + self.header.nodes).min(self.used_pages())
    }

    /// Counts the move of a document from `old` to `new`.
    pub(super) fn count_move(&mut self, old: Option<Place>, new: Option<Place>) {
        let header = &mut self.header;
        header.documents += u64::from(new.is_some());
        header.documents -= u64::from(old.is_some());
        header.document_bytes += new.map_or(0, |place| u64::from(place.bytes));
        header.document_bytes -= old.map_or(0, |place| u64::from(place.bytes));
    }
}

impl Directory {
    /// The directory of a new store.
    pub(super) fn new(mode: Mode, limits: &Limits) -> Directory {
        let file_pages = (limits.pages - DIRECTORY_PAGES) / 2;
        Directory { number: 1, file: 1, file_pages, half: 0, other_in_use: false, mode }
    }

    /// The place of the file in a half.
    fn half_range(&self, half: u8) -> PageRange {
        let first = DIRECTORY_PAGES + u64::from(half) * self.file_pages;
        PageRange::new(PageNo(first), self.file_pages)
    }

    /// The half without a file that counts.
    pub(super) fn other_range(&self) -> PageRange {
        self.half_range(1 - self.half)
    }

    /// The current file when it is empty.
    pub(super) fn empty_file(&self) -> Snapshot {
        let file = self.half_range(self.half);
        // The first page is reserved for a header: the first header, or by SHARE each one.
        let end = PageNo(file.first.0 + 1);
        let header = Header {
            end,
            file: self.file,
            number: 1,
            root: None,
            depth: 0,
            nodes: 0,
            documents: 0,
            document_bytes: 0,
        };
        Snapshot { file, half: self.half, header }
    }

    /// The directory after a change.
    pub(super) fn changed(&self, change: impl FnOnce(&mut Directory)) -> Directory {
        let mut directory = Directory { number: self.number + 1, ..*self };
        change(&mut directory);
        directory
    }

    /// Writes it; the next barrier makes it durable.
    pub(super) async fn write<D, V, C>(&self, device: &RecordDevice<D, C>) -> Result<()>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        write_block(device, PageNo(self.number % DIRECTORY_PAGES), Block::Directory(*self)).await
    }

    /// Reads the directory page that counts; `None` if there is no store.
    pub(super) async fn read<D, V, C>(device: &RecordDevice<D, C>) -> Result<Option<Directory>>
    where
        D: PageDevice,
        V: Value,
        C: Codec<Page = D::Page, Record = Block<V>>,
    {
        let mut newest: Option<Directory> = None;
        for page in 0..DIRECTORY_PAGES {
            // An unreadable page may be the one that counts, so that is an error.
            let found = device.try_read(Place::of_pages(PageNo(page), 1)).await?;
            if let Some(Block::Directory(directory)) = found.as_deref()
                && directory.number % DIRECTORY_PAGES == page
                && newest.is_none_or(|newest| directory.number > newest.number)
            {
                newest = Some(*directory);
            }
        }
        if let Some(directory) = newest {
            let end = directory.file_pages.saturating_mul(2).saturating_add(DIRECTORY_PAGES);
            if directory.half > 1 || end > device.limits().pages {
                let context = format!(
                    "the store's directory has files of {} pages, the device {} pages in all",
                    directory.file_pages,
                    device.limits().pages
                );
                return Err(Error::new(ErrorKind::Corrupt, context));
            }
        }
        Ok(newest)
    }
}

/// Writes one block into one page.
pub(super) async fn write_block<D, V, C>(
    device: &RecordDevice<D, C>,
    page: PageNo,
    block: Block<V>,
) -> Result<()>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    let mut draft = Draft::new(page);
    draft.align(block.into());
    device.write(&draft).await
}

/// Empties the half that does not count, and records this in the directory.
pub(super) async fn delete_other<D, V, C>(
    device: &RecordDevice<D, C>,
    directory: &Directory,
) -> Result<Directory>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    device.trim(directory.other_range()).await?;
    Barrier::AfterDeletion.pass(device).await?;
    let directory = directory.changed(|directory| directory.other_in_use = false);
    directory.write(device).await?;
    Barrier::BetweenDirectories.pass(device).await?;
    Ok(directory)
}

/// Finds the last commit of the current file.
pub(super) async fn last_commit<D, V, C>(
    device: &RecordDevice<D, C>,
    directory: &Directory,
) -> Result<Snapshot>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    let empty = directory.empty_file();
    let file = empty.file;
    let mut at = match directory.mode {
        Mode::Share => file.first,
        Mode::Original => last_written(device, file).await?,
    };
    loop {
        let found = device.try_read(Place::of_pages(at, 1)).await?;
        if let Some(Block::Header(header)) = found.as_deref()
            && header.file == directory.file
            && (directory.mode == Mode::Share || header.end.0 == at.0 + 1)
            && header.end > file.first
            && header.end <= file.end()
        {
            return Ok(Snapshot { header: *header, ..empty });
        }
        if at == file.first {
            return Err(corrupt(Place::of_pages(at, 1), "no header of the current file"));
        }
        at.0 -= 1;
    }
}

/// A written page of an append-only file with no header after it.
///
/// A header is written once all pages before it are durable. So if a page is written and the next one is not, no
/// header follows; and all pages up to the last header are written. Any such page will do.
async fn last_written<D, V, C>(device: &RecordDevice<D, C>, file: PageRange) -> Result<PageNo>
where
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    let (mut written, mut blank) = (file.first, file.end());
    while blank.0 - written.0 > 1 {
        let middle = PageNo(written.0 + (blank.0 - written.0) / 2);
        match device.has_content(middle).await? {
            true => written = middle,
            false => blank = middle,
        }
    }
    Ok(written)
}
