//! The synthetic traces of Y. Ou's dissertation: single pages with 80-20 or 90-10 skew, and scans.
//!
//! Section 3.3.1: 100,000 single page reads, 100,000 single page updates, 100 scan reads and 100 scan updates of 200
//! pages; single pages self-similar, scans from a uniform start. Section 3.3.2, scan resistance: single pages 90-10,
//! scans that start behind them, 200 to 1,600 of them. The text does not state how the four are mixed: here each order
//! is equally likely, and scans are not interrupted. An update of a page is one write request.
use super::pattern::PAGES_MAX;
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Rng, Spec};

/// The references of each kind that are still to be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    reads: u64,
    updates: u64,
    scan_reads: u64,
    scan_updates: u64,
}

/// Single pages and scans in a random order.
#[derive(Clone, Debug)]
pub(super) struct Synthetic {
    left: Left,
    pages: u64,
    exponent: f64,
    /// Pages at which scans may start.
    scan_first: u64,
    scan_range: u64,
    scan_pages: u64,
    /// The rest of the current scan: next page, pages, whether it updates.
    scan: (u64, u64, bool),
    rng: Rng,
}

impl Synthetic {
    /// `cfdc_synthetic` (section 3.3.1) or `cfdc_scans` (3.3.2): the same parameters with other defaults. `scans` is
    /// the figure's: half of them read, half update.
    pub(super) fn of(spec: &mut Spec<'_>, seed: u64) -> Result<Synthetic> {
        let resistance = spec.name() == "cfdc_scans";
        const MANY: std::ops::RangeInclusive<u64> = 0..=1 << 40;
        let pages = spec.count("pages", 1..=PAGES_MAX, 100_000)?;
        let h = spec.number("h", 0.001..=0.5, if resistance { 0.1 } else { 0.2 })?;
        let reads = spec.count("reads", MANY, 100_000)?;
        let updates = spec.count("updates", MANY, 100_000)?;
        let scans = spec.count("scans", MANY, 200)?;
        let scan_reads = spec.count("scan_reads", MANY, scans.div_ceil(2))?;
        let scan_updates = spec.count("scan_updates", MANY, scans / 2)?;
        let scan_pages = spec.count("scan_pages", 1..=1 << 32, 200)?;
        let (first, range) = if resistance { (pages, 50_000) } else { (0, pages) };
        Ok(Synthetic {
            left: Left { reads, updates, scan_reads, scan_updates },
            pages,
            exponent: h.ln() / (1.0 - h).ln(),
            scan_first: spec.count("scan_first", 0..=PAGES_MAX, first)?,
            scan_range: spec.count("scan_range", 1..=PAGES_MAX, range)?,
            scan_pages,
            scan: (0, 0, false),
            rng: Rng::split(seed, "synthetic"),
        })
    }

    /// All pages are below this.
    pub(super) fn pages(&self) -> u64 {
        self.pages.max(self.scan_first + self.scan_range + self.scan_pages - 1)
    }

    /// Requests still to come.
    pub(super) fn requests(&self) -> u64 {
        let Left { reads, updates, scan_reads, scan_updates } = self.left;
        let scanned = (scan_reads + scan_updates).saturating_mul(self.scan_pages);
        (reads + updates + self.scan.1).saturating_add(scanned)
    }

    /// A single page: the hottest is page 0, as in the generator that the section cites.
    fn page(&mut self) -> u64 {
        let share = self.rng.unit().powf(self.exponent);
        ((self.pages as f64 * share) as u64).min(self.pages - 1)
    }

    fn begin_scan(&mut self, update: bool) {
        let start = self.scan_first + self.rng.below(self.scan_range);
        self.scan = (start, self.scan_pages, update);
    }
}

impl Iterator for Synthetic {
    type Item = PageEvent;

    fn next(&mut self) -> Option<PageEvent> {
        if self.scan.1 == 0 {
            let Left { reads, updates, scan_reads, scan_updates } = self.left;
            let all = reads + updates + scan_reads + scan_updates;
            if all == 0 {
                return None;
            }
            // Each remaining reference is equally likely to be next.
            let drawn = self.rng.below(all);
            if drawn < reads + updates {
                let update = drawn >= reads;
                *(if update { &mut self.left.updates } else { &mut self.left.reads }) -= 1;
                let page = self.page();
                return Some(PageEvent::one(PageNo(page), update));
            }
            let update = drawn >= reads + updates + scan_reads;
            *(if update { &mut self.left.scan_updates } else { &mut self.left.scan_reads }) -= 1;
            self.begin_scan(update);
        }
        let (page, pages, update) = self.scan;
        self.scan = (page + 1, pages - 1, update);
        Some(PageEvent::one(PageNo(page), update))
    }
}
