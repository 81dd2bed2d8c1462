//! The dump at a power loss: only on devices with stored energy for one.
pub(crate) mod area;
pub(crate) mod backup;
pub(crate) mod delta_pages;
pub(crate) mod energy;
pub(crate) mod header;
pub(crate) mod mapping_log;
pub(crate) mod write;

use std::cell::{Cell, RefCell};
use tantalum_base::{PageNo, SlotNo};
use tantalum_runtime::sync::WaitQueue;

use energy::Layout;
use mapping_log::MappingLog;

/// The state for a dump.
pub(crate) struct Dump {
    /// The division of its budget.
    pub layout: Layout,
    /// Changes since the checkpoint in force.
    pub log: MappingLog,
    /// The number of a dump whose content is not yet all durable elsewhere.
    pub in_force: Option<u64>,
    /// Slots needed to recover from that dump again, until its mapping is durable.
    needed: Vec<SlotNo>,
}

impl Dump {
    /// The state of a device of `pages` pages without changes to dump.
    pub fn new(layout: Layout, pages: u64) -> Self {
        Dump { layout, log: MappingLog::new(&layout, pages), in_force: None, needed: Vec::new() }
    }

    /// Keeps the slots `needed` to recover from the dump in force again.
    pub fn keep(&mut self, needed: Vec<SlotNo>) {
        self.needed = needed;
    }

    /// Notes that checkpoint `id` is in force; returns the slots that are no longer needed.
    pub fn checkpoint_finished(&mut self, id: u64) -> Vec<SlotNo> {
        let mut void = self.log.checkpoint_finished(id);
        void.append(&mut self.needed);
        void
    }

    /// The slots of the meta stream that are live for the dump.
    pub fn live_slots(&self) -> impl Iterator<Item = SlotNo> + '_ {
        self.log.slots_of_pages().chain(self.needed.iter().copied())
    }

    /// Panics if it is inconsistent. For tests.
    pub fn validate(&self) {
        self.log.validate();
    }
}

/// Wait queues of the dump, and the frames restored from one.
pub(crate) struct Dumper<P> {
    /// Frames of the dump in force, until they are taken to be written back.
    pub frames: RefCell<Vec<(PageNo, P)>>,
    /// Number of tasks that wait to change mapping entries.
    pub waiting: Cell<u32>,
    /// Woken when changed entries were written, or made void.
    pub entries_freed: WaitQueue,
    /// Woken when changed entries approach their limit.
    pub backup_wanted: WaitQueue,
}

impl<P> Default for Dumper<P> {
    fn default() -> Self {
        Dumper {
            frames: RefCell::default(),
            waiting: Cell::new(0),
            entries_freed: WaitQueue::new("room for changed mapping entries"),
            backup_wanted: WaitQueue::new("changed mapping entries to write"),
        }
    }
}
