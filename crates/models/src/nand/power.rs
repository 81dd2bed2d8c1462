//! Power cuts: what unfinished operations leave behind, and cuts at a chosen operation.
use super::geometry::PageAddr;
use super::slot::Content;
use super::timing::Span;
use tantalum_media::cut::Fate;

/// Kind of an operation that changes the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Programming one flash page.
    Program,
    /// Erasing one block; the page of its address is 0.
    Erase,
}

/// A program or erase that was submitted and may not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// What it does.
    pub operation: Operation,
    /// What it does it to.
    pub at: PageAddr,
    /// When the pulse on the plane starts.
    pub start_ns: u64,
    /// When the pulse ends: from here on the change is durable.
    pub end_ns: u64,
}

/// An operation in flight with what brings the state before it back.
pub(super) struct Unfinished<P> {
    pub(super) info: InFlight,
    /// Of an erase, what it undoes.
    pub(super) erased: Option<Box<Erased<P>>>,
}

/// A block before its erase.
pub(super) struct Erased<P> {
    pub(super) content: Content<P>,
    /// An erase before had been interrupted.
    pub(super) was_half_erased: bool,
}

/// When to cut a mutation (append or reset of the zones above) that was submitted at `now_ns` and
/// spans `span`, so that `fate` falls on it: `Vanish` cuts as it is submitted, `Tear` in the middle
/// of it, `Land` when it has just ended but nobody was told.
///
/// A torn page reads as an uncorrectable error or as content that does not match its checksum; a
/// torn erase leaves a block that can be neither read nor programmed before its next erase.
pub(super) fn cut_at_ns(fate: Fate, now_ns: u64, span: Option<Span>) -> u64 {
    match (fate, span) {
        (Fate::Vanish, _) | (_, None) => now_ns,
        (Fate::Tear, Some(span)) => span.start_ns + (span.end_ns - span.start_ns) / 2,
        (Fate::Land, Some(span)) => span.end_ns,
    }
}
