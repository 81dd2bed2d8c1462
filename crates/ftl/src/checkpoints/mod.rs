//! Checkpoints: the mapping on the medium, and the anchors that say where it is.
pub(crate) mod anchor_pages;
pub(crate) mod anchors;
pub(crate) mod pages;
pub(crate) mod write;

use tantalum_base::{SlotNo, Version, ZoneNo};
use tantalum_runtime::sync::{Semaphore, WaitQueue};

use anchors::Anchors;
use pages::Footer;

/// The last dumps that are void, as stored in checkpoints; all before them are void too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpsVoid {
    /// Mapping entries of dumps up to this one are in a checkpoint.
    pub mapping: u64,
    /// Frames of dumps up to this one were written back.
    pub frames: u64,
}

/// The state of checkpoints.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// The number of the checkpoint that was begun last.
    pub begun: u64,
    /// Number of zone openings when it was begun.
    pub begun_at_epoch: u64,
    /// The checkpoint begun last has no durable footer (yet, or ever).
    unfinished: bool,
    /// The checkpoint in force.
    pub in_force: u64,
    /// Its slots.
    pub slots: Vec<SlotNo>,
    /// Opening found nothing appended after it: the device was closed.
    pub found_clean: bool,
    /// Every change up to this version is durable, according to that checkpoint.
    pub durable: Version,
    /// Slots appended since the last checkpoint was begun; after `interval_slots` the next is due.
    pub slots_since: u64,
    interval_slots: u64,
    /// All dumps up to this one are void.
    pub dumps_void: DumpsVoid,
    /// The state of the medium's anchors, if it has any and they are used.
    pub anchors: Option<Anchors>,
}

impl Checkpoints {
    /// No checkpoint so far; one is due after every `interval_slots` slots.
    pub fn new(interval_slots: u64, anchors: Option<Anchors>) -> Self {
        Checkpoints { interval_slots, anchors, ..Checkpoints::default() }
    }

    /// Whether enough was appended for the next checkpoint.
    pub fn is_due(&self) -> bool {
        self.slots_since >= self.interval_slots
    }

    /// Begins a checkpoint after `epoch` zone openings; returns its number, which is never reused,
    /// and whether the previous one was left unfinished.
    pub fn begin(&mut self, epoch: u64) -> (u64, bool) {
        self.slots_since = 0;
        self.begun += 1;
        self.begun_at_epoch = epoch;
        (self.begun, std::mem::replace(&mut self.unfinished, true))
    }

    /// Puts checkpoint `number` in force; returns the slots of the previous one.
    pub fn finish(&mut self, number: u64, footer: &Footer, slots: Vec<SlotNo>) -> Vec<SlotNo> {
        self.unfinished = false;
        self.put_in_force(number, footer, slots)
    }

    /// Puts checkpoint `number`, found in `slots`, in force.
    pub fn put_in_force(
        &mut self,
        number: u64,
        footer: &Footer,
        slots: Vec<SlotNo>,
    ) -> Vec<SlotNo> {
        self.in_force = number;
        self.durable = footer.durable;
        std::mem::replace(&mut self.slots, slots)
    }

    /// Notes that `zone` was given up: it needs another anchor before it is opened again.
    pub fn zone_given_up(&mut self, zone: ZoneNo) {
        if let Some(anchors) = &mut self.anchors {
            anchors.given_up(zone);
        }
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        assert!(self.in_force <= self.begun, "checkpoint {} was never begun", self.in_force);
        let mut slots = self.slots.clone();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), self.slots.len(), "two pages of a checkpoint lie in one slot");
        if let Some(anchors) = &self.anchors {
            anchors.validate();
        }
    }
}

/// Turns and wait queues of checkpoints.
pub(crate) struct Checkpointer {
    /// One checkpoint at a time.
    pub turn: Semaphore,
    /// One append at a time to the meta stream.
    pub meta_turn: Semaphore,
    /// One anchor at a time.
    pub anchor_turn: Semaphore,
    /// Woken when enough was appended for the next checkpoint.
    pub wanted: WaitQueue,
}

impl Checkpointer {
    /// Whether a checkpoint is being written.
    pub fn is_at_work(&self) -> bool {
        self.turn.free() == 0
    }
}

impl Default for Checkpointer {
    fn default() -> Self {
        Checkpointer {
            turn: Semaphore::new("the checkpoint's turn", 1),
            meta_turn: Semaphore::new("the meta stream's turn", 1),
            anchor_turn: Semaphore::new("the anchors' turn", 1),
            wanted: WaitQueue::new("a checkpoint being due"),
        }
    }
}
