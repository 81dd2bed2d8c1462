//! The claimed bytes of a home.
use super::{Claim, OPERATION_BYTES};
use std::ops::Range;
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{BLOCK_BYTES, SECTOR_BYTES};

/// Claimed bytes at either end of a home.
const END_BYTES: u64 = 1 << 20;

/// The first and the last MiB of a home of this size, or all of a smaller home. Stores are used in
/// blocks: if the last MiB would begin within a block, it begins at the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    home_bytes: u64,
}

/// Whether a home of `held` bytes can be used up to byte `end`: to a whole block, or to its own end.
pub(super) fn can_end(end: u64, held: u64) -> bool {
    end <= held
        && (end.is_multiple_of(BLOCK_BYTES) || end == held && end.is_multiple_of(SECTOR_BYTES))
}

impl Extent {
    /// The extent for a home of `home_bytes`, whole sectors.
    pub fn of(home_bytes: u64) -> Self {
        Extent { home_bytes }
    }

    /// The extent of `claim` in `home`, which may have become longer.
    ///
    /// # Errors
    /// `Corrupt` if it has become shorter.
    pub fn of_claim(claim: &Claim, home: &impl BlockStore) -> Result<Self> {
        let (bytes, held) = (claim.home_bytes(), home.bytes());
        if can_end(bytes, held) {
            return Ok(Extent { home_bytes: bytes });
        }
        let context = format!("the home has {held} bytes, and had {bytes} when it was claimed");
        Err(Error::new(ErrorKind::Corrupt, context))
    }

    /// Its two byte ranges, in order; one may be empty.
    pub fn ranges(&self) -> [Range<u64>; 2] {
        let first = self.home_bytes.min(END_BYTES);
        let last = self.home_bytes.saturating_sub(END_BYTES).next_multiple_of(BLOCK_BYTES);
        [0..first, first.max(last)..self.home_bytes]
    }

    /// Total number of bytes.
    pub fn bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.end - range.start).sum()
    }

    /// The operations needed to read or write it: each a range of the home, with its position among
    /// the claimed bytes.
    pub fn operations(&self) -> Vec<(Range<u64>, usize)> {
        let (mut operations, mut place) = (Vec::new(), 0);
        for range in self.ranges() {
            for at in range.clone().step_by(OPERATION_BYTES) {
                let piece = at..range.end.min(at + OPERATION_BYTES as u64);
                let bytes = (piece.end - piece.start) as usize;
                operations.push((piece, place));
                place += bytes;
            }
        }
        operations
    }

    /// The claimed parts of the `bytes` bytes that start at `offset`: each with its range in these
    /// bytes, and its position among the claimed bytes.
    pub fn parts(&self, offset: u64, bytes: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
        let wanted = offset..offset + bytes as u64;
        let mut place = 0;
        self.ranges().into_iter().filter_map(move |range| {
            let first = place;
            place += range.end - range.start;
            let (from, to) = (range.start.max(wanted.start), range.end.min(wanted.end));
            let part = (from - wanted.start) as usize..to.saturating_sub(wanted.start) as usize;
            (from < to).then(|| (part, (first + from - range.start) as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_is_both_ends_of_a_large_home_and_all_of_a_small_one() {
        for (bytes, claimed) in [
            (0, 0),
            (4096, 4096),
            (MIB, MIB),
            (MIB + 4096, MIB + 4096),
            (2 * MIB, 2 * MIB),
            (9 * MIB, 2 * MIB),
        ] {
            let extent = Extent::of(bytes);
            assert_eq!(extent.bytes(), claimed);
            // Each byte belongs to it exactly if it is near an end, and only once.
            let all: Vec<u64> = (0..bytes).step_by(4096).collect();
            for at in &all {
                let near = *at < MIB || bytes - at <= MIB;
                assert_eq!(extent.parts(*at, 4096).count(), usize::from(near), "{at} of {bytes}");
            }
            let mut place = 0;
            for (range, its_place) in extent.operations() {
                assert_eq!(its_place, place);
                assert!(range.end - range.start <= MIB && range.end <= bytes);
                place += (range.end - range.start) as usize;
            }
            assert_eq!(place as u64, claimed);
        }
    }

    #[test]
    fn it_reaches_the_end_of_a_home_that_ends_within_a_block() {
        for (bytes, claimed) in [
            (512, 512),
            (MIB + 512, MIB + 512),
            (2 * MIB + 512, 2 * MIB + 512 - 4096),
            (9 * MIB - 512, 2 * MIB - 512),
        ] {
            let extent = Extent::of(bytes);
            assert_eq!((extent.bytes(), extent.parts(bytes - 512, 512).count()), (claimed, 1));
            let operations = extent.operations();
            assert_eq!(operations.last().map(|(range, _)| range.end), Some(bytes));
            assert!(operations.iter().all(|(range, _)| range.start.is_multiple_of(4096)));
            assert!(can_end(bytes, bytes) && !can_end(bytes, bytes + 4096));
        }
    }

    #[test]
    fn a_part_knows_its_place() {
        let extent = Extent::of(9 * MIB);
        let parts: Vec<_> = extent.parts(MIB - 4096, 7 * MIB as usize + 8192).collect();
        let mib = MIB as usize;
        assert_eq!(parts, [(0..4096, mib - 4096), (7 * mib + 4096..7 * mib + 8192, mib)]);
        assert_eq!(extent.parts(MIB, 7 * mib).count(), 0);
    }
}
