//! A fixed page.
use std::cell::{Ref, RefMut};
use std::rc::Rc;
use tantalum_base::{PageNo, Result};
use tantalum_runtime::Runtime;

use crate::admission::Step;
use crate::frames::Pin;
use crate::options::Intent;
use crate::pool::Pool;
use crate::store::PageStore;

/// Keeps a page in its frame until it is dropped (the unfix). Guards for reading share the page; a
/// guard for an update is exclusive.
///
/// A task that holds a guard must not fix the same page again: that would deadlock.
pub struct Guard<D: PageStore, R: Runtime> {
    pool: Rc<Pool<D, R>>,
    frame: u32,
    intent: Intent,
    pin: Pin,
    /// It holds the latch.
    entered: bool,
    /// It is counted in `updaters_waiting`.
    waits: bool,
    /// The update flag: the page was really changed.
    updated: bool,
}

impl<D: PageStore, R: Runtime> Guard<D, R> {
    /// A fix whose frame is pinned, without content and latch yet.
    pub(crate) fn pinned(pool: Rc<Pool<D, R>>, frame: u32, (intent, pin): (Intent, Pin)) -> Self {
        Guard { pool, frame, intent, pin, entered: false, waits: false, updated: false }
    }

    /// Waits for the content and the latch; reads the page if no other fix does.
    pub(crate) async fn enter(&mut self) -> Result<()> {
        let (pool, frame, intent, waits) = (&self.pool, self.frame, self.intent, &mut self.waits);
        loop {
            let step = || pool.state.borrow_mut().enter(frame, intent, waits);
            match pool.latch(frame).until(step).await {
                Step::Enter => break,
                Step::Read => pool.read_into(frame).await,
                Step::Fail(error) => return Err(error),
            }
        }
        self.entered = true;
        if intent == Intent::Overwrite {
            pool.zero_if_absent(frame);
        }
        Ok(())
    }

    /// The page's number.
    pub fn number(&self) -> PageNo {
        self.pool.state.borrow().frames.get(self.frame).page
    }

    /// The page. The borrow must end before the next `await`.
    pub fn page(&self) -> Ref<'_, D::Page> {
        self.pool.content(self.frame).borrow()
    }

    /// The page, to change it; it becomes dirty at the unfix. After [`Intent::Overwrite`] of a page
    /// that was not in the pool, it is zero until it is set.
    ///
    /// # Panics
    /// If the page was fixed for reading.
    pub fn page_mut(&mut self) -> RefMut<'_, D::Page> {
        assert!(self.intent.is_write(), "page {} was fixed for reading", self.number());
        self.updated = true;
        self.pool.content(self.frame).borrow_mut()
    }
}

/// Keeps a page in its frame until it is dropped, without the latch: anyone may read and change the
/// page meanwhile, its holder too.
pub struct Hold<D: PageStore, R: Runtime>(Guard<D, R>);

impl<D: PageStore, R: Runtime> Hold<D, R> {
    /// Of a fix for reading, whose latch is given up if it has it.
    pub(crate) fn of(mut guard: Guard<D, R>) -> Self {
        if std::mem::take(&mut guard.entered) {
            guard.pool.state.borrow_mut().leave(guard.frame);
            guard.pool.latch(guard.frame).wake_all();
        }
        Hold(guard)
    }

    /// The page's number.
    pub fn number(&self) -> PageNo {
        self.0.number()
    }
}

impl<D: PageStore, R: Runtime> Drop for Guard<D, R> {
    fn drop(&mut self) {
        let mut state = self.pool.state.borrow_mut();
        state.unfix(self.frame, self.pin, self.entered, self.updated, self.waits);
        self.pool.wake_waiting(&state);
        drop(state);
        self.pool.latch(self.frame).wake_all();
    }
}
