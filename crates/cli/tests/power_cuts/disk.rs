//! The possible content of a disk after a power cut: everything that a completed sync covers, and an arbitrary part of
//! the later writes.
//!
//! Between a disk and its file system, only whole sectors are atomic. A write that was not yet durable at the cut is
//! kept, lost, or torn at sectors; two overlapping writes of this kind may reach the medium in either order.
use crate::journal::{Event, Journal, Kind, RequestNo};
use std::collections::{BTreeMap, BTreeSet};
use tantalum_base::Rng;

const SECTOR_BYTES: usize = 512;

/// The reliability of the answer to a sync or to a durable write.
#[derive(Clone, Copy, Debug)]
pub enum Honesty {
    Honest,
    /// One in this many, drawn with the seed, was answered without being done; 1 for all of them.
    LiesOnceIn(u64, u64),
    /// Syncs are done; durable writes are treated as if `O_DSYNC` were missing.
    ForgetsDurable,
}

/// The disk at a position of its journal, which only increases.
pub struct Disk<'a> {
    journal: &'a Journal,
    /// Requests that were answered without being done.
    lies: BTreeSet<RequestNo>,
    forgets_durable: bool,
    durable: Medium,
    position: usize,
    /// Writes and resizes that no sync covers yet, and whether each was answered.
    pending: BTreeMap<RequestNo, bool>,
    /// The requests that each sync in flight will cover: those answered before it was issued.
    syncing: BTreeMap<RequestNo, Vec<RequestNo>>,
    /// The unsynced requests when a sync failed; no later sync makes them durable.
    given_up: BTreeSet<RequestNo>,
}

/// Sectors, and the write that each is from.
#[derive(Clone, Default)]
struct Medium {
    bytes: Vec<u8>,
    writers: Vec<Option<RequestNo>>,
}

impl<'a> Disk<'a> {
    pub fn new(journal: &'a Journal, honesty: Honesty) -> Self {
        let mut lies = BTreeSet::new();
        if let Honesty::LiesOnceIn(every, seed) = honesty {
            let mut rng = Rng::split(seed, "lies");
            lies.extend((0..journal.requests.len()).filter(|_| rng.below(every) == 0));
        }
        Disk {
            journal,
            lies,
            forgets_durable: matches!(honesty, Honesty::ForgetsDurable),
            durable: Medium::default(),
            position: 0,
            pending: BTreeMap::new(),
            syncing: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }

    /// Advances to `position`.
    pub fn advance(&mut self, position: usize) {
        assert!(position >= self.position, "a disk does not go back");
        for event in &self.journal.events[self.position..position] {
            match *event {
                Event::Begun(number) => self.begin(number),
                Event::Ended(number) => self.end(number),
            }
        }
        self.position = position;
    }

    fn begin(&mut self, number: RequestNo) {
        if matches!(self.journal.requests[number].kind, Kind::Sync) {
            let answered = self.pending.iter().filter(|(_, answered)| **answered);
            let covered = answered.map(|(number, _)| *number);
            self.syncing.insert(number, covered.collect());
        } else {
            self.pending.insert(number, false);
        }
    }

    fn end(&mut self, number: RequestNo) {
        let request = &self.journal.requests[number];
        let kept = !request.failed && !self.lies.contains(&number);
        match request.kind {
            Kind::Sync => {
                let covered = self.syncing.remove(&number).unwrap_or_default();
                if request.failed {
                    self.given_up.extend(covered);
                } else if kept {
                    covered.into_iter().for_each(|covered| self.make_durable(covered));
                }
            }
            Kind::Write { durable: true, .. } if kept && !self.forgets_durable => {
                self.make_durable(number);
            }
            Kind::Write { .. } | Kind::Resize { .. } => {
                self.pending.insert(number, true);
            }
        }
    }

    fn make_durable(&mut self, number: RequestNo) {
        if !self.given_up.contains(&number) && self.pending.remove(&number).is_some() {
            self.durable.apply(self.journal, number, |_| true);
        }
    }

    /// Whether there are requests whose effect a cut may change.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The content of the disk if the power is cut now.
    pub fn image(&self, rng: &mut Rng) -> Vec<u8> {
        let mut medium = self.durable.clone();
        let mut pending: Vec<RequestNo> = self.pending.keys().copied().collect();
        if rng.chance(0.5) {
            rng.shuffle(&mut pending);
        }
        // Most cuts treat all writes alike: nearly all are kept, lost, or torn.
        let lands = [0.0, 1.0, 0.5, 0.9, 0.1, 0.0][rng.below(6) as usize];
        let tears = [0.0, 1.0, 0.3][rng.below(3) as usize];
        for number in pending {
            let sectors = self.journal.requests[number].kind.sectors();
            if rng.chance(tears) && sectors > 1 {
                let torn = Torn::draw(rng, sectors);
                medium.apply(self.journal, number, |sector| torn.keeps(sector));
            } else if rng.chance(lands) {
                medium.apply(self.journal, number, |_| true);
            }
        }
        medium.bytes
    }
}

impl Kind {
    fn sectors(&self) -> usize {
        match self {
            Kind::Write { bytes, .. } => bytes.len() / SECTOR_BYTES,
            Kind::Resize { .. } | Kind::Sync => 0,
        }
    }
}

impl Medium {
    /// Does the request; of a write, only those sectors whose number in the write `keeps` accepts. Sectors replaced by
    /// a later write stay replaced.
    fn apply(&mut self, journal: &Journal, number: RequestNo, keeps: impl Fn(usize) -> bool) {
        let request = &journal.requests[number];
        let (offset, bytes) = match &request.kind {
            Kind::Write { offset, bytes, .. } => (*offset as usize, bytes),
            Kind::Resize { bytes } => return self.resize(*bytes as usize),
            Kind::Sync => return,
        };
        assert!(offset.is_multiple_of(SECTOR_BYTES) && bytes.len().is_multiple_of(SECTOR_BYTES));
        self.resize(self.bytes.len().max(offset + bytes.len()));
        for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let at = offset / SECTOR_BYTES + index;
            let replaced = self.writers[at]
                .is_some_and(|writer| request.came_before(&journal.requests[writer]));
            if keeps(index) && !replaced {
                self.bytes[at * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(sector);
                self.writers[at] = Some(number);
            }
        }
    }

    fn resize(&mut self, bytes: usize) {
        self.bytes.resize(bytes, 0);
        self.writers.resize(bytes.div_ceil(SECTOR_BYTES), None);
    }
}

/// The sectors of a torn write that reached the medium.
enum Torn {
    First(usize),
    AllBut(usize),
    Some(Vec<bool>),
}

impl Torn {
    fn draw(rng: &mut Rng, sectors: usize) -> Torn {
        let count = 1 + rng.below(sectors as u64 - 1) as usize;
        match rng.below(3) {
            0 => Torn::First(count),
            1 => Torn::AllBut(count),
            _ => Torn::Some((0..sectors).map(|_| rng.chance(0.5)).collect()),
        }
    }

    fn keeps(&self, sector: usize) -> bool {
        match self {
            Torn::First(count) => sector < *count,
            Torn::AllBut(count) => sector >= *count,
            Torn::Some(keeps) => keeps[sector],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(journal: &mut Journal, sector: u64, fill: u8, durable: bool) -> RequestNo {
        let bytes = vec![fill; 2 * SECTOR_BYTES];
        journal.begin(Kind::Write { offset: sector * SECTOR_BYTES as u64, bytes, durable })
    }

    /// All possible contents of each sector after a power cut at the end.
    fn held(journal: &Journal, honesty: Honesty) -> Vec<BTreeSet<u8>> {
        let mut disk = Disk::new(journal, honesty);
        disk.advance(journal.position());
        let mut rng = Rng::new(1);
        let mut held = vec![BTreeSet::new(); 4];
        for _ in 0..500 {
            let image = disk.image(&mut rng);
            for (sector, held) in held.iter_mut().enumerate() {
                held.insert(image.get(sector * SECTOR_BYTES).copied().unwrap_or(0));
            }
        }
        held
    }

    fn sets<const N: usize>(sets: [&[u8]; N]) -> Vec<BTreeSet<u8>> {
        sets.iter().map(|set| set.iter().copied().collect()).collect()
    }

    #[test]
    fn a_sync_covers_what_was_answered_before_it_was_asked() {
        let mut journal = Journal::default();
        let first = write(&mut journal, 0, 1, false);
        journal.end(first);
        let second = write(&mut journal, 2, 2, false);
        let sync = journal.begin(Kind::Sync);
        journal.end(second);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[0, 1], &[0, 1], &[0, 2], &[0, 2]]));
        journal.end(sync);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[1], &[1], &[0, 2], &[0, 2]]));
        let lies = Honesty::LiesOnceIn(1, 1);
        assert_eq!(held(&journal, lies), sets([&[0, 1], &[0, 1], &[0, 2], &[0, 2]]));
    }

    #[test]
    fn a_durable_write_covers_itself_and_nothing_old_comes_back_over_it() {
        let mut journal = Journal::default();
        let first = write(&mut journal, 0, 1, false);
        journal.end(first);
        let second = write(&mut journal, 1, 2, true);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[0, 1], &[0, 1, 2], &[0, 2], &[0]]));
        journal.end(second);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[0, 1], &[2], &[2], &[0]]));
        let forgetful = sets([&[0, 1], &[0, 1, 2], &[0, 2], &[0]]);
        assert_eq!(held(&journal, Honesty::ForgetsDurable), forgetful);
        let sync = journal.begin(Kind::Sync);
        journal.end(sync);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[1], &[2], &[2], &[0]]));
    }

    #[test]
    fn what_was_unsynced_when_a_sync_failed_is_covered_by_no_later_one() {
        let mut journal = Journal::default();
        let lost = write(&mut journal, 0, 1, false);
        journal.end(lost);
        let failed = journal.begin(Kind::Sync);
        journal.requests[failed].failed = true;
        journal.end(failed);
        let kept = write(&mut journal, 2, 2, false);
        journal.end(kept);
        let sync = journal.begin(Kind::Sync);
        journal.end(sync);
        assert_eq!(held(&journal, Honesty::Honest), sets([&[0, 1], &[0, 1], &[2], &[2]]));
    }
}
