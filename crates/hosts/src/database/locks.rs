//! Rows that transactions hold.
//!
//! A row has one holder. An older transaction waits for a younger one; a younger one that wants the row of an older one is refused
//! (wait-die), so that no circle of them waits for itself.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, Result};
use tantalum_runtime::sync::WaitQueue;

use crate::values::{Key, Tree};

/// Who holds which rows.
#[derive(Default)]
pub(super) struct Locks(RefCell<State>);

/// What a transaction holds.
pub(super) struct Held {
    /// Transactions are numbered by their age.
    transaction: u64,
    rows: Vec<(Tree, Key)>,
}

#[derive(Default)]
struct State {
    holders: FastMap<(Tree, Key), u64>,
    /// Where older transactions wait for a row: whoever waits for another one is not woken for it.
    waiting: FastMap<(Tree, Key), Rc<WaitQueue>>,
}

impl Held {
    /// Nothing yet, of the how-many-th transaction.
    pub(super) fn new(transaction: u64) -> Self {
        Held { transaction, rows: Vec::new() }
    }
}

impl State {
    /// Gives a row to a transaction; `None` where it is to wait for it.
    fn take(&mut self, row: &(Tree, Key), held: &mut Held) -> Option<Result<()>> {
        match self.holders.get(row) {
            Some(holder) if *holder == held.transaction => Some(Ok(())),
            Some(older) if *older < held.transaction => {
                let context = "an older transaction holds the row";
                Some(Err(Error::new(ErrorKind::Conflict, context)))
            }
            Some(_) => None,
            None => {
                self.holders.insert(row.clone(), held.transaction);
                held.rows.push(row.clone());
                Some(Ok(()))
            }
        }
    }
}

impl Locks {
    /// Gives a row to a transaction.
    ///
    /// # Errors
    /// `Conflict` where an older one holds it.
    pub(super) async fn lock(&self, tree: Tree, key: &[u8], held: &mut Held) -> Result<()> {
        let row = (tree, Key::from(key));
        let taken = self.0.borrow_mut().take(&row, held);
        if let Some(taken) = taken {
            return taken;
        }
        let queue = {
            let mut state = self.0.borrow_mut();
            let queue = state.waiting.entry(row.clone());
            Rc::clone(queue.or_insert_with(|| Rc::new(WaitQueue::new("a row"))))
        };
        queue.until(|| self.0.borrow_mut().take(&row, held)).await
    }

    /// Gives all rows of a transaction back.
    pub(super) fn unlock(&self, held: &mut Held) {
        let state = &mut *self.0.borrow_mut();
        for row in held.rows.drain(..) {
            state.holders.remove(&row);
            if state.waiting.is_empty() {
                continue;
            }
            match state.waiting.get(&row) {
                // Nobody waits there any more.
                Some(queue) if Rc::strong_count(queue) == 1 => drop(state.waiting.remove(&row)),
                Some(queue) => queue.wake_all(),
                None => {}
            }
        }
    }
}
