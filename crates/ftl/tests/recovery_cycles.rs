//! A device that loses power again and again.
//!
//! Not part of the crash lab, whose runs have few power losses: this looks for an FTL that runs out
//! of zones, or of versions, after hundreds of them.
use crate::support::cycles::{Cycles, cycles};
use std::ops::Range;
use tantalum_base::{Rng, Stamp};
use tantalum_models::rig::{FileRig, NandRig};

/// 200 power losses of a device for each of `seeds`.
fn loads(seeds: Range<u64>, with_shares: bool, dumps: bool) -> impl Iterator<Item = Cycles> {
    seeds.map(move |seed| {
        let mut rng = Rng::split(seed, if with_shares { "shares" } else { "shapes" });
        let shares = match with_shares {
            true => [0.1, 0.5, 0.9][rng.below(3) as usize],
            false => 0.0,
        };
        let (after_max, batch_max) = (4 + rng.below(120), 1 + rng.below(20));
        let gives_room_back = false;
        Cycles { seed, cycles: 200, after_max, batch_max, shares, dumps, gives_room_back }
    })
}

#[test]
fn nand_cycles() {
    loads(70..90, false, false).for_each(cycles::<NandRig<Stamp>>);
}

#[test]
fn file_cycles() {
    loads(0..10, false, false).for_each(cycles::<FileRig>);
}

#[test]
fn nand_cycles_with_shares() {
    loads(0..20, true, false).for_each(cycles::<NandRig<Stamp>>);
}

#[test]
fn file_cycles_with_shares() {
    loads(0..10, true, false).for_each(cycles::<FileRig>);
}

#[test]
fn nand_cycles_with_dumps() {
    loads(0..20, true, true).for_each(cycles::<NandRig<Stamp>>);
}

#[test]
fn file_cycles_with_dumps() {
    loads(0..10, true, true).for_each(cycles::<FileRig>);
}

#[test]
fn file_cycles_of_devices_that_give_room_back() {
    for with_shares in [false, true] {
        for load in loads(0..10, with_shares, false) {
            cycles::<FileRig>(Cycles { gives_room_back: true, ..load });
        }
    }
}
