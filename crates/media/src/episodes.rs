//! I/O errors that pass: a path that fails over, a controller that resets, one member of a stripe that is away.
//!
//! While an [`Episode`] lasts, operations that it concerns fail with `Io` and reach nothing: afterwards the medium has
//! what it had before. [`Flaky`](crate::wrappers::Flaky) fails zones by it, and
//! [`block_store::Flaky`](crate::block_store::Flaky) a store.
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Runtime;

/// A class of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoClass {
    /// Reads; of a store all of them, as it knows no scans.
    Read,
    /// Appends and anchors of zones; writes and preparations of a store.
    Write,
    /// Syncs.
    Sync,
    /// Resets of zones; zeroings of a store.
    Reset,
    /// Scans of zones, in whatever form, and reads of anchors.
    Scan,
}

impl IoClass {
    /// All classes.
    pub const ALL: [IoClass; 5] =
        [IoClass::Read, IoClass::Write, IoClass::Sync, IoClass::Reset, IoClass::Scan];

    /// The word used in text.
    pub fn name(self) -> &'static str {
        match self {
            IoClass::Read => "read",
            IoClass::Write => "write",
            IoClass::Sync => "sync",
            IoClass::Reset => "reset",
            IoClass::Scan => "scan",
        }
    }
}

/// The part of a medium that an episode reaches: in bytes of a store, in slots of zones. An operation is reached when
/// any of its bytes or slots is. Syncs are always reached, as they are of the whole medium; anchors of zones, which lie
/// in no slot, by `Everything` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of it.
    Everything,
    /// These bytes or slots.
    Range(Range<u64>),
    /// One member of a stripe: of every `members` units of so many bytes or slots, the one with this index.
    Member {
        /// Bytes or slots of a unit.
        unit: u64,
        /// Members of the stripe.
        members: u64,
        /// Index of the one that is away.
        member: u64,
    },
}

impl Reach {
    /// Whether it reaches any of `place`.
    fn covers(&self, place: &Range<u64>) -> bool {
        match self {
            Reach::Everything => true,
            Reach::Range(range) => place.start < range.end && range.start < place.end,
            Reach::Member { unit, members, member } => {
                let mut units = place.start / unit..place.end.div_ceil(*unit);
                units.end = units.end.min(units.start + members);
                units.into_iter().any(|unit| unit % members == *member)
            }
        }
    }
}

/// A time in which operations fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// What fails.
    pub classes: Vec<IoClass>,
    /// Where.
    pub reach: Reach,
    /// When, by the runtime's clock, in nanoseconds.
    pub time_ns: Range<u64>,
    /// Which of the operations that it would concern so far, counted from 0.
    pub operations: Range<u64>,
    /// How long an operation takes to fail. More than 0, or what is tried again at once is tried again for ever in a
    /// time that stands still.
    pub latency_ns: u64,
}

impl Episode {
    /// Everything of these classes fails, from now on until [`Episodes::end`].
    pub fn of(classes: &[IoClass]) -> Self {
        Episode {
            classes: classes.to_vec(),
            reach: Reach::Everything,
            time_ns: 0..u64::MAX,
            operations: 0..u64::MAX,
            latency_ns: 100_000,
        }
    }

    /// The same, of what this reaches alone.
    pub fn reaching(self, reach: Reach) -> Self {
        Episode { reach, ..self }
    }

    /// The same, at these times alone.
    pub fn during(self, time_ns: Range<u64>) -> Self {
        Episode { time_ns, ..self }
    }

    /// The same, of these operations alone: those of its classes that it reaches in its time, counted from 0.
    pub fn operations(self, operations: Range<u64>) -> Self {
        Episode { operations, ..self }
    }
}

/// The episodes of a medium. Clones share them, so that whoever keeps one begins and ends episodes while others use
/// the medium.
pub struct Episodes<R> {
    runtime: R,
    state: Rc<State>,
}

#[derive(Default)]
struct State {
    running: RefCell<Vec<Running>>,
    begun: Cell<u64>,
    /// By class.
    failed: [Cell<u64>; IoClass::ALL.len()],
}

struct Running {
    id: EpisodeId,
    episode: Episode,
    /// Operations that it concerned so far.
    concerned: u64,
}

/// An episode that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeId(u64);

impl<R: Clone> Clone for Episodes<R> {
    fn clone(&self) -> Self {
        Episodes { runtime: self.runtime.clone(), state: Rc::clone(&self.state) }
    }
}

impl<R: Runtime> Episodes<R> {
    /// None yet; `runtime` has the clock.
    pub fn new(runtime: R) -> Self {
        Episodes { runtime, state: Rc::default() }
    }

    /// Begins one, beside those that are there.
    pub fn begin(&self, episode: Episode) -> EpisodeId {
        let id = EpisodeId(self.state.begun.get());
        self.state.begun.set(id.0 + 1);
        self.state.running.borrow_mut().push(Running { id, episode, concerned: 0 });
        id
    }

    /// Ends one. Nothing where it has ended.
    pub fn end(&self, id: EpisodeId) {
        self.state.running.borrow_mut().retain(|running| running.id != id);
    }

    /// Ends all.
    pub fn end_all(&self) {
        self.state.running.borrow_mut().clear();
    }

    /// Operations of this class that failed so far.
    pub fn failed(&self, class: IoClass) -> u64 {
        self.state.failed[class as usize].get()
    }

    /// Whether an operation of `class` at these places goes on to the medium; one without any lies beside whatever has
    /// a place.
    ///
    /// # Errors
    /// `Io` where it does not, after the episode's latency.
    pub(crate) async fn pass(
        &self,
        class: IoClass,
        places: impl Iterator<Item = Range<u64>> + Clone,
    ) -> Result<()> {
        match self.concern(class, places) {
            None => Ok(()),
            Some(latency_ns) => Err(self.fail(class, latency_ns).await),
        }
    }

    /// The answer to an operation that fails, after `latency_ns`.
    pub(crate) async fn fail(&self, class: IoClass, latency_ns: u64) -> Error {
        let failed = &self.state.failed[class as usize];
        failed.set(failed.get() + 1);
        self.runtime.sleep(latency_ns).await;
        let what = class.name();
        Error::new(ErrorKind::Io, format!("{what}: input/output error that passes (injected)"))
    }

    /// Counts the operation in each episode that it concerns; the longest latency of those that fail it.
    pub(crate) fn concern(
        &self,
        class: IoClass,
        places: impl Iterator<Item = Range<u64>> + Clone,
    ) -> Option<u64> {
        let now_ns = self.runtime.now_ns();
        let mut failing = None;
        for Running { episode, concerned, .. } in self.state.running.borrow_mut().iter_mut() {
            let reaches = class == IoClass::Sync
                || episode.reach == Reach::Everything
                || places.clone().any(|place| episode.reach.covers(&place));
            if reaches && episode.classes.contains(&class) && episode.time_ns.contains(&now_ns) {
                if episode.operations.contains(concerned) {
                    failing = failing.max(Some(episode.latency_ns));
                }
                *concerned += 1;
            }
        }
        failing
    }
}

#[cfg(test)]
mod tests {
    use super::Reach;

    #[test]
    fn a_member_has_every_so_manieth_unit() {
        let member = Reach::Member { unit: 4, members: 3, member: 1 };
        let reached: Vec<u64> = (0..24).filter(|at| member.covers(&(*at..at + 1))).collect();
        assert_eq!(reached, [4, 5, 6, 7, 16, 17, 18, 19]);
        assert!(member.covers(&(3..5)) && member.covers(&(7..8)) && member.covers(&(8..17)));
        assert!(!member.covers(&(0..4)) && !member.covers(&(8..16)));
        assert!(member.covers(&(0..u64::MAX)));
    }

    #[test]
    fn a_range_has_what_overlaps_it() {
        let range = Reach::Range(4..8);
        assert!(range.covers(&(0..5)) && range.covers(&(7..9)) && range.covers(&(5..6)));
        assert!(!range.covers(&(0..4)) && !range.covers(&(8..9)));
    }
}
