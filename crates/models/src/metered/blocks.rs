//! The content of the device. It outlives executors, as the provider stores it.
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use tantalum_base::{FastMap, PageNo, Payload};

/// The pages of a device that a provider runs. Clones share the same pages. Memory grows with the number of pages written.
pub struct Blocks<P>(Rc<RefCell<FastMap<u64, P>>>);

impl<P> Clone for Blocks<P> {
    fn clone(&self) -> Self {
        Blocks(Rc::clone(&self.0))
    }
}

impl<P> Default for Blocks<P> {
    fn default() -> Self {
        Blocks(Rc::default())
    }
}

impl<P: Payload> Blocks<P> {
    pub(super) fn get(&self, page: PageNo) -> P {
        self.0.borrow().get(&page.0).cloned().unwrap_or_else(P::zero)
    }

    pub(super) fn set(&self, first: PageNo, contents: &[P]) {
        self.0.borrow_mut().extend((first.0..).zip(contents.iter().cloned()));
    }

    pub(super) fn forget(&self, pages: Range<u64>) {
        let held = &mut *self.0.borrow_mut();
        if pages.end - pages.start > held.len() as u64 {
            held.retain(|page, _| !pages.contains(page));
        } else {
            pages.for_each(|page| drop(held.remove(&page)));
        }
    }
}
