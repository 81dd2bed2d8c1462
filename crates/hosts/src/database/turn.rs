//! The turn of a commit, in which its changes take effect.
//!
//! Commits change pages one after the other. A commit first brings its pages into the pool and keeps them there; then it takes its turn,
//! in which it does not wait for pages. If one is missing all the same, as a tree changed meanwhile or a page is split, it gives the turn
//! back, brings that page in and tries again. So reads of many commits are under way together.
//!
//! A quarter of the pool's frames may be kept this way, and the pool has as many transit frames beside those of two batches: with fewer,
//! kept pages that the policy evicts leave none for a full batch, and batches become small. Each commit says beforehand how many pages it
//! needs. One that needs more than a quarter waits until it is the only one, and then reads in its turn.
use std::cell::Cell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Result};
use tantalum_buffer::{Hold, Intent};
use tantalum_runtime::Runtime;

use super::commits::Commits;
use super::engine::Database;
use super::homes::HomeStore;
use super::transaction::Changes;
use super::way::Way;
use crate::btree::{Lsn, Plan, TreePage, TreePages, leaf_page};
use crate::records::Codec;
use crate::redo::{Block, Group};
use crate::values::Value;

/// Number of pages that a commit may keep beyond its leaves, once it was found to need more: a leaf that is split, its parent, the page of
/// free pages and the new ones.
const MORE_PAGES: u64 = 8;

type Kept<R, D, C, V, W> = Hold<HomeStore<R, D, C, Rc<TreePage<V>>, Commits<D, C, V>, W>, R>;

/// Number of pages that all commits together may keep in a pool of `pool_pages` frames.
pub(super) fn kept_pages_max(pool_pages: u32) -> u32 {
    (pool_pages / 4).max(1)
}

/// The result of a turn, or of several.
enum Took {
    /// The changes took effect, under this LSN if there were any.
    Effect(Option<Lsn>),
    /// A page must be kept first, and nothing is changed.
    Missing(Missing),
    /// More pages must be kept than were asked for.
    More,
    /// The commit changes so many pages that it must be the only one.
    Alone,
}

enum Missing {
    /// The plan reads this page.
    Content(PageNo),
    /// This page is new and needs a frame.
    Frame(PageNo),
}

/// The pages that a plan sees.
struct Source<'a, R: Runtime, D: PageDevice, V: Value, C, W: Way>
where
    C: Codec<Page = D::Page, Record = Block<V>>,
{
    engine: &'a Database<R, D, V, C, W>,
    /// Whether it waits for pages that are not in the pool.
    waits: bool,
    /// The page for which it did not wait.
    missing: Cell<Option<PageNo>>,
}

impl<R, D, V, C, W> TreePages<V> for Source<'_, R, D, V, C, W>
where
    R: Runtime,
    D: PageDevice,
    V: Value,
    C: Codec<Page = D::Page, Record = Block<V>>,
    W: Way,
{
    async fn page(&self, page: PageNo) -> Result<Rc<TreePage<V>>> {
        if self.waits {
            return self.engine.page(page).await;
        }
        self.engine.pool.read_resident(page).ok_or_else(|| {
            self.missing.set(Some(page));
            Error::new(ErrorKind::Conflict, "a page of a commit is not in the pool")
        })
    }

    fn structure_version(&self) -> u64 {
        self.engine.structure_version()
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
    /// Puts changes into the log and the pool, in one step; returns the LSN of their group, if anything changed.
    pub(super) async fn take_effect(&self, changes: Changes<V>) -> Result<Option<Lsn>> {
        let all = self.kept_pages_max();
        let mut most = changes.len() as u64;
        loop {
            let _kept = self.kept_pages.acquire(most.min(all)).await;
            let took = match most < all {
                true => self.take_turns(&changes, most).await?,
                false => {
                    let _turn = self.commit_turn.acquire(1).await;
                    self.take_turn(&changes, true).await?
                }
            };
            match took {
                Took::Effect(lsn) => return Ok(lsn),
                Took::More | Took::Missing(_) => most += MORE_PAGES,
                Took::Alone => most = all,
            }
        }
    }

    /// Keeps up to `most` pages, and takes turns until they are all that a turn needs.
    async fn take_turns(&self, changes: &Changes<V>, most: u64) -> Result<Took> {
        let mut kept: Vec<Kept<R, D, C, V, W>> = Vec::with_capacity(most as usize);
        for (tree, key) in changes.keys() {
            let leaf = leaf_page(self, tree.root(), key).await?;
            if kept.last().is_none_or(|last| last.number() != leaf) {
                kept.push(self.pool.hold(leaf).await?);
            }
        }
        loop {
            let turn = self.commit_turn.acquire(1).await;
            let took = self.take_turn(changes, false).await?;
            drop(turn);
            let Took::Missing(missing) = took else { return Ok(took) };
            if kept.len() as u64 == most {
                return Ok(Took::More);
            }
            kept.push(match missing {
                Missing::Content(page) => self.pool.hold(page).await?,
                Missing::Frame(page) => self.pool.hold_frame(page).await?,
            });
        }
    }

    /// Takes effect, if no page is `Missing`; with nothing changed otherwise. `alone`: no other commit keeps pages, and this one may wait
    /// for them. The caller has the turn.
    async fn take_turn(&self, changes: &Changes<V>, alone: bool) -> Result<Took> {
        let pages = self.options.pages;
        let source = Source { engine: self, waits: alone, missing: Cell::new(None) };
        let mut plan = Plan::new(&source, (pages.database_pages, pages.device_pages_per_page));
        for ((tree, key), change) in changes {
            let planned = match change {
                Some(value) => plan.put(tree.root(), key, value.clone()).await,
                None => plan.delete(tree.root(), key).await,
            };
            if let Some(page) = source.missing.take() {
                return Ok(Took::Missing(Missing::Content(page)));
            }
            planned?;
        }
        loop {
            let whole_before = self.whole_before.get();
            let group = Group { pages: plan.changes(whole_before) };
            if group.pages.is_empty() {
                return Ok(Took::Effect(None));
            }
            self.check_frames(group.pages.len())?;
            if !alone && !self.has_frames_beside(group.pages.len()) {
                return Ok(Took::Alone);
            }
            let new = plan.pages().find(|page| !self.pool.is_resident(*page));
            if let Some(page) = new.filter(|_| !alone) {
                return Ok(Took::Missing(Missing::Frame(page)));
            }
            // This comes before the pages are fixed: making room in the log writes pages.
            self.commits.room(&group).await?;
            let mut fixed = Vec::with_capacity(group.pages.len());
            for page in plan.pages() {
                fixed.push(self.pool.fix(page, Intent::Overwrite).await?);
            }
            // A checkpoint that began meanwhile requires more whole pages, for which there may be no room.
            if self.whole_before.get() != whole_before {
                continue;
            }
            let whole = group.pages.iter().filter(|page| page.replaces()).count();
            self.counts.borrow_mut().whole_pages += whole as u64;
            if plan.changes_structure() {
                self.structure_version.set(self.structure_version.get() + 1);
            }
            let frames = fixed.iter_mut().map(|fixed| fixed.page_mut());
            let lsn = self.commits.append(group, |lsn| plan.take_effect(lsn, frames));
            return Ok(Took::Effect(Some(lsn)));
        }
    }

    /// A commit fixes the frames of all pages that it changes, and leaves one frame for concurrent reads.
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

    /// Whether it can do so beside all pages that commits may keep.
    fn has_frames_beside(&self, pages: usize) -> bool {
        pages as u64 + self.kept_pages_max() < u64::from(self.pool.frames().total)
    }

    fn kept_pages_max(&self) -> u64 {
        kept_pages_max(self.pool.frames().total).into()
    }
}
