//! Records laid out in consecutive pages, before they are written.
use std::rc::Rc;
use tantalum_base::{PageNo, PageRange};

use super::{PAGE_ROOM, Place, Record, framed_bytes};

/// Records with their places, from a first page on, in ascending order.
pub struct Draft<T> {
    next: PageNo,
    runs: Vec<(PageNo, Vec<Rc<T>>)>,
}

impl<T: Record> Draft<T> {
    /// An empty draft; the next record begins at `first`.
    pub fn new(first: PageNo) -> Self {
        Draft { next: first, runs: Vec::new() }
    }

    /// The page after the last one.
    pub fn next(&self) -> PageNo {
        self.next
    }

    /// Places a record at the beginning of a page; it has its pages to itself.
    pub fn align(&mut self, record: Rc<T>) -> Place {
        let pages = framed_bytes(&*record).div_ceil(PAGE_ROOM) as u64;
        let place = Place::of_pages(self.next, pages);
        self.runs.push((self.next, vec![record]));
        self.next = place.range().end();
        place
    }

    /// Places records one after the other without gaps, the first one at the beginning of a page.
    pub fn pack(&mut self, records: Vec<Rc<T>>) -> Vec<Place> {
        let mut at = 0;
        let mut places = Vec::with_capacity(records.len());
        for record in &records {
            let bytes = framed_bytes(&**record);
            let page = PageNo(self.next.0 + (at / PAGE_ROOM) as u64);
            places.push(Place { page, offset: (at % PAGE_ROOM) as u16, bytes: bytes as u32 });
            at += bytes;
        }
        if !records.is_empty() {
            self.runs.push((self.next, records));
        }
        self.next.0 += at.div_ceil(PAGE_ROOM) as u64;
        places
    }

    /// Leaves out pages whose content is written by other means.
    pub fn skip(&mut self, pages: u64) -> PageRange {
        let range = PageRange::new(self.next, pages);
        self.next = range.end();
        range
    }

    pub(super) fn runs(&self) -> &[(PageNo, Vec<Rc<T>>)] {
        &self.runs
    }
}
