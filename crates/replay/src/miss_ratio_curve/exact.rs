//! Follows every request: exact counts for every size.
use super::CurvePoint;
use super::tracker::Tracker;
use tantalum_base::PageNo;

/// Counts by size.
#[derive(Debug, Default)]
pub(super) struct Exact {
    tracker: Tracker,
    reads: u64,
    writes: u64,
    /// Requests by the smallest cache in which they hit.
    read_hits: Counts,
    write_hits: Counts,
    /// Updates by the smallest cache in which they are not written back before the next one.
    write_backs: Counts,
    /// Last updates by the smallest cache in which they are still dirty at the end.
    dirty: Counts,
}

/// Counts by number of pages; sums from the beginning once it is finished.
#[derive(Debug, Default)]
struct Counts(Vec<u64>);

impl Counts {
    #[inline]
    fn add(&mut self, pages: u64) {
        let at = pages as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += 1;
    }

    fn finish(&mut self) {
        let mut sum = 0;
        for count in &mut self.0 {
            sum += *count;
            *count = sum;
        }
    }

    fn all(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    fn up_to(&self, pages: u64) -> u64 {
        let Some(last) = self.0.len().checked_sub(1) else { return 0 };
        self.0[last.min(usize::try_from(pages).unwrap_or(last))]
    }
}

impl Exact {
    #[inline]
    pub(super) fn request(&mut self, page: PageNo, is_write: bool) {
        let this = self.tracker.request(page, is_write, 1.0);
        let hits = if is_write {
            self.writes += 1;
            &mut self.write_hits
        } else {
            self.reads += 1;
            &mut self.read_hits
        };
        if let Some(distance) = this.distance {
            hits.add(distance);
        }
        if let Some(pages) = this.written_back_below {
            self.write_backs.add(pages);
        }
    }

    pub(super) fn finish(&mut self) {
        for (_, pages) in self.tracker.last_updates(1.0) {
            self.dirty.add(pages);
        }
        for counts in
            [&mut self.read_hits, &mut self.write_hits, &mut self.write_backs, &mut self.dirty]
        {
            counts.finish();
        }
    }

    pub(super) fn distinct_pages(&self) -> u64 {
        self.tracker.pages() as u64
    }

    pub(super) fn point(&self, cache_pages: u64) -> CurvePoint {
        let read_misses = self.reads - self.read_hits.up_to(cache_pages);
        let write_misses = self.writes - self.write_hits.up_to(cache_pages);
        let dirty = self.dirty.up_to(cache_pages);
        let before_next = self.write_backs.all() - self.write_backs.up_to(cache_pages);
        CurvePoint {
            cache_pages,
            requests: self.reads + self.writes,
            read_misses,
            write_misses,
            physical_writes: before_next + self.dirty.all() - dirty,
            dirty_pages_at_end: dirty,
            miss_ratio_error: None,
        }
    }
}
