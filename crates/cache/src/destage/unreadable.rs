//! Dirty pages that the flash cannot read: they are retried.
//!
//! A read error does not mean that a page is lost: a path may fail over, a controller may reset,
//! and on stripes one member may be missing while the others answer. So such a page stays dirty
//! until it can be read, is overwritten or trimmed, or the flash itself reports it as lost. An
//! epoch without one of its pages would not match any past moment. It is abandoned, and a later one
//! takes all pages that are dirty then. Without epochs all other pages are destaged meanwhile.
use std::cell::{Cell, RefCell};
use tantalum_base::{Error, ErrorKind, PageDevice, PageNo, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;
use tantalum_runtime::life_cycle::is_damage;

use super::DOUBLINGS_MAX;
use crate::fault_points::Fault;
use crate::tiered::Tiered;

/// The reason why a round did not succeed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Dirty pages cannot be read from the flash.
    Unreadable,
    /// The home, its journal, or anything else failed.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

/// The next retry of dirty pages that could not be read, while other pages are destaged.
#[derive(Default)]
pub(super) struct Retries {
    /// Number of retries since there are such pages.
    tries: Cell<u32>,
    due_ns: Cell<u64>,
    /// The error of the last retry.
    answer: RefCell<Option<Error>>,
}

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Fills in the contents of dirty pages, all as of the first poll. Pages that cannot be read
    /// are removed from the list and from the round.
    ///
    /// # Errors
    /// `Unreadable` if one of them may become readable later; every other page has its content
    /// then. A page that is on the home, or lost, causes no error.
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

    /// Records that `page`, which is in the round or being retried, could not be read.
    fn not_read(&self, page: PageNo, error: Error) -> Result<(), Failure> {
        let dirty = &mut *self.dirty.borrow_mut();
        if !self.drive.holds(page) || self.drive.is_clean(page) {
            // The page was to fill a gap, and the home has it.
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

    /// Retries the first of the unreadable pages: while that fails, no epoch can include it.
    ///
    /// # Errors
    /// As [`read_dirty`](Self::read_dirty).
    pub(super) async fn read_first_unreadable(&self) -> Result<(), Failure> {
        loop {
            let Some(page) = self.dirty.borrow().unreadable.next(PageNo(0)) else { return Ok(()) };
            let Err(error) = self.read_one_dirty(page).await else { return Ok(()) };
            // If the page was changed or lost meanwhile, the error no longer matters.
            if self.dirty.borrow().unreadable.contains(page) {
                self.not_read(page, error)?;
                self.dirty.borrow_mut().unreadable.remove(page);
            }
        }
    }

    /// # Errors
    /// `Unreadable` if unreadable dirty pages are left.
    pub(super) fn none_is_unreadable(&self) -> Result<(), Failure> {
        match self.dirty.borrow().unreadable.is_empty() {
            true => Ok(()),
            false => Err(Failure::Unreadable),
        }
    }

    /// Records that a round with everything dirty has succeeded.
    pub(super) fn all_were_read(&self) {
        if self.destager.unreadable.answer.take().is_some() {
            tracing::info!("no unreadable dirty page is left in the flash");
        }
    }

    /// The time of their next retry, if there are any.
    pub(super) fn unreadable_due_ns(&self) -> Option<u64> {
        let any = !self.dirty.borrow().unreadable.is_empty();
        any.then(|| self.destager.unreadable.due_ns.get())
    }

    /// Whether unreadable pages are due for a retry, while others are destaged.
    pub(super) fn is_due_again(&self) -> bool {
        let is_due = |due_ns| self.destager.is_next_wanted() || self.runtime.now_ns() >= due_ns;
        self.unreadable_due_ns().is_some_and(is_due)
    }

    /// Records that a round has ended that retried such pages, or found some: the next retry comes
    /// later.
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

    /// The error for dirty pages that cannot be read.
    pub(super) fn unreadable_error(&self) -> Error {
        let context = match self.dirty.borrow().count_unreadable() {
            (pages, Some(first)) => format!(
                "{pages} dirty pages, from page {first} on, cannot be read from the flash now, and \
                 cannot be destaged: they are tried again until they can be read, are written or \
                 trimmed, or `tantalum check --accept-loss` gives them up"
            ),
            (_, None) => "dirty pages could not be read from the flash and were changed since: the next epoch takes them".into(),
        };
        match self.destager.unreadable.answer.borrow().clone() {
            Some(answer) => answer.wrap(context),
            None => Error::new(ErrorKind::Io, context),
        }
    }
}
