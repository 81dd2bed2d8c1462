//! Rows that transactions hold.
//!
//! A row has one holder. An older transaction waits for a younger one; a younger one that wants the row of an older one is refused
//! (wait-die), so that no circle of them waits for itself.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, Result};
use tantalum_runtime::sync::WaitQueue;

use crate::values::{Key, Tree};

/// Who holds which rows. Transactions are numbered by their age.
pub(super) struct Locks {
    state: RefCell<State>,
    released: WaitQueue,
}

#[derive(Default)]
struct State {
    holders: FastMap<(Tree, Key), u64>,
    /// The rows of each transaction.
    held: FastMap<u64, Vec<(Tree, Key)>>,
}

impl Default for Locks {
    fn default() -> Self {
        Locks { state: RefCell::default(), released: WaitQueue::new("a row") }
    }
}

impl Locks {
    /// Gives a row to `transaction`.
    ///
    /// # Errors
    /// `Conflict` where an older one holds it.
    pub(super) async fn lock(&self, tree: Tree, key: &[u8], transaction: u64) -> Result<()> {
        let row = (tree, Key::from(key));
        let mine = || {
            let state = &mut *self.state.borrow_mut();
            match state.holders.get(&row) {
                Some(holder) if *holder == transaction => Some(Ok(())),
                Some(older) if *older < transaction => {
                    let context = "an older transaction holds the row";
                    Some(Err(Error::new(ErrorKind::Conflict, context)))
                }
                Some(_) => None,
                None => {
                    state.holders.insert((tree, Rc::clone(&row.1)), transaction);
                    let held = state.held.entry(transaction).or_default();
                    held.push((tree, Rc::clone(&row.1)));
                    Some(Ok(()))
                }
            }
        };
        self.released.until(mine).await
    }

    /// Gives all rows of `transaction` back.
    pub(super) fn unlock(&self, transaction: u64) {
        let state = &mut *self.state.borrow_mut();
        let Some(rows) = state.held.remove(&transaction) else { return };
        for row in rows {
            state.holders.remove(&row);
        }
        self.released.wake_all();
    }
}
