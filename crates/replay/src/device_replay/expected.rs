//! The expected content of each page of a device, and the requests that are using it.
use tantalum_base::{Error, ErrorKind, PageNo, PageRange, Payload, Result, Stamp};

/// In `users`: one writer. Lower numbers: that many readers.
const WRITER: u16 = u16::MAX;

/// Contents, by the number of the write that made them; 0 is a page that reads as zeros.
///
/// Overlapping requests may be served in any order, so clients take turns on a page: many readers
/// or one writer. Then every read has exactly one right answer.
pub struct Expected {
    counts: Vec<u64>,
    users: Vec<u16>,
    writes: u64,
}

impl Expected {
    /// A device of `pages` unwritten pages.
    pub fn new(pages: u64) -> Self {
        Expected { counts: vec![0; pages as usize], users: vec![0; pages as usize], writes: 0 }
    }

    /// Reserves the range for reading or writing; false if others are using it.
    pub fn enter(&mut self, range: PageRange, write: bool) -> bool {
        let users = &mut self.users[indexes(range)];
        let limit = if write { 0 } else { WRITER - 2 };
        if users.iter().any(|user| *user > limit) {
            return false;
        }
        users.iter_mut().for_each(|user| if write { *user = WRITER } else { *user += 1 });
        true
    }

    /// Releases the range.
    pub fn leave(&mut self, range: PageRange, write: bool) {
        let users = &mut self.users[indexes(range)];
        users.iter_mut().for_each(|user| if write { *user = 0 } else { *user -= 1 });
    }

    /// New contents for the range, one after the other.
    pub fn write(&mut self, range: PageRange, contents: &mut Vec<Stamp>) {
        contents.clear();
        contents.extend(range.iter().map(|page| self.write_one(page)));
    }

    /// A new content for `page`.
    pub fn write_one(&mut self, page: PageNo) -> Stamp {
        self.writes += 1;
        self.counts[page.index()] = self.writes;
        Stamp::new(page, self.writes)
    }

    /// From now on the range is expected to read as zeros.
    pub fn trim(&mut self, range: PageRange) {
        self.counts[indexes(range)].fill(0);
    }

    /// Compares the pages read from `first` on.
    ///
    /// # Errors
    /// `Corrupt` with the page, its expected content and the content found.
    pub fn check(&self, first: PageNo, found: &[Stamp]) -> Result<()> {
        for (page, found) in (first.0..).map(PageNo).zip(found) {
            let count = self.counts[page.index()];
            let right = if count == 0 { Stamp::zero() } else { Stamp::new(page, count) };
            if *found != right {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!("page {page} reads as {found:?}, but {right:?} was written"),
                ));
            }
        }
        Ok(())
    }
}

fn indexes(range: PageRange) -> std::ops::Range<usize> {
    range.first.index()..range.first.index() + range.pages as usize
}
