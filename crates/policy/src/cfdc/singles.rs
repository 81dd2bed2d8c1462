//! Clusters of one page, in the order of their timestamps. This is always the order of their priorities
//! as well, as IPD and size are 1 for all of them. Most clusters have one page, and these need no
//! tournament.
use super::clusters::{Cluster, NO_SLOT};

/// A list of slots, oldest to newest. Slot 0, which no cluster has, is the sentinel.
#[derive(Debug)]
pub(super) struct Singles {
    /// (older, newer) for each slot. A slot that is not in the list points to itself.
    links: Vec<(u32, u32)>,
}

impl Singles {
    /// An empty list for slots below `slots`.
    pub(super) fn new(slots: usize) -> Self {
        Singles { links: (0..slots as u32).map(|slot| (slot, slot)).collect() }
    }

    /// Whether `slot` is in the list.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.links[slot as usize].0 != slot
    }

    /// The slot with the lowest priority; [`NO_SLOT`] if the list is empty.
    pub(super) fn oldest(&self) -> u32 {
        self.links[NO_SLOT as usize].1
    }

    /// All slots, by rising priority.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        let newer = |slot: u32| Some(self.links[slot as usize].1).filter(|slot| *slot != NO_SLOT);
        std::iter::successors(newer(NO_SLOT), move |&slot| newer(slot))
    }

    /// Appends `slot`, whose cluster has one page, unless a newer one is in the list. Returns
    /// whether it was appended.
    pub(super) fn push(&mut self, slot: u32, clusters: &[Cluster]) -> bool {
        let newest = self.links[NO_SLOT as usize].0;
        let key = |slot: u32| {
            let cluster = &clusters[slot as usize];
            (cluster.timestamp, cluster.number)
        };
        let fits = newest == NO_SLOT || key(newest) < key(slot);
        if fits {
            self.links[newest as usize].1 = slot;
            self.links[slot as usize] = (newest, NO_SLOT);
            self.links[NO_SLOT as usize].0 = slot;
        }
        fits
    }

    /// Removes `slot` from the list.
    pub(super) fn remove(&mut self, slot: u32) {
        let (older, newer) = self.links[slot as usize];
        self.links[older as usize].1 = newer;
        self.links[newer as usize].0 = older;
        self.links[slot as usize] = (slot, slot);
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.links.len() * size_of::<(u32, u32)>()) as u64
    }

    #[cfg(test)]
    pub(super) fn validate(&self, clusters: &[Cluster]) {
        let (mut slot, mut last, mut seen) = (self.oldest(), (0, 0), 0);
        while slot != NO_SLOT {
            let cluster = &clusters[slot as usize];
            assert_eq!(cluster.pages, 1, "a single has one page");
            assert!((cluster.timestamp, cluster.number) > last, "out of order");
            last = (cluster.timestamp, cluster.number);
            let newer = self.links[slot as usize].1;
            assert_eq!(self.links[newer as usize].0, slot, "a link has no way back");
            (slot, seen) = (newer, seen + 1);
        }
        let linked = (1..self.links.len() as u32).filter(|slot| self.has(*slot)).count();
        assert_eq!(seen, linked, "a slot with links is not in the list");
    }
}
