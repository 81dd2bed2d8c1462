//! Records as stamps: their contents are remembered outside the device.
//!
//! The records of one encoding form a run. Each of its pages is a stamp with the page for which it was encoded and the number of
//! the run. So it differs from every other content, even after a share moved it to another page.
//!
//! For each page the runs that a read may find are remembered: the newest, and older ones that a power cut could bring back,
//! until a flush or a share has made a newer one durable. A run is forgotten once no page can hold it. So the memory is bounded
//! by the content of the device.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{FastMap, PageNo, PageRange, Stamp};

use super::{Codec, PAGE_ROOM, Record, Settled, framed_bytes};

/// Remembers the records that stamps stand for. It belongs to the device's content: keep it over a power cut.
#[derive(Debug)]
pub struct Remembered<T>(RefCell<Memory<T>>);

#[derive(Debug)]
struct Memory<T> {
    last_run: u64,
    runs: FastMap<u64, Run<T>>,
    /// The newest content of each page.
    newest: FastMap<u64, u64>,
    /// Older contents that a page may have, oldest first.
    older: FastMap<u64, Vec<u64>>,
    /// Contents of completed writes and trims that no flush has covered yet.
    unsettled: FastMap<u64, u64>,
}

#[derive(Debug)]
struct Run<T> {
    first: PageNo,
    /// The records with their start and end, in bytes from the start of the run.
    records: Vec<(usize, usize, Rc<T>)>,
    /// Number of entries in the pages' lists that name this run.
    holders: u64,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        let memory = Memory {
            last_run: 0,
            runs: FastMap::default(),
            newest: FastMap::default(),
            older: FastMap::default(),
            unsettled: FastMap::default(),
        };
        Remembered(RefCell::new(memory))
    }
}

impl<T> Remembered<T> {
    /// Number of runs that are remembered.
    pub fn runs(&self) -> usize {
        self.0.borrow().runs.len()
    }
}

impl<T> Memory<T> {
    /// From now on `page` may hold `run`, besides its possible older contents.
    fn add(&mut self, page: PageNo, run: u64) {
        if let Some(run) = self.runs.get_mut(&run) {
            run.holders += 1;
        }
        if let Some(before) = self.newest.insert(page.0, run) {
            self.older.entry(page.0).or_default().push(before);
        }
    }

    /// The contents of `page` from before `run` are gone for good.
    fn settle(&mut self, page: PageNo, run: u64) {
        if let Some(mut older) = self.older.remove(&page.0) {
            let newest = self.newest.get(&page.0) == Some(&run);
            let gone = older.iter().position(|at| *at == run);
            let gone = gone.unwrap_or(if newest { older.len() } else { 0 });
            for run in older.drain(..gone) {
                self.release(run);
            }
            if !older.is_empty() {
                self.older.insert(page.0, older);
            }
        }
        // A trimmed page needs no entry any more.
        if !self.older.contains_key(&page.0)
            && self.newest.get(&page.0) == Some(&run)
            && !self.runs.contains_key(&run)
        {
            self.newest.remove(&page.0);
        }
    }

    fn release(&mut self, number: u64) {
        if let Some(run) = self.runs.get_mut(&number) {
            run.holders -= 1;
            if run.holders == 0 {
                self.runs.remove(&number);
            }
        }
    }
}

impl<T: Record> Codec for Remembered<T> {
    type Page = Stamp;
    type Record = T;

    fn encode(&self, first: PageNo, records: &[Rc<T>]) -> Vec<Stamp> {
        let mut memory = self.0.borrow_mut();
        memory.last_run += 1;
        let number = memory.last_run;
        let mut bytes = 0;
        let mut placed = Vec::with_capacity(records.len());
        for record in records {
            let end = bytes + framed_bytes(&**record);
            placed.push((bytes, end, Rc::clone(record)));
            bytes = end;
        }
        let pages = PageRange::new(first, bytes.div_ceil(PAGE_ROOM) as u64);
        memory.runs.insert(number, Run { first, records: placed, holders: 0 });
        pages.iter().for_each(|page| memory.add(page, number));
        pages.iter().map(|page| Stamp::new(page, number)).collect()
    }

    fn decode(&self, offset: u16, pages: &[Stamp]) -> Option<Rc<T>> {
        let memory = self.0.borrow();
        let stamp = pages.first()?;
        let page = u64::from(stamp.page_plus_one.checked_sub(1)?);
        let run = memory.runs.get(&stamp.count)?;
        let begin = page.checked_sub(run.first.0)? as usize * PAGE_ROOM + usize::from(offset);
        let found = run.records.binary_search_by_key(&begin, |(offset, ..)| *offset).ok()?;
        let (_, end, record) = &run.records[found];
        let bytes = usize::from(offset) + end - begin;
        let taken = pages.get(..bytes.div_ceil(PAGE_ROOM))?;
        let expected = (page..).map(|page| Stamp::new(PageNo(page), stamp.count));
        taken.iter().zip(expected).all(|(page, expected)| *page == expected).then(|| record.clone())
    }

    fn written(&self, range: PageRange) {
        let memory = &mut *self.0.borrow_mut();
        let held = range.iter().filter_map(|page| Some((page.0, *memory.newest.get(&page.0)?)));
        memory.unsettled.extend(held);
    }

    /// Each trim has a number of its own, like a run, but no records.
    fn trimming(&self, range: PageRange) {
        let memory = &mut *self.0.borrow_mut();
        memory.last_run += 1;
        let blank = memory.last_run;
        for page in
            range.iter().filter(|page| memory.newest.contains_key(&page.0)).collect::<Vec<_>>()
        {
            memory.add(page, blank);
        }
    }

    fn sharing(&self, pairs: &[(PageNo, PageNo)]) -> Settled {
        let memory = &mut *self.0.borrow_mut();
        // This makes all earlier completed writes durable.
        let written = std::mem::take(&mut memory.unsettled);
        let mut settled: Vec<_> = Vec::with_capacity(written.len() + pairs.len());
        for (left, right) in pairs {
            let mut given = memory.older.get(&right.0).cloned().unwrap_or_default();
            if written.contains_key(&right.0) {
                given.clear();
            }
            given.extend(memory.newest.get(&right.0));
            settled.extend(given.first().map(|first| (*left, *first)));
            given.into_iter().for_each(|run| memory.add(*left, run));
        }
        settled.extend(written.into_iter().map(|(page, run)| (PageNo(page), run)));
        Settled(settled)
    }

    fn flushing(&self) -> Settled {
        let written = std::mem::take(&mut self.0.borrow_mut().unsettled);
        Settled(written.into_iter().map(|(page, run)| (PageNo(page), run)).collect())
    }

    fn settle(&self, settled: Settled) {
        let memory = &mut *self.0.borrow_mut();
        settled.0.into_iter().for_each(|(page, run)| memory.settle(page, run));
    }

    /// Contents that were not flushed may be there or not, until the page is written again.
    fn reopened(&self) {
        self.0.borrow_mut().unsettled.clear();
    }
}
