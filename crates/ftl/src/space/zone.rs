//! The state of a zone, and the streams that fill zones.
use tantalum_base::{Version, ZoneNo};

/// The streams of appends. Each has one open zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {
    /// Hosts' pages, and records.
    Host = 0,
    /// Copies made by cleaning.
    Cleaning = 1,
    /// Checkpoints and delta pages.
    Meta = 2,
    /// The dump at a power loss. It is appended to only then, so it has no open zone.
    Dump = 3,
}

/// Number of streams that have an open zone.
pub const STREAMS: usize = 3;

impl Stream {
    /// The stream that is stored as `byte`.
    pub fn from_byte(byte: u8) -> Stream {
        match byte {
            0 => Stream::Host,
            1 => Stream::Cleaning,
            2 => Stream::Meta,
            _ => Stream::Dump,
        }
    }
}

/// The state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Holds nothing that is needed.
    Free,
    /// Being appended to.
    Open,
    /// Not appended to any more, until it is cleaned.
    Full,
    /// Out of service.
    Retired,
    /// In the dump area: erased, or holding a dump in force.
    Dump,
}

/// One zone.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// The stream that filled it.
    pub stream: Stream,
    /// Slots whose content is live.
    pub live_slots: u32,
    /// Live pages in these slots beyond one per slot.
    pub extra_references: u32,
    /// Slots appended to (padding and headers included).
    pub used_slots: u32,
    /// Number of leading slots known to survive a power cut.
    pub durable_slots: u32,
    /// Highest version in these slots.
    pub durable_version_max: Version,
    /// Number of leading slots that the checkpoint begun last covers.
    pub covered_slots: u32,
    /// Appends that have not returned yet.
    pub appends_in_flight: u32,
    /// Something was appended since `durable_slots` was set that needs a sync to be durable.
    pub needs_sync: bool,
    /// It must be reset before it can be opened.
    pub needs_reset: bool,
    /// A program failed in it: it is emptied before other zones.
    pub failing: bool,
    /// It holds a list of dead versions, which recovery needs until a checkpoint with a higher
    /// number is in force.
    pub lists_dead_until: Option<u64>,
    /// Cleaning or the end of a checkpoint is about to reset it; the other must not.
    pub being_emptied: bool,
    /// Number of its present opening.
    pub epoch: u64,
    /// Highest version placed in it.
    pub version_max: Version,
    /// Highest version that replaced content in it.
    pub replaced_by: Version,
    /// Highest durable watermark that an append in it states.
    pub stated: Version,
    /// Highest durable watermark that it states even after a power cut.
    pub stated_durably: Version,
    /// Resets since the volume was made.
    pub resets: u32,
}

impl Zone {
    /// An empty zone in `state`, for `stream`, in opening `epoch`.
    pub(crate) fn empty(state: ZoneState, stream: Stream, epoch: u64, resets: u32) -> Self {
        Zone {
            state,
            stream,
            epoch,
            resets,
            live_slots: 0,
            extra_references: 0,
            used_slots: 0,
            durable_slots: 0,
            durable_version_max: Version::NEVER,
            covered_slots: 0,
            appends_in_flight: 0,
            needs_sync: false,
            needs_reset: false,
            failing: false,
            lists_dead_until: None,
            being_emptied: false,
            version_max: Version::NEVER,
            replaced_by: Version::NEVER,
            stated: Version::NEVER,
            stated_durably: Version::NEVER,
        }
    }

    /// Whether it was opened and not freed since.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.state, ZoneState::Open | ZoneState::Full)
    }

    /// Panics if it is inconsistent; it has `slots` slots. For tests.
    pub(crate) fn validate(&self, number: ZoneNo, slots: u32) {
        let counts = [self.live_slots, self.durable_slots, self.used_slots];
        assert!(
            self.used_slots <= slots && self.durable_slots <= self.used_slots,
            "{number:?}: {counts:?}"
        );
        if self.is_in_use() {
            assert!(self.live_slots <= self.used_slots, "{number:?}: {counts:?}");
            assert!(self.stated_durably <= self.stated, "{number:?} says more after a power cut");
        } else {
            assert_eq!(
                (self.live_slots, self.extra_references),
                (0, 0),
                "{number:?} holds content"
            );
        }
    }
}
