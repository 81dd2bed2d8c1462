//! The end of the log, which may look like a cut if it is damaged: no remaining append says that it was
//! durable.
use tantalum_base::Version;
use tantalum_media::SlotKind;

use super::{Append, CLEANING, Writes, content, slots_of};

/// The end of the log, if it may look like a cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tail<P> {
    /// The mark of the first append that may be missing.
    pub(crate) from: u64,
    /// Contents of hosts' pages that were appended since.
    pub(crate) contents: Vec<P>,
    /// Whether there are trims or shares in it.
    pub(crate) has_records: bool,
    /// Contents that were given up since, because something in that end had replaced them.
    pub(crate) given_up: Vec<P>,
}

impl<P: Clone> Writes<P> {
    /// The damaged end of the log, if no remaining append follows the damage.
    pub(crate) fn tail(&self) -> Option<Tail<P>> {
        let is_hit = |append: &&Append<P>| {
            append.durable.is_some()
                && append.header.stream != CLEANING
                && append.spares.iter().any(|spare| spare.kind != SlotKind::Checkpoint)
                && slots_of(&self.geometry, append).any(|slot| self.gone.contains_key(&slot))
                && !self.is_followed(append)
        };
        let hit = self.appends.iter().find(is_hit)?;
        // If one append of a batch is gone, so is the batch.
        let is_with_it = |append: &&Append<P>| {
            let first = append.header.batch_first;
            first != Version::NEVER && first == hit.header.batch_first
        };
        let first = self.appends.iter().find(is_with_it).unwrap_or(hit);
        let behind = || self.appends.iter().filter(|append| append.begun >= first.begun);
        let appended = behind().filter(|append| append.header.stream != CLEANING);
        let is_record = |append: &&Append<P>| {
            let kinds = append.spares.iter().map(|spare| spare.kind);
            append.header.stream != CLEANING
                && kinds.into_iter().any(|kind| kind == SlotKind::Record)
        };
        let has_records = behind().any(|append| is_record(&append));
        let contents = appended.flat_map(|append| append.bodies.iter().filter_map(content));
        let given_up = self.given_up.iter().filter(|one| one.at > first.begun);
        Some(Tail {
            from: first.mark,
            has_records,
            contents: contents.cloned().collect(),
            given_up: given_up.map(|one| one.content.clone()).collect(),
        })
    }

    /// The time at which this append, its whole batch and all changes before it were durable.
    fn promised(&self, append: &Append<P>) -> Option<u64> {
        let is_before = |other: &&Append<P>| {
            let first = other.header.batch_first;
            first != Version::NEVER && first <= append.header.batch_first
        };
        let before = self.appends.iter().filter(is_before).map(|other| other.durable);
        before.chain([append.durable]).try_fold(0, |latest, at| Some(latest.max(at?)))
    }

    /// Whether some append that can be found says that this one was durable. An append that started when
    /// this one became durable may have been composed just before; an append that started after that one
    /// was durable in turn was composed later.
    fn is_followed(&self, append: &Append<P>) -> bool {
        let Some(promised) = self.promised(append) else { return false };
        let behind = |at: u64| self.appends.iter().filter(move |other| other.begun > at);
        let next = behind(promised).filter_map(|other| other.durable).min();
        let is_found = |other: &&Append<P>| other.durable.is_some() && self.has_header(other);
        let last = append.header.batch_first.0 + u64::from(append.header.batch_len);
        let says = |other: &Append<P>| other.header.durable.0 + 1 >= last;
        behind(promised).filter(is_found).any(|other| {
            (append.header.batch_first != Version::NEVER && says(other))
                || next.is_some_and(|at| other.begun > at)
        })
    }
}
