//! Whether the content that remains of a device without its medium is its state at one moment, and at the right one.
use std::collections::BTreeSet;
use tantalum_base::{PageNo, Payload};

use super::command::{Contents, Effect};
use super::history::{History, Issued};
use super::order::{Answer, Orders};
use super::subject::Alone;
use super::verify::Sure;

/// A time of commands; the clock restarts each time that the device is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) checks: u64,
    pub(super) time: u64,
}

/// Number of bits of a time.
const TIME_BITS: u32 = 32;

impl Moment {
    /// As one number, in the same order.
    pub(super) fn number(self) -> u64 {
        self.checks << TIME_BITS | self.time
    }

    fn of(number: u64) -> Self {
        Moment { checks: number >> TIME_BITS, time: number & ((1 << TIME_BITS) - 1) }
    }
}

/// The commands before the last check, back to the oldest state that may remain without the medium.
#[derive(Default)]
pub(super) struct Past {
    /// The histories between checks, the newest last.
    stretches: Vec<Stretch>,
    /// Number of checks before the first of them.
    dropped: u64,
    /// The newest moment that was seen.
    newest: Moment,
    /// Pages of which the medium lost a content before it was written home: their remaining content may be older.
    lost: BTreeSet<PageNo>,
}

struct Stretch {
    before: Contents,
    entries: Vec<Issued>,
}

impl Past {
    /// The device was checked: `before` is the content before this part of the history, `entries` are its commands.
    pub(super) fn keep(&mut self, before: Contents, entries: Vec<Issued>) {
        self.stretches.push(Stretch { before, entries });
    }

    fn forget_before(&mut self, checks: u64) {
        let count = (checks - self.dropped).min(self.stretches.len() as u64);
        self.stretches.drain(..count as usize);
        self.dropped += count;
    }
}

/// Compares the remaining content with `history`. Commands acknowledged by its moment are there, some of those issued by
/// then may be, and nothing later. The moment is not older than the previous one. If `all` is promised, nothing was
/// acknowledged after that moment. Pages of which the medium `lost` a content are not checked. Also returns whether the
/// moment is newer than the previous one.
pub(super) fn check<P: Payload>(
    alone: &Alone<P>,
    history: &mut History<P>,
    lost: &[u64],
    all: bool,
    states_max: usize,
) -> Result<(Sure, bool), String> {
    let Some(mut past) = history.past.take() else { return Ok((Sure::Right, false)) };
    let mut seen = Vec::with_capacity(alone.pages.len());
    for (page, held) in (0..).map(PageNo).zip(&alone.pages) {
        let content = history.identify(held);
        let content = content.ok_or_else(|| format!("page {page} holds what nobody wrote"))?;
        if lost.iter().any(|number| history.may_hold(page, *number)) {
            past.lost.insert(page);
        }
        seen.push((!past.lost.contains(&page)).then_some(content));
    }
    let (moment, now) = (Moment::of(alone.moment), history.checks());
    let newest = past.newest;
    if moment < newest || moment.checks > now {
        return Err(format!("it is of {moment:?}, and was of {newest:?} before"));
    }
    past.newest = moment;
    past.forget_before(moment.checks);
    let (before, entries) = match past.stretches.first() {
        Some(stretch) => (&stretch.before, &stretch.entries),
        None => (&history.baseline, &history.entries),
    };
    // Entries are in the order in which they were issued.
    let issued = entries.partition_point(|entry| entry.issued <= moment.time);
    let must = |entry: &Issued| match entry.acked {
        Some(acked) => acked <= moment.time || (all && writes(entry)),
        None => false,
    };
    let later = past.stretches.iter().skip(1).flat_map(|stretch| &stretch.entries);
    let later = later.chain(past.stretches.first().map_or(&[][..], |_| &history.entries));
    let mut late = entries[issued..].iter().chain(later);
    if all && let Some(late) = late.find(|entry| entry.acked.is_some() && writes(entry)) {
        return Err(format!("{:?} was acknowledged, and is not there", late.label));
    }
    let orders = Orders::new(before, &entries[..issued], must, seen);
    let sure = match orders.search(states_max) {
        Answer::Explained => Sure::Right,
        Answer::Undecided => Sure::Undecided,
        Answer::Impossible(why) => return Err(format!("as of {moment:?}, {why}")),
    };
    history.past = Some(past);
    Ok((sure, moment > newest))
}

/// Whether it changes something in every state; a trim may find nothing to change.
fn writes(entry: &Issued) -> bool {
    matches!(&entry.effect, Effect::Set(pages) if !pages.is_empty())
}
