//! SQLite's rollback journal: in memory, or in an unnamed temporary file if it is too large for memory.
//!
//! If the old content of a page is known to be the committed content, the journal does not store it. It borrows the page from
//! the volume (`database/lending.rs`), which keeps the committed content until the commit.
//!
//! A library without batch-atomic commits requires a journal. It is only read for rollbacks in the same process: the
//! volume always holds the last committed state, so there is nothing to play back after a crash. The journal therefore
//! need not survive the handle of the connection that writes it. While the handle is open, the journal has a name, like a
//! file: in a rollback of several databases SQLite finds out by name which of their journals are still to be played back.
use crate::codes::lock;
use crate::database::page_of;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageBuf, PageNo, Result};
use tempfile::SpooledTempFile;

/// Bytes of a journal that are kept in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// The sizes of a page of a database.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 512..=65536;

/// The pages of the volume that are read at once when a borrowed page is needed.
const AHEAD_PAGES: usize = 64;

/// The bytes that are stored at once when borrowed pages must be stored.
const STORED_AT_ONCE: u64 = 1 << 20;

/// The journals of one process, by name. Names are bytes, which compare faster than paths.
#[derive(Default)]
pub(crate) struct Journals(Mutex<BTreeMap<OsString, Weak<Mutex<Journal>>>>);

impl Journals {
    /// A new, empty journal called `path`.
    pub(crate) fn create(&self, path: &Path) -> Arc<Mutex<Journal>> {
        let journal: Arc<Mutex<Journal>> = Arc::default();
        let mut journals = lock(&self.0);
        journals.retain(|_, journal| journal.strong_count() > 0);
        journals.insert(path.into(), Arc::downgrade(&journal));
        journal
    }

    /// The journal called `path`, if it holds content to be played back.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<Mutex<Journal>>> {
        let journal = lock(&self.0).get(path.as_os_str())?.upgrade()?;
        let is_hot = lock(&journal).is_hot();
        is_hot.then_some(journal)
    }

    /// Removes the name of the journal called `path`.
    pub(crate) fn delete(&self, path: &Path) {
        lock(&self.0).remove(path.as_os_str());
    }
}

/// The database whose committed pages a journal may borrow.
pub(crate) trait Lender: Send + Sync {
    /// Whether the committed content at `offset` is known to be `data`, and stays so until the journal is asked to
    /// [store](Journal::store_borrowed) it.
    fn lends(&self, offset: u64, data: &[u8]) -> bool;

    /// The committed content of `pages` of the volume, which are in ascending order.
    fn read_committed(&self, pages: &[PageNo]) -> Result<Vec<PageBuf>>;
}

/// One open journal.
pub(crate) struct Journal {
    /// Everything but the borrowed pages, without gaps where these belong.
    bytes: SpooledTempFile,
    size: u64,
    /// Its first byte.
    first: Option<u8>,
    lender: Option<Weak<dyn Lender>>,
    borrowed: Borrowed,
    /// The number that the last write wrote, and the end of that write. In a journal each page follows its number.
    number: Option<(u64, u32)>,
    /// Committed pages that were read for a rollback.
    ahead: BTreeMap<PageNo, PageBuf>,
    /// The reason for which the journal is unusable.
    lost: Option<Error>,
}

impl Default for Journal {
    fn default() -> Self {
        Journal {
            bytes: SpooledTempFile::new(MEMORY_BYTES),
            size: 0,
            first: None,
            lender: None,
            borrowed: Borrowed::default(),
            number: None,
            ahead: BTreeMap::new(),
            lost: None,
        }
    }
}

impl Journal {
    /// Lets the journal borrow pages of `lender`.
    pub(crate) fn set_lender(&mut self, lender: Weak<dyn Lender>) {
        self.lender = Some(lender);
    }

    /// Fills `out` from `offset`, with zeros behind the end; returns whether all of it was there.
    pub(crate) fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<bool> {
        if let Some(error) = &self.lost {
            return Err(error.clone());
        }
        let there = self.size.saturating_sub(offset).min(out.len() as u64) as usize;
        let (mut rest, past_end) = out.split_at_mut(there);
        past_end.fill(0);
        let mut at = offset;
        while !rest.is_empty() {
            let (is_borrowed, bytes) = self.borrowed.piece(at);
            let bytes = usize::try_from(bytes).map_or(rest.len(), |bytes| bytes.min(rest.len()));
            let (part, after) = rest.split_at_mut(bytes);
            if is_borrowed {
                self.read_borrowed(at, part)?;
            } else {
                let place = SeekFrom::Start(self.borrowed.place(at));
                let read = self.bytes.seek(place).and_then(|_| self.bytes.read_exact(part));
                read.map_err(of_file)?;
            }
            at += bytes as u64;
            rest = after;
        }
        Ok(past_end.is_empty())
    }

    /// Reads a part of one borrowed page of the database, and further pages that a rollback will read next.
    fn read_borrowed(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let at = self.borrowed.database_offset(offset);
        let (first, last) = (page_of(at), page_of(at + out.len() as u64 - 1));
        if (first.0..=last.0).any(|page| !self.ahead.contains_key(&PageNo(page))) {
            let mut pages = self.borrowed.pages_from(offset, AHEAD_PAGES);
            pages.extend((first.0..=last.0).map(PageNo));
            let lender = self.lender.as_ref().and_then(Weak::upgrade);
            let lender = lender.ok_or_else(|| gone("its database is closed"))?;
            let pages: Vec<PageNo> = pages.into_iter().collect();
            let content = lender.read_committed(&pages)?;
            self.ahead = pages.into_iter().zip(content).collect();
        }
        let mut skip = (at % PAGE_BYTES as u64) as usize;
        let mut rest = out;
        for page in (first.0..=last.0).map(PageNo) {
            let content = self.ahead.get(&page).ok_or_else(|| gone("a page is missing"))?;
            let (part, after) = rest.split_at_mut((PAGE_BYTES - skip).min(rest.len()));
            part.copy_from_slice(&content[skip..skip + part.len()]);
            (rest, skip) = (after, 0);
        }
        Ok(())
    }

    /// Writes `data` at `offset`; a gap before it is filled with zeros.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        if offset == 0 && data.first() == Some(&0) && !self.borrowed.is_empty() {
            // The transaction has ended, so that its pages are not needed any more.
            self.truncate(0)?;
        }
        if self.borrowed.overlaps(offset, data.len() as u64) {
            self.store_borrowed()?;
        }
        let number = self.number.take().filter(|(end, _)| *end == offset);
        if let Some((_, number)) = number
            && self.can_borrow(offset, number, data)
        {
            self.borrowed.push(offset, number, data.len());
            self.size = offset + data.len() as u64;
            return Ok(());
        }
        self.write_bytes(offset, data).map_err(of_file)?;
        if let Ok(bytes) = data.try_into() {
            self.number = Some((offset + data.len() as u64, u32::from_be_bytes(bytes)));
        }
        self.size = self.size.max(offset + data.len() as u64);
        if offset == 0
            && let Some(byte) = data.first()
        {
            self.first = Some(*byte);
        }
        Ok(())
    }

    /// Whether `data`, behind the journal's end, is the committed page `number` of the database.
    fn can_borrow(&self, offset: u64, number: u32, data: &[u8]) -> bool {
        let is_page = PAGE_SIZES.contains(&data.len()) && data.len().is_power_of_two();
        if !is_page || number == 0 || offset != self.size || !self.borrowed.takes(data.len()) {
            return false;
        }
        let lender = self.lender.as_ref().and_then(Weak::upgrade);
        let at = u64::from(number - 1) * data.len() as u64;
        lender.is_some_and(|lender| lender.lends(at, data))
    }

    fn write_bytes(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = self.borrowed.place(offset);
        if offset > self.size {
            self.bytes.set_len(place)?;
        }
        self.bytes.seek(SeekFrom::Start(place))?;
        self.bytes.write_all(data)
    }

    /// Truncates the journal to `size` bytes.
    pub(crate) fn truncate(&mut self, size: u64) -> Result<()> {
        if size == 0 {
            // The journal is in memory again.
            *self = Journal { lender: self.lender.take(), ..Journal::default() };
        } else if size < self.size {
            self.store_borrowed()?;
            self.bytes.set_len(size).map_err(of_file)?;
            (self.size, self.number) = (size, None);
        }
        Ok(())
    }

    /// Stores the borrowed pages, which will change.
    pub(crate) fn store_borrowed(&mut self) -> Result<()> {
        if self.borrowed.is_empty() {
            return Ok(());
        }
        let mut bytes = SpooledTempFile::new(MEMORY_BYTES);
        let mut part = vec![0; self.size.min(STORED_AT_ONCE) as usize];
        let mut at = 0;
        while at < self.size {
            let part = &mut part[..(self.size - at).min(STORED_AT_ONCE) as usize];
            self.read(at, part)?;
            bytes.write_all(part).map_err(of_file)?;
            at += part.len() as u64;
        }
        self.bytes = bytes;
        self.borrowed = Borrowed::default();
        self.ahead.clear();
        Ok(())
    }

    /// Stores the borrowed pages before the lender ends its loans, which it does in any case. If they cannot be stored, the
    /// journal becomes unusable and is not played back: the volume has the committed state.
    pub(crate) fn give_back(&mut self) {
        if let Err(error) = self.store_borrowed() {
            let lender = self.lender.take();
            *self = Journal { lender, lost: Some(error), ..Journal::default() };
        }
    }

    /// Whether its transaction is still open: at the end of a transaction the journal is left empty, or with zeros at its
    /// beginning.
    fn is_hot(&self) -> bool {
        self.first.is_some_and(|byte| byte != 0)
    }

    /// Bytes in the journal.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// The pages of a journal that are not in it but in the database: a few bytes for each.
#[derive(Default)]
struct Borrowed {
    /// Offset in the journal and number of each page, in ascending order of the offsets.
    pages: Vec<(u64, u32)>,
    page_bytes: usize,
}

impl Borrowed {
    fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether a page of this size can be added.
    fn takes(&self, page_bytes: usize) -> bool {
        self.is_empty() || self.page_bytes == page_bytes
    }

    /// Adds page `number`, behind all others.
    fn push(&mut self, offset: u64, number: u32, page_bytes: usize) {
        self.page_bytes = page_bytes;
        self.pages.push((offset, number));
    }

    /// The number of pages that begin before `offset`.
    fn before(&self, offset: u64) -> usize {
        self.pages.partition_point(|(start, _)| *start < offset)
    }

    /// The position of the stored byte for `offset`, which is in no borrowed page.
    fn place(&self, offset: u64) -> u64 {
        offset - (self.before(offset) * self.page_bytes) as u64
    }

    /// The piece at `offset`: whether it belongs to a borrowed page, and its bytes from there on.
    fn piece(&self, offset: u64) -> (bool, u64) {
        let next = self.before(offset + 1);
        let end = next.checked_sub(1).map(|at| self.pages[at].0 + self.page_bytes as u64);
        match end {
            Some(end) if end > offset => (true, end - offset),
            _ => (false, self.pages.get(next).map_or(u64::MAX, |(start, _)| start - offset)),
        }
    }

    /// Whether a borrowed page has any of `bytes` bytes at `offset`.
    fn overlaps(&self, offset: u64, bytes: u64) -> bool {
        let (is_borrowed, there) = self.piece(offset);
        is_borrowed || there < bytes
    }

    /// The offset in the database of the byte at `offset`, which is in a borrowed page.
    fn database_offset(&self, offset: u64) -> u64 {
        let (start, number) = self.pages[self.before(offset + 1) - 1];
        u64::from(number - 1) * self.page_bytes as u64 + (offset - start)
    }

    /// The volume's pages of about `most` borrowed pages from the one at `offset` on.
    fn pages_from(&self, offset: u64, most: usize) -> BTreeSet<PageNo> {
        let from = self.before(offset + 1) - 1;
        let most = (most * PAGE_BYTES / self.page_bytes.max(PAGE_BYTES)).max(1);
        let pages = self.pages[from..].iter().take(most).flat_map(|(start, _)| {
            let at = self.database_offset(*start);
            page_of(at).0..=page_of(at + self.page_bytes as u64 - 1).0
        });
        pages.map(PageNo).collect()
    }
}

/// The error for a failure of a large journal's temporary file.
fn of_file(error: io::Error) -> Error {
    let is_full = error.kind() == io::ErrorKind::StorageFull;
    let context = "SQLite's rollback journal, in a file in the folder for temporary files";
    let kind = if is_full { ErrorKind::OutOfSpace } else { ErrorKind::Io };
    Error::io(context, error).with_kind(kind)
}

fn gone(why: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("SQLite's rollback journal cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Rng;

    /// A journal behaves equally below and above the limit of memory.
    #[test]
    fn reads_back_what_was_written_and_tells_short_reads() {
        for base in [0, MEMORY_BYTES as u64 - 5, MEMORY_BYTES as u64 * 2] {
            let mut journal = Journal::default();
            journal.write(base + 3, b"abc").unwrap();
            let mut out = [9; 4];
            assert!(journal.read(base + 2, &mut out).unwrap());
            assert_eq!(&out, b"\0abc");
            assert!(!journal.read(base + 4, &mut out).unwrap());
            assert_eq!(&out, b"bc\0\0");
            assert!(!journal.read(base + 100, &mut out).unwrap());
            assert_eq!(out, [0; 4]);
            journal.truncate(base + 4).unwrap();
            assert_eq!(journal.size(), base + 4);
            journal.write(base + 5, b"x").unwrap();
            assert!(journal.read(base + 2, &mut out).unwrap());
            assert_eq!(&out, b"\0a\0x", "what was cut off is gone");
            journal.truncate(0).unwrap();
            assert_eq!((journal.size(), journal.is_hot()), (0, false));
        }
    }

    #[test]
    fn a_journal_is_found_while_it_is_open_and_to_be_played_back() {
        let (journals, path) = (Journals::default(), Path::new("/v.toml-journal"));
        assert!(journals.find(path).is_none());
        let journal = journals.create(path);
        assert!(journals.find(path).is_none(), "empty");
        lock(&journal).write(0, b"magic").unwrap();
        let found = journals.find(path).unwrap();
        assert_eq!(lock(&found).size(), 5);
        lock(&journal).write(0, &[0; 2]).unwrap();
        assert!(journals.find(path).is_none(), "concluded");
        lock(&journal).write(0, b"magic").unwrap();
        drop((journal, found));
        assert!(journals.find(path).is_none(), "closed");
        let journal = journals.create(path);
        lock(&journal).write(0, b"magic").unwrap();
        journals.delete(path);
        assert!(journals.find(path).is_none(), "deleted");
    }

    /// A database whose content a test changes; it lends its present content.
    struct Fake(Mutex<Vec<u8>>);

    impl Lender for Fake {
        fn lends(&self, offset: u64, data: &[u8]) -> bool {
            let at = offset as usize;
            lock(&self.0).get(at..at + data.len()) == Some(data)
        }

        fn read_committed(&self, pages: &[PageNo]) -> Result<Vec<PageBuf>> {
            assert!(pages.is_sorted() && pages.len() <= 2 * AHEAD_PAGES, "{}", pages.len());
            let content = lock(&self.0);
            let part = |page: &PageNo| {
                let at = (page.0 - 1) as usize * PAGE_BYTES;
                PageBuf::copy_from(&content[at..at + PAGE_BYTES])
            };
            Ok(pages.iter().map(part).collect())
        }
    }

    fn filled(rng: &mut Rng, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| rng.below(256) as u8).collect()
    }

    /// A journal with borrowed pages reads like one without, after any writes to it, and after its database changed.
    #[test]
    fn borrowed_pages_read_as_stored_ones() {
        for (seed, page_bytes) in [(1, 512), (2, 1024), (3, 4096), (4, 8192), (5, 65536)] {
            let mut rng = Rng::split(seed, "journal");
            let fake = Arc::new(Fake(Mutex::new(filled(&mut rng, 80 * page_bytes.max(4096)))));
            let lender: Arc<dyn Lender> = Arc::clone(&fake) as _;
            let (mut journal, mut model) = (Journal::default(), Vec::new());
            journal.set_lender(Arc::downgrade(&lender));
            let mut most = 0;
            for _ in 0..400 {
                let number = 1 + rng.below(79) as usize;
                let mut record = (number as u32).to_be_bytes().to_vec();
                record.extend(&lock(&fake.0)[(number - 1) * page_bytes..][..page_bytes]);
                // Sometimes another page than the committed one, and sometimes over earlier ones.
                record[4] ^= u8::from(rng.below(4) == 0);
                record.extend(filled(&mut rng, 4));
                let past = model.len() as u64 + rng.below(2) * rng.below(700);
                let over = past > 1 && rng.below(20) == 0;
                let at = if over { 1 + rng.below(past - 1) } else { past } as usize;
                model.resize(model.len().max(at + record.len()), 0);
                model[at..at + record.len()].copy_from_slice(&record);
                let (end, tail) = (4 + page_bytes, at + 4 + page_bytes);
                journal.write(at as u64, &record[..4]).unwrap();
                journal.write(at as u64 + 4, &record[4..end]).unwrap();
                journal.write(tail as u64, &record[end..]).unwrap();
                most = most.max(journal.borrowed.pages.len());
                match rng.below(40) {
                    0 => {
                        journal.store_borrowed().unwrap();
                        lock(&fake.0).fill(rng.below(256) as u8);
                    }
                    1 => {
                        let size = rng.below(model.len() as u64 + 1) as usize;
                        model.truncate(size);
                        journal.truncate(size as u64).unwrap();
                    }
                    _ => {}
                }
                let from = rng.below(model.len() as u64 + 1) as usize;
                let mut out = vec![7; (rng.below(3 * page_bytes as u64) as usize).max(1)];
                let whole = journal.read(from as u64, &mut out).unwrap();
                let there = out.len().min(model.len() - from);
                assert_eq!(whole, there == out.len());
                assert!(out[..there] == model[from..from + there], "{page_bytes}");
                assert!(out[there..].iter().all(|byte| *byte == 0));
                assert_eq!(journal.size(), model.len() as u64);
            }
            assert!(most > 5, "{page_bytes}: {most}");
        }
    }

    /// A large journal of borrowed pages stays in memory, and the end of the transaction gives them back.
    #[test]
    fn borrowed_pages_take_no_room_and_end_with_the_transaction() {
        let fake = Arc::new(Fake(Mutex::new(vec![5; 4 * PAGE_BYTES])));
        let lender: Arc<dyn Lender> = Arc::clone(&fake) as _;
        let mut journal = Journal::default();
        journal.set_lender(Arc::downgrade(&lender));
        journal.write(0, b"magic").unwrap();
        for record in 0..3 * MEMORY_BYTES as u64 / PAGE_BYTES as u64 {
            let at = 512 + record * (PAGE_BYTES as u64 + 8);
            journal.write(at, &3_u32.to_be_bytes()).unwrap();
            journal.write(at + 4, &[5; PAGE_BYTES]).unwrap();
            journal.write(at + 4 + PAGE_BYTES as u64, &[1; 4]).unwrap();
        }
        assert!(journal.size() > 3 * MEMORY_BYTES as u64 && !journal.bytes.is_rolled());
        journal.write(0, &[0; 28]).unwrap();
        assert!(journal.borrowed.is_empty() && !journal.is_hot());
        // If the pages cannot be read any more, a read fails, and the journal is not played back.
        journal.write(0, b"magic").unwrap();
        journal.write(512, &3_u32.to_be_bytes()).unwrap();
        journal.write(516, &[5; PAGE_BYTES]).unwrap();
        drop((lender, fake));
        journal.read(516, &mut [0; 4]).unwrap_err();
        assert!(journal.is_hot());
        journal.give_back();
        assert!(!journal.is_hot());
        journal.read(0, &mut [0; 4]).unwrap_err();
    }
}
