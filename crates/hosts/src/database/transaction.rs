//! Changes that are made together.
//!
//! A transaction keeps its changes private until it commits; then they take effect in one step. A transaction that is dropped changes
//! nothing. It holds a lock on the rows that it changes, or reads in order to change them, until it ends; other transactions read the last
//! committed rows.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_runtime::Runtime;

use super::engine::Database;
use super::locks::Held;
use super::way::Way;
use crate::btree::{KEY_BYTES_MAX, TreePage};
use crate::records::Codec;
use crate::redo::Block;
use crate::values::{Key, Tree, Value};

/// Changes of rows; `None` if the row is deleted.
pub(super) type Changes<V> = BTreeMap<(Tree, Key), Option<V>>;

/// A transaction. Dropped, it has changed nothing.
pub struct Transaction<R: Runtime, D: PageDevice, V: Value, C, W: Way>
where
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    engine: Rc<Database<R, D, V, C, W>>,
    /// Its row locks, and its age: of two transactions that request the same row the older one may wait.
    held: Held,
    changes: Changes<V>,
}

impl<R, D, V, C, W> Transaction<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    pub(super) fn new(engine: Rc<Database<R, D, V, C, W>>) -> Self {
        let number = engine.transactions.get() + 1;
        engine.transactions.set(number);
        Transaction { engine, held: Held::new(number), changes: Changes::new() }
    }

    /// The row with `key` as this transaction changed it, otherwise the last committed one.
    ///
    /// # Errors
    /// As [`Database::get`].
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        match self.changes.get(&(tree, Key::from(key))) {
            Some(change) => Ok(change.clone()),
            None => self.engine.get(tree, key).await,
        }
    }

    /// Like [`get`](Self::get), and locks the row until this transaction ends. Waits for the transaction that holds the lock.
    ///
    /// # Errors
    /// `Conflict` if that transaction is older: give this one up, or [start it again](Self::start_again). `InvalidInput` and `TooLarge` if
    /// the key is not valid. Others as for [`get`](Self::get).
    pub async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        self.lock(tree, key).await?;
        self.get(tree, key).await
    }

    /// Puts a row in, in place of the one with this key if there is one.
    ///
    /// # Errors
    /// `InvalidInput` and `TooLarge` if the row is not valid; `Conflict` as for [`get_for_update`](Self::get_for_update).
    pub async fn put(&mut self, tree: Tree, key: &[u8], value: V) -> Result<()> {
        let most = TreePage::<V>::row_bytes_max(self.engine.options.pages.device_pages_per_page);
        let bytes = key.len() + value.bytes();
        if bytes > most {
            let context = format!("a row of {bytes} bytes, where a page takes {most}");
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        self.change(tree, key, Some(value)).await
    }

    /// Deletes a row, if there is one with this key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.change(tree, key, None).await
    }

    /// Like [`Database::scan`], with this transaction's changes.
    ///
    /// # Errors
    /// As [`Database::scan`].
    pub async fn scan(
        &self,
        tree: Tree,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
    ) -> Result<Vec<(Key, V)>> {
        self.engine.check(tree)?;
        let begin = Bound::Included((tree, Key::from(from)));
        let end = match to {
            Some(to) if to <= from => return Ok(Vec::new()),
            Some(to) => Bound::Excluded((tree, Key::from(to))),
            None => Bound::Excluded((Tree(tree.0 + 1), Key::from([]))),
        };
        let changes: Vec<_> = self.changes.range((begin, end)).collect();
        let gone = changes.iter().filter(|(_, change)| change.is_none()).count();
        let found = self.engine.scan(tree, from, to, most.saturating_add(gone)).await?;
        let mut rows: BTreeMap<Key, V> = found.into_iter().collect();
        for ((_, key), change) in changes {
            match change {
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(rows.into_iter().take(most).collect())
    }

    /// Discards the changes and releases the locks for another try: waits for the row that was refused, and locks it. The transaction keeps
    /// its age, so in the end no older one blocks it.
    pub async fn start_again(&mut self) {
        self.changes.clear();
        self.engine.locks.start_again(&mut self.held).await;
    }

    /// Applies the changes, all or nothing; they are durable when this returns.
    ///
    /// # Errors
    /// With nothing changed: `OutOfSpace` if the database is full, or the pool is too small for the pages of this transaction; `TooLarge`
    /// if the log (or the device transaction that replaces it) is too small for it; those of reading pages. If the log or that device
    /// transaction fails, the next opening finds all of the changes or none; until then further commits are refused.
    pub async fn commit(mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        let engine = Rc::clone(&self.engine);
        let lsn = engine.take_effect(changes).await?;
        // A transaction that changes these rows now commits after this one.
        drop(self);
        let Some(lsn) = lsn else { return Ok(()) };
        engine.commits.until_durable(lsn).await?;
        engine.counts.borrow_mut().commits += 1;
        Ok(())
    }

    async fn change(&mut self, tree: Tree, key: &[u8], change: Option<V>) -> Result<()> {
        self.lock(tree, key).await?;
        self.changes.insert((tree, Key::from(key)), change);
        Ok(())
    }

    async fn lock(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.engine.check(tree)?;
        if key.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "a row needs a key"));
        }
        if key.len() > KEY_BYTES_MAX {
            let context = format!("a key of {} bytes is over {KEY_BYTES_MAX}", key.len());
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        let locked = self.engine.locks.lock(tree, key, &mut self.held).await;
        if locked.is_err() {
            self.engine.counts.borrow_mut().conflicts += 1;
        }
        locked
    }
}

impl<R: Runtime, D: PageDevice, V: Value, C, W: Way> Drop for Transaction<R, D, V, C, W>
where
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    fn drop(&mut self) {
        self.engine.locks.unlock(&mut self.held);
    }
}
