//! The calls by which the owner of a cache queries and updates it.
use std::future::ready;
use tantalum_base::{PageNo, Result, Version};
use tantalum_media::{SlotKind, ZoneMedia};

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::map::{MapEntry, Place};
use crate::parts::Parts;

impl<M: ZoneMedia> Ftl<M> {
    /// The version of `page` if its content is at home and not here; `None` if it is here.
    pub fn at_home(&self, page: PageNo) -> Option<Version> {
        let entry = self.parts.borrow().visible(page);
        (entry.place == Place::Home).then_some(entry.version)
    }

    /// Whether the content of `page` is only at home, and will stay there: no share is about to change it.
    fn is_at_home_alone(&self, page: PageNo) -> bool {
        let entry = self.parts.borrow().map.get(page);
        self.at_home(page).is_some() && !matches!(entry.place, Place::At(_))
    }

    /// Whether `page` was trimmed here, and home does not know of it.
    pub fn is_trimmed(&self, page: PageNo) -> bool {
        let entry = self.parts.borrow().map.get(page);
        entry.place == Place::Unmapped && entry.is_dirty()
    }

    /// Whether home lacks the newest change of `page` that the mapping has, a write or a trim. A lost page is not
    /// dirty.
    pub fn is_dirty(&self, page: PageNo) -> bool {
        self.parts.borrow().map.get(page).is_dirty()
    }

    /// The number of pages that are newer here than at home, at most
    /// [`dirty_pages_max`](crate::CacheOptions::dirty_pages_max).
    pub fn dirty_pages(&self) -> u64 {
        self.parts.borrow().dirty_pages()
    }

    /// The first page from `page` on that is out of date at home, because it was written or trimmed here. Lost pages
    /// are not returned, because there is nothing to write home.
    pub fn next_dirty(&self, page: PageNo) -> Option<PageNo> {
        let parts = self.parts.borrow();
        let [_, _, trimmed] = parts.map.at_most_dirty();
        if parts.dirty_pages() + trimmed == 0 {
            return None;
        }
        parts.map.next_dirty(page.0).map(PageNo).filter(|page| !parts.map.is_staging(*page))
    }

    /// The version of the last change that has its place in the log.
    pub fn last_version(&self) -> Version {
        self.parts.borrow().log.last_version()
    }

    /// Every change up to this version is durable.
    pub fn durable_version(&self) -> Version {
        self.parts.borrow().log.durable()
    }

    /// The version of the newest change of `page` that is in force; [`Version::NEVER`] if there was none.
    pub fn version_of(&self, page: PageNo) -> Version {
        self.parts.borrow().map.get(page).version
    }

    /// The first clean page from `page` on.
    pub fn next_clean(&self, page: PageNo) -> Option<PageNo> {
        let parts = self.parts.borrow();
        let is_clean = |page: &u64| {
            let entry = parts.map.get(PageNo(*page));
            entry.clean && matches!(entry.place, Place::At(_))
        };
        let written = |page| parts.map.next_written(page);
        std::iter::successors(written(page.0), |page| written(page + 1)).find(is_clean).map(PageNo)
    }

    /// Whether the newest content of `page` is lost for good. A single failed read does not make it lost.
    pub fn is_lost(&self, page: PageNo) -> bool {
        self.parts.borrow().map.get(page).place == Place::Lost
    }

    /// The first page from `page` on whose newest content is lost; home has something older.
    pub fn next_lost(&self, page: PageNo) -> Option<PageNo> {
        let parts = self.parts.borrow();
        if parts.map.lost_pages() == 0 {
            return None;
        }
        let next = |page: u64| parts.map.next_written(page);
        let mut pages = std::iter::successors(next(page.0), |page| next(page + 1)).map(PageNo);
        let lost = pages.find(|page| parts.map.get(*page).place == Place::Lost);
        lost.filter(|page| !parts.map.is_staging(*page))
    }

    /// Pages without a home that have content.
    pub fn staged_pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        let (first, end) = (self.options.home_pages(), self.options.pages);
        (first..end).map(PageNo).filter(|page| self.is_mapped(*page))
    }

    /// Up to `most` clean pages, spread over the whole range of pages.
    pub fn clean_pages(&self, most: usize) -> Vec<PageNo> {
        let parts = self.parts.borrow();
        let is_clean = |page: &PageNo| {
            let entry = parts.map.get(*page);
            entry.clean && matches!(entry.place, Place::At(_))
        };
        let pages = self.options.home_pages();
        // Takes at most one page of each run of this many pages, and examines no page twice.
        let step = pages.div_ceil(most.max(1) as u64).max(1);
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(page) = parts.map.next_written(from).filter(|page| *page < pages) {
            let is_found = is_clean(&PageNo(page));
            if is_found {
                found.push(PageNo(page));
            }
            from = if is_found { (page / step + 1) * step } else { page + 1 };
        }
        found
    }

    /// Notes that the pages are used, so that cleaning evicts others first.
    pub fn used(&self, pages: impl IntoIterator<Item = PageNo>) {
        let parts = &mut *self.parts.borrow_mut();
        let Some(clean) = &mut parts.clean else { return };
        for page in pages {
            if let Place::At(slot) = parts.map.get(page).place {
                clean.used(slot);
            }
        }
        parts.keep_to_limit();
    }

    /// Notes that home durably has the newest content of each of these pages, even if that content was lost here.
    /// Returns how many of them were dirty or lost.
    pub fn mark_clean(&self, pages: impl IntoIterator<Item = PageNo>) -> u64 {
        let parts = &mut *self.parts.borrow_mut();
        let mut marked = 0;
        for page in pages {
            let entry = parts.map.get(page);
            if !entry.is_dirty() && entry.place != Place::Lost {
                continue;
            }
            // Home has the content that readers see, but not yet the content with which a share is about to replace it.
            if parts.log.shares.is_unseen(page, &entry) && !Fault::UnseenSharesClean.is_planted() {
                continue;
            }
            marked += 1;
            match entry.place {
                Place::At(_) => parts.put(page, MapEntry { clean: true, ..entry }),
                _ => parts.put(page, MapEntry::at_home(entry.version)),
            }
        }
        self.cleaner.wanted.wake_all();
        self.zones_freed.wake_all();
        marked
    }

    /// Whether `page` is clean: its content is here and at home.
    pub fn is_clean(&self, page: PageNo) -> bool {
        let entry = self.parts.borrow().map.get(page);
        entry.clean && matches!(entry.place, Place::At(_))
    }

    /// Notes that the pages will not be used, so that cleaning evicts the clean ones before other pages. They are not
    /// evicted at once: older content of them may be in other zones, and only cleaning lists evicted pages for
    /// recovery.
    pub fn unused(&self, pages: impl IntoIterator<Item = PageNo>) {
        let parts = &mut *self.parts.borrow_mut();
        let Some(clean) = &mut parts.clean else { return };
        for page in pages {
            if let Place::At(slot) = parts.map.get(page).place {
                clean.unused(slot);
            }
        }
    }

    /// Admits those `pages`, with the content that home has, for which `wanted` still returns true in the step that
    /// assigns their versions. The caller returns false for a page that was changed since it was read from home, or
    /// that a change under way will change. Returns how many were admitted.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn take_in(
        &self,
        pages: &mut Vec<(PageNo, M::Page)>,
        wanted: impl Fn(PageNo) -> bool,
    ) -> Result<u64> {
        let turn = self.log.turn.acquire(1).await;
        let reservation = self.reserve_entries(pages.len() as u32).await?;
        self.admit_host(pages.len() as u32).await?;
        // No await from here until the pages have their versions.
        pages.retain(|(page, _)| wanted(*page) && self.is_at_home_alone(*page));
        if pages.is_empty() {
            return Ok(0);
        }
        let mut buffer = self.buffers.take();
        for (page, content) in pages.drain(..) {
            buffer.push_page(SlotKind::Clean, page, content);
        }
        let taken = buffer.spares.len() as u64;
        // Durable: otherwise the next commit would have to sync for it.
        let others = ready(Ok(()));
        let logged =
            self.log_in_turn(turn, reservation, &mut buffer, true, &[], others, || ()).await;
        self.buffers.give(buffer);
        logged?;
        self.parts.borrow_mut().statistics.pages_admitted += taken;
        Ok(taken)
    }
}

impl MapEntry {
    /// Whether the page was written or trimmed here since home got its content. A lost page is not dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        match self.place {
            Place::At(_) => !self.clean,
            Place::Unmapped => self.version > Version::NEVER,
            Place::Lost | Place::Home => false,
        }
    }
}

impl Parts {
    /// The number of pages that are newer here than at home.
    pub(crate) fn dirty_pages(&self) -> u64 {
        let clean = self.clean.as_ref().map_or(0, |clean| clean.count());
        let [mapped, lost, _] = self.map.at_most_dirty();
        mapped - lost - clean
    }

    /// The number of slots whose content is nowhere else: those of dirty pages, and of pages without a home.
    pub(crate) fn slots_to_keep(&self) -> u64 {
        let clean = self.clean.as_ref().map_or(0, |clean| clean.count());
        let shared = self.map.references().entries();
        (self.map.mapped_pages() - self.map.lost_pages() - clean).saturating_sub(shared)
    }

    /// Evicts clean pages from a zone that is about to be reset; returns their former entries, by page.
    pub(crate) fn let_pages_go(&mut self, pages: &[PageNo]) -> Vec<(PageNo, MapEntry)> {
        let mut gone = Vec::with_capacity(pages.len());
        for page in pages {
            let entry = self.map.get(*page);
            self.put(*page, MapEntry::at_home(entry.version));
            gone.push((*page, entry));
        }
        self.statistics.pages_let_go += gone.len() as u64;
        gone
    }

    /// Maps evicted pages (`gone`) again, unless they have changed since, because their zone is not reset.
    pub(crate) fn take_pages_back(&mut self, gone: Vec<(PageNo, MapEntry)>) {
        for (page, entry) in gone {
            if self.map.get(page) == MapEntry::at_home(entry.version) {
                self.put(page, entry);
                self.statistics.pages_let_go -= 1;
            }
        }
    }

    /// Forgets pages that are at home, or that have no home and were trimmed, with versions up to `covered`: no
    /// recovery can find them here.
    pub(crate) fn forget_pages_at_home(&mut self, covered: Version) {
        if self.clean.is_none() {
            return;
        }
        let mut next = 0;
        while let Some(page) = self.map.next_written(next).map(PageNo) {
            let entry = self.map.get(page);
            if self.map.may_be_forgotten(page, &entry) && entry.version <= covered {
                self.map.forget(page);
            }
            next = page.0 + 1;
        }
    }
}
