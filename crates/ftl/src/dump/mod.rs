//! The dump at a power loss: a part of devices that have stored energy for one, and of no others.
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

/// What is known for a dump.
pub(crate) struct Dump {
    /// What a dump may take.
    pub layout: Layout,
    /// Changes since the checkpoint in force.
    pub log: MappingLog,
    /// A dump of which something is not durable elsewhere yet.
    pub in_force: Option<u64>,
    /// Slots that recovering again from that dump needs, until its mapping is durable.
    needed: Vec<SlotNo>,
}

impl Dump {
    /// For a device of `pages` pages, of which no change is to be dumped.
    pub fn new(layout: Layout, pages: u64) -> Self {
        Dump { layout, log: MappingLog::new(&layout, pages), in_force: None, needed: Vec::new() }
    }

    /// Keeps the slots that recovering again from the dump in force `needed`.
    pub fn keep(&mut self, needed: Vec<SlotNo>) {
        self.needed = needed;
    }

    /// Checkpoint `id` is in force: the slots that nobody needs any more.
    pub fn checkpoint_finished(&mut self, id: u64) -> Vec<SlotNo> {
        let mut void = self.log.checkpoint_finished(id);
        void.append(&mut self.needed);
        void
    }

    /// Slots of the meta stream that are live for it.
    pub fn live_slots(&self) -> impl Iterator<Item = SlotNo> + '_ {
        self.log.slots_of_pages().chain(self.needed.iter().copied())
    }

    /// Panics where it contradicts itself. For tests.
    pub fn validate(&self) {
        self.log.validate();
    }
}

/// Who waits for the dump's part, and the frames that came back from one.
pub(crate) struct Dumper<P> {
    /// Frames of the dump in force, until they are taken to be written back.
    pub frames: RefCell<Vec<(PageNo, P)>>,
    /// Who waits until more mapping entries may change.
    pub waiting: Cell<u32>,
    /// Changed entries were written, or made void.
    pub entries_freed: WaitQueue,
    /// Changed entries near their limit.
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
