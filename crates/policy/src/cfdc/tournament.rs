//! Finds the cluster of the lowest priority exactly, although priorities change with time.
//!
//! Formula 3.2 gives a cluster of n pages the priority `ipd / (n^2 * (now - timestamp))`. The lowest
//! priority is the highest `rank = (now - timestamp) * n^2 / ipd`, which is a straight line in `now`. So
//! between two changes of the clusters themselves each pair changes its order at most once, at a time
//! that a division gives. A kinetic tournament (Basch, Guibas, Hershberger, "Data structures for mobile
//! data", SODA 1997) therefore finds the top without recomputing all ranks: each match of a binary tree
//! stores its winner and the time until which it and all matches below it are valid.
//!
//! A change marks the matches on one path; the next query plays them again. Both take O(log m) for
//! m clusters. Beyond that, only matches that have expired are played. Ranks are compared as whole
//! numbers, cross-multiplied in 128 bits, and never rounded.
use super::clusters::Cluster;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Stands for "no slot".
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Match {
    /// The slot that wins, or [`NONE`].
    winner: u32,
    /// The winner is valid at all times below this; 0 if it must be determined again.
    until: u64,
}

/// A tournament over slots. The cluster of each slot may take part or not.
#[derive(Debug)]
pub(super) struct Tournament {
    /// Matches from 1 on as a binary heap: the matches below `i` are `2i` and `2i + 1`. Index 0 is
    /// unused.
    matches: Vec<Match>,
    /// Whether the cluster of each slot takes part. The length is a power of two.
    takes_part: Vec<bool>,
}

impl Tournament {
    /// A tournament for slots below `slots`; none takes part at first.
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
    #[cfg(test)]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.takes_part[slot as usize]
    }

    /// The cluster of `slot`, which is new or has changed, takes part.
    pub(super) fn change(&mut self, slot: u32) {
        self.takes_part[slot as usize] = true;
        self.play_again(slot);
    }

    /// The cluster of `slot` takes part no longer, if it did.
    pub(super) fn leave(&mut self, slot: u32) {
        if std::mem::take(&mut self.takes_part[slot as usize]) {
            self.play_again(slot);
        }
    }

    /// Marks all matches that depend on `slot` as invalid.
    fn play_again(&mut self, slot: u32) {
        let mut at = (self.matches.len() + slot as usize) / 2;
        // If a match is marked, all matches above it are marked already.
        while at > 0 && self.matches[at].until > 0 {
            self.matches[at].until = 0;
            at /= 2;
        }
    }

    /// The slot of the lowest priority at `now`. `now` must never decrease.
    pub(super) fn top(&mut self, clusters: &[Cluster], now: u64) -> Option<u32> {
        self.play(1, clusters, now);
        Some(self.matches[1].winner).filter(|slot| *slot != NONE)
    }

    /// Makes match `at` and those below it valid for `now`.
    fn play(&mut self, at: usize, clusters: &[Cluster], now: u64) -> Match {
        if at >= self.matches.len() {
            return Match { winner: self.alone(at), until: u64::MAX };
        }
        if self.matches[at].until <= now {
            let left = self.play(2 * at, clusters, now);
            let right = self.play(2 * at + 1, clusters, now);
            let (winner, holds_until) = match (left.winner, right.winner) {
                (only, NONE) | (NONE, only) => (only, u64::MAX),
                (left, right) => {
                    let pair = Pair::new(&clusters[left as usize], &clusters[right as usize], now);
                    if pair.order().is_lt() {
                        (left, pair.holds_until(now))
                    } else {
                        (right, pair.turned().holds_until(now))
                    }
                }
            };
            let until = left.until.min(right.until).min(holds_until);
            self.matches[at] = Match { winner, until };
        }
        self.matches[at]
    }

    /// The content of leaf `at`: its slot, or [`NONE`].
    #[inline]
    fn alone(&self, at: usize) -> u32 {
        let slot = at - self.matches.len();
        if self.takes_part[slot] { slot as u32 } else { NONE }
    }

    /// The winner of match `at` at `now`. Matches played for this are not stored.
    fn winner(&self, at: usize, clusters: &[Cluster], now: u64) -> u32 {
        if at >= self.matches.len() {
            return self.alone(at);
        }
        if self.matches[at].until > now {
            return self.matches[at].winner;
        }
        let winner = |at| self.winner(at, clusters, now);
        match (winner(2 * at), winner(2 * at + 1)) {
            (only, NONE) | (NONE, only) => only,
            (left, right) => {
                let of = |slot: u32| &clusters[slot as usize];
                if order(of(left), of(right), now).is_lt() { left } else { right }
            }
        }
    }

    /// All slots that take part, by rising priority at `now`. The winner of the whole tournament
    /// comes first; after it, the losers of the matches that it won become candidates.
    pub(super) fn by_priority<'a>(
        &'a self,
        clusters: &'a [Cluster],
        now: u64,
    ) -> impl Iterator<Item = u32> + 'a {
        let winner_of = move |of: usize| {
            let slot = self.winner(of, clusters, now);
            (slot != NONE).then(|| Winner { slot, of, cluster: &clusters[slot as usize], now })
        };
        let mut open: BinaryHeap<Winner> = winner_of(1).into_iter().collect();
        std::iter::from_fn(move || {
            let Winner { slot, of, .. } = open.pop()?;
            let mut at = self.matches.len() + slot as usize;
            while at > of {
                open.extend(winner_of(at ^ 1));
                at /= 2;
            }
            Some(slot)
        })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.matches.len() * size_of::<Match>() + self.takes_part.len()) as u64
    }
}

/// Compares two clusters: the rank of each and its growth per unit of time, both times the product
/// of both IPDs.
struct Pair<'a> {
    first: &'a Cluster,
    second: &'a Cluster,
    ranks: (u128, u128),
    slopes: (u128, u128),
}

impl<'a> Pair<'a> {
    #[inline]
    fn new(first: &'a Cluster, second: &'a Cluster, now: u64) -> Self {
        // A cluster has at most 2^12 pages and 2^24 in distances, so a slope has 48 bits.
        let slope = |of: &Cluster, other: &Cluster| {
            u64::from(of.pages) * u64::from(of.pages) * u64::from(other.ipd())
        };
        let slopes = (u128::from(slope(first, second)), u128::from(slope(second, first)));
        let age = |of: &Cluster| u128::from(now - of.timestamp);
        Pair { first, second, ranks: (slopes.0 * age(first), slopes.1 * age(second)), slopes }
    }

    /// The same pair in the other order.
    fn turned(self) -> Self {
        let ((rank, other_rank), (slope, other_slope)) = (self.ranks, self.slopes);
        Pair {
            first: self.second,
            second: self.first,
            ranks: (other_rank, rank),
            slopes: (other_slope, slope),
        }
    }

    /// `Less` if the first has the lower priority. Of equal priorities the older cluster goes first,
    /// then the one with the lower number.
    #[inline]
    fn order(&self) -> Ordering {
        let key = |cluster: &Cluster| (cluster.timestamp, cluster.number);
        self.ranks.1.cmp(&self.ranks.0).then_with(|| key(self.first).cmp(&key(self.second)))
    }

    /// The first time after `now` at which the second, which is behind the first now, overtakes it;
    /// `u64::MAX` if never.
    ///
    /// The second overtakes once its rank is higher. If the ranks become equal after `now`, the one
    /// that grows faster is the younger and still behind at that time. Two ranks that grow alike keep
    /// their order.
    #[inline]
    fn holds_until(&self, now: u64) -> u64 {
        if self.slopes.1 <= self.slopes.0 {
            return u64::MAX;
        }
        let (ahead, gain) = (self.ranks.0 - self.ranks.1, self.slopes.1 - self.slopes.0);
        let steps = match (u64::try_from(ahead), u64::try_from(gain)) {
            (Ok(ahead), Ok(gain)) => ahead / gain,
            // A time beyond 64 bits is never reached: one unit of time is one demotion of a page.
            _ => u64::try_from(ahead / gain).unwrap_or(u64::MAX),
        };
        now.saturating_add(steps).saturating_add(1)
    }
}

/// `Less` for the cluster with the lower priority at `now`.
pub(super) fn order(first: &Cluster, second: &Cluster, now: u64) -> Ordering {
    Pair::new(first, second, now).order()
}

/// The winner of a match and a time, ordered so that the greatest has the lowest priority.
struct Winner<'a> {
    slot: u32,
    /// The match.
    of: usize,
    cluster: &'a Cluster,
    now: u64,
}

impl Ord for Winner<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        order(self.cluster, other.cluster, self.now).reverse()
    }
}

impl PartialOrd for Winner<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Winner<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}

impl Eq for Winner<'_> {}
