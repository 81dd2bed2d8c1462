//! WATT, write-aware timestamp tracking: the page goes that seems to be used and updated least
//! often, by the times of its last few uses.
//!
//! Source: Vöhringer, Leis, "Write-aware timestamp tracking: effective and efficient page
//! replacement for modern hardware", PVLDB 16(11), 2023, sections 3 and 4, with its defaults: the
//! last 8 uses and the last 4 updates of a page, 4 epochs a turnover of the cache, dampening 0.1,
//! write weight 4. The i-th last use, t epochs ago, gives the frequency i / (t + 1), at most 1; the
//! last use alone counts `dampening` in place of 1. The greatest of them is the page's frequency of
//! use; the same over its updates, times `write_cost`, is added. An update is a use as well. Uses
//! in the same epoch count once; an epoch ends with every `frames / epochs` pages that leave.
//!
//! There is no list to take a victim from: `sample` frames are drawn with a seeded generator, and
//! the page of least value among them goes, the first one drawn among equals. A sample as large as
//! the cache is an exact search, in the order of frames. The paper draws a small sample to find a
//! threshold and evicts what lies below it in a larger one, several pages at once; a page at a time
//! needs no threshold. Nothing is remembered of pages that left.
//!
//! Weak where time stands still: while nothing leaves no epoch ends, and a page's past keeps its
//! worth; a page that is new in the cache has one use, which is dampened, so that it goes early;
//! the choice depends on the seed; it takes the most memory a page of all policies here. The best
//! write weight depends on device and workload.
use crate::answers::answers_of;
use crate::frames::Frames;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::{PageNo, Result, Rng, Spec};

/// What can be chosen of WATT.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WattOptions {
    /// Uses of a page that are remembered, 1 to 64.
    pub uses: u32,
    /// Updates of a page that are remembered, 1 to 64.
    pub updates: u32,
    /// Weight of the frequency of updates, 0 or more.
    pub write_cost: f64,
    /// What the last use counts, 0 to 1.
    pub dampening: f64,
    /// Epochs while as many pages leave as the cache has, at least 1.
    pub epochs: u32,
    /// Frames looked at for a victim, at least 1.
    pub sample: u32,
    /// Seed of the drawing.
    pub seed: u64,
}

impl WattOptions {
    /// Takes the options from `spec`.
    pub(crate) fn take(spec: &mut Spec) -> Result<WattOptions> {
        Ok(WattOptions {
            uses: spec.count("k_read", 1..=64, 8)? as u32,
            updates: spec.count("k_write", 1..=64, 4)? as u32,
            write_cost: spec.number("write_cost", 0.0..=1000.0, 4.0)?,
            dampening: spec.number("dampening", 0.0..=1.0, 0.1)?,
            epochs: spec.count("epochs", 1..=1000, 4)? as u32,
            sample: spec.count("sample", 1..=1 << 32, 32)?.min(u64::from(u32::MAX)) as u32,
            seed: spec.count("seed", 0..=u64::MAX, 0)?,
        })
    }
}

/// Last uses and updates of each page, and a sample of pages for each victim.
#[derive(Debug)]
pub struct Watt<T> {
    frames: Frames<T>,
    /// For each frame the epochs of its uses, newest first, then those of its updates.
    epochs: Vec<u32>,
    /// How many of them there are; index 0 is unused.
    known: Vec<Known>,
    options: WattOptions,
    /// Counts on over its end: what was used 2^32 epochs ago is taken for new.
    epoch: u32,
    /// Pages that left in this epoch, and how many end it.
    evicted: u32,
    evicted_max: u32,
    rng: Rng,
}

#[derive(Clone, Copy, Default, Debug)]
struct Known {
    uses: u8,
    updates: u8,
}

/// Notes the epoch `now` in `epochs`, of which `known` are there, newest first.
#[inline]
fn note(epochs: &mut [u32], known: &mut u8, now: u32) {
    if *known > 0 && epochs[0] == now {
        return;
    }
    let kept = usize::from(*known).min(epochs.len() - 1);
    epochs.copy_within(..kept, 1);
    epochs[0] = now;
    *known = kept as u8 + 1;
}

/// The greatest of the frequencies that `epochs`, newest first, stand for.
#[inline]
fn frequency(epochs: &[u32], now: u32, dampening: f32) -> f32 {
    let of = |count: f32, epoch: u32| (count / (now.wrapping_sub(epoch) as f32 + 1.0)).min(1.0);
    let Some((&last, earlier)) = epochs.split_first() else { return 0.0 };
    let counts = (2u8..).map(f32::from);
    counts
        .zip(earlier)
        .fold(of(dampening, last), |most, (count, &epoch)| most.max(of(count, epoch)))
}

impl<T: PageTable> Watt<T> {
    /// A cache of `frames` pages, for pages numbered below `pages_end`.
    pub fn new(frames: u32, pages_end: u64, options: WattOptions) -> Self {
        let remembered = 1..=64;
        assert!(remembered.contains(&options.uses) && remembered.contains(&options.updates));
        assert!(options.epochs > 0 && options.sample > 0, "epochs and samples are not empty");
        let epochs = (frames as usize + 1) * (options.uses + options.updates) as usize;
        Watt {
            frames: Frames::new(frames, pages_end),
            epochs: vec![0; epochs],
            known: vec![Known::default(); frames as usize + 1],
            options,
            epoch: 0,
            evicted: 0,
            evicted_max: (frames / options.epochs).max(1),
            rng: Rng::split(options.seed, "watt"),
        }
    }

    /// Where the epochs of `frame` begin, and those of its updates.
    #[inline]
    fn log_of(&self, frame: u32) -> (usize, usize) {
        let first = frame as usize * (self.options.uses + self.options.updates) as usize;
        (first, first + self.options.uses as usize)
    }

    #[inline]
    fn track(&mut self, frame: u32, write: bool) {
        let (uses, updates) = self.log_of(frame);
        let end = updates + self.options.updates as usize;
        let known = &mut self.known[frame as usize];
        note(&mut self.epochs[uses..updates], &mut known.uses, self.epoch);
        if write {
            note(&mut self.epochs[updates..end], &mut known.updates, self.epoch);
        }
    }

    /// What `frame` is worth: the higher, the longer it should stay.
    #[inline]
    fn value(&self, frame: u32) -> f32 {
        let (uses, updates) = self.log_of(frame);
        let known = self.known[frame as usize];
        let dampening = self.options.dampening as f32;
        let of = |first: usize, known: u8| {
            frequency(&self.epochs[first..first + usize::from(known)], self.epoch, dampening)
        };
        of(uses, known.uses) + of(updates, known.updates) * self.options.write_cost as f32
    }

    /// The victim of a full cache.
    fn victim(&mut self) -> u32 {
        let capacity = self.frames.capacity_pages();
        let exact = self.options.sample >= capacity;
        let mut least = (f32::INFINITY, NO_FRAME);
        for at in 1..=self.options.sample.min(capacity) {
            let frame = if exact { at } else { 1 + self.rng.below(u64::from(capacity)) as u32 };
            let value = self.value(frame);
            if value < least.0 {
                least = (value, frame);
            }
        }
        self.evicted += 1;
        if self.evicted == self.evicted_max {
            self.evicted = 0;
            self.epoch = self.epoch.wrapping_add(1);
        }
        least.1
    }
}

impl<T: PageTable> Policy for Watt<T> {
    #[inline]
    fn access(&mut self, request: Request, effects: &mut Vec<Effect>) -> bool {
        let mut frame = self.frames.find(request.page());
        let hit = frame != NO_FRAME;
        if hit {
            self.frames.key_mut(frame).touch(request);
        } else {
            if self.frames.is_full() {
                frame = self.victim();
                effects.push(self.frames.replace(frame, request).evicted());
            } else {
                frame = self.frames.take(request);
            }
            self.known[frame as usize] = Known::default();
        }
        self.track(frame, request.is_write());
        hit
    }

    answers_of!(frames: contains cleaned capacity_pages dirty_pages);

    /// The dirty pages of least value first. Looks at all frames.
    fn write_candidates(&self, pages_max: usize, pages: &mut Vec<PageNo>) {
        let mut dirty: Vec<(f32, u32)> =
            self.frames.dirty_frames().map(|frame| (self.value(frame), frame)).collect();
        let by_value = |left: &(f32, u32), right: &(f32, u32)| {
            left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
        };
        if pages_max < dirty.len() {
            dirty.select_nth_unstable_by(pages_max, by_value);
            dirty.truncate(pages_max);
        }
        dirty.sort_unstable_by(by_value);
        pages.extend(dirty.into_iter().map(|(_, frame)| self.frames.key(frame).page()));
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let frame = self.frames.find(page);
        if frame != NO_FRAME {
            self.frames.release(frame);
        }
        frame != NO_FRAME
    }

    fn memory_bytes(&self) -> u64 {
        let log = self.epochs.len() * size_of::<u32>() + self.known.len() * size_of::<Known>();
        self.frames.memory_bytes() + log as u64
    }

    #[cfg(test)]
    fn validate(&self) {
        self.frames.validate();
        assert!(self.evicted < self.evicted_max);
        for (frame, known) in self.known.iter().enumerate().skip(1) {
            let (uses, updates) = self.log_of(frame as u32);
            for (first, known) in [(uses, known.uses), (updates, known.updates)] {
                let epochs = &self.epochs[first..first + usize::from(known)];
                assert!(epochs.windows(2).all(|pair| pair[0] > pair[1]), "each epoch once");
            }
        }
    }
}
