//! WATT, write-aware timestamp tracking: evicts the page with the lowest estimated frequency of
//! uses and updates, computed from the times of its last few uses.
//!
//! Source: Vöhringer, Leis, "Write-aware timestamp tracking: effective and efficient page
//! replacement for modern hardware", PVLDB 16(11), 2023, sections 3 and 4, with its defaults: the
//! last 8 uses and the last 4 updates of a page, 4 epochs per turnover of the cache, dampening 0.1,
//! write weight 4. The i-th last use, t epochs ago, gives the frequency i / (t + 1), at most 1; for
//! the very last use `dampening` takes the place of i = 1. The page's frequency of use is the
//! greatest of them. The same value over its updates, times `write_cost`, is added. An update is
//! also a use. Uses in the same epoch count once; an epoch ends after every `frames / epochs`
//! evictions.
//!
//! There is no list to take a victim from: `sample` frames are drawn with a seeded generator, and
//! the page of least value among them is evicted, the first one drawn among equals. A sample as
//! large as the cache is an exact search, in the order of frames. The paper draws a small sample to
//! find a threshold and evicts all pages below it in a larger one, several at once; evicting one
//! page at a time needs no threshold. Evicted pages are not remembered.
//!
//! Weak if nothing is evicted: no epoch ends then, and a page's past keeps its value. A new page
//! has one use, which is dampened, so it leaves early. The choice depends on the seed. It takes the
//! most memory per page of all policies here. The best write weight depends on device and workload.
use crate::answers::answers_of;
use crate::frames::Frames;
use crate::page_table::{NO_FRAME, PageTable};
use crate::policy::{Effect, Policy, Request};
use tantalum_base::{PageNo, Result, Rng, Spec};

/// The options of WATT.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WattOptions {
    /// Number of uses of a page that are remembered, 1 to 64.
    pub uses: u32,
    /// Number of updates of a page that are remembered, 1 to 64.
    pub updates: u32,
    /// Weight of the frequency of updates, 0 or more.
    pub write_cost: f64,
    /// Factor for the last use, 0 to 1.
    pub dampening: f64,
    /// Number of epochs in which as many pages leave as the cache has, at least 1.
    pub epochs: u32,
    /// Number of frames sampled for a victim, at least 1.
    pub sample: u32,
    /// Seed of the sampling.
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
    /// The number of known uses and updates of each frame; index 0 is unused.
    known: Vec<Known>,
    options: WattOptions,
    /// The counter wraps round: a use 2^32 epochs ago counts as new.
    epoch: u32,
    /// Pages that left in this epoch, and the number that ends it.
    evicted: u32,
    evicted_max: u32,
    rng: Rng,
}

#[derive(Clone, Copy, Default, Debug)]
struct Known {
    uses: u8,
    updates: u8,
}

/// Records the epoch `now` in `epochs`, newest first; `known` is the number of entries.
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

/// The greatest of the frequencies given by `epochs`, newest first.
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

    /// The first index of the epochs of uses of `frame`, and that of its updates.
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

    /// The value of `frame`: the higher, the longer it should stay.
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

    /// The dirty pages of least value first. Walks over all frames.
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
