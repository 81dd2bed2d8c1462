//! A device that loses power again and again.
//!
//! Not part of the crash lab, whose runs have few power losses: this looks for an FTL that runs out
//! of zones, or of versions, after hundreds of them.
use crate::support::cycles::cycles;
use tantalum_base::{Rng, Stamp};
use tantalum_models::rig::{FileRig, NandRig};

#[test]
fn nand_cycles() {
    for seed in 70..90 {
        let mut rng = Rng::split(seed, "shapes");
        cycles::<NandRig<Stamp>>(seed, 200, 4 + rng.below(120), 1 + rng.below(20), 0.0);
    }
}

#[test]
fn file_cycles() {
    for seed in 0..10 {
        let mut rng = Rng::split(seed, "shapes");
        cycles::<FileRig>(seed, 200, 4 + rng.below(120), 1 + rng.below(20), 0.0);
    }
}

#[test]
fn nand_cycles_with_shares() {
    for seed in 0..20 {
        let mut rng = Rng::split(seed, "shares");
        let shares = [0.1, 0.5, 0.9][rng.below(3) as usize];
        cycles::<NandRig<Stamp>>(seed, 200, 4 + rng.below(120), 1 + rng.below(20), shares);
    }
}

#[test]
fn file_cycles_with_shares() {
    for seed in 0..10 {
        let mut rng = Rng::split(seed, "shares");
        let shares = [0.1, 0.5, 0.9][rng.below(3) as usize];
        cycles::<FileRig>(seed, 200, 4 + rng.below(120), 1 + rng.below(20), shares);
    }
}
