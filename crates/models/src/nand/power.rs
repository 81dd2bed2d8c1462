//! Power cuts: the effects on unfinished operations, and cuts at a chosen operation.
use super::geometry::PageAddr;
use super::slot::Content;
use super::timing::Span;
use tantalum_media::cut::Fate;

/// Type of an operation that changes the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Programming one flash page.
    Program,
    /// Erasing one block; the page number of its address is 0.
    Erase,
}

/// A submitted program or erase that may not be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The operation.
    pub operation: Operation,
    /// Its target.
    pub at: PageAddr,
    /// Start of the pulse on the plane.
    pub start_ns: u64,
    /// End of the pulse: from here on the change is durable.
    pub end_ns: u64,
}

/// An operation in flight, with the data to restore the earlier state.
pub(super) struct Unfinished<P> {
    pub(super) info: InFlight,
    /// For an erase, the state before it.
    pub(super) erased: Option<Box<Erased<P>>>,
}

/// The state of a block before its erase.
pub(super) struct Erased<P> {
    pub(super) content: Content<P>,
    /// Whether an earlier erase had been interrupted.
    pub(super) was_half_erased: bool,
}

/// The time at which to cut a mutation (an append or reset of the zones above) that was submitted
/// at `now_ns` and spans `span`, so that `fate` applies to it: `Vanish` cuts at its submission,
/// `Tear` in its middle, `Land` just after its end, before the submitter is notified.
///
/// A torn page reads as an uncorrectable error, or as content that does not match its checksum. A
/// torn erase leaves a block that can be neither read nor programmed before its next erase.
pub(super) fn cut_at_ns(fate: Fate, now_ns: u64, span: Option<Span>) -> u64 {
    match (fate, span) {
        (Fate::Vanish, _) | (_, None) => now_ns,
        (Fate::Tear, Some(span)) => span.start_ns + (span.end_ns - span.start_ns) / 2,
        (Fate::Land, Some(span)) => span.end_ns,
    }
}
