//! Prediction of scans of B-trees. If the rows of an index were inserted in random order, its leaves are scattered over the
//! file, so the number of one leaf does not predict the next. The inner page above them does, because it lists its children in
//! the order of a scan (SQLite's file format, section 1.6, "B-tree Pages").
//!
//! All of this is a guess. A wrong guess costs unnecessary reads, and nothing else.
use std::collections::VecDeque;
use tantalum_base::{PAGE_BYTES, PageBuf, PageNo};

/// Number of pages above leaves that are remembered: parallel scans of some tables and indexes need this many.
const INNER_MAX: usize = 32;

/// Number of children that a scan may skip because they are cached, and still count as the same scan.
const PASSED_MAX: usize = 16;

/// The page types of an inner page of an index, and of a table.
const INNER: [u8; 2] = [0x02, 0x05];

/// The page of the database whose first 100 bytes are the file's header.
const FIRST: PageNo = PageNo(1);
const FILE_HEADER_BYTES: usize = 100;

/// An inner page, which has children.
struct Inner {
    page: PageNo,
    content: PageBuf,
    /// The index of the child that a scan will reach next.
    next: Option<usize>,
    /// Number of pages in the scan's last read.
    pages: usize,
}

/// The scans of one database.
#[derive(Default)]
pub(crate) struct TreeScans {
    /// Ordered by use: the most recent one is at the end.
    inner: VecDeque<Inner>,
    /// Whether a page of the database is as large as a page of the volume.
    same_pages: bool,
    /// The number of pages in the last read of the latest scan that reached the end of its inner page.
    ended: usize,
}

impl TreeScans {
    /// Records that SQLite has read or written `page`.
    pub(crate) fn notice(&mut self, page: PageNo, content: &PageBuf) {
        if page == FIRST {
            let page_bytes = u16::from_be_bytes([content[16], content[17]]);
            self.same_pages = usize::from(page_bytes) == PAGE_BYTES;
        }
        if !INNER.contains(&content[header_at(page)]) || !self.same_pages {
            return;
        }
        let known = self.inner.iter().position(|inner| inner.page == page);
        let known = known.and_then(|at| self.inner.remove(at));
        let (next, pages) = known.map_or((None, 1), |inner| (inner.next, inner.pages));
        if self.inner.len() >= INNER_MAX {
            self.inner.pop_front();
        }
        self.inner.push_back(Inner { page, content: content.clone(), next, pages });
    }

    /// The pages that a scan will reach after `page`, which is missing: more and more while it continues, at most `pages_max`
    /// including this one. Empty if no known inner page lists `page`.
    pub(crate) fn after(&mut self, page: PageNo, pages_max: usize) -> Vec<PageNo> {
        let found = self.inner.iter_mut().rev().find_map(|inner| {
            let children = children(inner.page, &inner.content);
            let at = children.iter().position(|child| *child == page)?;
            Some((inner, children, at))
        });
        let Some((inner, children, at)) = found else { return Vec::new() };
        let goes_on = |next: usize| (next..=next + PASSED_MAX).contains(&at);
        let wanted = match inner.next {
            Some(next) if goes_on(next) => 2 * inner.pages,
            None if at == 0 => std::mem::take(&mut self.ended),
            _ => 1,
        };
        let end = children.len().min(at + wanted.clamp(1, pages_max.max(1)));
        (inner.next, inner.pages) = (Some(end), wanted.clamp(1, pages_max.max(1)));
        if end == children.len() {
            self.ended = inner.pages;
        }
        children[at + 1..end].to_vec()
    }
}

/// Offset of the B-tree header in `page`.
fn header_at(page: PageNo) -> usize {
    if page == FIRST { FILE_HEADER_BYTES } else { 0 }
}

/// The children of an inner page in the order of their keys; empty if it is damaged.
fn children(page: PageNo, content: &PageBuf) -> Vec<PageNo> {
    let at = header_at(page);
    let cells = usize::from(u16::from_be_bytes([content[at + 3], content[at + 4]]));
    let pointers = content[at + 12..].as_chunks::<2>().0;
    let left = pointers.iter().take(cells).map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
    let children = left.chain([at + 8]).map(|at| content.get(at..)?.first_chunk::<4>());
    let number = |bytes: &[u8; 4]| PageNo(u64::from(u32::from_be_bytes(*bytes)));
    children.map(|child| child.map(number)).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An inner page of an index with these children; the last one is the right-most pointer.
    fn inner(at: usize, children: &[u32]) -> PageBuf {
        let mut bytes = [0; PAGE_BYTES];
        bytes[16..18].copy_from_slice(&4096u16.to_be_bytes());
        bytes[at] = 0x02;
        let (last, left) = children.split_last().unwrap();
        bytes[at + 3..at + 5].copy_from_slice(&(left.len() as u16).to_be_bytes());
        bytes[at + 8..at + 12].copy_from_slice(&last.to_be_bytes());
        for (number, child) in left.iter().enumerate() {
            let cell = PAGE_BYTES - 8 * (number + 1);
            let pointer = at + 12 + 2 * number;
            bytes[pointer..pointer + 2].copy_from_slice(&(cell as u16).to_be_bytes());
            bytes[cell..cell + 4].copy_from_slice(&child.to_be_bytes());
        }
        PageBuf::copy_from(&bytes)
    }

    fn scans() -> TreeScans {
        let mut scans = TreeScans::default();
        scans.notice(FIRST, &inner(0, &[0]));
        scans
    }

    fn numbers(pages: Vec<PageNo>) -> Vec<u64> {
        pages.into_iter().map(|page| page.0).collect()
    }

    #[test]
    fn a_scan_reads_more_and_more_of_what_comes_next_wherever_it_lies() {
        let mut scans = scans();
        scans.notice(PageNo(9), &inner(0, &[70, 12, 55, 31, 90, 17, 44, 23]));
        assert_eq!(numbers(scans.after(PageNo(70), 100)), []);
        assert_eq!(numbers(scans.after(PageNo(12), 100)), [55]);
        assert_eq!(numbers(scans.after(PageNo(31), 100)), [90, 17, 44]);
        // The next inner page continues where this one ended.
        assert_eq!(numbers(scans.after(PageNo(23), 100)), []);
        let next: Vec<u32> = (0..40).map(|child| 1000 - 3 * child).collect();
        scans.notice(PageNo(8), &inner(0, &next));
        let ahead = scans.after(PageNo(1000), 100);
        assert_eq!(numbers(ahead), (1..8).map(|child| 1000 - 3 * child).collect::<Vec<_>>());
        assert_eq!(scans.after(PageNo(1000 - 24), 10).len(), 9, "no more than there is room for");
    }

    #[test]
    fn reads_in_no_order_bring_nothing_else() {
        let mut scans = scans();
        let children: Vec<u32> = (100..200).collect();
        scans.notice(PageNo(9), &inner(0, &children));
        for page in [150, 120, 190, 105, 5000] {
            assert_eq!(scans.after(PageNo(page), 100), [], "{page}");
        }
    }

    #[test]
    fn pages_that_are_damaged_or_of_another_size_are_no_guide() {
        let mut scans = scans();
        let mut bytes = *inner(0, &[70, 12, 55]);
        bytes[12..14].copy_from_slice(&4095u16.to_be_bytes());
        scans.notice(PageNo(9), &PageBuf::copy_from(&bytes));
        assert_eq!(scans.after(PageNo(12), 100), []);
        bytes[3..5].copy_from_slice(&u16::MAX.to_be_bytes());
        scans.notice(PageNo(9), &PageBuf::copy_from(&bytes));
        assert_eq!(scans.after(PageNo(12), 100), []);

        // The root may be the first page, behind the file header.
        let mut other = TreeScans::default();
        other.notice(FIRST, &inner(FILE_HEADER_BYTES, &[70, 12, 55]));
        other.after(PageNo(70), 100);
        assert_eq!(numbers(other.after(PageNo(12), 100)), [55]);
        let mut small = *inner(FILE_HEADER_BYTES, &[70, 12, 55]);
        small[16..18].copy_from_slice(&1024u16.to_be_bytes());
        let mut other = TreeScans::default();
        other.notice(FIRST, &PageBuf::copy_from(&small));
        other.after(PageNo(70), 100);
        assert_eq!(other.after(PageNo(12), 100), []);
    }
}
