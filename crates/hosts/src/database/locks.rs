//! Row locks of transactions.
//!
//! A row has one holder. An older transaction waits for a younger one; a younger one that requests the row of an older one is refused
//! (wait-die), so there is no deadlock. The refused transaction releases all its rows, and waits for that row while it holds none.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, FastMap, Result};
use tantalum_runtime::sync::WaitQueue;

use crate::values::{Key, Tree};

/// The holders of rows.
#[derive(Default)]
pub(super) struct Locks(RefCell<State>);

/// The rows that a transaction holds.
pub(super) struct Held {
    /// The number of the transaction; a lower number is older.
    transaction: u64,
    rows: Vec<(Tree, Key)>,
    /// The row whose lock was refused last.
    refused: Option<(Tree, Key)>,
}

#[derive(Default)]
struct State {
    holders: FastMap<(Tree, Key), u64>,
    /// The queue of older transactions for each row: only waiters for that row are woken.
    waiting: FastMap<(Tree, Key), Rc<WaitQueue>>,
}

impl Held {
    /// No rows yet, for the transaction with this number.
    pub(super) fn new(transaction: u64) -> Self {
        Held { transaction, rows: Vec::new(), refused: None }
    }
}

impl State {
    /// Locks a row for a transaction; `None` if the transaction must wait.
    fn take(&mut self, row: &(Tree, Key), held: &mut Held) -> Option<Result<()>> {
        match self.holders.get(row) {
            Some(holder) if *holder == held.transaction => Some(Ok(())),
            Some(older) if *older < held.transaction => {
                held.refused = Some(row.clone());
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
    /// Locks a row for a transaction.
    ///
    /// # Errors
    /// `Conflict` if an older one holds it.
    pub(super) async fn lock(&self, tree: Tree, key: &[u8], held: &mut Held) -> Result<()> {
        let row = (tree, Key::from(key));
        let taken = self.0.borrow_mut().take(&row, held);
        if let Some(taken) = taken {
            return taken;
        }
        let queue = self.queue(&row);
        queue.until(|| self.0.borrow_mut().take(&row, held)).await
    }

    /// Releases all rows of a transaction, then waits for the row that was refused, and locks it. Nothing waits for a transaction
    /// without rows, so this wait cannot be part of a deadlock.
    pub(super) async fn start_again(&self, held: &mut Held) {
        self.unlock(held);
        let Some(row) = held.refused.take() else { return };
        let free = || (!self.0.borrow().holders.contains_key(&row)).then_some(());
        if free().is_none() {
            self.queue(&row).until(free).await;
        }
        self.0.borrow_mut().take(&row, held);
    }

    /// The queue of transactions that wait for a row.
    fn queue(&self, row: &(Tree, Key)) -> Rc<WaitQueue> {
        let mut state = self.0.borrow_mut();
        let queue = state.waiting.entry(row.clone());
        Rc::clone(queue.or_insert_with(|| Rc::new(WaitQueue::new("a row"))))
    }

    /// Releases all rows of a transaction.
    pub(super) fn unlock(&self, held: &mut Held) {
        let state = &mut *self.0.borrow_mut();
        for row in held.rows.drain(..) {
            state.holders.remove(&row);
            if state.waiting.is_empty() {
                continue;
            }
            match state.waiting.get(&row) {
                // Nothing waits in that queue any more.
                Some(queue) if Rc::strong_count(queue) == 1 => drop(state.waiting.remove(&row)),
                Some(queue) => queue.wake_all(),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_runtime::{First, Runtime, Virtual, first, yield_now};

    const TREE: Tree = Tree(0);

    async fn refused(locks: &Locks, key: &[u8], held: &mut Held) -> bool {
        let refused = locks.lock(TREE, key, held).await;
        refused.is_err_and(|error| error.kind() == ErrorKind::Conflict)
    }

    #[test]
    fn who_is_refused_has_the_row_as_soon_as_its_holder_ends() {
        Virtual::alone("locks", |runtime| async move {
            let locks = Rc::new(Locks::default());
            let [mut older, mut younger, mut youngest] = [1, 2, 3].map(Held::new);
            locks.lock(TREE, b"wanted", &mut older).await?;
            locks.lock(TREE, b"other", &mut younger).await?;
            assert!(refused(&locks, b"wanted", &mut younger).await);
            let again = {
                let locks = Rc::clone(&locks);
                runtime.spawn("younger", async move {
                    locks.start_again(&mut younger).await;
                    younger
                })
            };
            yield_now().await;
            // The waiter has released its other rows, and blocks nobody.
            assert!(!refused(&locks, b"other", &mut youngest).await);
            locks.unlock(&mut older);
            let younger = again.await;
            assert_eq!(younger.rows, [(TREE, Key::from(*b"wanted"))]);
            assert!(refused(&locks, b"wanted", &mut youngest).await);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn who_gives_up_while_it_waits_gets_nothing() {
        Virtual::alone("locks", |runtime| async move {
            let locks = Locks::default();
            let [mut older, mut younger, mut youngest] = [1, 2, 3].map(Held::new);
            locks.lock(TREE, b"wanted", &mut older).await?;
            assert!(refused(&locks, b"wanted", &mut younger).await);
            let given_up = first(locks.start_again(&mut younger), runtime.sleep(1_000)).await;
            assert!(matches!(given_up, First::Other(())), "the row is not free");
            locks.unlock(&mut older);
            assert!(younger.rows.is_empty());
            assert!(!refused(&locks, b"wanted", &mut youngest).await);
            Ok(())
        })
        .unwrap();
    }
}
