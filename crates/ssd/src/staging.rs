//! Pages behind those that hosts see, where a transaction that outgrows its memory puts what it wrote until the commit
//! remaps its pages to it.
//!
//! They are pages like others, so that cleaning, checkpoints and recovery know nothing of transactions. Nobody can name
//! them from outside. What a crash leaves there is given up when the device is started.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, PageRange, Result};
use tantalum_runtime::sync::Semaphore;

use crate::fault_points::Fault;

/// The pages, and who has which.
pub(crate) struct Staging {
    range: PageRange,
    /// Runs that hold nothing, by their first pages.
    free: RefCell<BTreeMap<u64, u64>>,
    /// Runs of nobody that are not trimmed yet.
    left: RefCell<Vec<PageRange>>,
    /// Taken by who trims them.
    turn: Semaphore,
}

impl Staging {
    /// Those of `range`; `is_used` where they may hold something.
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

    /// Whether ended transactions left something.
    pub fn is_to_be_cleared(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.range.pages
    }

    /// Takes so many pages, the first ones that are free.
    ///
    /// # Errors
    /// `OutOfSpace` where they are not there; none is taken then.
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

    /// Trims what ended transactions left.
    ///
    /// # Errors
    /// Those of a trim.
    pub async fn clear<D: PageDevice>(self: &Rc<Self>, device: &D) -> Result<()> {
        // Whoever comes while somebody else trims them needs them too.
        let _turn = self.turn.acquire(1).await;
        loop {
            let Some(run) = self.left.borrow_mut().pop() else { return Ok(()) };
            // They are left again where this fails, or is given up.
            let mut owned = StagedPages { staging: Rc::clone(self), runs: vec![run] };
            device.trim(run).await?;
            owned.runs.clear();
            self.add_free(run);
        }
    }

    /// Adds `run`, which holds nothing, to what is free.
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

/// Pages that somebody has; they are given up when this is dropped.
pub(crate) struct StagedPages {
    staging: Rc<Staging>,
    runs: Vec<PageRange>,
}

impl StagedPages {
    /// Their numbers.
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
