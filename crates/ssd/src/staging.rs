//! Pages behind the pages that hosts see. A transaction that outgrows its memory stages its content
//! here, until the commit remaps its pages to these.
//!
//! They are ordinary pages, so cleaning, checkpoints and recovery need not know of transactions. No
//! host can address them. Content that a crash leaves here is trimmed when the device is started.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};
use tantalum_runtime::sync::Semaphore;

use crate::fault_points::Fault;

/// The staging pages, and which of them are free.
pub(crate) struct Staging {
    range: PageRange,
    /// Free runs without content: first page to length.
    free: RefCell<BTreeMap<u64, u64>>,
    /// Runs that have no owner but are not trimmed yet.
    left: RefCell<Vec<PageRange>>,
    /// Held while a task trims them.
    turn: Semaphore,
}

impl Staging {
    /// The pages of `range`; with `is_used` they may have content.
    pub fn new(range: PageRange, is_used: bool) -> Rc<Self> {
        let staging = Staging {
            range,
            free: RefCell::default(),
            left: RefCell::default(),
            turn: Semaphore::new("pages of ended transactions", 1),
        };
        match is_used {
            true => staging.left.borrow_mut().push(range),
            false => staging.add_free(range),
        }
        Rc::new(staging)
    }

    /// Whether ended transactions left content.
    pub fn is_to_be_cleared(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.range.pages
    }

    /// Allocates the first `pages` free pages.
    ///
    /// # Errors
    /// `OutOfSpace` if there are not enough; then none is allocated.
    pub fn take(self: &Rc<Self>, pages: u64) -> Result<StagedPages> {
        let mut free = self.free.borrow_mut();
        let mut taken = StagedPages { staging: Rc::clone(self), runs: Vec::new() };
        let mut wanted = pages;
        while wanted > 0 {
            let Some((first, length)) = free.pop_first() else { break };
            let part = length.min(wanted);
            taken.runs.push(PageRange::new(PageNo(first), part));
            if part < length {
                free.insert(first + part, length - part);
            }
            wanted -= part;
        }
        drop(free);
        if wanted == 0 {
            if Fault::StagedPagesFree.is_planted() {
                taken.runs.iter().for_each(|run| self.add_free(*run));
            }
            return Ok(taken);
        }
        for run in std::mem::take(&mut taken.runs) {
            self.add_free(run);
        }
        let context = format!("open transactions write more than {} pages together", self.pages());
        Err(Error::new(ErrorKind::OutOfSpace, context))
    }

    /// Trims the content that ended transactions left.
    ///
    /// # Errors
    /// Those of a trim.
    pub async fn clear<D: PageDevice>(self: &Rc<Self>, device: &D) -> Result<()> {
        // A task that arrives while another trims the pages needs them too, so it waits.
        let _turn = self.turn.acquire(1).await;
        loop {
            let Some(run) = self.left.borrow_mut().pop() else { return Ok(()) };
            // If the trim fails or its future is dropped, the run is put back.
            let mut owned = StagedPages { staging: Rc::clone(self), runs: vec![run] };
            device.trim(run).await?;
            owned.runs.clear();
            self.add_free(run);
        }
    }

    /// Adds `run`, which has no content, to the free pages.
    fn add_free(&self, run: PageRange) {
        let mut free = self.free.borrow_mut();
        let (mut first, mut end) = (run.first.0, run.end().0);
        if let Some((before, length)) =
            free.range(..first).next_back().map(|(at, length)| (*at, *length))
            && before + length == first
        {
            free.remove(&before);
            first = before;
        }
        if let Some(length) = free.remove(&end) {
            end += length;
        }
        free.insert(first, end - first);
    }
}

/// Allocated staging pages. Dropping this gives them up.
pub(crate) struct StagedPages {
    staging: Rc<Staging>,
    runs: Vec<PageRange>,
}

impl StagedPages {
    /// The page numbers.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.runs.iter().flat_map(|run| run.iter())
    }
}

impl Drop for StagedPages {
    fn drop(&mut self) {
        let mut left = self.staging.left.borrow_mut();
        for run in self.runs.drain(..) {
            match left.last_mut() {
                Some(last) if last.end() == run.first => last.pages += run.pages,
                _ => left.push(run),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staging(pages: u64) -> Rc<Staging> {
        Staging::new(PageRange::new(PageNo(100), pages), false)
    }

    fn numbers(staged: &StagedPages) -> Vec<u64> {
        staged.iter().map(|page| page.0).collect()
    }

    #[test]
    fn pages_are_taken_from_the_first_on_and_come_back() {
        let staging = staging(10);
        let (one, other) = (staging.take(3).unwrap(), staging.take(4).unwrap());
        assert_eq!(
            (numbers(&one), numbers(&other)),
            (vec![100, 101, 102], vec![103, 104, 105, 106])
        );
        drop(one);
        assert_eq!(staging.take(4).err().map(|error| error.kind()), Some(ErrorKind::OutOfSpace));
        assert_eq!(staging.left.borrow()[..], [PageRange::new(PageNo(100), 3)]);
        staging.left.borrow_mut().clear();
        staging.add_free(PageRange::new(PageNo(100), 3));
        assert_eq!(numbers(&staging.take(5).unwrap()), [100, 101, 102, 107, 108]);
    }

    #[test]
    fn runs_that_meet_become_one() {
        let staging = staging(10);
        let parts: Vec<StagedPages> = (0..5).map(|_| staging.take(2).unwrap()).collect();
        drop(parts);
        staging.left.borrow_mut().clear();
        for at in [104, 100, 108, 102, 106] {
            staging.add_free(PageRange::new(PageNo(at), 2));
        }
        assert_eq!(staging.free.borrow().iter().collect::<Vec<_>>(), [(&100, &10)]);
    }
}
