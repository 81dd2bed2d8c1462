//! Stand-ins for the buffer traces of Y. Ou's dissertation, appendix B, which are not available.
//!
//! For each trace, table B.1 gives the number of requests, distinct pages and updates, and the share of requests that
//! the hottest fifth of the pages gets; for the bank's trace also that 3 % of the pages get 40 %. The traces generated
//! here have exactly these counts, and the shares up to rounding (0.6 % of the requests if most pages are requested
//! once or twice). The frequencies in between follow power laws through the given points. The rest is unknown and
//! random: each order of the requests is equally likely, and the pages are scattered. So properties of real traces
//! beyond popularity (re-use soon after use, scans, neighbours) are missing.
use super::pattern::Scatter;
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// One row of the table.
struct Row {
    name: &'static str,
    requests: u64,
    pages: u64,
    /// Updates per 10,000 requests.
    updates: u64,
    /// Points of the curve: a number of hottest pages, and the requests that they get.
    points: &'static [(u64, u64)],
}

/// Table B.1. For the bank's trace the text gives counts; for the others, the percentage of requests that 20 % of the
/// pages get.
const ROWS: [Row; 7] = [
    Row {
        name: "bank",
        requests: 607_390,
        pages: 51_880,
        updates: 2251,
        points: &[(1_556, 242_956), (10_376, 434_702)],
    },
    Row {
        name: "tpcc",
        requests: 2_841_225,
        pages: 88_698,
        updates: 1872,
        points: &[(17_740, 2_500_278)],
    },
    Row {
        name: "tpcc100",
        requests: 12_316_654,
        pages: 111_337,
        updates: 1672,
        points: &[(22_267, 11_084_989)],
    },
    Row {
        name: "tpch",
        requests: 6_502_242,
        pages: 105_640,
        updates: 0,
        points: &[(21_128, 4_681_614)],
    },
    Row {
        name: "tpch10",
        requests: 10_000_000,
        pages: 1_051_591,
        updates: 741,
        points: &[(210_318, 8_700_000)],
    },
    Row {
        name: "tpce",
        requests: 3_341_738,
        pages: 460_064,
        updates: 103,
        points: &[(92_013, 2_907_312)],
    },
    Row {
        name: "tpce20",
        requests: 2_613_847,
        pages: 150_065,
        updates: 67,
        points: &[(30_013, 2_404_739)],
    },
];

const NAMES: [&str; 7] = ["bank", "tpcc", "tpcc100", "tpch", "tpch10", "tpce", "tpce20"];

/// A trace with the numbers of a row, drawn without replacement.
#[derive(Clone, Debug)]
pub(super) struct BufferTrace {
    /// The page of each request, in random order.
    requests: Vec<u32>,
    next: usize,
    updates_left: u64,
    pages: u64,
    rng: Rng,
}

impl BufferTrace {
    /// Accepts `like`, the trace's name in the table.
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<BufferTrace> {
        let like = spec.word("like", &NAMES)?;
        let row = ROWS.iter().find(|row| row.name == like).unwrap_or(&ROWS[0]);
        let mut rng = Rng::split(seed, "buffer trace");
        let scatter = Scatter::new(row.pages);
        let mut requests = Vec::with_capacity(row.requests as usize);
        for (rank, count) in counts(row).enumerate() {
            let page = scatter.page(rank as u64) as u32;
            requests.extend((0..count).map(|_| page));
        }
        rng.shuffle(&mut requests);
        let updates_left = (row.requests * row.updates).div_ceil(10_000);
        Ok(BufferTrace { requests, next: 0, updates_left, pages: row.pages, rng })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
}

/// The number of requests for the page of each rank: at least one, and in total as the points require.
fn counts(row: &Row) -> impl Iterator<Item = u64> {
    let mut points = vec![(0, 0)];
    points.extend_from_slice(row.points);
    points.push((row.pages, row.requests));
    // Requests beyond the first one for each page.
    let points: Vec<(f64, f64)> =
        points.iter().map(|(pages, requests)| (*pages as f64, (requests - pages) as f64)).collect();
    // Requests for the hottest `pages`: a power law between the two adjacent points; before the first point, the power
    // law after it is continued.
    let up_to = move |pages: u64| {
        let pages = pages as f64;
        let at = points[2..].partition_point(|point| point.0 < pages).min(points.len() - 3);
        let ((x0, y0), (x1, y1)) = (points[at + 1], points[at + 2]);
        if pages == 0.0 { 0.0 } else { y0 * (pages / x0).powf((y1 / y0).ln() / (x1 / x0).ln()) }
    };
    (0..row.pages).map(move |rank| 1 + up_to(rank + 1).round() as u64 - up_to(rank).round() as u64)
}

impl Iterator for BufferTrace {
    type Item = PageEvent;

    fn next(&mut self) -> Option<PageEvent> {
        let page = PageNo(u64::from(*self.requests.get(self.next)?));
        let left = (self.requests.len() - self.next) as u64;
        self.next += 1;
        // Exactly the given number of updates; every choice of them is equally likely.
        let update = self.rng.below(left) < self.updates_left;
        self.updates_left -= u64::from(update);
        Some(PageEvent::one(page, update))
    }
}
