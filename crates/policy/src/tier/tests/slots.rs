//! Naive caches of slots, as the paper on the write cache describes them.
use super::{Model, Step};
use crate::tier::{Admission, Found, TierCounts};

/// Slots in a list, the most recently used at the end. Tracks leave as a whole.
pub(super) struct Naive {
    pub(super) slots: usize,
    pub(super) admission: Admission,
    pub(super) densest: bool,
    pub(super) coalesce: bool,
    pub(super) piggyback: bool,
    pub(super) track: u64,
    // (page, dirty), in the order of the last use of their unit.
    pub(super) pages: Vec<(u64, bool)>,
    // Units in the order of their last use, or with densest-track-first of their last change.
    pub(super) units: Vec<u64>,
    pub(super) counts: TierCounts,
}

impl Naive {
    fn unit(&self, page: u64) -> u64 {
        if self.coalesce { page / self.track } else { page }
    }

    fn at(&self, page: u64) -> Option<usize> {
        self.pages.iter().position(|(cached, _)| *cached == page)
    }

    fn used(&mut self, unit: u64) {
        self.units.retain(|other| *other != unit);
        self.units.push(unit);
    }

    fn density(&self, unit: u64) -> usize {
        self.pages.iter().filter(|(page, _)| self.unit(*page) == unit).count()
    }

    fn admit(&mut self, page: u64, dirty: bool) {
        if self.pages.len() == self.slots {
            let victim = if self.densest {
                let most = self.units.iter().map(|unit| self.density(*unit)).max().unwrap();
                *self.units.iter().find(|unit| self.density(**unit) == most).unwrap()
            } else {
                self.units[0]
            };
            let gone: Vec<_> =
                self.pages.iter().copied().filter(|(page, _)| self.unit(*page) == victim).collect();
            let dirty = gone.iter().filter(|(_, dirty)| *dirty).count() as u64;
            self.counts.flash_reads += dirty;
            self.counts.disk_writes += dirty;
            self.counts.seeks += u64::from(dirty > 0);
            self.pages.retain(|page| !gone.contains(page));
            self.units.retain(|unit| *unit != victim);
        }
        self.pages.push((page, dirty));
        self.used(self.unit(page));
        self.counts.flash_random_writes += 1;
    }
}

impl Model for Naive {
    fn step(&mut self, step: Step) -> Option<Found> {
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if let Some(at) = self.at(page) {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    let unit = self.unit(page);
                    if self.admission != Admission::Eviction {
                        if !self.densest {
                            self.used(unit);
                        }
                        return Some(Found::Hit);
                    }
                    let (_, dirty) = self.pages.remove(at);
                    if self.density(unit) == 0 {
                        self.units.retain(|other| *other != unit);
                    } else if self.densest {
                        self.used(unit);
                    }
                    return Some(Found::Taken { dirty });
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                if self.piggyback {
                    let track = page / self.track;
                    for (page, dirty) in &mut self.pages {
                        if *page / self.track == track && std::mem::take(dirty) {
                            self.counts.flash_reads += 1;
                            self.counts.disk_writes += 1;
                        }
                    }
                }
                if self.admission == Admission::Read {
                    self.admit(page, false);
                }
                Some(Found::Missed)
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                if let Some(at) = self.at(page) {
                    self.counts.write_hits += 1;
                    self.counts.flash_random_writes += 1;
                    self.pages[at].1 = true;
                    if !self.densest {
                        self.used(self.unit(page));
                    }
                } else if self.admission == Admission::Read {
                    self.counts.disk_writes += 1;
                    self.counts.seeks += 1;
                } else {
                    self.admit(page, true);
                }
                None
            }
            Step::Evict(page) => {
                if self.admission == Admission::Eviction && self.at(page).is_none() {
                    self.admit(page, false);
                }
                None
            }
        }
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.pages.clone()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }
}

/// Slots written in a ring.
pub(super) struct Ring {
    pub(super) slots: Vec<Option<(u64, bool)>>,
    pub(super) next: usize,
    pub(super) admission: Admission,
    pub(super) coalesce: bool,
    pub(super) piggyback: bool,
    pub(super) track: u64,
    pub(super) counts: TierCounts,
}

impl Ring {
    fn at(&self, page: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.is_some_and(|(cached, _)| cached == page))
    }

    fn clean(&mut self, is_meant: impl Fn(u64) -> bool) -> u64 {
        let dirty =
            self.slots.iter_mut().flatten().filter(|(page, dirty)| *dirty && is_meant(*page));
        let cleaned = dirty.map(|(_, dirty)| *dirty = false).count() as u64;
        self.counts.flash_reads += cleaned;
        self.counts.disk_writes += cleaned;
        cleaned
    }

    fn put(&mut self, page: u64, dirty: bool) {
        if let Some(old) = self.at(page) {
            self.slots[old] = None;
        }
        if let Some((leaving, true)) = self.slots[self.next] {
            let (coalesce, track) = (self.coalesce, self.track);
            self.clean(|page| page == leaving || coalesce && page / track == leaving / track);
            self.counts.seeks += 1;
        }
        self.slots[self.next] = Some((page, dirty));
        self.next = (self.next + 1) % self.slots.len();
        self.counts.flash_sequential_writes += 1;
    }
}

impl Model for Ring {
    fn step(&mut self, step: Step) -> Option<Found> {
        match step {
            Step::Read(page) => {
                self.counts.reads += 1;
                if let Some(at) = self.at(page) {
                    self.counts.read_hits += 1;
                    self.counts.flash_reads += 1;
                    if self.admission != Admission::Eviction {
                        return Some(Found::Hit);
                    }
                    let dirty = self.slots[at].take().is_some_and(|(_, dirty)| dirty);
                    return Some(Found::Taken { dirty });
                }
                self.counts.disk_reads += 1;
                self.counts.seeks += 1;
                if self.piggyback {
                    let track = self.track;
                    self.clean(|other| other / track == page / track);
                }
                if self.admission == Admission::Read {
                    self.put(page, false);
                }
                return Some(Found::Missed);
            }
            Step::Write(page) => {
                self.counts.writes += 1;
                let hit = self.at(page).is_some();
                self.counts.write_hits += u64::from(hit);
                if self.admission == Admission::Read && !hit {
                    self.counts.disk_writes += 1;
                    self.counts.seeks += 1;
                } else {
                    self.put(page, true);
                }
            }
            Step::Evict(page) => {
                if self.admission == Admission::Eviction && self.at(page).is_none() {
                    self.put(page, false);
                }
            }
        }
        None
    }

    fn pages(&self) -> Vec<(u64, bool)> {
        self.slots.iter().flatten().copied().collect()
    }

    fn counts(&self) -> TierCounts {
        self.counts
    }
}
