//! Changes that are made together.
//!
//! A transaction keeps its changes to itself until it commits: then they take effect in one step. One that is dropped has changed
//! nothing. Rows that it changes, or reads to change them, are its own until it ends; others' reads see what was committed last.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_buffer::Intent;
use tantalum_runtime::Runtime;

use super::engine::Database;
use super::locks::Held;
use super::way::Way;
use crate::btree::{KEY_BYTES_MAX, Lsn, Plan, TreePage, find};
use crate::records::Codec;
use crate::redo::{Block, Group};
use crate::values::{Key, Tree, Value};

/// Changes of rows; `None` where the row goes.
type Changes<V> = BTreeMap<(Tree, Key), Option<V>>;

/// A transaction. Dropped, it has changed nothing.
pub struct Transaction<R: Runtime, D: PageDevice, V: Value, C, W: Way>
where
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    engine: Rc<Database<R, D, V, C, W>>,
    /// Its rows, and its age: of two that want the same row the older one may wait.
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

    /// The row with `key`, as this transaction changed it, or else as it was committed last.
    ///
    /// # Errors
    /// As [`Database::get`].
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        match self.changes.get(&(tree, Key::from(key))) {
            Some(change) => Ok(change.clone()),
            None => self.engine.get(tree, key).await,
        }
    }

    /// As [`get`](Self::get), and keeps others from changing the row until this transaction ends. Waits for the transaction
    /// that holds it.
    ///
    /// # Errors
    /// `Conflict` where that one is older: this transaction is to be given up, or to [start again](Self::start_again).
    /// `InvalidInput` and `TooLarge` for what cannot be a key. Others as [`get`](Self::get).
    pub async fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<V>> {
        self.lock(tree, key).await?;
        self.get(tree, key).await
    }

    /// Puts a row in, in place of the one with this key if there is one.
    ///
    /// # Errors
    /// `InvalidInput` and `TooLarge` for what cannot be a row; `Conflict` as in [`get_for_update`](Self::get_for_update).
    pub async fn put(&mut self, tree: Tree, key: &[u8], value: V) -> Result<()> {
        let most = TreePage::<V>::row_bytes_max(self.engine.options.pages.device_pages_per_page);
        let bytes = key.len() + value.bytes();
        if bytes > most {
            let context = format!("a row of {bytes} bytes, where a page takes {most}");
            return Err(Error::new(ErrorKind::TooLarge, context));
        }
        self.change(tree, key, Some(value)).await
    }

    /// Takes a row out, if there is one with this key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.change(tree, key, None).await
    }

    /// As [`Database::scan`], with this transaction's changes.
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

    /// Gives up the changes and the rows, to try again: waits for the row that it was refused, which it has then. It stays as old as it
    /// is, so that in the end no older one is in its way.
    pub async fn start_again(&mut self) {
        self.changes.clear();
        self.engine.locks.start_again(&mut self.held).await;
    }

    /// Makes the changes, all of them or none; they are durable when this returns.
    ///
    /// # Errors
    /// With nothing changed: `OutOfSpace` where the database is full, or the pool too small for the pages of this transaction;
    /// `TooLarge` where the log, or a transaction of the device that stands in its place, is too small for it; those of reading pages.
    /// Where the log or that transaction fails the changes may be there or not when the database is opened again, all of them or none; until then nothing is committed any more.
    pub async fn commit(mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        let engine = Rc::clone(&self.engine);
        // Pages that must be read are read before its turn comes, so that others need not wait for that.
        for (tree, key) in changes.keys() {
            find(&*engine, tree.root(), key).await?;
        }
        let lsn = engine.take_effect(changes).await?;
        // Whoever changes these rows now commits behind this.
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

impl<R, D, V, C, W> Database<R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    /// A commit holds the frames of all pages that it changes, and leaves one to those who read meanwhile.
    fn check_frames(&self, pages: usize) -> Result<()> {
        let frames = self.pool.frames().total as usize;
        if pages >= frames {
            let context = format!(
                "a commit changes {pages} pages of the database, and the pool has {frames} frames"
            );
            return Err(Error::new(ErrorKind::OutOfSpace, context));
        }
        Ok(())
    }

    /// Brings changes into the log and the pool, in one step; the LSN of their group, if anything changes.
    async fn take_effect(&self, changes: Changes<V>) -> Result<Option<Lsn>> {
        let _turn = self.commit_turn.acquire(1).await;
        let pages = self.options.pages;
        let sizes = (pages.database_pages, pages.device_pages_per_page);
        let mut plan = Plan::new(self, sizes);
        for ((tree, key), change) in changes {
            match change {
                Some(value) => plan.put(tree.root(), &key, value).await?,
                None => plan.delete(tree.root(), &key).await?,
            }
        }
        loop {
            let whole_before = self.whole_before.get();
            let group = Group { pages: plan.changes(whole_before) };
            if group.pages.is_empty() {
                return Ok(None);
            }
            self.check_frames(group.pages.len())?;
            // Before the pages are held: what makes room in the log writes pages.
            self.commits.room(&group).await?;
            let mut held = Vec::with_capacity(group.pages.len());
            for page in plan.pages() {
                held.push(self.pool.fix(page, Intent::Overwrite).await?);
            }
            // A checkpoint that began meanwhile wants more pages whole, for which there may be no room.
            if self.whole_before.get() != whole_before {
                continue;
            }
            let whole = group.pages.iter().filter(|page| page.replaces()).count();
            self.counts.borrow_mut().whole_pages += whole as u64;
            if plan.changes_structure() {
                self.structure_version.set(self.structure_version.get() + 1);
            }
            let frames = held.iter_mut().map(|held| held.page_mut());
            let lsn = self.commits.append(group, |lsn| plan.take_effect(lsn, frames));
            return Ok(Some(lsn));
        }
    }
}
