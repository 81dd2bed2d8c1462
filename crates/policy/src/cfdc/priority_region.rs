//! The priority region: clean pages in the order of arrival, dirty ones in clusters.
use super::clusters::{Clusters, NO_SLOT};
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::Key;
use tantalum_base::PageNo;

/// The list of clean pages. The list of the cluster in slot `s` is number `s`.
const CLEAN: u32 = 0;

/// Pages that left the working region (section 3.2.3).
#[derive(Debug)]
pub(super) struct PriorityRegion<T> {
    /// Each list evicts its oldest page first. Pages are not used while they are here, so the order
    /// of arrival is that of last use.
    frames: FrameLists<T, u32>,
    clusters: Clusters<T>,
    cluster_pages: u64,
    dirty_pages: u32,
}

impl<T: PageTable> PriorityRegion<T> {
    /// A region for at most `pages_max` pages, numbered below `pages_end`.
    pub(super) fn new(pages_max: u32, pages_end: u64, cluster_pages: u32) -> Self {
        let cluster_pages = u64::from(cluster_pages);
        let numbers_end = pages_end.div_ceil(cluster_pages);
        let clusters_max = u64::from(pages_max).min(numbers_end) as u32;
        PriorityRegion {
            frames: FrameLists::new(clusters_max + 1, pages_max, pages_end),
            clusters: Clusters::new(clusters_max, numbers_end),
            cluster_pages,
            dirty_pages: 0,
        }
    }

    /// Pages here.
    pub(super) fn len(&self) -> u32 {
        self.frames.used()
    }

    /// Dirty pages here.
    pub(super) fn dirty_pages(&self) -> u32 {
        self.dirty_pages
    }

    /// Clusters that have dirty pages here.
    pub(super) fn clusters(&self) -> usize {
        self.clusters.len()
    }

    /// The frame of `page`, or [`NO_FRAME`].
    #[inline]
    pub(super) fn find(&self, page: PageNo) -> u32 {
        self.frames.find(page)
    }

    /// Whether the page in `frame` is dirty.
    pub(super) fn is_dirty(&self, frame: u32) -> bool {
        self.frames.key(frame).is_dirty()
    }

    /// Adds a page that left the working region.
    pub(super) fn insert(&mut self, key: Key) {
        let list = if key.is_dirty() {
            let page = key.page();
            let frames = &self.frames;
            let distance = |slot| distance(page, frames.key(frames.head(slot)).page());
            self.dirty_pages += 1;
            self.clusters.add_page(page.0 / self.cluster_pages, distance)
        } else {
            CLEAN
        };
        self.frames.insert(key, list);
    }

    /// Removes the page in `frame`; `hit` tells whether a hit is the reason.
    pub(super) fn remove(&mut self, frame: u32, hit: bool) -> Key {
        let key = self.frames.key(frame);
        if key.is_dirty() {
            self.leave_cluster(frame, hit);
        }
        self.frames.remove(frame)
    }

    /// Algorithm 2: removes and returns the victim; `None` if there is no page.
    pub(super) fn evict(&mut self) -> Option<Key> {
        let clean = self.frames.tail(CLEAN);
        if clean != NO_FRAME {
            return Some(self.remove(clean, false));
        }
        let slot = self.clusters.victim();
        (slot != NO_SLOT).then(|| self.remove(self.frames.tail(slot), false))
    }

    /// The page in `frame` is written back and stays, as the newest clean one.
    pub(super) fn clean(&mut self, frame: u32) {
        if self.is_dirty(frame) {
            self.leave_cluster(frame, false);
            self.frames.key_mut(frame).clean();
            self.frames.move_to_head(frame, CLEAN);
        }
    }

    /// Dirty pages in write order: cluster by cluster, the lowest priority first.
    pub(super) fn dirty_in_order(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.clusters.by_priority().flat_map(|slot| self.pages(slot))
    }

    /// The pages of the cluster in `slot`, oldest first.
    fn pages(&self, slot: u32) -> impl Iterator<Item = PageNo> + '_ {
        self.frames.oldest_first(slot).map(|frame| self.frames.key(frame).page())
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes() + self.clusters.memory_bytes()
    }

    /// Removes the dirty page in `frame` from the counts of its cluster.
    fn leave_cluster(&mut self, frame: u32, hit: bool) {
        let page = self.frames.key(frame).page();
        let page_of = |frame: u32| (frame != NO_FRAME).then(|| self.frames.key(frame).page());
        let older = page_of(self.frames.older(frame));
        let newer = page_of(self.frames.newer(frame));
        let mut less = older.into_iter().chain(newer).map(|other| distance(page, other)).sum();
        if let (Some(older), Some(newer)) = (older, newer) {
            less -= distance(older, newer);
        }
        let slot = self.clusters.find(page.0 / self.cluster_pages);
        self.clusters.remove_page(slot, less, hit);
        self.dirty_pages -= 1;
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        self.frames.validate();
        assert!(self.frames.oldest_first(CLEAN).all(|frame| !self.is_dirty(frame)));
        let mut dirty = 0;
        self.clusters.validate(|slot| {
            let mut frames = self.frames.oldest_first(slot);
            assert!(frames.all(|frame| self.is_dirty(frame)), "a clean page in a cluster");
            let pages: Vec<PageNo> = self.pages(slot).collect();
            let number = |page: &PageNo| page.0 / self.cluster_pages;
            assert!(pages.windows(2).all(|pair| number(&pair[0]) == number(&pair[1])));
            dirty += pages.len() as u32;
            pages
        });
        assert_eq!(dirty, self.dirty_pages);
    }
}

/// The distance of two pages of one cluster; it is less than the cluster size.
fn distance(left: PageNo, right: PageNo) -> u32 {
    left.0.abs_diff(right.0) as u32
}
