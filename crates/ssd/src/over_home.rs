//! What a device asks that caches a home in this one.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result};
use tantalum_media::ZoneMedia;

use crate::fault_points::Fault;
use crate::options::CacheKind;
use crate::ssd::Drive;

impl<M: ZoneMedia> Drive<M> {
    /// Whether a read of `page` is served from here. Where not, its content is at home.
    pub fn holds(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_some() || self.ftl.at_home(page).is_none()
    }

    /// Whether `page` is here and home has it too.
    pub fn is_clean(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_none() && self.ftl.is_clean(page)
    }

    /// Whether `page` was trimmed, and home does not know of it.
    pub fn is_trimmed(&self, page: PageNo) -> bool {
        self.cache.borrow().get(page).is_none() && self.ftl.is_trimmed(page)
    }

    /// As a write of pages that all lie in `range`, of which `pages` gives as many as are `needed`. It is called in the step in
    /// which they would be accepted. Where it gives none instead, nothing is written, and the result is
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

    /// Trims `range`. `in_force` is called in the step in which that takes effect.
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

    /// Reads the pages `wanted` into `out`, each to the index that comes with it, all as of the first poll.
    ///
    /// # Errors
    /// As of a read; `Unmapped` where a page is at home.
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

    /// Makes everything durable that was accepted before the call, whether its writer waits for that or not: so is all that a
    /// read gives when this returns, until something else is accepted.
    ///
    /// # Errors
    /// Where the log failed, also where nothing is left to make durable: what failed may still be read.
    pub async fn settle(&self) -> Result<()> {
        self.make_durable().await?;
        match Fault::FailedTakenForSettled.is_planted() {
            true => Ok(()),
            false => self.check_failed(),
        }
    }
}
