//! After a kill: which pages that count as dirty are at home.
//!
//! That a page is clean is not in the log. Where no journal says it either (`crate::opening`), a kill makes pages dirty again
//! that went home since the last checkpoint. Together they may be more than the journal has room for, and no epoch could ever be
//! written down. What was really dirty had room. So home is asked what it has.
use tantalum_base::{PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use crate::tiered::Tiered;

/// Pages that are compared at a time.
const COMPARED_PAGES: usize = 256;

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Marks those dirty pages clean of which home has the content already.
    pub(super) async fn find_clean_pages(&self) -> Result<()> {
        self.dirty.borrow_mut().take_all();
        let found = self.compare_with_home().await;
        self.dirty.borrow_mut().give_up();
        self.may_change.wake_all();
        found
    }

    async fn compare_with_home(&self) -> Result<()> {
        // What is compared must be what the log has of the page: a newer content may wait to go there.
        self.drive.settle().await?;
        // A killed program may have left at home what is not durable there.
        self.home.flush().await?;
        let mut next = Some(PageNo(0));
        while let Some(from) = next {
            let pages: Vec<PageNo> = {
                let round = &self.dirty.borrow().round;
                let pages =
                    std::iter::successors(round.next(from), |page| round.next(PageNo(page.0 + 1)));
                pages.take(COMPARED_PAGES).collect()
            };
            next = pages.last().map(|page| PageNo(page.0 + 1));
            if self.destager.resting.get() {
                return Ok(());
            }
            self.compare(&pages).await?;
        }
        Ok(())
    }

    /// Compares pages that the round took, in their order.
    async fn compare(&self, pages: &[PageNo]) -> Result<()> {
        let mut here: Vec<(PageNo, M::Page)> = Vec::with_capacity(pages.len());
        for page in pages {
            // A trimmed page takes hardly any room.
            if !self.drive.is_trimmed(*page) && self.drive.holds(*page) {
                here.push((*page, M::Page::zero()));
            }
        }
        self.destager.append_failure.replace(None);
        self.read_dirty(&mut here).await;
        if let Some(error) = self.destager.append_failure.borrow_mut().take() {
            return Err(error);
        }
        let follows = |one: &(PageNo, M::Page), next: &(PageNo, M::Page)| next.0.0 == one.0.0 + 1;
        for run in here.chunk_by(follows) {
            let mut there = vec![M::Page::zero(); run.len()];
            self.home.read(run[0].0, &mut there, None).await?;
            let same = run.iter().zip(&there).filter(|((_, here), there)| here == *there);
            let same: Vec<PageNo> = same.map(|((page, _), _)| *page).collect();
            for page in same {
                // Unless it was changed meanwhile.
                let clean = self.dirty.borrow_mut().arrived(PageRange::new(page, 1));
                self.drive.ftl().mark_clean(clean);
            }
        }
        Ok(())
    }
}
