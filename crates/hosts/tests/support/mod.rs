//! The medium of the engines' tests.
use tantalum_base::Stamp;
use tantalum_models::NandOptions;
use tantalum_models::nand::{Nand, NandFaults, NandGeometry, NandTiming};

/// A small array of two channels: 20 zones, of 32 slots for each plane of a package.
pub fn nand(seed: u64, planes_per_package: u32) -> Nand<Stamp> {
    let geometry = NandGeometry {
        channels: 2,
        packages_per_channel: 1,
        planes_per_package,
        blocks_per_plane: 20,
        pages_per_block: 8,
        page_bytes: 8192,
        spare_bytes: 128,
    };
    let timing = NandTiming {
        read_ns: 50_000,
        program_ns: 500_000,
        program_upper_ns: 500_000,
        erase_ns: 2_000_000,
        channel_bytes_per_second: 200_000_000,
    };
    let faults = NandFaults::default();
    Nand::new(&NandOptions { geometry, timing, faults, seed }).unwrap()
}
