//! The two copies of the superblock, and the choice between them.
//!
//! Both are written together when the volume is created, and one after the other when it grows. Otherwise a copy is written only
//! to repair it. On opening:
//!
//! - Both are intact and equal: they count.
//! - Both are intact and one is the successor of the other after a growth: the successor counts. The growth was interrupted when
//!   everything that the larger volume needs was in place. The next opening for writing rewrites the older copy.
//! - One is damaged in any way: the other one counts. The next opening for writing rewrites the damaged copy.
//! - Both are intact and contradict each other, or one has another version: a disk lost a write when a volume was created over an
//!   older one. One copy describes the old volume, the other one the new volume, and it is unknown which is which. The volume is
//!   not opened.
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result, ResultExt};
use tantalum_media::block_store::no_store;
use tantalum_runtime::live::named_file::{Named, open_named};
use tantalum_runtime::{DevicePart, Finding};

use crate::refusals::CONTRADICTION;
use crate::superblock::{
    COPIES, SUPERBLOCK_BYTES, Superblock, has_magic, is_intact, is_zero_where_unused,
};

const NAMES: [&str; COPIES] = ["first copy, byte 0", "second copy, byte 4096"];

/// The state of one copy.
enum Copy {
    Good(Superblock),
    /// Intact, but not usable by this program.
    Foreign(Error),
    Damaged(Error),
}

/// Reads the superblock of the store at `path`. Another process may have the store open: it writes the superblock only to repair
/// a copy.
///
/// # Errors
/// `Io`; those of [`Copies::in_force`].
pub fn superblock_at(path: &Path) -> Result<Superblock> {
    let reading = || format!("reading {}", path.display());
    let mut bytes = vec![0; COPIES * SUPERBLOCK_BYTES];
    match open_named(path, File::options().read(true), OFlags::empty()).context(reading)? {
        Named::Usable(file) => file.read_exact_at(&mut bytes, 0).context(reading)?,
        Named::Other(kind) => return Err(no_store(path, kind)),
    }
    Copies::decode(&bytes).in_force()
}

/// The copies of a superblock.
pub struct Copies {
    copies: Vec<Copy>,
    // Copies with non-zero unused bytes.
    odd: Vec<usize>,
    // The reason for which there is no superblock, if no copy is good.
    failure: Option<Error>,
}

impl Copies {
    /// The copies in a store that begins with `bytes`.
    pub fn decode(bytes: &[u8]) -> Self {
        let (mut copies, mut odd) = (Vec::new(), Vec::new());
        let mut failure: Option<(u8, Error)> = None;
        for copy in bytes.chunks(SUPERBLOCK_BYTES).take(COPIES) {
            let error = match Superblock::decode(copy) {
                Ok(superblock) => {
                    if !is_zero_where_unused(copy) {
                        odd.push(copies.len());
                    }
                    copies.push(Copy::Good(superblock));
                    continue;
                }
                Err(error) => error,
            };
            // Of several errors, a definite one (another version) counts more than damage, and damage counts more than a copy
            // that is no superblock at all.
            let weight = match (has_magic(copy), error.kind()) {
                (false, _) => 0,
                (true, ErrorKind::Checksum) => 1,
                (true, _) => 2,
            };
            if failure.as_ref().is_none_or(|(heaviest, _)| weight > *heaviest) {
                failure = Some((weight, error.clone()));
            }
            copies.push(if is_intact(copy) { Copy::Foreign(error) } else { Copy::Damaged(error) });
        }
        Copies { copies, odd, failure: failure.map(|(_, error)| error) }
    }

    /// The superblock that counts.
    ///
    /// # Errors
    /// `Format` if there is none, or only one of another version; `Checksum` if both are damaged; `Corrupt` if two intact copies
    /// contradict each other.
    pub fn in_force(&self) -> Result<Superblock> {
        let good = || {
            self.copies.iter().filter_map(|copy| match copy {
                Copy::Good(superblock) => Some(superblock),
                _ => None,
            })
        };
        let Some(first) = good().next() else {
            let none = || Error::new(ErrorKind::Format, "this is no Tantalum volume");
            return Err(self.failure.clone().unwrap_or_else(none));
        };
        let newest = good().max_by_key(|copy| copy.growths).unwrap_or(first);
        let is_of_newest = |copy: &Superblock| copy == newest || newest.is_grown_from(copy);
        let foreign = self.copies.iter().any(|copy| matches!(copy, Copy::Foreign(_)));
        if foreign || !good().all(is_of_newest) {
            let said: Vec<String> = self.said().collect();
            let context = format!(
                "{CONTRADICTION}, and it is unknown which one is old ({})",
                said.join("; ")
            );
            return Err(CONTRADICTION.error(ErrorKind::Corrupt, context));
        }
        Ok(*newest)
    }

    /// The indexes, from 0, of the copies to rewrite if `superblock` counts: damaged copies, and copies from before the volume's
    /// last growth.
    pub fn to_mend<'a>(&'a self, superblock: &'a Superblock) -> impl Iterator<Item = usize> + 'a {
        let differs = move |(_, copy): &(usize, &Copy)| match copy {
            Copy::Good(said) => superblock.is_grown_from(said),
            Copy::Foreign(_) => false,
            Copy::Damaged(_) => true,
        };
        self.copies.iter().enumerate().filter(differs).map(|(at, _)| at)
    }

    /// The problems of each copy, and of both together.
    pub fn problems(&self) -> Vec<Finding> {
        let mut problems: Vec<Finding> = Vec::new();
        for (copy, name) in self.copies.iter().zip(NAMES) {
            let problem = match copy {
                Copy::Good(_) => continue,
                Copy::Foreign(error) => error.to_string(),
                Copy::Damaged(error) => format!("damaged ({error})"),
            };
            problems.push(Finding::new(
                DevicePart::Superblock,
                format!("superblock, {name}"),
                problem,
            ));
        }
        for at in &self.odd {
            let problem = "unused bytes are not zero";
            let place = format!("superblock, {}", NAMES[*at]);
            problems.push(Finding::not_in_force(DevicePart::Superblock, place, problem));
        }
        if let Err(error) = self.in_force()
            && error.kind() == ErrorKind::Corrupt
        {
            problems.push(Finding::new(DevicePart::Superblock, "superblock", error.to_string()));
        }
        problems
    }

    fn said(&self) -> impl Iterator<Item = String> + '_ {
        self.copies.iter().zip(NAMES).map(|(copy, name)| match copy {
            Copy::Good(superblock) => format!(
                "{name}: volume {:032x} of {} pages, grown {} times",
                superblock.volume_id, superblock.pages, superblock.growths
            ),
            Copy::Foreign(error) | Copy::Damaged(error) => format!("{name}: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_base::checksum::crc32c;

    const SUPERBLOCK: Superblock = Superblock {
        volume_id: 0x1234_5678_9abc_def0,
        zones: 7,
        slots_per_zone: 256,
        pages: 1000,
        is_cache: false,
        is_staged: false,
        growths: 0,
        pages_before: 0,
    };

    type Bytes = [u8; SUPERBLOCK_BYTES];

    /// The good copy with `byte` at `at` and the old checksum.
    fn with(at: usize, byte: u8) -> Bytes {
        let mut bytes = SUPERBLOCK.encode();
        bytes[at] = byte;
        bytes
    }

    /// The same with a correct checksum.
    fn written_with(at: usize, byte: u8) -> Bytes {
        let mut bytes = with(at, byte);
        let crc = crc32c(&bytes[..SUPERBLOCK_BYTES - 4]);
        bytes[SUPERBLOCK_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Judges `one` and `other` in either order: problems, copies to repair, the superblock that counts.
    fn judged(one: Bytes, other: Bytes) -> Vec<(Vec<Finding>, Vec<usize>, Result<Superblock>)> {
        let judge = |copies: [Bytes; 2]| {
            let copies = Copies::decode(&copies.concat());
            (copies.problems(), copies.to_mend(&SUPERBLOCK).collect(), copies.in_force())
        };
        vec![judge([one, other]), judge([other, one])]
    }

    #[test]
    fn two_good_copies_are_no_problem() {
        let good = SUPERBLOCK.encode();
        for (problems, damaged, superblock) in judged(good, good) {
            assert_eq!((problems.len(), damaged.len(), superblock.unwrap()), (0, 0, SUPERBLOCK));
        }
    }

    #[test]
    fn bytes_that_nobody_uses_are_zero() {
        let good = SUPERBLOCK.encode();
        for byte in [68, 80, 4000] {
            for (problems, damaged, superblock) in judged(written_with(byte, 1), good) {
                assert_eq!((damaged.len(), superblock.unwrap()), (0, SUPERBLOCK));
                assert!(problems.len() == 1 && !problems[0].in_force, "{problems:?}");
            }
        }
    }

    #[test]
    fn a_damaged_copy_is_named_and_mended_from_the_other_one() {
        let good = SUPERBLOCK.encode();
        let damages = [[0; SUPERBLOCK_BYTES], [0xa5; SUPERBLOCK_BYTES], with(0, 0), with(40, 0xff)];
        // Also if a flipped bit makes it look like another version or kind.
        for damaged_copy in damages.into_iter().chain([with(8, 4), with(12, 7)]) {
            for (at, (problems, damaged, superblock)) in
                judged(damaged_copy, good).into_iter().enumerate()
            {
                assert_eq!((damaged, superblock.unwrap()), (vec![at], SUPERBLOCK));
                let [Finding { place, problem, .. }] = &problems[..] else {
                    panic!("{problems:?}")
                };
                assert_eq!(*place, format!("superblock, {}", NAMES[at]));
                assert!(problem.contains("damaged"), "{problem}");
            }
        }
    }

    #[test]
    fn a_copy_that_the_volume_has_outgrown_is_no_problem_and_is_written_again() {
        let grown =
            Superblock { zones: 9, pages: 1300, growths: 1, pages_before: 1000, ..SUPERBLOCK };
        let of =
            |copies: [Superblock; 2]| Copies::decode(&copies.map(|copy| copy.encode()).concat());
        for (at, copies) in [(1, [grown, SUPERBLOCK]), (0, [SUPERBLOCK, grown])] {
            let copies = of(copies);
            assert_eq!((copies.in_force().unwrap(), copies.problems()), (grown, vec![]));
            assert_eq!(copies.to_mend(&grown).collect::<Vec<_>>(), [at]);
        }
        // A copy that is not one growth away contradicts the other.
        for other in [
            Superblock { growths: 2, ..grown },
            Superblock { pages_before: 999, ..grown },
            Superblock { zones: 6, ..grown },
            Superblock { volume_id: 1, ..grown },
        ] {
            let error = of([SUPERBLOCK, other]).in_force().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{other:?}");
        }
    }

    #[test]
    fn intact_copies_that_contradict_each_other_open_nothing() {
        let good = SUPERBLOCK.encode();
        for (other, told) in [
            (written_with(8, 4), "format version 4"),
            (written_with(8, 1), "format version 1"),
            (written_with(12, 7), "unknown kind 7"),
            (written_with(16, 0), "volume 0000"),
            (written_with(48, 1), "pages"),
        ] {
            for (problems, damaged, superblock) in judged(other, good) {
                let error = superblock.unwrap_err();
                assert_eq!((error.kind(), damaged), (ErrorKind::Corrupt, vec![]));
                let both = ["contradict", "byte 0", "byte 4096", told];
                assert!(both.iter().all(|part| error.to_string().contains(part)), "{error}");
                assert!(!problems.is_empty());
            }
        }
    }

    #[test]
    fn of_two_bad_copies_the_one_that_says_more_is_told() {
        let (wiped, damaged, other_version) = (with(0, 0), with(40, 1), with(8, 9));
        for (one, other, kind, told) in [
            (wiped, damaged, ErrorKind::Checksum, "damaged"),
            (damaged, damaged, ErrorKind::Checksum, "damaged"),
            (damaged, other_version, ErrorKind::Format, "version 9"),
            (written_with(8, 9), written_with(8, 9), ErrorKind::Format, "version 9"),
            (other_version, wiped, ErrorKind::Format, "version 9"),
            (wiped, wiped, ErrorKind::Format, "no Tantalum volume"),
        ] {
            for (problems, _, superblock) in judged(one, other) {
                let error = superblock.unwrap_err();
                assert!(error.kind() == kind && error.to_string().contains(told), "{error:?}");
                assert_eq!(problems.len(), COPIES);
            }
        }
    }
}
