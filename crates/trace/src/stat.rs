//! What a trace holds, counted exactly.
use crate::event::{BlockEvent, BlockOp, FileKind, PageEvent};
use tantalum_base::{FastMap, PageNo};

/// Counts over page events. Memory grows with the distinct pages, not with the trace.
#[derive(Clone, Debug, Default)]
pub struct PageStat {
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages given up.
    pub trims: u64,
    /// Commit points.
    pub commits: u64,
    /// Highest page number read or written.
    pub max_page: Option<PageNo>,
    /// Distinct pages written.
    pub written_pages: u64,
    /// Requests for a page asked for before, by the number of requests since: entry `i` counts
    /// those with 2^i to 2^(i+1) - 1. As long as its last entry that is not 0.
    pub reuse_by_log2: Vec<u64>,
    /// Each page asked for: request number of the last time, times two, plus one if ever written.
    seen: FastMap<PageNo, u64>,
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
        let (page, pages, write) = match event {
            PageEvent::Read { page, pages } => (page, pages, false),
            PageEvent::Write { page, pages } => (page, pages, true),
            PageEvent::Trim { pages, .. } => return self.trims += u64::from(pages),
            PageEvent::Commit => return self.commits += 1,
        };
        for page in page.0..page.0.saturating_add(u64::from(pages)) {
            self.request(PageNo(page), write);
        }
    }

    fn request(&mut self, page: PageNo, write: bool) {
        let now = self.requests();
        let before = self.seen.insert(page, now << 1 | u64::from(write));
        if let Some(before) = before {
            let log2 = (now - (before >> 1)).ilog2() as usize;
            if self.reuse_by_log2.len() <= log2 {
                self.reuse_by_log2.resize(log2 + 1, 0);
            }
            self.reuse_by_log2[log2] += 1;
            if before & 1 == 1 && !write {
                self.seen.insert(page, now << 1 | 1);
            }
        }
        self.written_pages += u64::from(write && before.is_none_or(|before| before & 1 == 0));
        self.max_page = self.max_page.max(Some(page));
        if write {
            self.writes += 1;
        } else {
            self.reads += 1;
        }
    }

    /// Pages read and written: a request of several pages counts as many.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Distinct pages read or written: the footprint.
    pub fn distinct_pages(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Writes among the requests, 0 to 1.
    pub fn write_share(&self) -> f64 {
        share(self.writes, self.requests())
    }

    /// Requests for pages asked for before, 0 to 1: no cache that fetches on demand hits more.
    pub fn reuse_share(&self) -> f64 {
        share(self.requests() - self.distinct_pages(), self.requests())
    }

    /// At most how many requests lie between two uses of a page, in the given share (0 to 1) of
    /// all re-uses: the upper end of a power-of-two class. `None` where nothing is used twice.
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

/// Counts over block events, by kind of file and operation.
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

    /// The counts of a kind and an operation.
    pub fn of(&self, kind: FileKind, op: BlockOp) -> Count {
        self.counts.get(usize::from(kind.0)).map_or(Count::default(), |ops| ops[op as usize])
    }

    /// All counts that are not zero, by kind and operation.
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
