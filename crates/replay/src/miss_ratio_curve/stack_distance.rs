//! LRU stack distances: the number of distinct pages used since the last use of a page, including the
//! page itself. A cache of c pages under LRU hits if and only if the distance is at most c.
//!
//! Source: Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM
//! Systems Journal 9(2), 1970; counting by a tree after Bennett and Kruskal, IBM Journal of Research
//! and Development 19(4), 1975. Each page has a bit at the time of its last use; a Fenwick tree over
//! words of 64 bits counts the later bits. When the bits are used up, those that are set move
//! together: over n requests for m pages this takes O(n log m) time, and memory for m pages.

/// The number of a followed page.
pub(super) type Id = u32;

const WORD_BITS: usize = 64;
/// No time: the page was not used yet, or is forgotten.
const NEVER: u32 = u32::MAX;
/// Minimum number of times, so that with few pages they do not move at every request.
const TIMES_MIN: usize = 1 << 12;

/// The order in which pages were last used.
#[derive(Debug, Default)]
pub(super) struct StackDistances {
    /// One bit per time: set if it is the time of some page's last use.
    used: Vec<u64>,
    /// Fenwick tree over the words of `used`: entry i (from 1) counts the bits of words i - lowbit(i)
    /// to i - 1.
    tree: Vec<u32>,
    /// For each time whose bit is set, the page that was last used then.
    page_at: Vec<Id>,
    /// Time of each page's last use.
    last: Vec<u32>,
    now: usize,
    pages: u32,
}

impl StackDistances {
    /// Uses `page`. Returns its distance, or `None` the first time.
    #[inline]
    pub(super) fn access(&mut self, page: Id) -> Option<u32> {
        let distance = self.distance(page);
        if distance.is_some() {
            self.clear(page);
        }
        if self.now == self.page_at.len() {
            self.compact();
        }
        if self.last.len() <= page as usize {
            self.last.resize(page as usize + 1, NEVER);
        }
        self.last[page as usize] = self.now as u32;
        self.page_at[self.now] = page;
        self.set(self.now);
        self.now += 1;
        distance
    }

    /// The distance that a use of `page` would have now.
    #[inline]
    pub(super) fn distance(&self, page: Id) -> Option<u32> {
        let time = *self.last.get(page as usize).filter(|&&time| time != NEVER)? as usize;
        let (word, bit) = (time / WORD_BITS, time % WORD_BITS);
        let before = (self.used[word] & ((1 << bit) - 1)).count_ones() + self.bits_before(word);
        Some(self.pages - before)
    }

    /// Drops `page`, as if it had never been used.
    pub(super) fn forget(&mut self, page: Id) {
        if self.distance(page).is_some() {
            self.clear(page);
            self.last[page as usize] = NEVER;
        }
    }

    /// Bits in the words before `word`.
    #[inline]
    fn bits_before(&self, word: usize) -> u32 {
        let (mut at, mut sum) = (word, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    #[inline]
    fn set(&mut self, time: usize) {
        self.used[time / WORD_BITS] |= 1 << (time % WORD_BITS);
        self.pages += 1;
        let mut at = time / WORD_BITS + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    #[inline]
    fn clear(&mut self, page: Id) {
        let time = self.last[page as usize] as usize;
        self.used[time / WORD_BITS] &= !(1 << (time % WORD_BITS));
        self.pages -= 1;
        let mut at = time / WORD_BITS + 1;
        while at < self.tree.len() {
            self.tree[at] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Moves the used times to the beginning, in order, and makes room for the same number of further
    /// times.
    fn compact(&mut self) {
        let mut next = 0;
        for word in 0..self.used.len() {
            let mut bits = self.used[word];
            while bits != 0 {
                let page = self.page_at[word * WORD_BITS + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                self.page_at[next] = page;
                self.last[page as usize] = next as u32;
                next += 1;
            }
        }
        self.now = next;
        let times = (2 * next + 1).next_multiple_of(WORD_BITS).max(TIMES_MIN);
        assert!(times < NEVER as usize, "over 2^31 pages are used");
        self.page_at.resize(times, 0);
        self.used.clear();
        self.used.resize(times / WORD_BITS, 0);
        self.tree.clear();
        self.tree.resize(times / WORD_BITS + 1, 0);
        self.pages = 0;
        for time in 0..next {
            self.set(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::Rng;

    /// Compared with a list that has the most recently used page in front.
    #[test]
    fn distances_are_those_of_a_list() {
        for (seed, pages, forgets) in [(1, 10, false), (2, 300, true), (3, 5000, false)] {
            let mut rng = Rng::new(seed);
            let mut stack = StackDistances::default();
            let mut list: Vec<Id> = Vec::new();
            for _ in 0..30_000 {
                let page = rng.below(pages).min(rng.below(pages)) as Id;
                let at = list.iter().position(|other| *other == page);
                if let Some(at) = at {
                    list.remove(at);
                }
                if forgets && rng.below(10) == 0 {
                    stack.forget(page);
                    assert_eq!(stack.distance(page), None);
                    continue;
                }
                assert_eq!(stack.distance(page), at.map(|at| at as u32 + 1), "seed {seed}");
                assert_eq!(stack.access(page), at.map(|at| at as u32 + 1), "seed {seed}");
                list.insert(0, page);
            }
            assert!(stack.page_at.len() <= (2 * list.len() + 64).max(TIMES_MIN) * 2);
        }
    }
}
