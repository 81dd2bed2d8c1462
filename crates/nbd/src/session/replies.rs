//! Replies that are not yet sent. The pages of a long reply are kept as they were read, and copied piece by piece as they
//! are sent. So a long reply neither takes its memory twice nor occupies the thread for long.
use crate::span::Span;
use std::collections::VecDeque;
use tantalum_base::{PAGE_BYTES, PageBuf};

/// Up to this number of pages is copied immediately, and not kept.
const COPIED_PAGES_MAX: usize = 16;
/// Step by which a large buffer grows: if it doubled, it could be twice as large as the replies.
const BYTES_STEP: usize = 1 << 20;
/// Pages that are copied to be sent together.
const SENT_PAGES: usize = 64;

/// Bytes, and the bytes of a span of pages behind them.
#[derive(Default)]
struct Segment {
    bytes: Vec<u8>,
    skip: usize,
    length: usize,
    pages: VecDeque<PageBuf>,
}

/// Replies in the order in which they are sent.
#[derive(Default)]
pub(crate) struct Replies {
    segments: VecDeque<Segment>,
}

/// Whether `pages` pages are kept until they are sent.
pub(crate) fn are_kept(pages: usize) -> bool {
    pages > COPIED_PAGES_MAX
}

impl Replies {
    /// The end of the replies, to append bytes.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        if self.segments.back().is_none_or(|last| last.length > 0) {
            self.segments.push_back(Segment::default());
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last].bytes
    }

    /// Makes room for `bytes` more.
    pub(crate) fn make_room(&mut self, bytes: usize) {
        let end = self.bytes();
        if end.len() + bytes > end.capacity().max(BYTES_STEP) {
            end.reserve_exact(bytes.max(BYTES_STEP));
        }
    }

    /// Appends the bytes of `span` from its covering pages.
    pub(crate) fn push(&mut self, span: Span, pages: &[PageBuf]) {
        let (skip, length) = (span.skip(), span.length as usize);
        if are_kept(pages.len()) {
            self.bytes();
            if let Some(last) = self.segments.back_mut() {
                (last.skip, last.length) = (skip, length);
                last.pages = pages.iter().cloned().collect();
            }
        } else {
            copy(self.bytes(), skip, length, pages);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.bytes.is_empty() && segment.length == 0)
    }

    /// The number of bytes to be sent.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| (segment.bytes.len() + segment.length) as u64).sum()
    }

    /// Puts the next bytes to be sent into `piece`, and returns the number of pages that were copied; `None` if nothing
    /// is left. The memory of `piece` is used again.
    pub(crate) fn next(&mut self, piece: &mut Vec<u8>) -> Option<usize> {
        piece.clear();
        loop {
            let segment = self.segments.front_mut()?;
            if !segment.bytes.is_empty() {
                std::mem::swap(piece, &mut segment.bytes);
                return Some(0);
            }
            if segment.length > 0 {
                let count = segment.pages.len().min(SENT_PAGES);
                let pages: Vec<PageBuf> = segment.pages.drain(..count).collect();
                let length = segment.length.min(count * PAGE_BYTES - segment.skip);
                copy(piece, segment.skip, length, &pages);
                segment.length -= length;
                segment.skip = 0;
                return Some(count);
            }
            if self.segments.len() == 1 {
                // Its memory is used for the next replies.
                return None;
            }
            self.segments.pop_front();
        }
    }
}

/// Appends `left` bytes of `pages`, without the first `skip` bytes.
fn copy(out: &mut Vec<u8>, mut skip: usize, mut left: usize, pages: &[PageBuf]) {
    for page in pages {
        let bytes = left.min(PAGE_BYTES - skip);
        out.extend_from_slice(&page[skip..skip + bytes]);
        left -= bytes;
        skip = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_kept_and_copied_ones_come_in_order() {
        for (pages, offset, cut) in [(1, 100, 200), (16, 0, 0), (17, 512, 512), (150, 7, 0)] {
            let pages: Vec<PageBuf> =
                (0..pages).map(|page| PageBuf::copy_from(&[page as u8; PAGE_BYTES])).collect();
            let length = (pages.len() * PAGE_BYTES) as u64 - offset - cut;
            let mut replies = Replies::default();
            for round in 0..3_u8 {
                replies.bytes().push(round);
                replies.push(Span { offset, length }, &pages);
            }
            assert_eq!(replies.total_bytes(), 3 * (length + 1));
            let (mut sent, mut piece) = (Vec::new(), Vec::new());
            while replies.next(&mut piece).is_some() {
                sent.extend_from_slice(&piece);
            }
            let whole: Vec<u8> = pages.iter().flat_map(|page| page.to_vec()).collect();
            let body = &whole[offset as usize..][..length as usize];
            let expected: Vec<u8> = (0..3_u8).flat_map(|round| [&[round], body].concat()).collect();
            assert!(sent == expected && replies.is_empty(), "{} pages", pages.len());
        }
    }
}
