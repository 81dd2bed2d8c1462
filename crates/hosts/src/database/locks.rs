//! Rows that transactions hold.
//!
//! A row has one holder. An older transaction waits for a younger one; a younger one that wants the row of an older one is refused
//! (wait-die), so that no circle of them waits for itself. It then gives back what it holds and waits for that row with empty hands.
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
    /// The row that it was refused last.
    refused: Option<(Tree, Key)>,
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
        Held { transaction, rows: Vec::new(), refused: None }
    }
}

impl State {
    /// Gives a row to a transaction; `None` where it is to wait for it.
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
        let queue = self.queue(&row);
        queue.until(|| self.0.borrow_mut().take(&row, held)).await
    }

    /// Gives all rows of a transaction back; then waits for the one that it was refused, and gives it to it. Nobody waits for who holds
    /// nothing, so that this wait is in no circle.
    pub(super) async fn start_again(&self, held: &mut Held) {
        self.unlock(held);
        let Some(row) = held.refused.take() else { return };
        let free = || (!self.0.borrow().holders.contains_key(&row)).then_some(());
        if free().is_none() {
            self.queue(&row).until(free).await;
        }
        self.0.borrow_mut().take(&row, held);
    }

    /// Where transactions wait for a row.
    fn queue(&self, row: &(Tree, Key)) -> Rc<WaitQueue> {
        let mut state = self.0.borrow_mut();
        let queue = state.waiting.entry(row.clone());
        Rc::clone(queue.or_insert_with(|| Rc::new(WaitQueue::new("a row"))))
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
            // Who waits for it has given the others back, and is in nobody's way.
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
