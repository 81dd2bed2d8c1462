//! The content of the disk. It outlives executors, like the data on a drive without power.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{FastMap, PageNo, Payload};
use tantalum_media::cut::Fate;

/// The platters of a disk and the position of its arm. Clones share the same platters. Memory grows
/// with the number of pages written.
pub struct Platters<P>(Rc<RefCell<Surface<P>>>);

impl<P> Clone for Platters<P> {
    fn clone(&self) -> Self {
        Platters(Rc::clone(&self.0))
    }
}

struct Surface<P> {
    pages: FastMap<u64, P>,
    cylinder: u32,
    // The write in progress: first page and contents.
    writing: Option<(u64, Vec<P>)>,
}

impl<P: Payload> Default for Platters<P> {
    fn default() -> Self {
        let state = Surface { pages: FastMap::default(), cylinder: 0, writing: None };
        Platters(Rc::new(RefCell::new(state)))
    }
}

impl<P: Payload> Platters<P> {
    /// The content of `page`.
    pub fn get(&self, page: PageNo) -> P {
        self.0.borrow().pages.get(&page.0).cloned().unwrap_or_else(P::zero)
    }

    /// Cuts the power. `fate` decides about the write in progress. `Tear`: the pages of its first
    /// half are new, the next page is neither old nor new, the rest is old.
    pub fn power_cut(&self, fate: Fate) {
        let state = &mut *self.0.borrow_mut();
        let Some((first, mut contents)) = state.writing.take() else { return };
        match fate {
            Fate::Land => {}
            Fate::Vanish => contents.clear(),
            Fate::Tear => {
                contents.truncate(contents.len() / 2 + 1);
                if let Some(last) = contents.last_mut() {
                    *last = last.torn();
                }
            }
        }
        state.pages.extend((first..).zip(contents));
    }

    pub(super) fn cylinder(&self) -> u32 {
        self.0.borrow().cylinder
    }

    pub(super) fn begin_write(&self, first: u64, contents: Vec<P>) {
        self.0.borrow_mut().writing = Some((first, contents));
    }

    /// Ends the access to which the head was sent.
    pub(super) fn end_access(&self, cylinder: u32) {
        let state = &mut *self.0.borrow_mut();
        state.cylinder = cylinder;
        if let Some((first, contents)) = state.writing.take() {
            state.pages.extend((first..).zip(contents));
        }
    }

    pub(super) fn forget(&self, pages: std::ops::Range<u64>) {
        let state = &mut *self.0.borrow_mut();
        if pages.end - pages.start > state.pages.len() as u64 {
            state.pages.retain(|page, _| !pages.contains(page));
        } else {
            pages.for_each(|page| drop(state.pages.remove(&page)));
        }
    }
}
