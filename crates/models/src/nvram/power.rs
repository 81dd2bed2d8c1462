//! The power of an NVRAM region: stores are counted, and power can be cut between any two.
//!
//! Stores after the cut must not survive the next power-on: the old content of each slot is
//! remembered and restored then. Until the executor's tasks are dropped they go on undisturbed, as
//! nothing observes them any more.
use std::cell::{Cell, RefCell};
use tantalum_media::cut::{CutPlan, Fate};

/// The fate of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreFate {
    Kept,
    Torn,
    Lost,
}

type Restore = Box<dyn FnOnce()>;

#[derive(Default)]
pub(super) struct Power {
    stores: Cell<u64>,
    /// Number of the store at which to cut, and whether it tears.
    plan: Cell<Option<(u64, bool)>>,
    is_cut: Cell<bool>,
    /// Restores the content overwritten after the cut; in the order of the stores.
    lost: RefCell<Vec<Restore>>,
    on_cut: RefCell<Option<Box<dyn Fn()>>>,
}

impl Power {
    /// Counts a store and returns its fate. May run the hook, so nothing may be borrowed.
    #[inline]
    pub(super) fn store(&self) -> StoreFate {
        let number = self.stores.get();
        self.stores.set(number + 1);
        if self.is_cut.get() {
            return StoreFate::Lost;
        }
        match self.plan.get() {
            Some((at, tear)) if at <= number => {
                self.cut();
                if let Some(hook) = &*self.on_cut.borrow() {
                    hook();
                }
                if tear { StoreFate::Torn } else { StoreFate::Lost }
            }
            _ => StoreFate::Kept,
        }
    }

    pub(super) fn remember(&self, restore: Restore) {
        self.lost.borrow_mut().push(restore);
    }

    pub(super) fn stores(&self) -> u64 {
        self.stores.get()
    }

    pub(super) fn plan_cut(&self, plan: Option<CutPlan>) {
        let at = |plan: CutPlan| {
            let landed = u64::from(plan.fate == Fate::Land);
            (self.stores.get() + plan.after_operations + landed, plan.fate == Fate::Tear)
        };
        self.plan.set(plan.map(at));
    }

    pub(super) fn on_cut(&self, hook: Box<dyn Fn()>) {
        *self.on_cut.borrow_mut() = Some(hook);
    }

    pub(super) fn cut(&self) {
        self.is_cut.set(true);
        self.plan.set(None);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    pub(super) fn power_on(&self) {
        let lost = self.lost.take();
        lost.into_iter().rev().for_each(|restore| restore());
        self.is_cut.set(false);
        self.plan.set(None);
        self.on_cut.take();
    }
}
