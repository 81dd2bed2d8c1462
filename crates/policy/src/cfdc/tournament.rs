//! Which cluster has the lowest priority, kept exactly although priorities change with time.
//!
//! Formula 3.2 gives a cluster of n pages the priority `ipd / (n^2 * (now - timestamp))`. The
//! lowest priority is the highest `rank = (now - timestamp) * n^2 / ipd`, and that is a straight line in
//! `now`: between two changes of the clusters themselves each pair changes its order once at most,
//! at a time that a division gives. So a kinetic tournament (Basch, Guibas, Hershberger, "Data
//! structures for mobile data", SODA 1997) finds the top without recomputing them all: each match of
//! a binary tree remembers its winner and the time until which it and all below it hold.
//!
//! A change marks the matches on one path, which the next question plays again: O(log m) each, m
//! being the clusters; beyond that only matches are played whose time has come. Ranks are compared
//! as whole numbers, cross-multiplied in 128 bits, never rounded.
use super::clusters::Cluster;
use std::cmp::Ordering;

/// Stands for "no slot".
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Match {
    /// The slot that wins, or [`NONE`].
    winner: u32,
    /// The winner is right at all times below this; 0 where it must be found again.
    until: u64,
}

/// A tournament over slots, in each of which a cluster may take part.
#[derive(Debug)]
pub(super) struct Tournament {
    /// Matches 1.. as a binary heap: those of `i` are `2i` and `2i + 1`. Index 0 is unused.
    matches: Vec<Match>,
    /// Whether the cluster of each slot takes part; as many as a power of two.
    takes_part: Vec<bool>,
}

impl Tournament {
    /// For slots below `slots`; none takes part.
    pub(super) fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        Tournament {
            matches: vec![Match { winner: NONE, until: u64::MAX }; leaves],
            takes_part: vec![false; leaves],
        }
    }

    /// Slots below this may take part.
    #[cfg(test)]
    pub(super) fn slots_end(&self) -> usize {
        self.takes_part.len()
    }

    /// Whether the cluster of `slot` takes part.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.takes_part[slot as usize]
    }

    /// The cluster of `slot` changed, and takes part from now on or does not.
    pub(super) fn change(&mut self, slot: u32, takes_part: bool) {
        self.takes_part[slot as usize] = takes_part;
        let mut at = (self.matches.len() + slot as usize) / 2;
        // A match that is to be played again has marked all above it.
        while at > 0 && self.matches[at].until > 0 {
            self.matches[at].until = 0;
            at /= 2;
        }
    }

    /// The slot of the lowest priority at `now`, which never goes back.
    pub(super) fn top(&mut self, clusters: &[Cluster], now: u64) -> Option<u32> {
        self.play(1, clusters, now);
        Some(self.matches[1].winner).filter(|slot| *slot != NONE)
    }

    /// Makes match `at` and those below it right for `now`.
    fn play(&mut self, at: usize, clusters: &[Cluster], now: u64) -> Match {
        if at >= self.matches.len() {
            let slot = at - self.matches.len();
            let winner = if self.takes_part[slot] { slot as u32 } else { NONE };
            return Match { winner, until: u64::MAX };
        }
        if self.matches[at].until <= now {
            let left = self.play(2 * at, clusters, now);
            let right = self.play(2 * at + 1, clusters, now);
            let (winner, holds_until) = match (left.winner, right.winner) {
                (only, NONE) | (NONE, only) => (only, u64::MAX),
                (left, right) => {
                    let of = |slot: u32| &clusters[slot as usize];
                    if of(left).order(of(right), now).is_lt() {
                        (left, of(left).overtaken_at(of(right), now))
                    } else {
                        (right, of(right).overtaken_at(of(left), now))
                    }
                }
            };
            let until = left.until.min(right.until).min(holds_until);
            self.matches[at] = Match { winner, until };
        }
        self.matches[at]
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.matches.len() * size_of::<Match>() + self.takes_part.len()) as u64
    }
}

impl Cluster {
    /// What this and `other` are to be compared by at `now`: ranks times the product of both IPDs.
    fn ranks(&self, other: &Cluster, now: u64) -> (u128, u128) {
        let (left, right) = self.slopes(other);
        (left * u128::from(now - self.timestamp), right * u128::from(now - other.timestamp))
    }

    /// What each rank grows by a unit of time, in the same measure.
    fn slopes(&self, other: &Cluster) -> (u128, u128) {
        let square = |pages: u32| u128::from(pages) * u128::from(pages);
        (square(self.pages) * u128::from(other.ipd()), square(other.pages) * u128::from(self.ipd()))
    }

    /// Less for the one with the lower priority at `now`. Of equal ones the older goes first, then
    /// the one with the lower number.
    pub(super) fn order(&self, other: &Cluster, now: u64) -> Ordering {
        let (left, right) = self.ranks(other, now);
        let key = |cluster: &Cluster| (cluster.timestamp, cluster.number);
        right.cmp(&left).then_with(|| key(self).cmp(&key(other)))
    }

    /// The first time after `now` at which `other`, behind this now, is before it;
    /// `u64::MAX` for never.
    ///
    /// It is so once its rank is higher: where ranks meet later than now, the faster one is the younger
    /// and still behind, and two that rise alike keep their order.
    fn overtaken_at(&self, other: &Cluster, now: u64) -> u64 {
        let (slope, faster) = self.slopes(other);
        if faster <= slope {
            return u64::MAX;
        }
        let (rank, behind) = self.ranks(other, now);
        // Beyond 64 bits is never: a time is one change of a page.
        let steps = u64::try_from((rank - behind) / (faster - slope) + 1).unwrap_or(u64::MAX);
        now.saturating_add(steps)
    }
}
