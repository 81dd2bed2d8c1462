//! Reads pages ahead if requests come in the order of page numbers.
//!
//! Prefetched pages use frames that the policy does not count, so that it decides as without them:
//! a request for a prefetched page is a miss without a read. If frames are short, the pages
//! prefetched first are dropped first.
use std::collections::VecDeque;
use tantalum_base::PageNo;
use tantalum_policy::page_table::NO_FRAME;

use crate::admission::Admission;
use crate::frames::Content;
use crate::options::PrefetchOptions;

/// Maximum number of sequences that are followed at a time.
const STREAMS: usize = 8;

/// A sequence of missed pages.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page that comes next.
    next: PageNo,
    /// Pages in the sequence so far, without prefetched ones.
    length: u32,
}

/// Finds sequences among the pages that must be read.
#[derive(Debug, Default)]
pub(crate) struct Prefetch {
    /// The most recently extended stream comes first.
    streams: VecDeque<Stream>,
}

impl Prefetch {
    /// Records that `page` must be read; returns how many following pages to read ahead.
    fn note(&mut self, page: PageNo, options: PrefetchOptions) -> u32 {
        let found = self.streams.iter().position(|stream| stream.next == page);
        let length = match found.and_then(|at| self.streams.remove(at)) {
            Some(stream) => stream.length.saturating_add(1),
            None => 1,
        };
        let ahead = if length >= options.after_pages { options.window_pages } else { 0 };
        self.streams.truncate(STREAMS - 1);
        let next = PageNo(page.0 + 1);
        self.streams.push_front(Stream { next, length });
        ahead
    }

    /// Records that `pages` pages after the last recorded one are read ahead.
    fn note_read_ahead(&mut self, pages: u64) {
        if let Some(stream) = self.streams.front_mut() {
            stream.next.0 += pages;
        }
    }
}

impl Admission {
    /// Frees the frame of the page prefetched first; returns whether there was one.
    pub(crate) fn give_up_prefetched(&mut self) -> bool {
        let frame = self.frames.oldest_prefetched();
        // While the page is being read, its frame is in use.
        if frame == NO_FRAME || self.frames.get(frame).content == Content::Reading {
            return false;
        }
        self.frames.set_prefetched(frame, false);
        self.release(frame)
    }

    /// Allocates frames for the pages that are read together with `page`, and adds them to
    /// `frames`, in page order. These pages follow `page`, which is about to be read.
    pub(crate) fn begin_prefetch(
        &mut self,
        page: PageNo,
        pages_end: u64,
        options: PrefetchOptions,
        frames: &mut Vec<u32>,
    ) {
        let wanted = self.prefetch.note(page, options);
        for number in (page.0 + 1..pages_end).take(wanted as usize) {
            // Some frames are reserved for requested pages.
            let spare = self.frames.free_count() > self.frames_kept;
            let room = spare || self.give_up_prefetched();
            if !room || self.frames.find(PageNo(number)) != NO_FRAME {
                break;
            }
            let frame = self.frames.take_free(PageNo(number));
            self.frames.get_mut(frame).content = Content::Reading;
            self.frames.set_prefetched(frame, true);
            frames.push(frame);
            self.prefetch.note_read_ahead(1);
        }
    }

    /// Ends the read of a prefetched page. After a failure the page counts as not prefetched: the
    /// next fix reads it alone.
    pub(crate) fn end_prefetch(&mut self, frame: u32, read: bool) {
        let content = if read { Content::Ready } else { Content::Absent };
        self.frames.get_mut(frame).content = content;
        if !read {
            self.frames.set_prefetched(frame, false);
        }
        self.statistics.prefetched += u64::from(read);
        self.release(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: PrefetchOptions = PrefetchOptions { after_pages: 3, window_pages: 8 };

    #[test]
    fn sequences_are_found_among_others() {
        let mut prefetch = Prefetch::default();
        let mut note = |page| prefetch.note(PageNo(page), OPTIONS);
        assert_eq!(
            [note(10), note(500), note(11), note(7), note(501), note(12)],
            [0, 0, 0, 0, 0, 8]
        );
        assert_eq!((note(502), note(14), note(13)), (8, 0, 8));
    }

    #[test]
    fn a_sequence_goes_on_behind_what_was_read_along() {
        let mut prefetch = Prefetch::default();
        for page in 1..4 {
            prefetch.note(PageNo(page), OPTIONS);
        }
        prefetch.note_read_ahead(5);
        assert_eq!(prefetch.note(PageNo(9), OPTIONS), 8);
        assert_eq!(prefetch.note(PageNo(9), OPTIONS), 0, "not the next one");
    }

    #[test]
    fn only_so_many_sequences_are_followed() {
        let mut prefetch = Prefetch::default();
        for stream in 0..=STREAMS as u64 {
            prefetch.note(PageNo(1000 * stream), OPTIONS);
        }
        prefetch.note(PageNo(1), OPTIONS);
        assert_eq!(prefetch.note(PageNo(2), OPTIONS), 0, "the oldest was forgotten");
        assert_eq!(prefetch.streams.len(), STREAMS);
    }
}
