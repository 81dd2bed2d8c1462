//! The commands in flight through a [`Buffered`](crate::Buffered) device. They decide which reads
//! may be cached, and after which writes the content is known.
//!
//! The device chooses the order of commands that are in flight together. So a read is cached only
//! if no change of its pages was in flight at any time during it. The content after a write is
//! known only if no other change of its pages was in flight.
//!
//! A change whose future was dropped may take effect at any time, or not at all, but before any
//! later change of the same pages. So it counts as in flight until such a change has ended.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, PageRange};

use crate::range_index::RangeIndex;

/// Identifies a command in flight: the number of its first range. Later commands have higher ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A read that will cache its pages.
    Read,
    /// A read assembled from other reads: it caches no page itself.
    Watch,
    Change,
}

/// A range of a command.
#[derive(Debug)]
struct Flight {
    ticket: Ticket,
    range: PageRange,
    kind: Kind,
    /// A change of one of its pages was in flight at the same time.
    disturbed: bool,
}

/// Maximum number of ranges of abandoned changes that are kept separately; more are merged into
/// one.
const GIVEN_UP_MAX: usize = 32;

/// The commands in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Ranges by number, in the order in which they began.
    flights: BTreeMap<u64, Flight>,
    places: RangeIndex,
    /// The next range's number.
    next: u64,
    /// Pages that abandoned changes may still change.
    given_up: Vec<(Ticket, PageRange)>,
}

impl InFlight {
    /// Begins a read.
    pub(crate) fn begin_read(&mut self, range: PageRange) -> Ticket {
        self.begin(range, Kind::Read)
    }

    /// Begins a read that only watches for changes of its pages.
    pub(crate) fn begin_watch(&mut self, range: PageRange) -> Ticket {
        self.begin(range, Kind::Watch)
    }

    fn begin(&mut self, range: PageRange, kind: Kind) -> Ticket {
        let disturbed = self.is_changing(range);
        let ticket = Ticket(self.next);
        self.add(Flight { ticket, range, kind, disturbed });
        ticket
    }

    /// Begins a change of all `ranges`.
    pub(crate) fn begin_change(&mut self, ranges: impl Iterator<Item = PageRange>) -> Ticket {
        let ticket = Ticket(self.next);
        for range in ranges {
            let mut disturbed = self.given_up.iter().any(|(_, given_up)| given_up.overlaps(range));
            for number in self.places.near(range) {
                let Some(other) = self.flights.get_mut(&number) else { continue };
                if other.ticket != ticket && other.range.overlaps(range) {
                    other.disturbed = true;
                    disturbed |= other.kind == Kind::Change;
                }
            }
            self.add(Flight { ticket, range, kind: Kind::Change, disturbed });
        }
        // A change of no pages has a number of its own, too.
        self.next = self.next.max(ticket.0 + 1);
        ticket
    }

    fn add(&mut self, flight: Flight) {
        self.places.insert(flight.range, self.next);
        self.flights.insert(self.next, flight);
        self.next += 1;
    }

    /// Ends a command. Calls `each` with each of its ranges, and with whether a change of that
    /// range was in flight.
    pub(crate) fn end(&mut self, ticket: Ticket, mut each: impl FnMut(PageRange, bool)) {
        let mut number = ticket.0;
        while self.flights.get(&number).is_some_and(|flight| flight.ticket == ticket) {
            if let Some(flight) = self.flights.remove(&number) {
                self.places.remove(flight.range, number);
                each(flight.range, flight.disturbed);
            }
            number += 1;
        }
    }

    /// Ends a change that the device has completed: earlier abandoned changes of its pages are
    /// over.
    pub(crate) fn end_done(&mut self, ticket: Ticket, mut each: impl FnMut(PageRange, bool)) {
        if self.given_up.is_empty() {
            return self.end(ticket, each);
        }
        let mut done = Vec::new();
        self.end(ticket, |range, disturbed| {
            done.push(range);
            each(range, disturbed);
        });
        for done in done {
            let given_up = std::mem::take(&mut self.given_up);
            for (earlier, range) in given_up {
                if earlier > ticket || !range.overlaps(done) {
                    self.given_up.push((earlier, range));
                    continue;
                }
                let before =
                    PageRange::new(range.first, done.first.0.saturating_sub(range.first.0));
                let after = PageRange::new(done.end(), range.end().0.saturating_sub(done.end().0));
                let left = [before, after].into_iter().filter(|left| left.pages > 0);
                self.given_up.extend(left.map(|left| (earlier, left)));
            }
        }
        self.limit_given_up();
    }

    /// Abandons a change: whether and when the device does it remains unknown.
    pub(crate) fn give_up(&mut self, ticket: Ticket, mut each: impl FnMut(PageRange)) {
        let mut ranges = Vec::new();
        self.end(ticket, |range, _| ranges.push(range));
        ranges.iter().for_each(|range| each(*range));
        let some = ranges.into_iter().filter(|range| range.pages > 0);
        self.given_up.extend(some.map(|range| (ticket, range)));
        self.limit_given_up();
    }

    fn limit_given_up(&mut self) {
        if self.given_up.len() <= GIVEN_UP_MAX {
            return;
        }
        let ticket = self.given_up.iter().map(|(ticket, _)| *ticket).max();
        let first = self.given_up.iter().map(|(_, range)| range.first).min();
        let end = self.given_up.iter().map(|(_, range)| range.end()).max();
        self.given_up.clear();
        if let (Some(ticket), Some(first), Some(end)) = (ticket, first, end) {
            self.given_up.push((ticket, PageRange::new(first, end.0 - first.0)));
        }
    }

    /// Whether a change of a page of `range` is in flight.
    pub(crate) fn is_changing(&self, range: PageRange) -> bool {
        self.meeting(range).any(|flight| flight.kind == Kind::Change)
            || self.given_up.iter().any(|(_, given_up)| given_up.overlaps(range))
    }

    /// Whether a read is in flight that will cache `page`.
    pub(crate) fn will_be_cached(&self, page: PageNo) -> bool {
        let brings = |flight: &Flight| flight.kind == Kind::Read && !flight.disturbed;
        self.meeting(PageRange::new(page, 1)).any(brings)
    }

    fn meeting(&self, range: PageRange) -> impl Iterator<Item = &Flight> {
        let near = self.places.near(range).filter_map(|number| self.flights.get(&number));
        near.filter(move |flight| flight.range.overlaps(range))
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, pages: u64) -> PageRange {
        PageRange::new(PageNo(first), pages)
    }

    fn end(commands: &mut InFlight, ticket: Ticket) -> Vec<(u64, bool)> {
        let mut ended = Vec::new();
        commands.end(ticket, |range, disturbed| ended.push((range.first.0, disturbed)));
        ended
    }

    #[test]
    fn changes_disturb_what_overlaps_them_before_and_after() {
        let mut commands = InFlight::default();
        let early = commands.begin_read(range(0, 4));
        let other = commands.begin_read(range(4, 4));
        assert!(commands.will_be_cached(PageNo(3)));
        let change = commands.begin_change([range(3, 1)].into_iter());
        assert!(!commands.will_be_cached(PageNo(3)) && commands.will_be_cached(PageNo(4)));
        let late = commands.begin_read(range(2, 2));
        assert_eq!(end(&mut commands, change), [(3, false)]);
        assert_eq!(end(&mut commands, early), [(0, true)]);
        assert_eq!(end(&mut commands, late), [(2, true)]);
        assert_eq!(end(&mut commands, other), [(4, false)]);
        assert!(commands.is_empty());
    }

    #[test]
    fn who_watches_is_disturbed_and_brings_nothing() {
        let mut commands = InFlight::default();
        let watch = commands.begin_watch(range(0, 4));
        assert!(!commands.will_be_cached(PageNo(3)));
        let change = commands.begin_change([range(3, 4)].into_iter());
        assert_eq!(end(&mut commands, change), [(3, false)]);
        assert_eq!(end(&mut commands, watch), [(0, true)]);
    }

    #[test]
    fn changes_disturb_each_other_range_by_range() {
        let mut commands = InFlight::default();
        let one = commands.begin_change([range(0, 2), range(8, 1)].into_iter());
        let two = commands.begin_change([range(1, 2), range(20, 1)].into_iter());
        assert_eq!(end(&mut commands, one), [(0, true), (8, false)]);
        assert!(commands.is_changing(range(20, 5)) && !commands.is_changing(range(8, 1)));
        assert_eq!(end(&mut commands, two), [(1, true), (20, false)]);
    }

    #[test]
    fn what_was_given_up_may_come_until_something_behind_it_was_done() {
        let mut commands = InFlight::default();
        let lost = commands.begin_change([range(0, 8), range(20, 2)].into_iter());
        let beside = commands.begin_change([range(7, 1)].into_iter());
        let mut told = Vec::new();
        commands.give_up(lost, |range| told.push(range.first.0));
        assert_eq!(told, [0, 20]);
        let read = commands.begin_read(range(3, 1));
        assert!(!commands.will_be_cached(PageNo(3)));
        assert_eq!(end(&mut commands, read), [(3, true)]);
        let behind = commands.begin_change([range(2, 4)].into_iter());
        commands.end_done(behind, |_, disturbed| assert!(disturbed));
        assert!(!commands.is_changing(range(2, 4)) && !commands.is_changing(range(8, 12)));
        assert!(commands.is_changing(range(1, 1)) && commands.is_changing(range(6, 1)));
        // A refused change ends no abandoned one.
        let refused = commands.begin_change([range(6, 1)].into_iter());
        assert_eq!(end(&mut commands, refused), [(6, true)]);
        assert!(commands.is_changing(range(6, 1)));
        commands.end_done(beside, |_, _| ());
        assert!(!commands.is_changing(range(7, 1)) && commands.is_changing(range(20, 2)));
        assert!(commands.is_empty(), "nobody waits for what was given up");
    }

    #[test]
    fn what_was_given_up_is_bounded() {
        let mut commands = InFlight::default();
        for page in 0..1000 {
            let lost = commands.begin_change([range(3 * page, 1)].into_iter());
            commands.give_up(lost, |_| ());
            assert!(commands.given_up.len() <= GIVEN_UP_MAX);
            assert!((0..=page).all(|page| commands.is_changing(range(3 * page, 1))));
        }
        let all = commands.begin_change([range(0, 3000)].into_iter());
        commands.end_done(all, |_, _| ());
        assert!(commands.given_up.is_empty());
    }
}
