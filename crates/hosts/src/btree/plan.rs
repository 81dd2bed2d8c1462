//! Changes of trees, computed before they are applied.
use std::cell::RefMut;
use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageNo, Result};

use super::SPACE_PAGE;
use super::change::{Change, PageChanges};
use super::find::{TreePages, broken, step};
use super::page::{Content, Entries, Lsn, Space, TreePage};
use super::planned::Planned;
use crate::values::{Key, Value};

/// The changes that a transaction will make to pages. Nothing else may change pages between the plan's first look at one and
/// the moment at which its contents take effect.
pub(crate) struct Plan<'a, V, S> {
    source: &'a S,
    pages: BTreeMap<PageNo, Planned<V>>,
    /// Number of pages of the database, and device pages per page.
    database_pages: u64,
    device_pages: u32,
    /// Whether keys move to other pages.
    structure: bool,
}

impl<'a, V: Value, S: TreePages<V>> Plan<'a, V, S> {
    /// An empty plan for a database with this many pages, each of this many device pages.
    pub(crate) fn new(source: &'a S, (database_pages, device_pages): (u64, u32)) -> Self {
        let pages = BTreeMap::new();
        Plan { source, pages, database_pages, device_pages, structure: false }
    }

    /// Whether keys move to other pages, so that concurrent searches must restart.
    pub(crate) fn changes_structure(&self) -> bool {
        self.structure
    }

    /// The changes to record in a log. A page that has not changed since `whole_before` is recorded with its whole content.
    pub(crate) fn changes(&self, whole_before: Lsn) -> Vec<PageChanges<V>> {
        let changed = self.pages.values().filter(|planned| planned.is_changed());
        changed.map(|planned| planned.changes(whole_before)).collect()
    }

    /// The pages that the plan changes, in ascending order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> {
        let changed = self.pages.iter().filter(|(_, planned)| planned.is_changed());
        changed.map(|(page, _)| *page)
    }

    /// Puts the new contents into the `frames` of the pool, which are in the same order as the pages; returns these contents.
    pub(crate) fn take_effect<'f>(
        self,
        lsn: Lsn,
        frames: impl Iterator<Item = RefMut<'f, Rc<TreePage<V>>>>,
    ) -> Vec<Rc<TreePage<V>>> {
        let changed = self.pages.into_values().filter(Planned::is_changed);
        let contents = changed.zip(frames).map(|(planned, mut frame)| {
            planned.take_effect(lsn, &mut frame);
            Rc::clone(&frame)
        });
        contents.collect()
    }

    /// Puts a row in, in place of the one with this key if there is one.
    ///
    /// # Errors
    /// `OutOfSpace`; errors of the source.
    pub(crate) async fn put(&mut self, root: PageNo, key: &Key, value: V) -> Result<()> {
        let mut path = self.descend(root, key).await?;
        let mut last = key.clone();
        self.change(path[path.len() - 1], Change::Put(key.clone(), value)).await?;
        let room = TreePage::<V>::room(self.device_pages);
        while let Some(page) = path.pop() {
            let planned = self.load(page).await?;
            if planned.sizes().bytes <= room {
                return Ok(());
            }
            let Some(middle) = planned.content().middle(&last) else {
                return Err(broken(page, "cannot be split"));
            };
            self.structure = true;
            match path.last() {
                Some(parent) => self.split(page, *parent, &middle).await?,
                None => self.split_root(page, &middle).await?,
            }
            last = middle;
        }
        Ok(())
    }

    /// Removes a row, if there is one with this key.
    ///
    /// # Errors
    /// Errors of the source.
    pub(crate) async fn delete(&mut self, root: PageNo, key: &Key) -> Result<()> {
        let mut path = self.descend(root, key).await?;
        let leaf = path[path.len() - 1];
        let Content::Leaf(rows) = self.content(leaf).await? else { return Ok(()) };
        if rows.get(key).is_none() {
            return Ok(());
        }
        self.change(leaf, Change::Remove(key.clone())).await?;
        while let Some(page) = path.pop() {
            if self.load(page).await?.sizes().entries > 0 {
                break;
            }
            let Some(parent) = path.last() else {
                // That was the last row of the tree: the root becomes a leaf again.
                self.change(page, Change::Content(Content::empty())).await?;
                break;
            };
            self.structure = true;
            let Content::Inner(children) = self.content(*parent).await? else {
                return Err(broken(*parent, "is no inner node"));
            };
            let Some(key) = children.key_of(page).cloned() else {
                return Err(broken(*parent, "does not know its child"));
            };
            self.change(*parent, Change::Remove(key)).await?;
            self.free(page).await?;
        }
        Ok(())
    }

    /// The path from the root to the leaf that covers `key`.
    async fn descend(&self, root: PageNo, key: &[u8]) -> Result<Vec<PageNo>> {
        let mut path = vec![root];
        let mut at = root;
        loop {
            let child = match self.pages.get(&at) {
                Some(planned) => step(planned.page(), key)?.map(|(child, _)| child),
                None => {
                    let page = self.source.page(at).await?;
                    step(&page, key)?.map(|(child, _)| child)
                }
            };
            let Some(child) = child else { return Ok(path) };
            path.push(child);
            at = child;
        }
    }

    /// Moves the upper half of `page` to a new page beside it.
    async fn split(&mut self, page: PageNo, parent: PageNo, middle: &Key) -> Result<()> {
        let new = self.allocate().await?;
        let mut content = self.content(page).await?.clone();
        let upper = content.split_off(middle).unwrap_or(Content::empty());
        self.change(new, Change::Content(upper)).await?;
        self.change(page, Change::Cut(middle.clone())).await?;
        self.change(parent, Change::PutChild(middle.clone(), new)).await
    }

    /// Moves both halves of the root to new pages, which become its children.
    async fn split_root(&mut self, root: PageNo, middle: &Key) -> Result<()> {
        let (left, right) = (self.allocate().await?, self.allocate().await?);
        let mut lower = self.content(root).await?.clone();
        let upper = lower.split_off(middle).unwrap_or(Content::empty());
        self.change(left, Change::Content(lower)).await?;
        self.change(right, Change::Content(upper)).await?;
        let lowest = Key::from([]);
        let children = Entries::new(vec![(lowest, left), (middle.clone(), right)]);
        self.change(root, Change::Content(Content::Inner(children))).await
    }

    async fn space(&mut self) -> Result<Space> {
        match self.content(SPACE_PAGE).await? {
            Content::Space(space) => Ok(*space),
            _ => Err(broken(SPACE_PAGE, "does not say which pages are free")),
        }
    }

    /// Takes a free page. The caller sets its content.
    async fn allocate(&mut self) -> Result<PageNo> {
        let mut space = self.space().await?;
        let page = match space.free {
            Some(page) => {
                let Content::Free { next } = *self.content(page).await? else {
                    return Err(broken(page, "is listed as free and is not"));
                };
                space.free = next;
                page
            }
            None if space.used < self.database_pages => {
                space.used += 1;
                let number = PageNo(space.used - 1);
                let (lsn, device_pages) = (Lsn(0), self.device_pages);
                let content = Content::Free { next: None };
                let page = Rc::new(TreePage { number, lsn, device_pages, content });
                self.pages.insert(number, Planned::new(page));
                number
            }
            None => {
                let context = format!("all {} pages of the database are used", self.database_pages);
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            }
        };
        self.change(SPACE_PAGE, Change::Content(Content::Space(space))).await?;
        Ok(page)
    }

    async fn free(&mut self, page: PageNo) -> Result<()> {
        let space = self.space().await?;
        self.change(page, Change::Content(Content::Free { next: space.free })).await?;
        let space = Space { free: Some(page), ..space };
        self.change(SPACE_PAGE, Change::Content(Content::Space(space))).await
    }

    async fn change(&mut self, page: PageNo, change: Change<V>) -> Result<()> {
        match self.load(page).await?.change(change) {
            true => Ok(()),
            false => Err(broken(page, "does not take a change")),
        }
    }

    /// The complete content of a page, with the changes of the plan.
    async fn content(&mut self, page: PageNo) -> Result<&Content<V>> {
        Ok(self.load(page).await?.content())
    }

    async fn load(&mut self, page: PageNo) -> Result<&mut Planned<V>> {
        if !self.pages.contains_key(&page) {
            let found = self.source.page(page).await?;
            self.pages.insert(page, Planned::new(found));
        }
        self.pages.get_mut(&page).ok_or_else(|| broken(page, "is gone"))
    }
}
