//! Approximate recent request counts of pages: a count-min sketch of 4-bit counters that is halved
//! now and then.
//!
//! Source: Cormode, Muthukrishnan, "An improved data stream summary: the count-min sketch and its
//! applications", Journal of Algorithms 55, 2005; the small counters, the conservative update and
//! the halving are from TinyLFU (section 3.3 there). Deterministic: the hashes have no seed.
use tantalum_base::PageNo;

/// Number of rows; each has its own hash.
const ROWS: usize = 4;
/// The limit of a 4-bit counter.
const COUNT_MAX: u64 = 15;
/// Counters per row and frame: enough that pages seen once within the sample rarely share all four
/// counters with a popular one.
const COUNTERS_A_FRAME: u64 = 4;

/// The hashes of the rows: odd factors; the high bits of the product are used.
const FACTORS: [u64; ROWS] =
    [0xc3a5_c85c_97cb_3127, 0xb492_b66f_be98_f273, 0x9ae1_6a3b_2f90_404f, 0xcbf2_9ce4_8422_2325];

/// Counters of `ROWS` rows; each word has 16 counters of a row. 8 to 16 bytes a frame.
#[derive(Debug)]
pub struct FrequencySketch {
    words: Vec<u64>,
    /// Counters per row: a power of two.
    row_counters: u64,
    /// Increments so far; each halving halves this number, too.
    increments: u64,
    increments_max: u64,
}

impl FrequencySketch {
    /// A sketch for a cache of `frames` pages, halved after `sample` increments per frame.
    pub fn new(frames: u32, sample: u32) -> Self {
        assert!(frames > 0 && sample > 0, "{frames} frames, a sample of {sample} requests each");
        let row_counters = (COUNTERS_A_FRAME * u64::from(frames)).max(16).next_power_of_two();
        FrequencySketch {
            words: vec![0; ROWS * (row_counters / 16) as usize],
            row_counters,
            increments: 0,
            increments_max: u64::from(sample) * u64::from(frames),
        }
    }

    /// The location of the counter of `page` in `row`: a word and a shift.
    #[inline]
    fn place(&self, page: PageNo, row: usize) -> (usize, u32) {
        let mixed = (page.0 ^ (page.0 >> 32)).wrapping_mul(FACTORS[row]);
        let counter = (mixed ^ (mixed >> 32)).wrapping_mul(FACTORS[row]) >> 32;
        let counter = counter & (self.row_counters - 1);
        let word = row as u64 * (self.row_counters / 16) + counter / 16;
        (word as usize, (counter % 16) as u32 * 4)
    }

    #[inline]
    fn count(&self, (word, shift): (usize, u32)) -> u64 {
        (self.words[word] >> shift) & COUNT_MAX
    }

    /// The recent request count of `page`, at most 15; rarely more than the true count.
    #[inline]
    pub fn estimate(&self, page: PageNo) -> u64 {
        let counts = (0..ROWS).map(|row| self.count(self.place(page, row)));
        counts.min().unwrap_or(0)
    }

    /// Counts `page`: increments the lowest of its counters.
    #[inline]
    pub fn increment(&mut self, page: PageNo) {
        let places = std::array::from_fn::<_, ROWS, _>(|row| self.place(page, row));
        let lowest = places.iter().map(|&place| self.count(place)).min().unwrap_or(0);
        if lowest < COUNT_MAX {
            for (word, shift) in places {
                if self.count((word, shift)) == lowest {
                    self.words[word] += 1 << shift;
                }
            }
        }
        self.increments += 1;
        if self.increments == self.increments_max {
            self.halve();
        }
    }

    fn halve(&mut self) {
        for word in &mut self.words {
            *word = (*word >> 1) & 0x7777_7777_7777_7777;
        }
        self.increments /= 2;
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.words.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_before_the_first_halving_and_halve_then() {
        let mut sketch = FrequencySketch::new(250, 40);
        for round in 1..=9 {
            for page in 0..1000 {
                sketch.increment(PageNo(page << 20));
            }
            assert!((0..1000).all(|page| sketch.estimate(PageNo(page << 20)) >= round));
        }
        let total = |sketch: &FrequencySketch| -> u64 {
            (0..1000).map(|page| sketch.estimate(PageNo(page << 20))).sum()
        };
        // Four rows of 1,024 counters: few pages share all their counters.
        let before = total(&sketch);
        assert!((9_000..9_900).contains(&before), "{before}");
        (0..1000).for_each(|_| sketch.increment(PageNo(5 << 20)));
        assert!(total(&sketch) < before * 6 / 10, "nothing was halved");
        assert_eq!(sketch.estimate(PageNo(5 << 20)), 7);
    }

    #[test]
    fn counters_stop_at_fifteen() {
        let mut sketch = FrequencySketch::new(100, 10);
        (0..500).for_each(|_| sketch.increment(PageNo(u64::MAX)));
        assert_eq!(sketch.estimate(PageNo(u64::MAX)), 15);
    }
}
