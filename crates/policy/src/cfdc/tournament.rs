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
use std::collections::BinaryHeap;

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
    #[cfg(test)]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.takes_part[slot as usize]
    }

    /// The cluster of `slot` is new or changed, and takes part.
    pub(super) fn change(&mut self, slot: u32) {
        self.takes_part[slot as usize] = true;
        self.play_again(slot);
    }

    /// The cluster of `slot` takes no more part, if it did.
    pub(super) fn leave(&mut self, slot: u32) {
        if std::mem::take(&mut self.takes_part[slot as usize]) {
            self.play_again(slot);
        }
    }

    /// Marks all matches that depend on `slot`.
    fn play_again(&mut self, slot: u32) {
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

    /// What stands at leaf `at`: its slot, or [`NONE`].
    #[inline]
    fn alone(&self, at: usize) -> u32 {
        let slot = at - self.matches.len();
        if self.takes_part[slot] { slot as u32 } else { NONE }
    }

    /// The winner of match `at` at `now`; what has to be played for it is not remembered.
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

    /// All slots that take part, by rising priority at `now`. Who wins the whole is first; then the
    /// matches that it won are open to those that it beat there.
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

/// Two clusters at a time: their ranks, and what each grows by a unit of time, times the product
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
        // At most 2^12 pages each and 2^24 in distances: a slope has 48 bits.
        let slope = |of: &Cluster, other: &Cluster| {
            u64::from(of.pages) * u64::from(of.pages) * u64::from(other.ipd())
        };
        let slopes = (u128::from(slope(first, second)), u128::from(slope(second, first)));
        let age = |of: &Cluster| u128::from(now - of.timestamp);
        Pair { first, second, ranks: (slopes.0 * age(first), slopes.1 * age(second)), slopes }
    }

    /// The same with the second first.
    fn turned(self) -> Self {
        let ((rank, other_rank), (slope, other_slope)) = (self.ranks, self.slopes);
        Pair {
            first: self.second,
            second: self.first,
            ranks: (other_rank, rank),
            slopes: (other_slope, slope),
        }
    }

    /// Less where the first has the lower priority. Of equal ones the older goes first, then the one
    /// with the lower number.
    #[inline]
    fn order(&self) -> Ordering {
        let key = |cluster: &Cluster| (cluster.timestamp, cluster.number);
        self.ranks.1.cmp(&self.ranks.0).then_with(|| key(self.first).cmp(&key(self.second)))
    }

    /// The first time after `now` at which the second, behind the first now, is before it;
    /// `u64::MAX` for never.
    ///
    /// It is so once its rank is higher: where ranks meet later than now, the faster one is the younger
    /// and still behind, and two that rise alike keep their order.
    #[inline]
    fn holds_until(&self, now: u64) -> u64 {
        if self.slopes.1 <= self.slopes.0 {
            return u64::MAX;
        }
        let (ahead, gain) = (self.ranks.0 - self.ranks.1, self.slopes.1 - self.slopes.0);
        let steps = match (u64::try_from(ahead), u64::try_from(gain)) {
            (Ok(ahead), Ok(gain)) => ahead / gain,
            // Beyond 64 bits is never: a unit of time is a page's demotion.
            _ => u64::try_from(ahead / gain).unwrap_or(u64::MAX),
        };
        now.saturating_add(steps).saturating_add(1)
    }
}

/// Less for the cluster with the lower priority at `now`.
pub(super) fn order(first: &Cluster, second: &Cluster, now: u64) -> Ordering {
    Pair::new(first, second, now).order()
}

/// The winner of a match at a time: the greatest has the lowest priority.
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
