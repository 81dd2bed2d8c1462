//! Clusters of dirty pages with the data for their priorities, found by number.
use super::singles::Singles;
use super::tournament::{Tournament, order};
use crate::page_table::{NO_FRAME, PageTable};
use tantalum_base::PageNo;

/// Stands for "no cluster": slots are numbered from 1.
pub(super) const NO_SLOT: u32 = NO_FRAME;

/// A cluster of dirty pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cluster {
    /// Page numbers divided by the cluster size give this number.
    pub(super) number: u64,
    /// Global time of its creation, or of the last hit in it.
    pub(super) timestamp: u64,
    /// Sum of the distances between successive pages in their order of arrival.
    pub(super) distance: u32,
    pub(super) pages: u32,
}

impl Cluster {
    /// Formula 3.1; a single page has 1.
    pub(super) fn ipd(&self) -> u32 {
        if self.pages == 1 { 1 } else { self.distance }
    }
}

/// The priority queue of clusters and the hash table over it.
#[derive(Debug)]
pub(super) struct Clusters<T> {
    /// Indexed by slot; index 0 is unused.
    clusters: Vec<Cluster>,
    table: T,
    free: Vec<u32>,
    /// Clusters of one page that are newer than every cluster in this list when they are ranked, except the victim
    /// cluster.
    singles: Singles,
    /// All other clusters, except the victim cluster.
    tournament: Tournament,
    /// The cluster that gave the last dirty victim, while it has pages.
    victim: u32,
    /// Number of dirty pages that have come in so far.
    global_time: u64,
}

impl<T: PageTable> Clusters<T> {
    /// At most `clusters_max` clusters, numbered below `numbers_end`.
    pub(super) fn new(clusters_max: u32, numbers_end: u64) -> Self {
        let slots = clusters_max as usize + 1;
        Clusters {
            clusters: vec![Cluster::default(); slots],
            table: T::new(clusters_max, numbers_end),
            free: (1..slots as u32).rev().collect(),
            singles: Singles::new(slots),
            tournament: Tournament::new(slots),
            victim: NO_SLOT,
            global_time: 0,
        }
    }

    /// The slot of cluster `number`, or [`NO_SLOT`].
    pub(super) fn find(&self, number: u64) -> u32 {
        self.table.find(PageNo(number), |slot| PageNo(self.clusters[slot as usize].number))
    }

    /// Clusters that have pages.
    pub(super) fn len(&self) -> usize {
        self.clusters.len() - 1 - self.free.len()
    }

    /// A page comes into cluster `number`, at `distance` from the last page that came into it.
    /// Returns the slot. The timestamp changes only if the cluster is new.
    pub(super) fn add_page(&mut self, number: u64, distance: impl FnOnce(u32) -> u32) -> u32 {
        self.global_time += 1;
        let found = self.find(number);
        if found != NO_SLOT {
            let cluster = &mut self.clusters[found as usize];
            cluster.distance += distance(found);
            cluster.pages += 1;
            self.rank(found);
            return found;
        }
        let slot = self.free.pop().expect("there are as many clusters as pages at most");
        let timestamp = self.global_time;
        self.clusters[slot as usize] = Cluster { number, timestamp, distance: 0, pages: 1 };
        self.table.insert(PageNo(number), slot);
        self.rank(slot);
        slot
    }

    /// Ranks the cluster of `slot`, which is new or changed, among the others.
    fn rank(&mut self, slot: u32) {
        if slot == self.victim {
            return;
        }
        let is_single = self.clusters[slot as usize].pages == 1;
        if self.singles.has(slot) {
            self.singles.remove(slot);
        }
        if is_single && self.singles.push(slot, &self.clusters) {
            self.tournament.leave(slot);
        } else {
            self.tournament.change(slot);
        }
    }

    /// Removes the cluster of `slot` from the ranking.
    fn unrank(&mut self, slot: u32) {
        if self.singles.has(slot) {
            self.singles.remove(slot);
        } else {
            self.tournament.leave(slot);
        }
    }

    /// A page leaves the cluster in `slot`, which reduces the sum of its distances by `less`. If
    /// the page was hit, the cluster counts as used now.
    pub(super) fn remove_page(&mut self, slot: u32, less: u32, hit: bool) {
        let cluster = &mut self.clusters[slot as usize];
        cluster.distance -= less;
        cluster.pages -= 1;
        if hit {
            cluster.timestamp = self.global_time;
        }
        if cluster.pages == 0 {
            let number = PageNo(cluster.number);
            let clusters = &self.clusters;
            self.table.remove(number, slot, |slot| PageNo(clusters[slot as usize].number));
            self.free.push(slot);
            self.unrank(slot);
            if self.victim == slot {
                self.victim = NO_SLOT;
            }
        } else {
            self.rank(slot);
        }
    }

    /// The slot from which to evict dirty pages: the one that gave the last victim while it has pages,
    /// otherwise that of the lowest priority, which stays the victim until it is empty. [`NO_SLOT`] if
    /// there is none.
    pub(super) fn victim(&mut self) -> u32 {
        if self.victim == NO_SLOT {
            let now = self.global_time;
            let clusters = &self.clusters;
            let top = self.tournament.top(clusters, now).unwrap_or(NO_SLOT);
            self.victim = match (self.singles.oldest(), top) {
                (only, NO_SLOT) | (NO_SLOT, only) => only,
                (single, top) => {
                    let of = |slot: u32| &clusters[slot as usize];
                    if order(of(single), of(top), now).is_lt() { single } else { top }
                }
            };
            self.unrank(self.victim);
        }
        self.victim
    }

    /// Slots by rising priority, the victim cluster first. They are found one by one, so the first
    /// few are cheap.
    pub(super) fn by_priority(&self) -> impl Iterator<Item = u32> + '_ {
        let (clusters, now) = (&self.clusters, self.global_time);
        let mut singles = self.singles.oldest_first().peekable();
        let mut others = self.tournament.by_priority(clusters, now).peekable();
        let of = |slot: u32| &clusters[slot as usize];
        let ranked = std::iter::from_fn(move || match (singles.peek(), others.peek()) {
            (Some(single), Some(other)) if order(of(*single), of(*other), now).is_lt() => {
                singles.next()
            }
            (_, Some(_)) => others.next(),
            (_, None) => singles.next(),
        });
        Some(self.victim).filter(|slot| *slot != NO_SLOT).into_iter().chain(ranked)
    }

    #[cfg(test)]
    fn is_ranked(&self, slot: u32) -> bool {
        self.singles.has(slot) || self.tournament.has(slot)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let slots = self.clusters.len() * size_of::<Cluster>();
        let free = self.free.capacity() * size_of::<u32>();
        let ranks = self.singles.memory_bytes() + self.tournament.memory_bytes();
        (slots + free) as u64 + self.table.memory_bytes() + ranks
    }

    #[cfg(test)]
    pub(super) fn validate(&self, mut pages_of: impl FnMut(u32) -> Vec<PageNo>) {
        assert!(self.tournament.slots_end() >= self.clusters.len());
        self.singles.validate(&self.clusters);
        for slot in 1..self.clusters.len() as u32 {
            let (cluster, pages) = (self.clusters[slot as usize], pages_of(slot));
            let free = self.free.contains(&slot);
            assert_eq!(self.is_ranked(slot), !free && slot != self.victim, "ranked or not");
            assert!(!(self.singles.has(slot) && self.tournament.has(slot)), "ranked twice");
            assert_eq!(pages.is_empty(), free, "a free slot has no pages, others have");
            if !free {
                assert_eq!(self.find(cluster.number), slot, "the table has another slot");
                assert_eq!(cluster.pages as usize, pages.len());
                let steps = pages.windows(2).map(|pair| pair[0].0.abs_diff(pair[1].0) as u32);
                assert_eq!(cluster.distance, steps.sum::<u32>(), "formula 3.1");
                assert!(cluster.timestamp <= self.global_time);
            }
        }
    }
}
