//! What clients did through several kills of their server: what its volume holds, and which older
//! states a home may be in whose flash is lost.
use super::kill_load::Change;

/// All changes that took place, those of a page in their order.
pub struct History {
    changes: Vec<Change>,
    /// The number of the last change of each page.
    expected: Vec<u64>,
}

/// What is known of a change from an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Unknown,
    In,
    Missing,
}

/// How far an image is.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Changes that it has.
    pub seen: usize,
    /// Changes that it is behind.
    pub missing: usize,
}

impl History {
    /// Of a volume of zeros.
    pub fn new(pages: u64) -> History {
        History { changes: Vec::new(), expected: vec![0; pages as usize] }
    }

    /// What each page holds, by the numbers of changes.
    pub fn expected(&self) -> &[u64] {
        &self.expected
    }

    /// Takes what one connection did until its server was killed, at the moment `now`. Of what was not
    /// acknowledged `found` says whether it was done; half of it does not count, and shows later.
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

    /// Checks that an image, which holds `found`, is what the volume held at one moment: every
    /// change is there whole or not at all, and with it all that was acknowledged before it was sent.
    pub fn moment(&self, found: &[u64]) -> Result<Moment, String> {
        let mut seen = vec![Seen::Unknown; self.changes.len()];
        let by_page = self.by_page();
        for (page, changes) in by_page.iter().enumerate() {
            // Zeros are from any trim, or from before the first change.
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

    /// Pages of zeros: some trim, or the beginning, fits what the other pages say.
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

    /// Nothing is there that was sent after something was acknowledged that is missing.
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
