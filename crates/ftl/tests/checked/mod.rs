//! A check reads everything in the zones in use: it reports a flipped bit wherever the content may have been whole
//! once, and does not report the remains of power cuts and kills.
mod world;

use std::collections::BTreeMap;
use tantalum_base::fault_points::plant;
use tantalum_base::{PAGE_BYTES, Rng};
use tantalum_ftl::fault_points::Fault;
use tantalum_media::block_store::MemoryStore;
use world::{
    ANCHORS, Content, End, SLOTS_PER_ZONE, World, Write, ZONES_BYTE, checked, checked_in, said,
    world,
};

/// Several runs, the last of which ends in `end`; the runs before it end in any way.
fn ends(seed: u64, end: End) -> Vec<End> {
    let mut rng = Rng::split(seed, "ends");
    let any = [End::Closed, End::Killed, End::Cut, End::Cut];
    let before = 1 + rng.below(4);
    (0..before).map(|_| any[rng.below(4) as usize]).chain([end]).collect()
}

fn nothing_is_found(seed: u64) -> impl Fn(&[u8], usize) {
    move |image, run| match checked(image) {
        Ok(found) => assert!(found.is_empty(), "seed {seed}, run {run}: {found:#?}"),
        Err(error) => panic!("seed {seed}, run {run}: {error}"),
    }
}

fn seeds(few: u64) -> std::ops::Range<u64> {
    let nightly = std::env::var_os("TANTALUM_NIGHTLY").is_some();
    0..if nightly { few * 40 } else { few }
}

#[test]
fn nothing_is_told_of_what_power_cuts_and_kills_left() {
    for seed in seeds(60) {
        for end in [End::Closed, End::Killed, End::Cut] {
            world(seed, &ends(seed, end), nothing_is_found(seed));
        }
    }
}

/// The kind of place of a flipped bit, according to the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    /// Nothing was written there, or by an earlier opening of the zone only, or the zone holds nothing in force.
    Free,
    /// The newest place of content that a page holds.
    Page,
    /// Other content that the zone's present opening wrote in a run that ended like this.
    Used(End),
    /// The copies that cleaning made last, and their originals: if it was interrupted, the originals may count instead
    /// of the copies.
    LastCopies,
    /// The number of the opening, in the last header of its zone: with that flipped, no header of this opening is left.
    LastEpoch,
    /// An anchor.
    Anchor(End),
    /// The last anchor, or an old one.
    OtherAnchor,
}

/// The writes of a world, in the order of blocks.
struct Map<'a> {
    world: &'a World,
    // The last write of each block.
    of_block: BTreeMap<u64, usize>,
    // Blocks with content that a page holds, and for each content the last of these blocks.
    held: BTreeMap<u64, Content>,
    newest: BTreeMap<Content, u64>,
}

const STREAM_AT: usize = 12;
const CLEANING: u8 = 1;
const META: u8 = 2;
const EPOCH_AT: usize = 40;
const NUMBER_AT: usize = 24;

fn zone_of(block: u64) -> Option<u64> {
    block.checked_sub(ZONES_BYTE / PAGE_BYTES as u64).map(|at| at / u64::from(SLOTS_PER_ZONE))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl<'a> Map<'a> {
    fn new(world: &'a World) -> Self {
        let (mut of_block, mut held, mut newest) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (number, write) in world.writes.iter().enumerate() {
            for (block, bytes) in write.landed(&world.image) {
                of_block.insert(block, number);
                held.remove(&block);
                if world.held.contains(&Some(said(bytes))) {
                    held.insert(block, said(bytes));
                    newest.insert(said(bytes), block);
                }
            }
        }
        Map { world, of_block, held, newest }
    }

    /// The writes to zones, or to anchors, whose first page is still there.
    fn writes(&self, zones: bool) -> impl DoubleEndedIterator<Item = &Write> + '_ {
        let headed = move |(number, write): &(usize, &Write)| {
            zone_of(write.first_block).is_some() == zones
                && self.of_block.get(&write.first_block) == Some(number)
        };
        self.world.writes.iter().enumerate().filter(headed).map(|(_, write)| write)
    }

    fn met(&self, byte: u64) -> Met {
        let (block, within) = (byte / PAGE_BYTES as u64, byte % PAGE_BYTES as u64);
        let Some(write) = self.of_block.get(&block).map(|at| &self.world.writes[*at]) else {
            return Met::Free;
        };
        let end = self.world.ends[write.run];
        let Some(zone) = zone_of(block) else { return self.anchor(&write.bytes, end) };
        let in_zone = || self.writes(true).filter(|it| zone_of(it.first_block) == Some(zone));
        let latest = in_zone().map(|write| long(&write.bytes, EPOCH_AT)).max();
        let meta = self.writes(true).rfind(|write| write.bytes[STREAM_AT] == META);
        let holds_checkpoint = meta.and_then(|write| zone_of(write.first_block)) == Some(zone);
        let holds_page = self.newest.values().any(|block| zone_of(*block) == Some(zone));
        if latest != Some(long(&write.bytes, EPOCH_AT)) || !(holds_page || holds_checkpoint) {
            return Met::Free;
        }
        let copied = self.held.get(&block).map_or(block, |content| self.newest[content]);
        if zone_of(copied) == self.zone_of_last_copies() {
            return Met::LastCopies;
        }
        if self.newest.values().any(|newest| *newest == block) {
            return Met::Page;
        }
        let opened = in_zone().filter(|it| Some(long(&it.bytes, EPOCH_AT)) == latest);
        let last = opened.map(|write| write.first_block).max();
        match last == Some(block) && (40..48).contains(&within) {
            true => Met::LastEpoch,
            false => Met::Used(end),
        }
    }

    fn zone_of_last_copies(&self) -> Option<u64> {
        let copies = self.writes(true).filter(|it| it.bytes[STREAM_AT] == CLEANING);
        zone_of(copies.max_by_key(|it| long(&it.bytes, EPOCH_AT))?.first_block)
    }

    fn anchor(&self, anchor: &[u8], end: End) -> Met {
        let last = self.writes(false).map(|write| long(&write.bytes, NUMBER_AT)).max().unwrap_or(0);
        let number = long(anchor, NUMBER_AT);
        let judged = number < last && number + u64::from(ANCHORS / 2) > last + 1;
        if judged { Met::Anchor(end) } else { Met::OtherAnchor }
    }
}

/// Flips one bit after the other at `count` places, and counts for each kind of place how many bits were flipped and
/// how many of these were reported. A report must name the place.
fn flips(world: &World, seed: u64, count: u64) -> BTreeMap<Met, (u64, u64)> {
    let map = Map::new(world);
    let blocks: Vec<u64> = map.of_block.keys().copied().collect();
    let all_closed = world.ends.iter().all(|end| *end == End::Closed);
    let mut rng = Rng::split(seed, "flips");
    let mut counts: BTreeMap<Met, (u64, u64)> = BTreeMap::new();
    for _ in 0..count {
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        // Half of the flips are in the first bytes, where headers have most of their fields.
        let within = if rng.chance(0.5) { rng.below(256) } else { rng.below(PAGE_BYTES as u64) };
        let (byte, bit) = (block * PAGE_BYTES as u64 + within, rng.below(8) as u8);
        let met = map.met(byte);
        let disk = MemoryStore::with_image(&world.image);
        disk.flip_bit(byte, bit);
        let what = || format!("seed {seed}, byte {byte} (block {block}), bit {bit}: {met:?}");
        let told = match checked_in(disk) {
            Err(error) => {
                assert!(matches!(met, Met::Used(_)) || !all_closed, "refused: {error}: {}", what());
                true
            }
            Ok(found) => {
                for found in &found {
                    // In a log that ends with a cut, the headers are in force, too.
                    let may_be = matches!(met, Met::Page | Met::LastCopies) || !all_closed;
                    assert!(!found.in_force || may_be, "{found:?}: {}", what());
                    // And the original of a page may be used instead of its copy.
                    let may_not = met != Met::Page || !all_closed;
                    assert!(found.in_force || may_not, "{found:?}: {}", what());
                    // If the last copies lack their header, an append that a cut left without one may be reported
                    // instead: nothing shows which of the two the cut left.
                    let is_named = !found.in_force && met != Met::LastCopies;
                    if let Some(zone) = zone_of(block).filter(|_| is_named) {
                        let slot = block
                            - ZONES_BYTE / PAGE_BYTES as u64
                            - zone * u64::from(SLOTS_PER_ZONE);
                        assert_eq!(
                            found.place,
                            format!("zone {zone}, slot {slot}"),
                            "{found:?}: {}",
                            what()
                        );
                    }
                }
                !found.is_empty()
            }
        };
        let counted = counts.entry(met).or_default();
        counted.0 += 1;
        counted.1 += u64::from(told);
        let must = matches!(met, Met::Page | Met::Used(End::Closed) | Met::Anchor(End::Closed));
        assert!(told || !must || !all_closed, "untold: {}", what());
        // After a cut, a zone may hold changes that the log needs, and no page.
        assert!(!told || met != Met::Free || !all_closed, "{}", what());
    }
    counts
}

/// For each kind of place, how many bits were flipped and how many of these were reported, in worlds of these seeds.
fn told(seeds: std::ops::Range<u64>, closed: bool, flips_each: u64) -> BTreeMap<Met, (u64, u64)> {
    let mut all: BTreeMap<Met, (u64, u64)> = BTreeMap::new();
    for seed in seeds {
        let ends = if closed { vec![End::Closed; 3] } else { ends(seed, End::Cut) };
        let world = world(seed, &ends, |_, _| ());
        for (met, (count, told)) in flips(&world, seed, flips_each) {
            let counted = all.entry(met).or_default();
            *counted = (counted.0 + count, counted.1 + told);
        }
    }
    println!("closed: {closed}: {all:?}");
    all
}

#[test]
fn a_flipped_bit_is_told_where_every_run_was_closed() {
    let all = told(seeds(10), true, 120);
    for met in [Met::Page, Met::Used(End::Closed), Met::Anchor(End::Closed)] {
        let (count, told) = all[&met];
        assert!(count > 20 && told == count, "{met:?}: {told} of {count}");
    }
}

/// The last writes before the power was cut cannot be told apart from the remains of the cut; the runs are short, so
/// these are many.
#[test]
fn most_flipped_bits_are_told_after_power_cuts() {
    let all = told(seeds(10), false, 120);
    let used = all.iter().filter(|(met, _)| matches!(met, Met::Page | Met::Used(_)));
    let (count, told) = used.fold((0, 0), |sum, (_, one)| (sum.0 + one.0, sum.1 + one.1));
    assert!(count > 500 && told * 100 >= count * 80, "{told} of {count}");
}

/// A block that cannot be read is reported, whatever it held.
#[test]
fn a_block_that_cannot_be_read_is_told() {
    let world = world(1, &[End::Closed; 3], |_, _| ());
    let map = Map::new(&world);
    let mut spoiled = 0;
    for (block, _) in map.of_block.iter().step_by(7) {
        let byte = block * PAGE_BYTES as u64;
        if map.met(byte) == Met::Used(End::Closed) {
            let disk = MemoryStore::with_image(&world.image);
            disk.spoil_block(byte);
            let found = checked_in(disk).unwrap();
            assert!(found.len() == 1 && !found[0].in_force, "block {block}: {found:?}");
            spoiled += 1;
        }
    }
    assert!(spoiled > 3);
}

#[test]
fn a_check_of_what_is_in_force_alone_is_noticed() {
    let _planted = plant(Fault::OldContentUnchecked);
    let world = world(0, &[End::Closed; 3], |_, _| ());
    let map = Map::new(&world);
    let at = |block: &&u64| map.met(*block * PAGE_BYTES as u64) == Met::Used(End::Closed);
    let byte = map.of_block.keys().find(at).unwrap() * PAGE_BYTES as u64;
    let disk = MemoryStore::with_image(&world.image);
    disk.flip_bit(byte, 1);
    assert_eq!(checked_in(disk).unwrap(), [], "a flip is told though nobody looks");
}

fn leftovers_are_told(fault: Fault) -> bool {
    let _planted = plant(fault);
    let found = std::cell::Cell::new(false);
    for seed in seeds(60) {
        world(seed, &ends(seed, End::Cut), |image, _| {
            found.set(found.get() || checked(image).is_ok_and(|found| !found.is_empty()));
        });
        if found.get() {
            return true;
        }
    }
    false
}

#[test]
fn leftovers_that_are_taken_for_damage_are_noticed() {
    assert!(leftovers_are_told(Fault::LeftoversTakenForDamage));
}

#[test]
fn runs_that_are_not_told_apart_are_noticed() {
    assert!(leftovers_are_told(Fault::RunsNotToldApart));
}
