//! Exact statistics of a trace.
use crate::event::{BlockEvent, BlockOp, FileKind, PageEvent};
use hashbrown::hash_map::Entry;
use tantalum_base::{FastMap, PageNo};

/// Number of requests that a working set covers: it is the set of pages requested by that many latest requests.
pub const WORKING_SET_REQUESTS: u64 = 1 << 16;

/// Counts over page events. Memory grows with the distinct pages, not with the trace.
#[derive(Clone, Debug, Default)]
pub struct PageStat {
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages discarded.
    pub trims: u64,
    /// Commit points.
    pub commits: u64,
    /// Highest page number read or written.
    pub max_page: Option<PageNo>,
    /// Distinct pages written.
    pub written_pages: u64,
    /// Requests for the page after the one of the previous request.
    pub sequential: u64,
    /// Requests for a page that was requested before, by the number of requests since then: entry `i` counts those
    /// with 2^i to 2^(i+1) - 1. The last entry is not 0.
    pub reuse_by_log2: Vec<u64>,
    seen: FastMap<PageNo, Seen>,
    /// The page after the one requested last.
    next_page: Option<PageNo>,
    /// For each page, the number of requests during which it was in the working set, except the time since its last
    /// use; summed over all pages.
    resident_requests: u64,
}

/// Facts about a page.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Number of its last request, times two, plus one if it was ever written.
    last: u64,
    requests: u64,
}

impl PageStat {
    /// Counts all of `events`.
    pub fn of<E>(events: impl IntoIterator<Item = Result<PageEvent, E>>) -> Result<PageStat, E> {
        let mut stat = PageStat::default();
        for event in events {
            stat.add(event?);
        }
        Ok(stat)
    }

    /// Counts one event.
    pub fn add(&mut self, event: PageEvent) {
        match event {
            PageEvent::Trim { pages, .. } => self.trims += u64::from(pages),
            PageEvent::Commit => self.commits += 1,
            PageEvent::Read { .. } | PageEvent::Write { .. } => {
                for (page, is_write) in event.requests() {
                    self.request(page, is_write);
                }
            }
        }
    }

    fn request(&mut self, page: PageNo, write: bool) {
        let now = self.requests();
        self.sequential += u64::from(self.next_page == Some(page));
        self.next_page = page.0.checked_add(1).map(PageNo);
        let mut was_written = false;
        match self.seen.entry(page) {
            Entry::Occupied(mut entry) => {
                let seen = entry.get_mut();
                let since = now - (seen.last >> 1);
                was_written = seen.last & 1 == 1;
                *seen = Seen {
                    last: now << 1 | u64::from(write || was_written),
                    requests: seen.requests + 1,
                };
                self.resident_requests += since.min(WORKING_SET_REQUESTS);
                let log2 = since.ilog2() as usize;
                if self.reuse_by_log2.len() <= log2 {
                    self.reuse_by_log2.resize(log2 + 1, 0);
                }
                self.reuse_by_log2[log2] += 1;
            }
            Entry::Vacant(entry) => {
                entry.insert(Seen { last: now << 1 | u64::from(write), requests: 1 });
            }
        }
        self.written_pages += u64::from(write && !was_written);
        self.max_page = self.max_page.max(Some(page));
        if write {
            self.writes += 1;
        } else {
            self.reads += 1;
        }
    }

    /// Share of requests for the page after the one of the previous request, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.requests())
    }

    /// Share of requests for the hottest `pages_share` of the requested pages (rounded to whole pages), 0 to 1:
    /// with 0.2, the locality of Y. Ou's dissertation, table B.1.
    pub fn hottest_share(&self, pages_share: f64) -> f64 {
        let mut counts: Vec<u64> = self.seen.values().map(|seen| seen.requests).collect();
        let hottest = (counts.len() as f64 * pages_share).round() as usize;
        counts.sort_unstable_by(|a, b| b.cmp(a));
        share(counts.iter().take(hottest).sum(), self.requests())
    }

    /// Distinct pages requested within the last [`WORKING_SET_REQUESTS`] requests, averaged over all requests (Denning
    /// and Schwartz, "Properties of the working-set model", CACM 1972: each use keeps its page in the set until the
    /// next use, or for that number of requests).
    pub fn working_set_pages(&self) -> f64 {
        let end = self.requests();
        let since_last = |seen: &Seen| (end - (seen.last >> 1)).min(WORKING_SET_REQUESTS);
        let last: u64 = self.seen.values().map(since_last).sum();
        share(self.resident_requests + last, end)
    }

    /// Pages read and written: a request of several pages counts once for each page.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Distinct pages read or written: the footprint.
    pub fn distinct_pages(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Share of writes among the requests, 0 to 1.
    pub fn write_share(&self) -> f64 {
        share(self.writes, self.requests())
    }

    /// Share of requests for pages requested before, 0 to 1: no cache that fetches on demand hits more.
    pub fn reuse_share(&self) -> f64 {
        share(self.requests() - self.distinct_pages(), self.requests())
    }

    /// Largest number of requests between two uses of a page, for the given share (0 to 1) of all re-uses: the upper
    /// end of a power-of-two class. `None` if no page is used twice.
    pub fn reuse_distance_at(&self, quantile: f64) -> Option<u64> {
        let reuses: u64 = self.reuse_by_log2.iter().sum();
        let wanted = ((reuses as f64 * quantile).ceil() as u64).max(1);
        let mut sum = 0;
        for (log2, &count) in self.reuse_by_log2.iter().enumerate() {
            sum += count;
            if sum >= wanted {
                return Some((2u64 << log2) - 1);
            }
        }
        None
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Counts over block events, by volume and operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockStat {
    counts: Vec<[Count; BlockOp::ALL.len()]>,
}

/// Calls and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// System calls.
    pub calls: u64,
    /// Bytes they read or wrote.
    pub bytes: u64,
}

impl BlockStat {
    /// Counts one event.
    pub fn add(&mut self, event: BlockEvent) {
        let kind = usize::from(event.file_kind.0);
        if self.counts.len() <= kind {
            self.counts.resize(kind + 1, Default::default());
        }
        let count = &mut self.counts[kind][event.op as usize];
        count.calls += 1;
        count.bytes += u64::from(event.length);
    }

    /// The counts of a volume and an operation.
    pub fn of(&self, kind: FileKind, op: BlockOp) -> Count {
        self.counts.get(usize::from(kind.0)).map_or(Count::default(), |ops| ops[op as usize])
    }

    /// All counts that are not zero, by volume and operation.
    pub fn rows(&self) -> impl Iterator<Item = (FileKind, BlockOp, Count)> {
        self.counts.iter().enumerate().flat_map(|(kind, ops)| {
            BlockOp::ALL
                .into_iter()
                .map(move |op| (FileKind(kind as u16), op, ops[op as usize]))
                .filter(|(_, _, count)| count.calls > 0)
        })
    }

    /// Events counted.
    pub fn records(&self) -> u64 {
        self.rows().map(|(_, _, count)| count.calls).sum()
    }
}
