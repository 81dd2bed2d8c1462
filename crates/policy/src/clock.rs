//! CLOCK: frames in a ring; a hand passes over pages that were used since its last pass.
//!
//! Source: Corbató, "A paging experiment with the Multics system", MIT Project MAC, 1968. With
//! `bits` over 1 the reference bit becomes a counter, which each hit increments and each pass of
//! the hand decrements (generalised CLOCK: Smith, "Sequentiality and prefetching in database
//! systems", ACM TODS 3(3), 1978). A page comes in with the counter at 0.
//!
//! Weak against scans and loops, as LRU is. If nearly all pages are in use, a miss may cost a walk
//! over many frames, up to 2^bits rounds. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_ring::FrameRing;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::PageNo;

/// Second chances by reference counters.
#[derive(Debug)]
pub struct Clock<T> {
    ring: FrameRing<T>,
    /// Reference counter of each frame, at most `count_max`; index 0 is unused.
    counts: Vec<u8>,
    count_max: u8,
}

impl<T: PageTable> Clock<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`, with reference counters of
    /// `bits` bits (1 to 7).
    pub fn new(frames: u32, pages_end: u64, bits: u32) -> Self {
        assert!((1..=7).contains(&bits), "reference counters have 1 to 7 bits");
        Clock {
            ring: FrameRing::new(frames, pages_end),
            counts: vec![0; frames as usize + 1],
            count_max: ((1u32 << bits) - 1) as u8,
        }
    }
}

impl<T: PageTable> Policy for Clock<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.ring.find(request.page());
        if frame != NO_FRAME {
            let count = &mut self.counts[frame as usize];
            *count = self.count_max.min(*count + 1);
            self.ring.key_mut(frame).touch(request);
            return true;
        }
        if self.ring.is_full() {
            loop {
                let count = &mut self.counts[self.ring.hand() as usize];
                if *count == 0 {
                    break;
                }
                *count -= 1;
                self.ring.advance();
            }
            effects.push(self.ring.replace(request).evicted());
        } else {
            let frame = self.ring.push(request);
            self.counts[frame as usize] = 0;
        }
        false
    }

    answers_of!(ring: contains cleaned capacity_pages dirty_pages);

    /// A page of count `n` leaves when the hand passes it for the time `n + 1`.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let of = |count: u8| {
            let frames = self.ring.oldest_first();
            frames.filter(move |&frame| self.counts[frame as usize] == count)
        };
        self.ring.dirty_of((0..=self.count_max).flat_map(of), pages_max, pages);
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.ring.find(page);
        if frame != NO_FRAME {
            let counts = &mut self.counts;
            self.ring.remove(frame, |from, to| counts[to as usize] = counts[from as usize]);
        }
        frame != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        self.ring.memory_bytes() + self.counts.len() as u64
    }

    #[cfg(test)]
    fn validate(&self) {
        self.ring.validate();
        assert!(self.counts.iter().all(|&count| count <= self.count_max));
    }
}
