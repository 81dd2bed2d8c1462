//! Sequential streams among the requests, as from a table scan or a backup. They would evict pages
//! that are used again.
use tantalum_base::PageRange;

/// Number of streams that are followed at once.
const STREAMS: usize = 16;

/// A run of requests, each of which began at the end of the one before.
#[derive(Clone, Copy, Default)]
struct Stream {
    next_page: u64,
    pages: u64,
    used_at: u64,
}

/// The most recent streams.
#[derive(Default)]
pub(crate) struct Streams {
    streams: [Stream; STREAMS],
    requests: u64,
}

impl Streams {
    /// Records a request; returns the pages of its stream so far, including this request.
    pub fn seen(&mut self, range: PageRange) -> u64 {
        self.requests += 1;
        let follows = |stream: &Stream| stream.pages > 0 && stream.next_page == range.first.0;
        let at = self.streams.iter().position(follows).unwrap_or_else(|| {
            let oldest = (0..STREAMS).min_by_key(|at| self.streams[*at].used_at).unwrap_or(0);
            self.streams[oldest] = Stream::default();
            oldest
        });
        let stream = &mut self.streams[at];
        stream.next_page = range.end().0;
        stream.pages += range.pages;
        stream.used_at = self.requests;
        stream.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::PageNo;

    #[test]
    fn streams_are_followed_beside_each_other_and_the_oldest_is_forgotten() {
        let mut streams = Streams::default();
        let mut seen = |first: u64, pages: u64| streams.seen(PageRange::new(PageNo(first), pages));
        assert_eq!((seen(100, 4), seen(500, 1)), (4, 1));
        assert_eq!((seen(104, 4), seen(501, 2)), (8, 3));
        assert_eq!(seen(104, 4), 4, "again is not on");
        assert_eq!(seen(0, 1), 1, "page 0 follows nothing");
        for at in 0..STREAMS as u64 {
            assert_eq!(seen(1000 * (at + 1), 1), 1);
        }
        assert_eq!(seen(503, 1), 1);
    }
}
