//! The changes that clients made during several kills of their server: the expected content of its volume, and the
//! older states that a home may have if its flash is lost.
use super::kill_load::Change;

/// All changes that took place; those of a page are in their order.
pub struct History {
    changes: Vec<Change>,
    /// The number of the last change of each page.
    expected: Vec<u64>,
}

/// The state of a change in an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Unknown,
    In,
    Missing,
}

/// The moment of an image.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Number of changes that it contains.
    pub seen: usize,
    /// Number of changes that it lacks.
    pub missing: usize,
}

impl History {
    /// The history of a volume of zeros.
    pub fn new(pages: u64) -> History {
        History { changes: Vec::new(), expected: vec![0; pages as usize] }
    }

    /// The expected content of each page, as numbers of changes.
    pub fn expected(&self) -> &[u64] {
        &self.expected
    }

    /// Adds the changes of one connection until its server was killed, at the moment `now`. For unacknowledged changes,
    /// `found` shows whether they were done; a half-done change is not added, and is detected later.
    pub fn settle(&mut self, changes: Vec<Change>, now: u64, mut found: impl FnMut(u64) -> u64) {
        for mut change in changes {
            if change.acknowledged.is_none() {
                if !change.pages().all(|page| found(page) == change.number) {
                    continue;
                }
                change.acknowledged = Some(now);
            }
            for page in change.pages() {
                self.expected[page as usize] = change.number;
            }
            self.changes.push(change);
        }
    }

    /// Checks that an image with the content `found` is the volume's content at one moment: every change is present
    /// completely or not at all, and with it all changes that were acknowledged before it was sent.
    pub fn moment(&self, found: &[u64]) -> Result<Moment, String> {
        let mut seen = vec![Seen::Unknown; self.changes.len()];
        let by_page = self.by_page();
        for (page, changes) in by_page.iter().enumerate() {
            // Zeros may be from any trim, or from before the first change.
            if found[page] == 0 && changes.iter().any(|at| self.changes[*at].number == 0) {
                continue;
            }
            let last = changes.iter().position(|at| self.changes[*at].number == found[page]);
            if last.is_none() && found[page] != 0 {
                return Err(format!("page {page} holds {:#x}, which was not done", found[page]));
            }
            let done = last.map_or(0, |last| last + 1);
            for (index, at) in changes.iter().enumerate() {
                let now = if index < done { Seen::In } else { Seen::Missing };
                if seen[*at] != Seen::Unknown && seen[*at] != now {
                    return Err(format!("half of {:?} is there: page {page}", self.changes[*at]));
                }
                seen[*at] = now;
            }
        }
        self.check_zeros(found, &by_page, &seen)?;
        self.check_order(&seen)?;
        let count = |what: Seen| seen.iter().filter(|seen| **seen == what).count();
        Ok(Moment { seen: count(Seen::In), missing: count(Seen::Missing) })
    }

    fn by_page(&self) -> Vec<Vec<usize>> {
        let mut by_page = vec![Vec::new(); self.expected.len()];
        for (at, change) in self.changes.iter().enumerate() {
            change.pages().for_each(|page| by_page[page as usize].push(at));
        }
        by_page
    }

    /// Checks pages of zeros: some trim, or the initial state, must agree with the other pages.
    fn check_zeros(
        &self,
        found: &[u64],
        by_page: &[Vec<usize>],
        seen: &[Seen],
    ) -> Result<(), String> {
        for (page, changes) in by_page.iter().enumerate().filter(|(page, _)| found[*page] == 0) {
            let fits = |done: &usize| {
                let is_zero = *done == 0 || self.changes[changes[done - 1]].number == 0;
                let (before, after) = changes.split_at(*done);
                is_zero
                    && before.iter().all(|at| seen[*at] != Seen::Missing)
                    && after.iter().all(|at| seen[*at] != Seen::In)
            };
            if !(0..=changes.len()).any(|done| fits(&done)) {
                return Err(format!(
                    "page {page} holds zeros between what is there and what is not"
                ));
            }
        }
        Ok(())
    }

    /// Checks that no change is present that was sent after the acknowledgement of a missing change.
    fn check_order(&self, seen: &[Seen]) -> Result<(), String> {
        let of = |what: Seen| {
            let changes = self.changes.iter().zip(seen);
            changes.filter(move |(_, seen)| **seen == what).map(|(change, _)| change)
        };
        let acknowledged = |change: &&Change| change.acknowledged.unwrap_or(u64::MAX);
        let first_missing = of(Seen::Missing).min_by_key(acknowledged);
        let last_seen = of(Seen::In).max_by_key(|change| change.issued);
        match (first_missing, last_seen) {
            (Some(missing), Some(last)) if acknowledged(&missing) < last.issued => {
                Err(format!("{missing:?} is missing, and {last:?} is there"))
            }
            _ => Ok(()),
        }
    }
}
