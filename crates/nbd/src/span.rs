//! A range of bytes seen as pages.
use tantalum_base::{PAGE_BYTES, PageNo, PageRange};

const PAGE: u64 = PAGE_BYTES as u64;

/// `length` bytes from `offset` on a device, so that the end does not overflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Span {
    /// The pages that contain these bytes.
    pub(crate) fn covering(self) -> PageRange {
        let first = self.offset / PAGE;
        let pages = if self.length == 0 { 0 } else { self.end().div_ceil(PAGE) - first };
        PageRange::new(PageNo(first), pages)
    }

    /// The pages that are entirely covered.
    pub(crate) fn whole(self) -> PageRange {
        let first = self.offset.div_ceil(PAGE);
        PageRange::new(PageNo(first), (self.end() / PAGE).saturating_sub(first))
    }

    /// Bytes of the first page before the span.
    pub(crate) fn skip(self) -> usize {
        (self.offset % PAGE) as usize
    }

    /// Offset in its last page at which the span ends: 1 to a whole page.
    pub(crate) fn tail(self) -> usize {
        ((self.end() - 1) % PAGE) as usize + 1
    }

    /// Whether the span begins and ends at page boundaries.
    pub(crate) fn is_aligned(self) -> bool {
        self.offset.is_multiple_of(PAGE) && self.length.is_multiple_of(PAGE)
    }

    /// The partly covered pages, each with the range of its bytes that is covered.
    pub(crate) fn edges(self) -> impl Iterator<Item = (PageNo, std::ops::Range<usize>)> {
        let covering = self.covering();
        let last = PageNo(covering.end().0.saturating_sub(1));
        let only = covering.pages == 1;
        let head = (self.length > 0 && (self.skip() > 0 || (only && self.tail() < PAGE_BYTES)))
            .then(|| (covering.first, self.skip()..if only { self.tail() } else { PAGE_BYTES }));
        let tail =
            (self.length > 0 && !only && self.tail() < PAGE_BYTES).then(|| (last, 0..self.tail()));
        head.into_iter().chain(tail)
    }

    /// The part of the span in `range`, one of its covering pages at least.
    pub(crate) fn inside(self, range: PageRange) -> Span {
        let offset = self.offset.max(range.first.0 * PAGE);
        Span { offset, length: self.end().min(range.end().0 * PAGE) - offset }
    }

    fn end(self) -> u64 {
        self.offset + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_a_whole_page_or_in_an_edge() {
        for offset in (0..3 * PAGE).step_by(512) {
            for length in (0..4 * PAGE).step_by(512) {
                let span = Span { offset, length };
                let edges: Vec<_> = span.edges().collect();
                let in_edges: u64 = edges.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                assert_eq!(in_edges + span.whole().pages * PAGE, length, "{span:?}");
                assert_eq!(
                    edges.len() as u64 + span.whole().pages,
                    span.covering().pages,
                    "{span:?}"
                );
                assert_eq!(edges.is_empty(), span.is_aligned() || length == 0, "{span:?}");
                for page in span.covering().iter() {
                    let part = span.inside(PageRange::new(page, 1));
                    let edge = edges.iter().find(|(edge, _)| *edge == page);
                    assert_eq!(part.length, edge.map_or(PAGE, |(_, bytes)| bytes.len() as u64));
                    assert_eq!(part.covering(), PageRange::new(page, 1), "{span:?}");
                }
                for (page, bytes) in edges {
                    assert!(bytes.len() < PAGE_BYTES && !span.whole().contains(page), "{span:?}");
                    let start = page.0 * PAGE + bytes.start as u64;
                    assert!(start >= offset && start + bytes.len() as u64 <= offset + length);
                }
            }
        }
    }
}
