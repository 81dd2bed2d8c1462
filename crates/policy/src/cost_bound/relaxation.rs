//! The Lagrangian relaxation of offline caching with write-backs.
//!
//! Time is the position in the trace. A *gap* lies between two requests for a page; a policy keeps the
//! page through it or fetches it again at its end. The gaps from one write of a page to its next (or to
//! the end of the trace) form a *run*: if the page is not kept through one of them, it has been written
//! back at least once. For every policy,
//!
//! - each gap that it does not keep costs a read (the gap up to the end of the trace costs nothing),
//!   each run that it does not keep as a whole costs a write, and the first request for each page costs
//!   a read;
//! - at each time at most `frames - 1` pages are kept through gaps around it, as the requested page has
//!   a frame.
//!
//! The relaxation replaces the second rule by a rent of at least 0, which each kept page pays at each
//! time; `frames - 1` rents per time are given back. A policy that obeys the rule pays no more than it
//! gets back. So the least cost under rent is a lower bound for every policy, for any rents. Each run
//! finds its least cost by itself: keep all gaps, or write once and keep those that are cheaper kept
//! than fetched. The best rents give the bound of the linear program. They are approached by raising a
//! rent if too many pages are kept and lowering it if too few are. This uses floats; the bound for the
//! rents found is computed in whole numbers, so that no rounding can raise it.
//!
//! Sources: Held, Karp, "The traveling-salesman problem and minimum spanning trees: part II",
//! Mathematical Programming 1, 1971 (bounds by multipliers); Berger, Beckmann, Harchol-Balter,
//! "Practical bounds on optimal caching with variable object sizes", POMACS 2(2), 2018 (gaps as
//! intervals that share the cache; one rent for all times is their PFOO-L); Beckmann et al.,
//! APOCS 2020 (runs that are written back once).
use crate::policy::Request;
use tantalum_base::{Error, ErrorKind, FastMap, PageNo, Result};

/// The times between two requests for a page, both exclusive.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u32,
    end: u32,
    /// Whether it is the first gap of its run.
    begins: bool,
    /// Whether its run began with a write.
    dirty: bool,
    /// Whether a request is at its end; a page that was not kept is fetched for it.
    fetches: bool,
}

/// A trace as runs of gaps, with the best rents found so far.
#[derive(Debug)]
pub struct Relaxation {
    /// Sorted by page, then by time. Gaps that contain no time pay no rent and are left out.
    gaps: Vec<Gap>,
    requests: u64,
    /// Maximum number of pages kept through gaps around a time.
    kept_max: u64,
    /// Costs and rents in units of 2^-scale.
    scale: u32,
    read_cost: i64,
    write_cost: i64,
    /// Cost of the first request for each page.
    first_reads: i128,
    /// Number of times in a block, as a power of two. All times of a block have the same rent.
    block_bits: u32,
    /// The rent of each block.
    rents: Vec<i64>,
}

impl Relaxation {
    /// Maximum number of blocks. A block covers `frames` / 8 requests (more if that gives too many
    /// blocks), which is much shorter than a page stays.
    const BLOCKS_MAX: usize = 1 << 15;

    /// The relaxation for a cache of `frames` frames. All rents are 0 until they are improved.
    pub fn new(
        requests: &[Request],
        frames: u32,
        read_cost: u32,
        write_cost: u32,
    ) -> Result<Relaxation> {
        assert!(frames > 0, "a cache has a frame at least");
        // No rent needs to exceed the cost of a gap at one time, and the sum of all rents must fit.
        let cost_max = u64::from(read_cost) + u64::from(write_cost);
        let sum_max = u128::from(cost_max.max(1)) * requests.len().max(1) as u128;
        let bits = 128 - sum_max.leading_zeros();
        let Some(scale) = 61u32.checked_sub(bits) else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} requests at {read_cost} and {write_cost} each", requests.len()),
            ));
        };
        let scale = scale.min(32);
        let (gaps, pages) = gaps_of(requests);
        let mut block_bits = (frames / 8).max(1).ilog2();
        while requests.len() >> block_bits > Relaxation::BLOCKS_MAX {
            block_bits += 1;
        }
        Ok(Relaxation {
            gaps,
            requests: requests.len() as u64,
            kept_max: u64::from(frames) - 1,
            scale,
            read_cost: i64::from(read_cost) << scale,
            write_cost: i64::from(write_cost) << scale,
            first_reads: (i128::from(read_cost) << scale) * pages as i128,
            block_bits,
            rents: vec![0; (requests.len() >> block_bits) + 1],
        })
    }

    /// Improves the rents for `rounds` rounds. Returns the best bound found, in whole costs.
    pub fn improve(&mut self, rounds: u32) -> u64 {
        let mut best = (self.bound(&self.rents, None), self.rents.clone());
        let level = self.best_level();
        let mut rents = vec![level; self.rents.len()];
        let mut kept = vec![0i64; rents.len()];
        for round in 0..=rounds {
            let bound = self.bound(&rents, Some(&mut kept));
            if bound > best.0 {
                best = (bound, rents.clone());
            }
            // Steps shrink: a step that suits a distant optimum is too long near it.
            let step = 0.5 / (1.0 + f64::from(round) / 8.0);
            self.adjust(&mut rents, &kept, step);
        }
        self.rents = best.1;
        let unit = 1i128 << self.scale;
        u64::try_from((best.0.max(0) + unit - 1) / unit).unwrap_or(u64::MAX)
    }

    /// The best power of two as the rent for all times. Its bound is that of PFOO-L.
    fn best_level(&self) -> i64 {
        let top = self.read_cost + self.write_cost;
        let levels = (0..=62).map(|bits| top >> bits).take_while(|level| *level > 0);
        let bound = |level: &i64| self.bound(&vec![*level; self.rents.len()], None);
        levels.max_by_key(bound).unwrap_or(0)
    }

    /// Moves each rent by up to `step` of itself, in proportion to the excess of kept pages over
    /// those allowed.
    fn adjust(&self, rents: &mut [i64], kept: &[i64], step: f64) {
        let rent_max = self.read_cost + self.write_cost;
        for (block, rent) in rents.iter_mut().enumerate() {
            let allowed = (self.kept_max * self.block_times(block)) as f64;
            let excess = (kept[block] as f64 / allowed.max(1.0) - 1.0).min(1.0);
            let moved = (*rent as f64 * (1.0 + step * excess)) as i64;
            *rent = moved.clamp(1, rent_max.max(1));
        }
    }

    /// The number of times in `block`; the last one may be short.
    fn block_times(&self, block: usize) -> u64 {
        let first = (block as u64) << self.block_bits;
        (self.requests - first.min(self.requests)).min(1 << self.block_bits)
    }

    /// The lower bound for `rents`, in units of 2^-scale. Sets `kept` to the number of kept pages
    /// of each block, summed over its times.
    fn bound(&self, rents: &[i64], kept: Option<&mut Vec<i64>>) -> i128 {
        let mut paid_before = Vec::with_capacity(rents.len());
        let mut paid = 0i64;
        for (block, rent) in rents.iter().enumerate() {
            paid_before.push(paid);
            paid += rent * self.block_times(block) as i64;
        }
        let prices = Prices { rents, paid_before: &paid_before, block_bits: self.block_bits };
        let mut coverage = kept.map(|kept| Coverage::new(kept, self.block_bits));
        let mut cost = self.first_reads - i128::from(paid) * i128::from(self.kept_max);
        for run in self.gaps.chunk_by(|_, next| !next.begins) {
            let (mut keep, mut cheaper) = (0i64, 0i64);
            for gap in run {
                let price = prices.of(gap);
                keep += price;
                cheaper += price.min(self.fetch_cost(gap));
            }
            let write = if run[0].dirty { self.write_cost } else { 0 };
            cost += i128::from(keep.min(write + cheaper));
            if let Some(coverage) = &mut coverage {
                let keeps_all = keep <= write + cheaper;
                for gap in run {
                    if keeps_all || prices.of(gap) <= self.fetch_cost(gap) {
                        coverage.add(gap);
                    }
                }
            }
        }
        if let Some(coverage) = coverage {
            coverage.finish();
        }
        cost
    }

    fn fetch_cost(&self, gap: &Gap) -> i64 {
        if gap.fetches { self.read_cost } else { 0 }
    }
}

/// The gaps that contain a time, and the number of pages.
fn gaps_of(requests: &[Request]) -> (Vec<Gap>, usize) {
    let end = requests.len() as u32;
    // The times of each page's requests, chained.
    let mut last: FastMap<PageNo, u32> = FastMap::default();
    let mut firsts = Vec::new();
    let mut next = vec![end; requests.len()];
    for (at, request) in requests.iter().enumerate() {
        match last.insert(request.page(), at as u32) {
            Some(before) => next[before as usize] = at as u32,
            None => firsts.push(at as u32),
        }
    }
    let mut gaps = Vec::new();
    for &first in &firsts {
        let (mut start, mut dirty, mut begins) = (first, false, true);
        while start < end {
            // A write begins a run, and so does each request for a clean page.
            begins |= !dirty || requests[start as usize].is_write();
            dirty |= requests[start as usize].is_write();
            let gap_end = next[start as usize];
            let fetches = gap_end < end;
            if gap_end - start > 1 && (fetches || dirty) {
                gaps.push(Gap { start, end: gap_end, begins, dirty, fetches });
                begins = false;
            }
            start = gap_end;
        }
    }
    (gaps, firsts.len())
}

/// The rent that a page pays through a gap.
struct Prices<'a> {
    rents: &'a [i64],
    /// The sum of all rents before each block.
    paid_before: &'a [i64],
    block_bits: u32,
}

impl Prices<'_> {
    /// The sum of all rents before `time`.
    #[inline]
    fn until(&self, time: u32) -> i64 {
        let block = (time >> self.block_bits) as usize;
        let inside = time - ((block as u32) << self.block_bits);
        self.paid_before[block] + self.rents[block] * i64::from(inside)
    }

    #[inline]
    fn of(&self, gap: &Gap) -> i64 {
        self.until(gap.end) - self.until(gap.start + 1)
    }
}

/// Counts kept pages by block. Until `finish`, `kept[b]` counts only gaps that begin or end in
/// block b, and `through` holds the change, from b on, in the number of gaps that cover the
/// following blocks.
struct Coverage<'a> {
    kept: &'a mut Vec<i64>,
    through: Vec<i64>,
    block_bits: u32,
}

impl<'a> Coverage<'a> {
    fn new(kept: &'a mut Vec<i64>, block_bits: u32) -> Self {
        kept.fill(0);
        let through = vec![0; kept.len()];
        Coverage { kept, through, block_bits }
    }

    #[inline]
    fn add(&mut self, gap: &Gap) {
        // The gap covers the times from start + 1 on, minus those from its end on.
        self.from(gap.start + 1, 1);
        self.from(gap.end, -1);
    }

    /// Adds `pages` at all times from `time` on.
    #[inline]
    fn from(&mut self, time: u32, pages: i64) {
        let block = (time >> self.block_bits) as usize;
        let times = ((block as i64 + 1) << self.block_bits) - i64::from(time);
        self.kept[block] += pages * times;
        self.through[block] += pages;
    }

    fn finish(self) {
        let mut through = 0;
        for (kept, begun) in self.kept.iter_mut().zip(self.through) {
            *kept += through << self.block_bits;
            through += begun;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_tests::{least_cost, requests};
    use proptest::prelude::*;

    proptest! {
        /// For any rents.
        #[test]
        fn any_rents_give_a_lower_bound(
            requests in requests(6).prop_map(|all| all.into_iter().take(40).collect::<Vec<_>>()),
            frames in 1u32..5,
            (read, write) in (0u32..4, 0u32..9),
            rents in prop::collection::vec(0.0f64..0.5, 41),
        ) {
            let relaxation = Relaxation::new(&requests, frames, read, write).unwrap();
            let unit = f64::from(relaxation.scale).exp2();
            let cost_max = f64::from(read + write);
            let rents: Vec<i64> = rents[..relaxation.rents.len()]
                .iter()
                .map(|rent| (rent * cost_max * unit) as i64)
                .collect();
            let least = least_cost(&requests, frames, u64::from(read), u64::from(write));
            let bound = relaxation.bound(&rents, None);
            prop_assert!(bound <= i128::from(least) << relaxation.scale, "{bound} over {least}");
        }

        /// The counts that steer the rents, checked time by time.
        #[test]
        fn kept_pages_are_counted_by_block(
            gaps in prop::collection::vec((0u32..60, 1u32..60), 0..30),
            block_bits in 0u32..4,
        ) {
            let times = 64usize;
            let mut kept = vec![0; (times >> block_bits) + 1];
            let mut coverage = Coverage::new(&mut kept, block_bits);
            let mut by_time = vec![0i64; 2 * times];
            for (start, length) in gaps {
                let end = (start + 1 + length).min(times as u32);
                let flags = (true, true, true);
                let (begins, dirty, fetches) = flags;
                coverage.add(&Gap { start, end, begins, dirty, fetches });
                by_time[start as usize + 1..end as usize].iter_mut().for_each(|pages| *pages += 1);
            }
            coverage.finish();
            for (block, kept) in kept.iter().enumerate() {
                let first = block << block_bits;
                prop_assert_eq!(*kept, by_time[first..first + (1 << block_bits)].iter().sum::<i64>());
            }
        }
    }
}
