//! What is in flight through a [`Buffered`](crate::Buffered) device: which reads may be cached, and
//! which changes leave a content that is known.
//!
//! The order of commands that are in flight together is the device's choice. So what a read brought
//! is cached only where no change of its pages was in flight at any moment of it; and what a write
//! left is known only where no other change of its pages was.
use tantalum_base::{PageNo, PageRange};

/// A command in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A read that brings its pages into the cache.
    Read,
    /// A read that brings none: what it is made of is read by others.
    Watch,
    Change,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    range: PageRange,
    kind: Kind,
    /// A change of one of its pages was in flight together with it.
    disturbed: bool,
}

/// Commands in flight: few at a time, so a list.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    entries: Vec<Entry>,
    tickets: u64,
}

impl InFlight {
    /// Begins a read.
    pub(crate) fn begin_read(&mut self, range: PageRange) -> Ticket {
        self.begin(range, Kind::Read)
    }

    /// Begins a read that only wants to know whether it was disturbed.
    pub(crate) fn begin_watch(&mut self, range: PageRange) -> Ticket {
        self.begin(range, Kind::Watch)
    }

    fn begin(&mut self, range: PageRange, kind: Kind) -> Ticket {
        let disturbed = self.is_changing(range);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.entries.push(Entry { ticket, range, kind, disturbed });
        ticket
    }

    /// Begins a change of all `ranges`.
    pub(crate) fn begin_change(&mut self, ranges: impl Iterator<Item = PageRange>) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let others = self.entries.len();
        for range in ranges {
            let mut disturbed = false;
            for entry in &mut self.entries[..others] {
                if entry.range.overlaps(range) {
                    entry.disturbed = true;
                    disturbed |= entry.kind == Kind::Change;
                }
            }
            self.entries.push(Entry { ticket, range, kind: Kind::Change, disturbed });
        }
        ticket
    }

    /// Ends a command; `each` is told its ranges, and whether a change was in flight together with
    /// it.
    pub(crate) fn end(&mut self, ticket: Ticket, mut each: impl FnMut(PageRange, bool)) {
        self.entries.retain(|entry| {
            if entry.ticket == ticket {
                each(entry.range, entry.disturbed);
            }
            entry.ticket != ticket
        });
    }

    /// Whether a page of `range` is being changed.
    pub(crate) fn is_changing(&self, range: PageRange) -> bool {
        let changes = |entry: &Entry| entry.kind == Kind::Change;
        self.entries.iter().any(|entry| changes(entry) && entry.range.overlaps(range))
    }

    /// Whether a read is in flight that will bring `page` into the cache.
    pub(crate) fn is_coming(&self, page: PageNo) -> bool {
        let brings = |entry: &Entry| entry.kind == Kind::Read && !entry.disturbed;
        self.entries.iter().any(|entry| brings(entry) && entry.range.contains(page))
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
        assert!(commands.is_coming(PageNo(3)));
        let change = commands.begin_change([range(3, 1)].into_iter());
        assert!(!commands.is_coming(PageNo(3)) && commands.is_coming(PageNo(4)));
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
        assert!(!commands.is_coming(PageNo(3)));
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
}
