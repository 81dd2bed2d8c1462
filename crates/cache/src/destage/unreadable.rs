//! Dirty pages that the flash cannot read: they are tried again.
//!
//! An error says nothing of a page's content: a path may fail over, a controller reset, and on stripes one member may be away
//! while its neighbours answer. So such a page stays dirty until it can be read, is overwritten or trimmed, or the flash itself
//! says that it is lost. An epoch that lacks a page would be no moment of the past: it is given up, and a later one
//! takes all that is dirty then. Without epochs all other pages go home meanwhile.
use std::cell::{Cell, RefCell};
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;
use tantalum_runtime::life_cycle::is_damage;

use super::DOUBLINGS_MAX;
use crate::fault_points::Fault;
use crate::tiered::Tiered;

/// Why a round did not end well.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Dirty pages cannot be read from the flash.
    Unreadable,
    /// Home, its journal, or anything else failed.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

/// When dirty pages that could not be read are tried again, where others go home meanwhile.
#[derive(Default)]
pub(super) struct Retries {
    /// Tries since there are any.
    tries: Cell<u32>,
    due_ns: Cell<u64>,
    /// What the last one answered.
    answer: RefCell<Option<Error>>,
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Fills in the contents of dirty pages, all as of the first poll. Those that cannot be read leave the list, and the
    /// round.
    ///
    /// # Errors
    /// `Unreadable` where one of them may be read another time; every other page has its content then. Of a page that is
    /// at home, or lost, none.
    pub(super) async fn read_dirty(
        &self,
        contents: &mut Vec<(PageNo, M::Page)>,
    ) -> Result<(), Failure> {
        let pages: Vec<PageNo> = contents.iter().map(|(page, _)| *page).collect();
        let mut out = vec![M::Page::zero(); pages.len()];
        if self.drive.read_scattered(pages.iter().copied().zip(0..), &mut out).await.is_ok() {
            contents.iter_mut().zip(out).for_each(|((_, content), read)| *content = read);
            return Ok(());
        }
        let (mut absent, mut result) = (Vec::new(), Ok(()));
        for (page, content) in contents.iter_mut() {
            match self.read_one_dirty(*page).await {
                Ok(read) => *content = read,
                Err(error) => {
                    absent.push(*page);
                    result = result.and(self.not_read(*page, error));
                }
            }
        }
        contents.retain(|(page, _)| !absent.contains(page));
        result
    }

    async fn read_one_dirty(&self, page: PageNo) -> Result<M::Page> {
        let mut content = [M::Page::zero()];
        self.drive.read_scattered(std::iter::once((page, 0)), &mut content).await?;
        let [content] = content;
        Ok(content)
    }

    /// Notes that `page`, which the round has or which is tried again, could not be read.
    fn not_read(&self, page: PageNo, error: Error) -> Result<(), Failure> {
        let dirty = &mut *self.dirty.borrow_mut();
        if !self.drive.holds(page) || self.drive.is_clean(page) {
            // It was to fill a gap, and home has it.
            dirty.round.remove(page);
            return Ok(());
        }
        if self.drive.ftl().is_lost(page) || Fault::EpochWithoutUnreadable.is_planted() {
            dirty.lose(page);
            return Ok(());
        }
        dirty.set_aside(page);
        self.drive.ftl().read_page_again(page, &error);
        if is_damage(error.kind()) || error.kind() == ErrorKind::Io {
            self.destager.unreadable.answer.replace(Some(error));
            return Err(Failure::Unreadable);
        }
        Err(Failure::Other(error))
    }

    /// Reads the first of the pages that could not be read once more: while that fails, no epoch would have it.
    ///
    /// # Errors
    /// As [`read_dirty`](Self::read_dirty).
    pub(super) async fn read_first_unreadable(&self) -> Result<(), Failure> {
        loop {
            let Some(page) = self.dirty.borrow().unreadable.next(PageNo(0)) else { return Ok(()) };
            let Err(error) = self.read_one_dirty(page).await else { return Ok(()) };
            // Unless it was changed, or lost, meanwhile.
            if self.dirty.borrow().unreadable.contains(page) {
                self.not_read(page, error)?;
                self.dirty.borrow_mut().unreadable.remove(page);
            }
        }
    }

    /// # Errors
    /// `Unreadable` where dirty pages are left that could not be read.
    pub(super) fn none_is_unreadable(&self) -> Result<(), Failure> {
        match self.dirty.borrow().unreadable.is_empty() {
            true => Ok(()),
            false => Err(Failure::Unreadable),
        }
    }

    /// Notes that a round has ended with all that was dirty.
    pub(super) fn all_were_read(&self) {
        if self.destager.unreadable.answer.take().is_some() {
            tracing::info!("no dirty page is left in the flash that cannot be read");
        }
    }

    /// When they are tried again, if there are any.
    pub(super) fn unreadable_due_ns(&self) -> Option<u64> {
        let any = !self.dirty.borrow().unreadable.is_empty();
        any.then(|| self.destager.unreadable.due_ns.get())
    }

    /// Whether pages that could not be read should be tried again, where others go home meanwhile.
    pub(super) fn is_due_again(&self) -> bool {
        let is_due = |due_ns| self.destager.is_next_wanted() || self.runtime.now_ns() >= due_ns;
        self.unreadable_due_ns().is_some_and(is_due)
    }

    /// Notes that a round has ended in which such pages were tried again, or some were found: the next try comes later.
    pub(super) fn put_off_unreadable(&self, tried: bool) {
        let Retries { tries, due_ns, .. } = &self.destager.unreadable;
        if self.dirty.borrow().unreadable.is_empty() {
            tries.set(0);
        } else if tried || tries.get() == 0 {
            let wait_ns = self.options.retry_after_ns << tries.get().min(DOUBLINGS_MAX);
            due_ns.set(self.runtime.now_ns() + wait_ns);
            tries.set(tries.get() + 1);
        }
    }

    /// What is said of the dirty pages that cannot be read.
    pub(super) fn unreadable_error(&self) -> Error {
        let context = match self.dirty.borrow().count_unreadable() {
            (pages, Some(first)) => format!(
                "{pages} dirty pages, from page {first} on, cannot be read from the flash now, and cannot go home: they are \
                 tried again until they can be read, are written or trimmed, or `tantalum check --accept-loss` gives them up"
            ),
            (_, None) => "dirty pages could not be read from the flash, and were changed since: the next epoch has them".into(),
        };
        match self.destager.unreadable.answer.borrow().clone() {
            Some(answer) => answer.wrap(context),
            None => Error::new(ErrorKind::Io, context),
        }
    }
}
