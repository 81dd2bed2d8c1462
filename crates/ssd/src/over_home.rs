//! The interface for a device that uses this one as a cache of a home.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::options::CacheKind;
use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Whether a read of `page` is served from this device. If not, its content is on the home.
    pub fn holds(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_some() || self.ftl.at_home(page).is_none()
    }

    /// Whether `page` is clean: its content is on this device and on the home.
    pub fn is_clean(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_none() && self.ftl.is_clean(page)
    }

    /// Whether `page` was trimmed and the home does not know of it yet.
    pub fn is_trimmed(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_none() && self.ftl.is_trimmed(page)
    }

    /// Writes pages that all lie in `range`. `pages` is called in the step that accepts the write,
    /// and returns `needed` pages. If it returns `None`, nothing is written and the result is
    /// false.
    ///
    /// # Errors
    /// Those of a write.
    pub async fn write_if<I: IntoIterator<Item = (PageNo, M::Page)>>(
        &self,
        range: PageRange,
        needed: u32,
        pages: impl FnOnce() -> Option<I>,
    ) -> Result<bool> {
        self.check_failed()?;
        let Some(command) = self.accept(range, needed, pages).await? else { return Ok(false) };
        match self.options.cache {
            CacheKind::WriteThrough => self.wait_ended(command).await?,
            CacheKind::Durable | CacheKind::Ordered | CacheKind::Volatile => {}
        }
        Ok(true)
    }

    /// Trims `range`, and calls `in_force` in the step in which the trim takes effect.
    ///
    /// # Errors
    /// Those of a trim.
    pub async fn trim_then(
        &self,
        range: PageRange,
        in_force: impl FnOnce() + 'static,
    ) -> Result<()> {
        self.limits().check_range(range)?;
        self.check_failed()?;
        if range.pages == 0 {
            return Ok(());
        }
        let trim = |drive: Rc<Self>| async move { drive.trim_in_turn(range, in_force).await };
        self.commands.run("trim", trim).await
    }

    /// Reads the pages `wanted` into `out`, each at its given index, all as of the first poll.
    ///
    /// # Errors
    /// Those of a read; `Unmapped` if a page is on the home.
    pub async fn read_scattered(
        &self,
        wanted: impl Iterator<Item = (PageNo, usize)>,
        out: &mut [M::Page],
    ) -> Result<()> {
        let mut missed = Vec::new();
        {
            let cache = self.cache.borrow();
            for (page, index) in wanted {
                match cache.get(page) {
                    Some(content) => out[index] = content.clone(),
                    None => missed.push((page, index)),
                }
            }
        }
        if missed.is_empty() { Ok(()) } else { self.ftl.read_at_once(missed, out).await }
    }

    /// Makes everything durable that was accepted before the call, even if its writer does not wait
    /// for durability. When this returns, everything that a read returns is durable too, until
    /// something else is accepted.
    ///
    /// # Errors
    /// After a failure of the log, even if nothing is left to make durable: failed changes may
    /// still be readable.
    pub async fn settle(&self) -> Result<()> {
        self.make_durable().await?;
        match Fault::FailedTakenForSettled.is_planted() {
            true => Ok(()),
            false => self.check_failed(),
        }
    }
}
