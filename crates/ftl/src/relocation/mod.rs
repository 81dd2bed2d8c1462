//! Relocation: what is live in a zone goes elsewhere, so that the zone can be filled again.
pub(crate) mod cleaning;
pub(crate) mod copies;
pub(crate) mod dead_versions;
pub(crate) mod rest;
pub(crate) mod victim;
pub(crate) mod wear;

use std::cell::{Cell, RefCell};
use tantalum_base::{PageNo, SlotNo};
use tantalum_runtime::sync::WaitQueue;

use crate::map::MapEntry;
use crate::options::FtlOptions;
use rest::CleanerRest;
use victim::Victims;

/// A page that was copied out of the zone that is being emptied.
pub(crate) struct CopiedPage {
    pub page: PageNo,
    /// What it was before.
    pub before: MapEntry,
    /// Where its copy is.
    pub copy: SlotNo,
}

/// What is known of relocation.
#[derive(Default)]
pub(crate) struct Relocation {
    /// No zone was found that would give space; reset when something is invalidated.
    pub stuck: bool,
    /// A zone with a program failure is to be emptied, however much space there is.
    pub evacuation_wanted: bool,
    /// Pages that were copied, until the copies are durable.
    pub copied: Vec<CopiedPage>,
}

/// What the cleaner goes by, and who waits for it.
pub(crate) struct Cleaner {
    /// Something changed that cleaning looks at.
    pub wanted: WaitQueue,
    pub rest: CleanerRest,
    /// Chooses what is cleaned.
    pub victims: RefCell<Victims>,
    /// What is relocated now is cold and goes to worn zones.
    pub levelling: Cell<bool>,
    /// Cleaning and checkpoints that wait for hosts' appends to become durable.
    pub waiting_for_hosts: Cell<u32>,
}

impl Cleaner {
    /// With the policy of `options`.
    pub fn new(options: &FtlOptions) -> Self {
        Cleaner {
            wanted: WaitQueue::new("something to clean"),
            rest: CleanerRest::default(),
            victims: RefCell::new(Victims {
                policy: options.cleaning.build(),
                candidates: Vec::new(),
            }),
            levelling: Cell::new(false),
            waiting_for_hosts: Cell::new(0),
        }
    }
}
