//! Compares WATT with a table of all times, with the same draws of frames.
use super::{Model, agree, steps};
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::{PageNo, Rng};

#[derive(Clone, Debug)]
struct Entry {
    page: PageNo,
    dirty: bool,
    /// Every epoch in which the page was used, and in which it was updated, oldest first.
    used: Vec<u32>,
    updated: Vec<u32>,
}

struct Naive {
    k_read: usize,
    k_write: usize,
    sample: u32,
    write_cost: f32,
    evicted_max: u32,
    /// By frame number, from 1; the last one freed is the first to be filled again.
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    epoch: u32,
    evicted: u32,
    rng: Rng,
}

/// Equations 1 and 2, with the first order dampened.
fn frequency(times: &[u32], k: usize, now: u32) -> f32 {
    let mut most = 0f32;
    for (order, &time) in times.iter().rev().take(k).enumerate() {
        let uses = if order == 0 { 0.1 } else { order as f32 + 1.0 };
        most = most.max((uses / ((now - time) as f32 + 1.0)).min(1.0));
    }
    most
}

impl Naive {
    fn new(frames: u32, k_read: usize, k_write: usize, write_cost: f32, sample: u32) -> Naive {
        Naive {
            k_read,
            k_write,
            sample,
            write_cost,
            evicted_max: (frames / 4).max(1),
            entries: vec![None; frames as usize],
            free: (0..frames as usize).rev().collect(),
            epoch: 0,
            evicted: 0,
            rng: Rng::split(7, "watt"),
        }
    }

    fn position(&self, page: PageNo) -> Option<usize> {
        let holds = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.page == page);
        self.entries.iter().position(holds)
    }

    /// Equation 3.
    fn value(&self, frame: usize) -> f32 {
        let entry = self.entries[frame].as_ref().unwrap();
        let uses = frequency(&entry.used, self.k_read, self.epoch);
        uses + frequency(&entry.updated, self.k_write, self.epoch) * self.write_cost
    }

    fn victim(&mut self) -> usize {
        let frames = self.entries.len();
        let looked_at: Vec<usize> = match self.sample as usize >= frames {
            true => (0..frames).collect(),
            false => (0..self.sample).map(|_| self.rng.below(frames as u64) as usize).collect(),
        };
        let mut least = looked_at[0];
        for frame in looked_at {
            if self.value(frame) < self.value(least) {
                least = frame;
            }
        }
        self.evicted += 1;
        if self.evicted.is_multiple_of(self.evicted_max) {
            self.epoch += 1;
        }
        least
    }
}

impl Model for Naive {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let (page, write) = (request.page(), request.is_write());
        let mut effects = Vec::new();
        let found = self.position(page);
        let frame = found.unwrap_or_else(|| {
            let frame = self.free.pop().unwrap_or_else(|| {
                let frame = self.victim();
                let Entry { page, dirty, .. } = self.entries[frame].take().unwrap();
                effects.push(Effect::Evicted { page, dirty });
                frame
            });
            let entry = Entry { page, dirty: false, used: Vec::new(), updated: Vec::new() };
            self.entries[frame] = Some(entry);
            frame
        });
        let now = self.epoch;
        let entry = self.entries[frame].as_mut().unwrap();
        entry.dirty |= write;
        if entry.used.last() != Some(&now) {
            entry.used.push(now);
        }
        if write && entry.updated.last() != Some(&now) {
            entry.updated.push(now);
        }
        (found.is_some(), effects)
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some(frame) = self.position(page) {
            self.entries[frame].as_mut().unwrap().dirty = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        let Some(frame) = self.position(page) else { return false };
        self.entries[frame] = None;
        self.free.push(frame);
        true
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        self.entries.iter().flatten().map(|entry| (entry.page, entry.dirty)).collect()
    }

    fn write_candidates(&self) -> Option<Vec<PageNo>> {
        let is_dirty = |frame: &usize| self.entries[*frame].as_ref().is_some_and(|e| e.dirty);
        let mut frames: Vec<usize> = (0..self.entries.len()).filter(is_dirty).collect();
        frames.sort_by(|left, right| self.value(*left).total_cmp(&self.value(*right)));
        Some(frames.into_iter().map(|at| self.entries[at].as_ref().unwrap().page).collect())
    }
}

proptest! {
    #[test]
    fn watt_decides_as_its_naive_form(
        k_read in 1usize..10,
        k_write in 1usize..6,
        write_cost in prop::sample::select(vec![0.0f32, 1.0, 4.0]),
        sample in prop::sample::select(vec![1u32, 3, 8, 100]),
        frames in 1u32..20,
        steps in steps(32),
    ) {
        let text = format!(
            "watt:k_read={k_read},k_write={k_write},write_cost={write_cost},sample={sample},seed=7"
        );
        let mut naive = Naive::new(frames, k_read, k_write, write_cost, sample);
        agree(&text, frames, 32, &mut naive, &steps);
    }
}
