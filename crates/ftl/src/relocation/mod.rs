//! Relocation: moves the live slots of a zone elsewhere, so that the zone can be reused.
pub(crate) mod cleaning;
pub(crate) mod copies;
pub(crate) mod dead_versions;
pub(crate) mod pace;
pub(crate) mod rest;
pub(crate) mod retries;
pub(crate) mod shrinking;
pub(crate) mod unreadable;
pub(crate) mod victim;
pub(crate) mod wear;

use std::cell::{Cell, RefCell};
use tantalum_base::{PageNo, SlotNo};
use tantalum_runtime::sync::WaitQueue;

use crate::map::MapEntry;
use crate::options::FtlOptions;
use pace::Pace;
use rest::CleanerRest;
use victim::Victims;

/// A page that was copied from the zone being emptied.
pub(crate) struct CopiedPage {
    pub page: PageNo,
    /// Its entry before the copy.
    pub before: MapEntry,
    /// The slot of its copy.
    pub copy: SlotNo,
}

/// The state of relocation.
#[derive(Default)]
pub(crate) struct Relocation {
    /// No zone would give space; false again when content is replaced.
    pub stuck: bool,
    /// A zone in which a program failed must be emptied, however much space is free.
    pub evacuation_wanted: bool,
    /// Copied pages, until the copies are durable.
    pub copied: Vec<CopiedPage>,
}

/// Settings and wait queues of the cleaner.
pub(crate) struct Cleaner {
    /// Woken when something changed that cleaning depends on.
    pub wanted: WaitQueue,
    pub rest: CleanerRest,
    pub pace: Pace,
    /// Chooses the zones to clean.
    pub victims: RefCell<Victims>,
    /// Cold content is being relocated, to worn zones.
    pub levelling: Cell<bool>,
    /// Number of cleanings and checkpoints that wait for hosts' appends to become durable.
    pub waiting_for_hosts: Cell<u32>,
}

impl Cleaner {
    /// A cleaner with the policy of `options`.
    pub fn new(options: &FtlOptions) -> Self {
        Cleaner {
            wanted: WaitQueue::new("something to clean"),
            rest: CleanerRest::default(),
            pace: Pace::default(),
            victims: RefCell::new(Victims {
                policy: options.cleaning.build(),
                candidates: Vec::new(),
            }),
            levelling: Cell::new(false),
            waiting_for_hosts: Cell::new(0),
        }
    }
}
