//! Transient I/O errors: a path that fails over, a controller that resets, a member of a stripe that is absent.
//!
//! While an [`Episode`] runs, the operations that it covers fail with `Io` and do not reach the medium, whose content
//! stays unchanged. [`Flaky`](crate::wrappers::Flaky) fails zones accordingly, and
//! [`block_store::Flaky`](crate::block_store::Flaky) a store.
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::Runtime;

/// A class of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoClass {
    /// Reads. For a store this is every read, since a store has no scans.
    Read,
    /// Appends and anchor writes of zones; writes and preparations of a store.
    Write,
    /// Syncs.
    Sync,
    /// Resets of zones; zeroings of a store.
    Reset,
    /// Scans of zones of any kind, and reads of anchors.
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

/// The part of a medium that an episode covers: bytes of a store, or slots of zones. An operation is covered if any
/// of its bytes or slots is. Syncs are always covered, because they apply to the whole medium. Anchors of zones lie
/// in no slot, so only `Everything` covers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The whole medium.
    Everything,
    /// These bytes or slots.
    Range(Range<u64>),
    /// One member of a stripe. Units are assigned to the members in turn; this covers every unit of one member.
    Member {
        /// Bytes or slots per unit.
        unit: u64,
        /// Number of members in the stripe.
        members: u64,
        /// Index of the absent member.
        member: u64,
    },
}

impl Reach {
    /// Whether it covers any part of `place`.
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

/// A period in which operations fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The classes that fail.
    pub classes: Vec<IoClass>,
    /// The part of the medium that fails.
    pub reach: Reach,
    /// The time range, by the runtime's clock, in nanoseconds.
    pub time_ns: Range<u64>,
    /// The range of operations that fail, counted from 0 among those that match in class, reach and time.
    pub operations: Range<u64>,
    /// Time until an operation fails. It must not be 0: otherwise an immediate retry would loop forever, because
    /// virtual time would not advance.
    pub latency_ns: u64,
}

impl Episode {
    /// All operations of these classes fail, from now until [`Episodes::end`].
    pub fn of(classes: &[IoClass]) -> Self {
        Episode {
            classes: classes.to_vec(),
            reach: Reach::Everything,
            time_ns: 0..u64::MAX,
            operations: 0..u64::MAX,
            latency_ns: 100_000,
        }
    }

    /// The same episode, limited to `reach`.
    pub fn reaching(self, reach: Reach) -> Self {
        Episode { reach, ..self }
    }

    /// The same episode, limited to this time range.
    pub fn during(self, time_ns: Range<u64>) -> Self {
        Episode { time_ns, ..self }
    }

    /// The same episode, limited to these operations, counted from 0 among those that match in class, reach and time.
    pub fn operations(self, operations: Range<u64>) -> Self {
        Episode { operations, ..self }
    }
}

/// The episodes of a medium. Clones share them, so the holder of a clone can begin and end episodes while others use
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
    /// Operations that matched it so far.
    concerned: u64,
}

/// Identifies an episode that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeId(u64);

impl<R: Clone> Clone for Episodes<R> {
    fn clone(&self) -> Self {
        Episodes { runtime: self.runtime.clone(), state: Rc::clone(&self.state) }
    }
}

impl<R: Runtime> Episodes<R> {
    /// No episodes yet; `runtime` provides the clock.
    pub fn new(runtime: R) -> Self {
        Episodes { runtime, state: Rc::default() }
    }

    /// Begins an episode, in addition to those that run.
    pub fn begin(&self, episode: Episode) -> EpisodeId {
        let id = EpisodeId(self.state.begun.get());
        self.state.begun.set(id.0 + 1);
        self.state.running.borrow_mut().push(Running { id, episode, concerned: 0 });
        id
    }

    /// Ends an episode. Does nothing if it has already ended.
    pub fn end(&self, id: EpisodeId) {
        self.state.running.borrow_mut().retain(|running| running.id != id);
    }

    /// Ends all episodes.
    pub fn end_all(&self) {
        self.state.running.borrow_mut().clear();
    }

    /// Operations of this class that failed so far.
    pub fn failed(&self, class: IoClass) -> u64 {
        self.state.failed[class as usize].get()
    }

    /// Succeeds if an operation of `class` at these places may proceed to the medium. An operation without places is
    /// covered only by episodes that reach `Everything`. A sync is covered by every episode of its class.
    ///
    /// # Errors
    /// `Io` if an episode covers it, after the latency of the episode.
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

    /// The error of a failing operation, after `latency_ns`.
    pub(crate) async fn fail(&self, class: IoClass, latency_ns: u64) -> Error {
        let failed = &self.state.failed[class as usize];
        failed.set(failed.get() + 1);
        self.runtime.sleep(latency_ns).await;
        let what = class.name();
        Error::new(ErrorKind::Io, format!("{what}: input/output error that passes (injected)"))
    }

    /// Counts the operation in each episode that it matches. Returns the longest latency of those that fail it;
    /// `None` if none does.
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
