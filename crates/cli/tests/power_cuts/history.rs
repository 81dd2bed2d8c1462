//! The changes that clients made, and a check whether they explain the pages of a volume after a power cut.
//!
//! Pages are changed in groups, with one change of a group at a time, so the changes of a group have an order. The
//! content of a group shows how many of them were done. The order between groups is that promised in
//! `docs/durability.md`.
use std::fmt::Write as _;
use tantalum_base::{PAGE_BYTES, Rng};

pub const GROUP_PAGES: u64 = 16;
pub const GROUPS: usize = 32;
pub const PAGES: u64 = GROUP_PAGES * GROUPS as u64;

/// The write that a page's content is from; 0 if the page was trimmed or never written.
pub type WriteNo = u64;

/// The content of a page after a write.
pub fn content(page: u64, number: WriteNo) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    if number > 0 {
        Rng::new(number ^ (page << 40)).fill(&mut bytes);
        bytes[..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The writes that the content of `PAGES` pages is from.
///
/// # Errors
/// If a page is torn, or was never written with this content.
pub fn numbers_of(bytes: &[u8]) -> Result<Vec<WriteNo>, String> {
    let numbered = |(page, bytes): (u64, &[u8])| {
        let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        let whole = bytes == content(page, number);
        whole.then_some(number).ok_or_else(|| format!("page {page} holds what was never written"))
    };
    (0..).zip(bytes.chunks(PAGE_BYTES)).map(numbered).collect()
}

/// A point in time: it orders stamps, and has the position of the journal.
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
    /// From this position on, it must be present.
    durable_at: Option<usize>,
    /// From this position on, it must be absent: an opening found it absent.
    gone_at: Option<usize>,
}

/// Whether acknowledged changes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    OnAck,
    OnFlush,
}

/// A change: its group, and its number in the group.
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

    /// Notes that a change is about to be sent; `position` is the journal's present one.
    pub fn issue(&mut self, first: u64, pages: u64, number: WriteNo, position: usize) -> ChangeNo {
        let group = (first / GROUP_PAGES) as usize;
        let issued = Stamp { tick: self.tick(), position };
        let (acknowledged, durable_at, gone_at) = (None, None, None);
        let change = Change { first, pages, number, issued, acknowledged, durable_at, gone_at };
        self.groups[group].push(change);
        (group, self.groups[group].len() - 1)
    }

    /// Notes that its reply has arrived.
    pub fn acknowledge(&mut self, (group, index): ChangeNo, position: usize) {
        let tick = self.tick();
        let durable = self.durability == Durability::OnAck;
        let change = &mut self.groups[group][index];
        change.acknowledged = Some(Stamp { tick, position });
        change.durable_at = durable.then_some(position);
    }

    /// Notes that the reply to a flush that was sent at `tick` has arrived.
    pub fn flushed(&mut self, tick: u64, position: usize) {
        for change in self.groups.iter_mut().flatten() {
            let covered = change.acknowledged.is_some_and(|stamp| stamp.tick < tick);
            if covered && change.gone_at.is_none() {
                change.durable_at.get_or_insert(position);
            }
        }
    }

    /// Number of acknowledged changes.
    pub fn acknowledged(&self) -> usize {
        self.groups.iter().flatten().filter(|change| change.acknowledged.is_some()).count()
    }

    /// Explains the content of an opened volume; from now on, the volume must keep this state.
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

    /// The number of changes of each group that were done, given the content of a volume whose power was cut at
    /// `position`.
    ///
    /// # Errors
    /// Reports the changes that are missing, torn or out of order.
    pub fn explain(&self, found: &[WriteNo], position: usize) -> Result<Vec<usize>, String> {
        let groups: Vec<Vec<&Change>> = self.groups.iter().map(|c| possible(c, position)).collect();
        let explaining: Vec<Vec<usize>> = groups
            .iter()
            .zip(found.chunks(GROUP_PAGES as usize))
            .map(|(changes, found)| counts_that_leave(changes, found))
            .collect();
        // The smallest numbers of changes that explain everything: all changes that must be present, and for each of
        // them all that were acknowledged before it was issued, and so on.
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

/// The changes of a group that may be present at `position`.
fn possible(changes: &[Change], position: usize) -> Vec<&Change> {
    let may_be = |change: &&Change| {
        change.issued.position <= position && change.gone_at.is_none_or(|gone| gone > position)
    };
    changes.iter().filter(may_be).collect()
}

/// The number of changes up to the last one that `holds`.
fn count_to(changes: &[&Change], holds: impl Fn(&Change) -> bool) -> usize {
    changes.iter().rposition(|change| holds(change)).map_or(0, |last| last + 1)
}

/// The numbers of changes after which a group has the content that was found.
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
        // Half of the second change, and the second change before it was issued.
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
