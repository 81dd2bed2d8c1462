//! What was issued and acknowledged since the device was last opened and checked, in which order,
//! and what a read may see meanwhile.
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
    /// It is durable when acknowledged, whatever the device promises for others.
    pub(super) is_durable: bool,
    /// The text of violations.
    pub(super) label: String,
}

/// Where the numbers of clients begin that stand for parts of commands.
const APART: u32 = 1 << 16;

/// The end of the log that may be missing: the time when its first append was begun, the contents in it,
/// and whether commands were acknowledged before they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTail {
    pub(super) from: u64,
    pub(super) contents: Vec<u64>,
    /// Whether there are trims or shares in it.
    pub(super) has_records: bool,
    pub(super) acknowledges_early: bool,
}

impl LostTail {
    /// Whether what `entry` wrote is in it.
    pub(super) fn has(&self, entry: &Issued) -> bool {
        match &entry.effect {
            Effect::Set(pages) => pages.iter().any(|(_, content)| self.contents.contains(content)),
            Effect::Clear(_) | Effect::Share(_) => false,
        }
    }
}

/// Which commands must have survived.
pub(super) struct Survivors<'a> {
    durability: Durability,
    /// Only what was promised before counts.
    before: u64,
    flushed_before: u64,
    tail: Option<&'a LostTail>,
}

impl Survivors<'_> {
    /// Whether `entry` must be there.
    pub(super) fn has(&self, entry: &Issued) -> bool {
        let Some(acked) = entry.acked.filter(|acked| *acked < self.before) else { return false };
        let is_promised = acked < self.flushed_before
            || self.durability == Durability::OnAck
            || (entry.is_durable && self.durability == Durability::OnFlush);
        is_promised && !self.tail.is_some_and(|tail| tail.has(entry))
    }
}

/// The commands behind a state that is known.
pub(super) struct History<P> {
    /// What the device held when it was last checked.
    pub(super) baseline: Contents,
    pub(super) entries: Vec<Issued>,
    /// Flushes that completed: when each was issued, and when it completed.
    flushes: Vec<(u64, u64)>,
    clock: Rc<Cell<u64>>,
    /// Times that the device was checked.
    checks: Rc<Cell<u64>>,
    /// What was before those, where that may count again.
    pub(super) past: Option<Past>,
    written: Written<P>,
    /// Checks that were given up.
    pub(super) undecided: u64,
}

/// Every content that was ever written, to tell which one a page holds.
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

    /// What tells the time that commands are issued and acknowledged at.
    pub(super) fn clock(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.clock)
    }

    /// The moments of what follows are kept, from the oldest on that may count; what tells them.
    pub(super) fn keep_moments(&mut self) -> impl Fn() -> u64 + 'static {
        self.past = Some(Past::default());
        let (checks, clock) = (Rc::clone(&self.checks), Rc::clone(&self.clock));
        move || Moment { checks: checks.get(), time: clock.get() }.number()
    }

    /// Times that the device was checked.
    pub(super) fn checks(&self) -> u64 {
        self.checks.get()
    }

    /// Makes content `number` for `page`; numbers are used once.
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

    /// Which content `seen` is; `None` where nobody wrote that.
    pub(super) fn identify(&self, seen: &P) -> Option<u64> {
        if *seen == self.written.contents[0] {
            return Some(0);
        }
        let numbers = self.written.by_checksum.get(&seen.checksum())?;
        numbers.iter().copied().find(|number| self.written.contents[*number as usize] == *seen)
    }

    /// The numbers of `contents`, but for those that no client wrote.
    pub(super) fn numbers(&self, contents: &[P]) -> Vec<u64> {
        let known = contents.iter().filter_map(|content| self.identify(content));
        let mut numbers: Vec<u64> = known.filter(|number| *number != 0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Whether `page` may hold content `number` at all, as far as it alone is looked at.
    pub(super) fn may_hold(&self, page: PageNo, number: u64) -> bool {
        let set = |entry: &Issued| match entry.effect.on(page) {
            Some(content) => content.is_none_or(|content| content == number),
            None => false,
        };
        self.baseline.get(page) == number || self.entries.iter().any(set)
    }

    /// A command is issued; its place among the entries.
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

    /// A part of a command that takes effect in no order with other parts: as if a client of its own
    /// had issued it. Its place among the entries.
    pub(super) fn issue_apart(&mut self, effect: Effect, label: String) -> usize {
        let client = APART + self.entries.len() as u32;
        self.issue(client, effect, false, label)
    }

    /// A command was acknowledged.
    pub(super) fn acknowledge(&mut self, entry: usize) {
        self.entries[entry].acked = Some(self.tick());
    }

    /// A command was refused with nothing done.
    pub(super) fn refuse(&mut self, entry: usize) {
        // The place stays, so that other commands' places stay valid.
        self.entries[entry].effect = Effect::Set(Vec::new());
        self.entries[entry].acked = Some(self.tick());
    }

    /// A command failed, and it is unknown what it left behind: it stays in flight. Its client goes on, and what comes next
    /// does not wait for it.
    pub(super) fn failed(&mut self, entry: usize) {
        self.entries[entry].client = APART + entry as u32;
    }

    /// The time now, for a read or a flush that starts.
    pub(super) fn now(&mut self) -> u64 {
        self.tick()
    }

    /// A flush completed that was issued at `issued`.
    pub(super) fn flushed(&mut self, issued: u64) {
        let completed = self.tick();
        self.flushes.push((issued, completed));
    }

    /// Contents that need not have survived a cut now, of all that was written since the last check.
    pub(super) fn not_promised(&self, durability: Durability) -> Vec<u64> {
        let survivors = self.survivors(durability, None);
        let entries = self.entries.iter().filter(|entry| !survivors.has(entry));
        let sets = entries.filter_map(|entry| match &entry.effect {
            Effect::Set(pages) => Some(pages),
            Effect::Clear(_) | Effect::Share(_) => None,
        });
        sets.flatten().map(|(_, content)| *content).collect()
    }

    /// What must have survived a cut now; where the end of the log may be missing from `tail` on, without
    /// what may be in it.
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

    /// Contents that a read of `page` may see which was issued at `issued` and returns now; `None`
    /// where shares make that too many.
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

    /// Checks one page of a read, issued at `issued`, that returned `seen` for it, without regard to the
    /// others; the content, and whether that is all there is to check of it: shares may bring more than
    /// is known here.
    ///
    /// # Errors
    /// `Checksum` where it could not see that.
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

    /// The device was checked and holds `contents`: all before is decided.
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
