//! S3-FIFO: a small FIFO queue in front of a large one. A page that is requested often enough while
//! it is in the small queue moves to the large one; all others leave and are remembered for a while.
//!
//! Source: Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP
//! 2023, section 4 and algorithm 1. One detail follows their simulator, not the printed algorithm:
//! a page that enters the main queue does not evict a page there at once; the main queue may exceed
//! its share until the next miss. So a miss evicts one page, not several.
//!
//! Weak if a page's second use comes after the small and the ghost queue have forgotten it (loops
//! longer than the cache), and on loads in which most pages are used a few times close together and
//! then not again: these fill the main queue. Blind to the cost of writing back.
use crate::answers::answers_of;
use crate::frame_lists::FrameLists;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use crate::registry::PolicySpec;
use tantalum_base::PageNo;

/// Cached, new.
const SMALL: u32 = 0;
/// Cached, requested again.
const MAIN: u32 = 1;
/// Evicted from the small queue, remembered.
const GHOST: u32 = 2;

/// The limit of the use counters.
const COUNT_MAX: u8 = 3;

/// Three FIFO queues.
#[derive(Debug)]
pub struct S3Fifo<T> {
    /// Each queue in the order of arrival, or of reinsertion.
    queues: FrameLists<T>,
    /// Uses of each frame's page since it entered its queue.
    counts: Vec<u8>,
    capacity: u32,
    /// If the main queue has more pages than this, it is the first to evict.
    main_max: u32,
    /// Maximum number of remembered pages.
    ghost_max: u32,
    /// Number of uses in the small queue after which a page moves to the main one.
    move_uses: u8,
}

impl<T: PageTable> S3Fifo<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`. The small queue has the
    /// share `small_share` (0 to 1) of the frames. `ghost_share` (0 to 2) times as many pages as
    /// frames are remembered. A page with `move_uses` (1 to 3) uses moves to the main queue.
    pub fn new(
        frames: u32,
        pages_end: u64,
        small_share: f64,
        ghost_share: f64,
        move_uses: u8,
    ) -> Self {
        assert!(frames > 0 && frames <= PolicySpec::FRAMES_MAX, "too many frames, or none");
        assert!((0.0..=1.0).contains(&small_share) && (0.0..=2.0).contains(&ghost_share));
        assert!((1..=COUNT_MAX).contains(&move_uses), "uses are counted up to {COUNT_MAX}");
        let ghost_max = (f64::from(frames) * ghost_share) as u32;
        let queues = FrameLists::new(3, frames + ghost_max, pages_end);
        S3Fifo {
            counts: vec![0; queues.frames_end()],
            queues,
            capacity: frames,
            main_max: frames - (f64::from(frames) * small_share) as u32,
            ghost_max,
            move_uses,
        }
    }

    /// Makes room for a page.
    fn evict(&mut self, effects: &mut Vec<Effect>) {
        while self.queues.cached() == self.capacity {
            if self.queues.len(MAIN) > self.main_max || self.queues.len(SMALL) == 0 {
                self.evict_main(effects);
            } else {
                self.evict_small(effects);
            }
        }
    }

    /// Evicts the oldest page of the small queue that has too few uses; moves older ones to the
    /// main queue. May evict nothing and leave the small queue empty.
    fn evict_small(&mut self, effects: &mut Vec<Effect>) {
        while self.queues.len(SMALL) > 0 {
            let frame = self.queues.tail(SMALL);
            let uses = std::mem::take(&mut self.counts[frame as usize]);
            if uses >= self.move_uses {
                self.queues.move_to_head(frame, MAIN);
                continue;
            }
            effects.push(self.queues.evict_to(frame, GHOST, self.ghost_max));
            return;
        }
    }

    /// Evicts the oldest page of the main queue that was not used; moves older ones to the queue's
    /// head.
    fn evict_main(&mut self, effects: &mut Vec<Effect>) {
        loop {
            let frame = self.queues.tail(MAIN);
            let count = &mut self.counts[frame as usize];
            if *count == 0 {
                effects.push(self.queues.remove(frame).evicted());
                return;
            }
            *count -= 1;
            self.queues.move_to_head(frame, MAIN);
        }
    }
}

impl<T: PageTable> Policy for S3Fifo<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let frame = self.queues.find(request.page());
        let to = match frame {
            NO_FRAME => SMALL,
            frame if self.queues.list_of(frame) <= MAIN => {
                let count = &mut self.counts[frame as usize];
                *count = COUNT_MAX.min(*count + 1);
                self.queues.key_mut(frame).touch(request);
                return true;
            }
            // Removed first, so that the ghost queue has room for the page to be evicted.
            frame => {
                self.queues.remove(frame);
                MAIN
            }
        };
        self.evict(effects);
        let frame = self.queues.push(request, to);
        self.counts[frame as usize] = 0;
        false
    }

    answers_of!(queues: contains_cached cleaned forget_cached dirty_pages);

    /// The small queue's pages that would not move, oldest first, then the main queue's by their
    /// counts, oldest first, then the pages that would move. If the main queue is too long, its
    /// pages come first. Moves in the meantime are not predicted.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let count = |frame: u32| self.counts[frame as usize];
        let small = |moves: bool| {
            let frames = self.queues.oldest_first(SMALL);
            frames.filter(move |&frame| (count(frame) >= self.move_uses) == moves)
        };
        let main = (0..=COUNT_MAX).flat_map(|uses| {
            self.queues.oldest_first(MAIN).filter(move |&frame| count(frame) == uses)
        });
        if self.queues.len(MAIN) > self.main_max {
            let frames = main.chain(small(false)).chain(small(true));
            self.queues.dirty_of(frames, pages_max, pages);
        } else {
            let frames = small(false).chain(main).chain(small(true));
            self.queues.dirty_of(frames, pages_max, pages);
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.queues.memory_bytes() + self.counts.len() as u64
    }

    fn capacity_pages(&self) -> u32 {
        self.capacity
    }

    #[cfg(test)]
    fn validate(&self) {
        self.queues.validate();
        assert!(self.queues.cached() <= self.capacity, "more pages than frames");
        assert!(self.queues.len(GHOST) <= self.ghost_max, "the ghost queue is too long");
        assert!(self.counts.iter().all(|&count| count <= COUNT_MAX));
        let mut ghosts = self.queues.oldest_first(GHOST);
        assert!(ghosts.all(|frame| !self.queues.key(frame).is_dirty()));
    }
}
