//! What clients did, and whether the pages that a volume holds after a power cut can be explained
//! by it.
//!
//! Pages are changed by groups, one change of a group at a time, so the changes of a group have an
//! order. What a group holds tells how many of them were done; what holds between groups is what
//! `docs/durability.md` says of order.
use std::fmt::Write as _;
use tantalum_base::{PAGE_BYTES, Rng};

pub const GROUP_PAGES: u64 = 16;
pub const GROUPS: usize = 32;
pub const PAGES: u64 = GROUP_PAGES * GROUPS as u64;

/// The write that a page's content is from; 0 where the page was trimmed or never written.
pub type WriteNo = u64;

/// What a page holds after a write.
pub fn content(page: u64, number: WriteNo) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    if number > 0 {
        Rng::new(number ^ (page << 40)).fill(&mut bytes);
        bytes[..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The writes that `PAGES` pages are from.
///
/// # Errors
/// Where a page is not whole or was never written so.
pub fn numbers_of(bytes: &[u8]) -> Result<Vec<WriteNo>, String> {
    let numbered = |(page, bytes): (u64, &[u8])| {
        let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        let whole = bytes == content(page, number);
        whole.then_some(number).ok_or_else(|| format!("page {page} holds what was never written"))
    };
    (0..).zip(bytes.chunks(PAGE_BYTES)).map(numbered).collect()
}

/// A time: which of two stamps came first, and where the journal stood.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    tick: u64,
    position: usize,
}

/// A write of a few pages of one group, or (number 0) a trim.
#[derive(Debug)]
struct Change {
    first: u64,
    pages: u64,
    number: WriteNo,
    issued: Stamp,
    acknowledged: Option<Stamp>,
    /// From this position on it must be there.
    durable_at: Option<usize>,
    /// From this position on it must not be there: an opening found that it was not.
    gone_at: Option<usize>,
}

/// Whether what was acknowledged survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    OnAck,
    OnFlush,
}

/// A change, by its group and its number in it.
pub type ChangeNo = (usize, usize);

pub struct History {
    durability: Durability,
    groups: Vec<Vec<Change>>,
    ticks: u64,
}

impl History {
    pub fn new(durability: Durability) -> Self {
        History { durability, groups: (0..GROUPS).map(|_| Vec::new()).collect(), ticks: 0 }
    }

    pub fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// A change is about to be sent; `position` is that of the journal now.
    pub fn issue(&mut self, first: u64, pages: u64, number: WriteNo, position: usize) -> ChangeNo {
        let group = (first / GROUP_PAGES) as usize;
        let issued = Stamp { tick: self.tick(), position };
        let (acknowledged, durable_at, gone_at) = (None, None, None);
        let change = Change { first, pages, number, issued, acknowledged, durable_at, gone_at };
        self.groups[group].push(change);
        (group, self.groups[group].len() - 1)
    }

    /// Its reply has arrived.
    pub fn acknowledge(&mut self, (group, index): ChangeNo, position: usize) {
        let tick = self.tick();
        let durable = self.durability == Durability::OnAck;
        let change = &mut self.groups[group][index];
        change.acknowledged = Some(Stamp { tick, position });
        change.durable_at = durable.then_some(position);
    }

    /// The reply to a flush that was sent at `tick` has arrived.
    pub fn flushed(&mut self, tick: u64, position: usize) {
        for change in self.groups.iter_mut().flatten() {
            let covered = change.acknowledged.is_some_and(|stamp| stamp.tick < tick);
            if covered && change.gone_at.is_none() {
                change.durable_at.get_or_insert(position);
            }
        }
    }

    /// Changes that were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.groups.iter().flatten().filter(|change| change.acknowledged.is_some()).count()
    }

    /// Explains what an opened volume holds, and holds it to that.
    ///
    /// # Errors
    /// As [`explain`](Self::explain).
    pub fn reopened(&mut self, found: &[WriteNo], position: usize) -> Result<(), String> {
        let done = self.explain(found, position)?;
        for (changes, done) in self.groups.iter_mut().zip(done) {
            let there = changes.iter_mut().filter(|change| change.gone_at.is_none());
            for (index, change) in there.enumerate() {
                if index < done {
                    change.durable_at.get_or_insert(position);
                } else {
                    change.gone_at = Some(position);
                }
            }
        }
        Ok(())
    }

    /// How many changes of each group were done, given what a volume holds whose power was cut at
    /// `position`.
    ///
    /// # Errors
    /// Says what is missing, torn or came before its turn.
    pub fn explain(&self, found: &[WriteNo], position: usize) -> Result<Vec<usize>, String> {
        let groups: Vec<Vec<&Change>> = self.groups.iter().map(|c| possible(c, position)).collect();
        let explaining: Vec<Vec<usize>> = groups
            .iter()
            .zip(found.chunks(GROUP_PAGES as usize))
            .map(|(changes, found)| counts_that_leave(changes, found))
            .collect();
        // The fewest changes that explain everything: what must be there, and with each change all
        // that was acknowledged before it was issued, and so on.
        let mut done: Vec<usize> =
            groups.iter().map(|changes| count_to(changes, |c| c.is_durable(position))).collect();
        loop {
            for group in 0..GROUPS {
                let fitting = explaining[group].iter().find(|count| **count >= done[group]);
                done[group] = *fitting.ok_or_else(|| {
                    unexplained(group, &groups[group], done[group], &explaining[group], found)
                })?;
            }
            let last = |(changes, done): (&Vec<&Change>, &usize)| {
                changes[..*done].last().map_or(0, |change| change.issued.tick)
            };
            let latest = groups.iter().zip(&done).map(last).max().unwrap_or(0);
            let before = |changes: &Vec<&Change>| count_to(changes, |c| c.was_before(latest));
            let needed: Vec<usize> = groups.iter().map(before).collect();
            if needed.iter().zip(&done).all(|(needed, done)| needed <= done) {
                return Ok(done);
            }
            for (done, needed) in done.iter_mut().zip(needed) {
                *done = needed.max(*done);
            }
        }
    }
}

impl Change {
    fn is_durable(&self, position: usize) -> bool {
        self.durable_at.is_some_and(|durable_at| durable_at <= position)
    }

    fn was_before(&self, tick: u64) -> bool {
        self.acknowledged.is_some_and(|stamp| stamp.tick < tick)
    }
}

/// The changes of a group that may be there at `position`.
fn possible(changes: &[Change], position: usize) -> Vec<&Change> {
    let may_be = |change: &&Change| {
        change.issued.position <= position && change.gone_at.is_none_or(|gone| gone > position)
    };
    changes.iter().filter(may_be).collect()
}

/// How many changes there are up to the last one that `holds`.
fn count_to(changes: &[&Change], holds: impl Fn(&Change) -> bool) -> usize {
    changes.iter().rposition(|change| holds(change)).map_or(0, |last| last + 1)
}

/// After how many changes a group holds what was found.
fn counts_that_leave(changes: &[&Change], found: &[WriteNo]) -> Vec<usize> {
    let mut held = vec![0; GROUP_PAGES as usize];
    let mut counts = Vec::new();
    for count in 0..=changes.len() {
        if count > 0 {
            let change = changes[count - 1];
            let at = (change.first % GROUP_PAGES) as usize;
            held[at..at + change.pages as usize].fill(change.number);
        }
        if held == found {
            counts.push(count);
        }
    }
    counts
}

fn unexplained(
    group: usize,
    changes: &[&Change],
    needed: usize,
    explaining: &[usize],
    found: &[WriteNo],
) -> String {
    let pages = group * GROUP_PAGES as usize..(group + 1) * GROUP_PAGES as usize;
    let mut text = match explaining.last() {
        Some(count) => {
            format!("pages {pages:?} are as after {count} changes, {needed} must be there")
        }
        None => {
            format!("pages {pages:?} are as after no number of changes, {needed} must be there")
        }
    };
    let _ = write!(text, "; found {:?}; the last changes:", &found[pages]);
    for (index, change) in changes.iter().enumerate().skip(needed.saturating_sub(2)).take(6) {
        let _ = write!(text, "\n  {}: {change:?}", index + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(changed: &[(usize, WriteNo)]) -> Vec<WriteNo> {
        let mut found = vec![0; PAGES as usize];
        changed.iter().for_each(|(page, number)| found[*page] = *number);
        found
    }

    #[test]
    fn on_ack_what_was_acknowledged_must_be_there_and_the_rest_may_be() {
        let mut history = History::new(Durability::OnAck);
        let first = history.issue(0, 2, 1, 10);
        history.acknowledge(first, 20);
        history.issue(1, 2, 2, 20);
        for position in [10, 19] {
            assert!(history.explain(&found(&[]), position).is_ok());
        }
        assert!(history.explain(&found(&[]), 20).is_err());
        assert!(history.explain(&found(&[(0, 1), (1, 1)]), 20).is_ok());
        assert!(history.explain(&found(&[(0, 1), (1, 2), (2, 2)]), 20).is_ok());
        // Half of the second, and the second before it was issued.
        assert!(history.explain(&found(&[(0, 1), (1, 2)]), 20).is_err());
        assert!(history.explain(&found(&[(0, 1), (1, 2), (2, 2)]), 19).is_err());
    }

    #[test]
    fn on_flush_a_change_is_there_only_with_what_was_acknowledged_before_it() {
        let mut history = History::new(Durability::OnFlush);
        let first = history.issue(0, 1, 1, 10);
        history.acknowledge(first, 20);
        let second = history.issue(16, 1, 2, 20);
        let third = history.issue(32, 1, 3, 20);
        history.acknowledge(second, 30);
        history.acknowledge(third, 30);
        assert!(history.explain(&found(&[]), 40).is_ok());
        assert!(history.explain(&found(&[(0, 1)]), 40).is_ok());
        assert!(history.explain(&found(&[(16, 2)]), 40).is_err());
        assert!(history.explain(&found(&[(0, 1), (32, 3)]), 40).is_ok());
        let tick = history.tick();
        history.flushed(tick, 50);
        assert!(history.explain(&found(&[(0, 1), (32, 3)]), 49).is_ok());
        assert!(history.explain(&found(&[(0, 1), (32, 3)]), 50).is_err());
    }

    #[test]
    fn what_an_opening_found_gone_does_not_come_back() {
        let mut history = History::new(Durability::OnAck);
        history.issue(0, 1, 1, 10);
        history.issue(16, 1, 2, 10);
        history.reopened(&found(&[(0, 1)]), 30).unwrap();
        assert!(history.explain(&found(&[(16, 2)]), 29).is_ok());
        assert!(history.explain(&found(&[(0, 1)]), 30).is_ok());
        assert!(history.explain(&found(&[(0, 1), (16, 2)]), 30).is_err());
        assert!(history.explain(&found(&[]), 30).is_err());
    }
}
