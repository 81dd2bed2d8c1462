//! The commands issued and acknowledged since the device was last opened and checked, their order, and the contents that a
//! read may see meanwhile.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Durability, FastMap, PageNo, Payload, Result};
use tantalum_base::{Error, ErrorKind};

use super::command::{Contents, Effect, content};
use super::moments::{Moment, Past};

/// One command that changes something.
pub(super) struct Issued {
    pub(super) client: u32,
    pub(super) effect: Effect,
    pub(super) issued: u64,
    pub(super) acked: Option<u64>,
    /// Whether it is durable once acknowledged, whatever the device promises for others.
    pub(super) is_durable: bool,
    /// Its text in violations.
    pub(super) label: String,
}

/// The first of the client numbers that stand for parts of commands.
const APART: u32 = 1 << 16;

/// The end of the log that may be missing: the time at which its first append started, the contents in it, and whether
/// commands were acknowledged before they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTail {
    pub(super) from: u64,
    pub(super) contents: Vec<u64>,
    /// Whether there are trims or shares in it.
    pub(super) has_records: bool,
    pub(super) acknowledges_early: bool,
}

impl LostTail {
    /// Whether it contains the writes of `entry`.
    pub(super) fn has(&self, entry: &Issued) -> bool {
        match &entry.effect {
            Effect::Set(pages) => pages.iter().any(|(_, content)| self.contents.contains(content)),
            Effect::Clear(_) | Effect::Share(_) => false,
        }
    }
}

/// Determines which commands must have survived.
pub(super) struct Survivors<'a> {
    durability: Durability,
    /// Only promises from before this time count.
    before: u64,
    flushed_before: u64,
    tail: Option<&'a LostTail>,
}

impl Survivors<'_> {
    /// Whether `entry` must have survived.
    pub(super) fn has(&self, entry: &Issued) -> bool {
        let Some(acked) = entry.acked.filter(|acked| *acked < self.before) else { return false };
        let is_promised = acked < self.flushed_before
            || self.durability == Durability::OnAck
            || (entry.is_durable && self.durability == Durability::OnFlush);
        is_promised && !self.tail.is_some_and(|tail| tail.has(entry))
    }
}

/// The commands since the last known state.
pub(super) struct History<P> {
    /// The contents of the device when it was last checked.
    pub(super) baseline: Contents,
    pub(super) entries: Vec<Issued>,
    /// Completed flushes: the times at which each was issued, and completed.
    flushes: Vec<(u64, u64)>,
    clock: Rc<Cell<u64>>,
    /// Number of times that the device was checked.
    checks: Rc<Cell<u64>>,
    /// The history before the last check, if it may matter again.
    pub(super) past: Option<Past>,
    written: Written<P>,
    /// Number of checks that were given up.
    pub(super) undecided: u64,
}

/// Every content that was ever written, in order to identify a page's content.
struct Written<P> {
    // By number; number 0 is nothing.
    contents: Vec<P>,
    by_checksum: FastMap<u32, Vec<u64>>,
}

impl<P: Payload> History<P> {
    pub(super) fn new(pages: u64) -> Self {
        let written = Written { contents: vec![P::zero()], by_checksum: FastMap::default() };
        let baseline = Contents::empty(pages);
        History {
            baseline,
            entries: Vec::new(),
            flushes: Vec::new(),
            clock: Rc::default(),
            checks: Rc::default(),
            past: None,
            written,
            undecided: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// The clock of issued and acknowledged commands.
    pub(super) fn clock(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.clock)
    }

    /// From now on keeps past moments, from the oldest one that may matter. Returns a function that reports the current
    /// moment.
    pub(super) fn keep_moments(&mut self) -> impl Fn() -> u64 + 'static {
        self.past = Some(Past::default());
        let (checks, clock) = (Rc::clone(&self.checks), Rc::clone(&self.clock));
        move || Moment { checks: checks.get(), time: clock.get() }.number()
    }

    /// Number of times that the device was checked.
    pub(super) fn checks(&self) -> u64 {
        self.checks.get()
    }

    /// Makes content `number` for `page`; each number is used once.
    pub(super) fn write(&mut self, page: PageNo, number: u64) -> P {
        let made = content::<P>(page, number);
        let written = &mut self.written;
        if written.contents.len() as u64 <= number {
            written.contents.resize(number as usize + 1, P::zero());
        }
        written.contents[number as usize] = made.clone();
        written.by_checksum.entry(made.checksum()).or_default().push(number);
        made
    }

    /// The number of the content `seen`; `None` if nobody wrote it.
    pub(super) fn identify(&self, seen: &P) -> Option<u64> {
        if *seen == self.written.contents[0] {
            return Some(0);
        }
        let numbers = self.written.by_checksum.get(&seen.checksum())?;
        numbers.iter().copied().find(|number| self.written.contents[*number as usize] == *seen)
    }

    /// The numbers of `contents`, without those that no client wrote.
    pub(super) fn numbers(&self, contents: &[P]) -> Vec<u64> {
        let known = contents.iter().filter_map(|content| self.identify(content));
        let mut numbers: Vec<u64> = known.filter(|number| *number != 0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Whether `page` alone may have content `number` at all.
    pub(super) fn may_hold(&self, page: PageNo, number: u64) -> bool {
        let set = |entry: &Issued| match entry.effect.on(page) {
            Some(content) => content.is_none_or(|content| content == number),
            None => false,
        };
        self.baseline.get(page) == number || self.entries.iter().any(set)
    }

    /// Records that a command is issued; returns its index.
    pub(super) fn issue(
        &mut self,
        client: u32,
        effect: Effect,
        is_durable: bool,
        label: String,
    ) -> usize {
        let issued = self.tick();
        self.entries.push(Issued { client, effect, issued, acked: None, is_durable, label });
        self.entries.len() - 1
    }

    /// Records a part of a command that takes effect in no fixed order with other parts, as if a client of its own had
    /// issued it. Returns its index.
    pub(super) fn issue_apart(&mut self, effect: Effect, label: String) -> usize {
        let client = APART + self.entries.len() as u32;
        self.issue(client, effect, false, label)
    }

    /// Records that a command was acknowledged.
    pub(super) fn acknowledge(&mut self, entry: usize) {
        self.entries[entry].acked = Some(self.tick());
    }

    /// Records that a command was refused with nothing done.
    pub(super) fn refuse(&mut self, entry: usize) {
        // The entry stays, so that the indexes of other commands stay valid.
        self.entries[entry].effect = Effect::Set(Vec::new());
        self.entries[entry].acked = Some(self.tick());
    }

    /// Records that a command failed with unknown effect: it stays in flight. Its client continues, and its next commands
    /// do not wait for it.
    pub(super) fn failed(&mut self, entry: usize) {
        self.entries[entry].client = APART + entry as u32;
    }

    /// The current time, for a read or a flush that starts.
    pub(super) fn now(&mut self) -> u64 {
        self.tick()
    }

    /// Records that a flush issued at `issued` has completed.
    pub(super) fn flushed(&mut self, issued: u64) {
        let completed = self.tick();
        self.flushes.push((issued, completed));
    }

    /// Contents written since the last check that need not have survived a cut now.
    pub(super) fn not_promised(&self, durability: Durability) -> Vec<u64> {
        let survivors = self.survivors(durability, None);
        let entries = self.entries.iter().filter(|entry| !survivors.has(entry));
        let sets = entries.filter_map(|entry| match &entry.effect {
            Effect::Set(pages) => Some(pages),
            Effect::Clear(_) | Effect::Share(_) => None,
        });
        sets.flatten().map(|(_, content)| *content).collect()
    }

    /// The commands that must have survived a cut now. If the end of the log may be missing from `tail` on, without the
    /// commands that may be in it.
    pub(super) fn survivors<'a>(
        &self,
        durability: Durability,
        tail: Option<&'a LostTail>,
    ) -> Survivors<'a> {
        let before = tail.map_or(u64::MAX, |tail| tail.from);
        let completed = self.flushes.iter().filter(|(_, completed)| *completed < before);
        let flushed_before = completed.map(|(issued, _)| *issued).max().unwrap_or(0);
        Survivors { durability, before, flushed_before, tail }
    }

    /// Contents that a read of `page` may see if it was issued at `issued` and returns now; `None` if shares make them too
    /// many.
    pub(super) fn readable(&self, page: PageNo, issued: u64) -> Option<Vec<u64>> {
        let here = || self.entries.iter().filter(|entry| entry.effect.on(page).is_some());
        let replaced_after = |time: u64| {
            here()
                .any(|entry| entry.issued > time && entry.acked.is_some_and(|acked| acked < issued))
        };
        let mut allowed = Vec::new();
        if !replaced_after(0) {
            allowed.push(self.baseline.get(page));
        }
        for entry in here() {
            if !entry.acked.is_some_and(replaced_after) {
                allowed.push(entry.effect.on(page)??);
            }
        }
        Some(allowed)
    }

    /// Checks one page of a read, issued at `issued`, that returned `seen` for it, independently of the other pages.
    /// Returns the content, and whether this check is complete: shares may bring contents that are not known here.
    ///
    /// # Errors
    /// `Checksum` if the read cannot have seen that.
    pub(super) fn check_page_read(
        &self,
        page: PageNo,
        issued: u64,
        seen: &P,
    ) -> Result<(u64, bool)> {
        let Some(found) = self.identify(seen) else {
            let context = format!("a read of page {page} gave what nobody wrote: {seen:?}");
            return Err(Error::new(ErrorKind::Checksum, context));
        };
        match self.readable(page, issued) {
            Some(allowed) if !allowed.contains(&found) => {
                let context = format!(
                    "a read of page {page} gave content {found}, which is none of {allowed:?}"
                );
                Err(Error::new(ErrorKind::Checksum, context))
            }
            allowed => Ok((found, allowed.is_some())),
        }
    }

    /// The device was checked and has `contents`: everything before is settled.
    pub(super) fn verified(&mut self, contents: Contents) {
        let before = std::mem::replace(&mut self.baseline, contents);
        let entries = std::mem::take(&mut self.entries);
        if let Some(past) = &mut self.past {
            past.keep(before, entries);
        }
        self.checks.set(self.checks.get() + 1);
        self.flushes.clear();
        self.clock.set(0);
    }
}
