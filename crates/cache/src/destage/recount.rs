//! After a kill: finds pages that count as dirty but are already on the home.
//!
//! The log does not record that a page is clean. If no journal records it either
//! (`crate::opening`), pages that were destaged since the last checkpoint count as dirty again
//! after a kill. Together with the other dirty pages they may exceed the room of the journal, so
//! that no epoch could ever be written. The pages that were really dirty had room. So the pages are
//! compared with the home. Equal content on the home need not be durable: if a sync failed, in this
//! process or the one before, earlier writes may be only in the memory of the machine. So equal
//! pages are written once more.
use tantalum_base::{PageDevice, PageNo, Payload};
use tantalum_media::{BlockStore, ZoneMedia};
use tantalum_runtime::Runtime;

use super::Failure;
use crate::tiered::Tiered;

/// Pages compared at a time.
const COMPARED_PAGES: usize = 256;

impl<R, M, H, J> Tiered<R, M, H, J>
where
    R: Runtime,
    M: ZoneMedia,
    H: PageDevice<Page = M::Page>,
    J: BlockStore,
{
    /// Marks those dirty pages clean whose content the home already has.
    pub(super) async fn find_clean_pages(&self) -> Result<(), Failure> {
        self.dirty.borrow_mut().take_all();
        let found = self.compare_with_home().await;
        self.dirty.borrow_mut().give_up();
        self.may_change.wake_all();
        found
    }

    async fn compare_with_home(&self) -> Result<(), Failure> {
        // The comparison needs the newest content, and that may still wait to be written to the
        // log.
        self.drive.settle().await?;
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

    /// Compares pages that the round took, in page order.
    async fn compare(&self, pages: &[PageNo]) -> Result<(), Failure> {
        let mut here: Vec<(PageNo, M::Page)> = Vec::with_capacity(pages.len());
        for page in pages {
            // A trimmed page needs hardly any room.
            if !self.drive.is_trimmed(*page) && self.drive.holds(*page) {
                here.push((*page, M::Page::zero()));
            }
        }
        self.read_dirty(&mut here).await?;
        let mut same = Vec::new();
        let follows = |one: &(PageNo, M::Page), next: &(PageNo, M::Page)| next.0.0 == one.0.0 + 1;
        for run in here.chunk_by(follows) {
            let mut there = vec![M::Page::zero(); run.len()];
            self.at_home(self.home.read(run[0].0, &mut there, None)).await?;
            let pairs = run.iter().zip(&there).filter(|((_, here), there)| here == *there);
            same.extend(pairs.map(|(here, _)| here.clone()));
        }
        Ok(self.write_slice(self.in_long_writes(&same)).await?)
    }
}
