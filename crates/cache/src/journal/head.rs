//! The head of a journal: its owner, and the epoch that is or was committed in it.
//!
//! Two copies, at bytes 0 and 524288, written one after the other. Little endian:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic `TantJrnl` |
//! | 8 | 4 | format version |
//! | 12 | 2 | 1: an epoch is committed; 2: it was given up since, or pages are destaged without an epoch, and bytes 64 to 79 are zero; 3: as 2, and the home lacks nothing that any flash has: no volume was opened since it was attached, or since it was detached or rescued; 0: there was none, and everything from byte 48 on is zero |
//! | 14 | 2 | the claim on the home (`super::claims`): 0: there is none; 1 and 2: it is being changed, according to the first or the second record; 3 and 4: it is there, according to that record. Format version 1 had none |
//! | 16 | 16 | identity of the volume |
//! | 32 | 8 | pages of the home |
//! | 40 | 8 | sequence number: counts the times that the head was written |
//! | 48 | 8 | the epoch |
//! | 56 | 8 | when its last change was acknowledged, in milliseconds since 1970 |
//! | 64 | 4 | pages with contents |
//! | 68 | 4 | checksum of the checksums of the index pages, each as its four bytes |
//! | 72 | 8 | ranges of zeros |
//! | 80 | 8 | every change up to this version is in this epoch, or was destaged before; 0 if unknown |
//! | 88 | 4 | number of missing pages, which the flash could not read; 4294967295: more than 500; 4294967294: the home may have, and may lack, any change up to the version at 80 |
//! | 92 | 4000 | these pages, 8 bytes each; the rest zero |
//! | 4092 | 4 | CRC-32C of the 4092 bytes before |
use super::claims::Standing;
use super::{Closed, Pair};
use crate::refusals::{JOURNAL_VERSION, NO_JOURNAL};
use std::fmt;
use tantalum_base::checksum::crc32c;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Result, Version};
use tantalum_ftl::Lacks;

/// Positions of the copies: far enough apart that a medium that loses one together with its
/// neighbourhood keeps the other.
pub(super) const COPIES_AT: [u64; 2] = [0, 512 << 10];

const MAGIC: &[u8; 8] = b"TantJrnl";
const FORMAT_VERSION: u32 = 2;
/// The version of journals without a claim.
const FIRST_VERSION: u32 = 1;
const CRC_AT: usize = PAGE_BYTES - 4;
const EMPTY: u32 = 0;
const COMMITTED: u32 = 1;
const GIVEN_UP: u32 = 2;
const RELEASED: u32 = 3;

/// Maximum number of missing pages that the head can list.
pub(super) const LACKED_PAGES_MAX: usize = (CRC_AT - LACKED_AT) / 8;

const SEQUENCE_AT: usize = 40;

/// Sequence numbers and numbers of epochs are below this.
const COUNTS_END: u64 = 1 << 62;

/// A medium writes this many bytes completely or not at all.
const SECTOR_BYTES: usize = 512;

const LACKED_AT: usize = 92;
const PAGES_UNKNOWN: u32 = u32::MAX;
const CHANGES_UNKNOWN: u32 = u32::MAX - 1;

/// The content of a copy of the head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) pair: Pair,
    pub(super) sequence: u64,
    pub(super) state: State,
    /// Pages or changes that the home may lack.
    pub(super) lacks: Lacks,
    /// The claim on the home.
    pub(super) claim: Standing,
}

/// The state of the epoch in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Empty,
    Committed(Commit),
    /// The epoch is on the home, and may have been overwritten here.
    GivenUp(Closed),
    /// As `GivenUp`, and the home is an image of its own, whose content is complete.
    Released(Closed),
}

/// A committed epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Commit {
    pub(super) closed: Closed,
    pub(super) contents: u32,
    pub(super) zero_ranges: u64,
    pub(super) index_checksum: u32,
}

impl Head {
    pub(super) fn encode(&self, page: &mut [u8]) {
        page.fill(0);
        let mut put = |at: usize, field: &[u8]| page[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        put(16, &self.pair.volume_id.to_le_bytes());
        put(32, &self.pair.pages.to_le_bytes());
        put(40, &self.sequence.to_le_bytes());
        let (state, closed) = match self.state {
            State::Empty => (EMPTY, Closed::default()),
            State::Committed(commit) => (COMMITTED, commit.closed),
            State::GivenUp(closed) => (GIVEN_UP, closed),
            State::Released(closed) => (RELEASED, closed),
        };
        put(12, &(state | u32::from(self.claim.encode()) << 16).to_le_bytes());
        put(48, &closed.epoch.to_le_bytes());
        put(56, &closed.unix_ms.to_le_bytes());
        put(80, &closed.version.0.to_le_bytes());
        let (count, pages) = match &self.lacks {
            Lacks::Pages(pages) => (pages.len() as u32, &pages[..]),
            Lacks::PagesUnknown => (PAGES_UNKNOWN, &[][..]),
            Lacks::ChangesUnknown => (CHANGES_UNKNOWN, &[][..]),
        };
        put(88, &count.to_le_bytes());
        for (at, page) in (LACKED_AT..).step_by(8).zip(pages) {
            put(at, &page.0.to_le_bytes());
        }
        if let State::Committed(commit) = &self.state {
            put(64, &commit.contents.to_le_bytes());
            put(68, &commit.index_checksum.to_le_bytes());
            put(72, &commit.zero_ranges.to_le_bytes());
        }
        let crc = crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads one copy.
    ///
    /// # Errors
    /// `Format` if it is no journal or has another version; `Checksum` if it is damaged.
    fn decode(page: &[u8]) -> Result<Self> {
        if page[..8] != *MAGIC {
            return Err(Error::new(ErrorKind::Format, "no magic number"));
        }
        if crc32c(&page[..CRC_AT]) != word(page, CRC_AT) {
            return Err(Error::new(ErrorKind::Checksum, "damaged"));
        }
        let version = word(page, 8);
        if ![FIRST_VERSION, FORMAT_VERSION].contains(&version) {
            let context = format!(
                "format version {version}, {JOURNAL_VERSION} {FIRST_VERSION} and {FORMAT_VERSION}"
            );
            return Err(JOURNAL_VERSION.error(ErrorKind::Format, context));
        }
        let pair = Pair { volume_id: wide(page, 16), pages: long(page, 32) };
        let (epoch, unix_ms) = (long(page, 48), long(page, 56));
        let closed = Closed { epoch, unix_ms, version: Version(long(page, 80)) };
        let lacks = match word(page, 88) {
            PAGES_UNKNOWN => Lacks::PagesUnknown,
            CHANGES_UNKNOWN => Lacks::ChangesUnknown,
            count if count as usize <= LACKED_PAGES_MAX => {
                let numbers = (LACKED_AT..).step_by(8).take(count as usize);
                Lacks::Pages(numbers.map(|at| PageNo(long(page, at))).collect())
            }
            other => {
                return Err(Error::new(ErrorKind::Format, format!("{other} missing pages")));
            }
        };
        let claim = Standing::decode((word(page, 12) >> 16) as u16)?;
        let state = match word(page, 12) & 0xffff {
            EMPTY => State::Empty,
            COMMITTED => State::Committed(Commit {
                closed,
                contents: word(page, 64),
                index_checksum: word(page, 68),
                zero_ranges: long(page, 72),
            }),
            GIVEN_UP => State::GivenUp(closed),
            RELEASED => State::Released(closed),
            other => return Err(Error::new(ErrorKind::Format, format!("unknown state {other}"))),
        };
        let sequence = long(page, SEQUENCE_AT);
        if sequence >= COUNTS_END || epoch >= COUNTS_END {
            let context = format!("sequence number {sequence} or epoch {epoch} is out of range");
            return Err(Error::new(ErrorKind::Format, context));
        }
        Ok(Head { pair, sequence, state, lacks, claim })
    }
}

/// The result of reading the two copies.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) head: Head,
    /// The copy to write first: the damaged or older one, so that the other remains while it is
    /// written.
    pub(super) write_first: usize,
}

/// Chooses the head that counts: the newer intact one of the two copies. As they are written one
/// after the other, a power cut damages at most one of them.
///
/// # Errors
/// `Format` if there is no journal, or one of another version; `Checksum` if both copies are
/// damaged.
pub(super) fn decide(copies: [&[u8]; 2]) -> Result<Found> {
    let [first, second] = copies.map(Head::decode);
    let found = match (first, second) {
        (Ok(first), Ok(second)) if first.sequence >= second.sequence => (first, 1),
        (Ok(_), Ok(second)) => (second, 0),
        (Ok(head), Err(error)) if !is_foreign(copies[1], &error) => (head, 1),
        (Err(error), Ok(head)) if !is_foreign(copies[0], &error) => (head, 0),
        (first, second) => {
            let errors = [(0, first.err()), (1, second.err())];
            return Err(worst(copies, errors));
        }
    };
    Ok(Found { head: found.0, write_first: found.1 })
}

/// Finds the copy, if any, that is damaged in a way that a power cut cannot explain. A cut leaves
/// each sector of 512 bytes either as it was before or as it is in the other copy. So a cut
/// explains neither a difference in the fields that are the same in every head of this journal, nor
/// a first sector with the other copy's sequence number but other content. If exactly one bit
/// differs, it was flipped, unless it is in the sequence number: the next write may differ so.
pub(super) fn damaged_copy(copies: [&[u8; PAGE_BYTES]; 2]) -> Option<usize> {
    let damaged = match copies.map(|copy| Head::decode(copy).is_ok()) {
        [true, false] => 1,
        [false, true] => 0,
        _ => return None,
    };
    let (copy, whole) = (copies[damaged], copies[1 - damaged]);
    let same = |bytes: std::ops::Range<usize>| copy[bytes.clone()] == whole[bytes];
    let differ = copy.iter().zip(whole).map(|(one, other)| (one ^ other).count_ones());
    let is_version = [FIRST_VERSION, FORMAT_VERSION].contains(&word(copy, 8));
    let fixed = same(0..8) && is_version && same(16..SEQUENCE_AT);
    let step = same(SEQUENCE_AT..SEQUENCE_AT + 8);
    let one_bit = step && differ.sum::<u32>() == 1;
    (!fixed || one_bit || step && !same(0..SECTOR_BYTES)).then_some(damaged)
}

/// Whether an intact copy was written by another version.
fn is_foreign(page: &[u8], error: &Error) -> bool {
    has_magic(page) && error.kind() == ErrorKind::Format
}

fn has_magic(page: &[u8]) -> bool {
    page[..8] == *MAGIC
}

/// The most significant of the errors of the copies: first another version, then damage, then that
/// nothing is there.
fn worst(copies: [&[u8]; 2], errors: [(usize, Option<Error>); 2]) -> Error {
    let weight = |at: usize, error: &Error| match (has_magic(copies[at]), error.kind()) {
        (true, ErrorKind::Format) => 2,
        (true, _) => 1,
        (false, _) => 0,
    };
    let worst = errors
        .into_iter()
        .filter_map(|(at, error)| error.map(|error| (weight(at, &error), error)))
        .max_by_key(|(weight, _)| *weight);
    match worst {
        Some((2, error)) => error.wrap("the journal cannot be read"),
        Some((1, error)) => error.wrap("both copies of the journal's head are damaged"),
        _ => NO_JOURNAL.error(ErrorKind::Format, format!("{NO_JOURNAL} (no magic number)")),
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {:032x} of {} pages", self.volume_id, self.pages)
    }
}

pub(super) fn word(page: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&page[at..at + 4]);
    u32::from_le_bytes(bytes)
}

pub(super) fn long(page: &[u8], at: usize) -> u64 {
    u64::from(word(page, at)) | u64::from(word(page, at + 4)) << 32
}

pub(super) fn wide(page: &[u8], at: usize) -> u128 {
    u128::from(long(page, at)) | u128::from(long(page, at + 8)) << 64
}

#[cfg(test)]
mod tests {
    use super::super::claims::Slot;
    use super::*;

    const HEAD: Head = Head {
        pair: Pair { volume_id: 0x1234_5678_9abc_def0_1122_3344_5566_7788, pages: 1 << 40 },
        sequence: 7,
        state: State::Committed(Commit {
            closed: Closed { epoch: 5, unix_ms: 1_700_000_000_000, version: Version(1 << 50) },
            contents: 300,
            zero_ranges: 1 << 33,
            index_checksum: 0xdead_beef,
        }),
        lacks: Lacks::Pages(Vec::new()),
        claim: Standing::On(Slot::Second),
    };

    type Page = [u8; PAGE_BYTES];

    fn page(head: Head) -> Page {
        let mut page = [0xa5; PAGE_BYTES];
        head.encode(&mut page);
        page
    }

    fn with_version(version: u32) -> Page {
        let mut page = page(HEAD);
        page[8..12].copy_from_slice(&version.to_le_bytes());
        let crc = crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        page
    }

    #[test]
    fn the_newer_of_two_intact_copies_counts() {
        let given_up = State::GivenUp(Closed { epoch: 5, unix_ms: 6, version: Version(7) });
        let lacks = Lacks::Pages(vec![PageNo(3), PageNo(1 << 40)]);
        let newer = Head { sequence: 8, state: given_up, lacks, ..HEAD };
        let found = decide([&page(HEAD), &page(newer.clone())]).unwrap();
        assert_eq!((found.head, found.write_first), (newer.clone(), 0));
        let found = decide([&page(newer.clone()), &page(HEAD)]).unwrap();
        assert_eq!((found.head, found.write_first), (newer.clone(), 1));
        let most = Lacks::Pages((0..LACKED_PAGES_MAX as u64).map(PageNo).collect());
        let empty = Head { state: State::Empty, ..HEAD };
        for lacks in [Lacks::PagesUnknown, Lacks::ChangesUnknown, most] {
            let head = Head { lacks, ..HEAD };
            assert_eq!(decide([&page(head.clone()), &page(head.clone())]).unwrap().head, head);
        }
        for head in [HEAD, newer, empty] {
            assert_eq!(decide([&page(head.clone()), &page(head.clone())]).unwrap().head, head);
        }
    }

    #[test]
    fn a_head_of_the_first_version_knows_no_claim() {
        let head = Head { claim: Standing::None, ..HEAD };
        let mut old = page(head.clone());
        old[8..12].copy_from_slice(&FIRST_VERSION.to_le_bytes());
        let crc = crc32c(&old[..CRC_AT]);
        old[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(decide([&old, &old]).unwrap().head, head);
        // Together with the first head that this version writes, it is the other copy.
        let newer = Head { sequence: 8, ..HEAD };
        assert_eq!(decide([&old, &page(newer.clone())]).unwrap().head, newer);
        assert_eq!(damaged_copy([&old, &page(newer)]), None);
    }

    #[test]
    fn one_copy_may_be_damaged_at_any_byte() {
        for byte in 0..PAGE_BYTES {
            let mut damaged = page(HEAD);
            damaged[byte] ^= 0x10;
            let found = decide([&page(HEAD), &damaged]).unwrap();
            assert_eq!((found.head, found.write_first), (HEAD, 1), "byte {byte}");
            let found = decide([&damaged, &page(HEAD)]).unwrap();
            assert_eq!((found.head, found.write_first), (HEAD, 0), "byte {byte}");
        }
    }

    #[test]
    fn what_is_wrong_with_both_is_told() {
        let (wiped, mut damaged) = ([0; PAGE_BYTES], page(HEAD));
        damaged[40] ^= 1;
        let (good, other) = (page(HEAD), with_version(9));
        for (first, second, kind, told) in [
            (wiped, wiped, ErrorKind::Format, "not a journal"),
            (wiped, damaged, ErrorKind::Checksum, "damaged"),
            (damaged, damaged, ErrorKind::Checksum, "damaged"),
            (damaged, other, ErrorKind::Format, "version 9"),
            (good, other, ErrorKind::Format, "version 9"),
            (other, wiped, ErrorKind::Format, "version 9"),
        ] {
            for copies in [[&first[..], &second], [&second, &first]] {
                let error = decide(copies).unwrap_err();
                assert!(error.kind() == kind && error.to_string().contains(told), "{error:?}");
            }
        }
    }

    fn given_up(sequence: u64) -> [u8; PAGE_BYTES] {
        let pair = Pair { volume_id: 0x1234_5678_9abc_def0, pages: 1000 };
        let closed =
            Closed { epoch: sequence / 2, unix_ms: 1 << 40, version: Version(sequence * 9) };
        let state = State::GivenUp(closed);
        let lacks = Lacks::Pages((0..sequence % 3).map(PageNo).collect());
        let mut page = [0; PAGE_BYTES];
        let claim = Standing::Changing(Slot::First);
        Head { pair, sequence, state, lacks, claim }.encode(&mut page);
        page
    }

    #[test]
    fn a_flipped_bit_in_one_copy_is_damage_but_in_the_sequence_number() {
        let whole = given_up(6);
        for byte in 0..PAGE_BYTES {
            let mut copy = whole;
            copy[byte] ^= 1 << (byte % 8);
            let told = (!(40..48).contains(&byte)).then_some(1);
            assert_eq!(damaged_copy([&whole, &copy]), told, "byte {byte}");
            assert_eq!(damaged_copy([&copy, &whole]), told.map(|_| 0), "byte {byte}");
        }
    }

    #[test]
    fn a_torn_copy_is_none() {
        for sequence in 1..40 {
            let (before, whole) = (given_up(sequence), given_up(sequence + 1));
            // Only some sectors of a copy were written.
            for landed in 0u32..256 {
                let mut torn = before;
                for sector in (0..8).filter(|sector| landed >> sector & 1 == 1) {
                    let at = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    torn[at.clone()].copy_from_slice(&whole[at]);
                }
                for other in [before, whole] {
                    assert_eq!(damaged_copy([&torn, &other]), None, "{sequence}: {landed:08b}");
                }
            }
        }
    }

    #[test]
    fn whole_copies_and_a_damaged_pair_are_not_judged_here() {
        assert_eq!(damaged_copy([&given_up(4), &given_up(4)]), None);
        assert_eq!(damaged_copy([&given_up(4), &given_up(5)]), None);
        assert_eq!(damaged_copy([&[0; PAGE_BYTES], &[0; PAGE_BYTES]]), None);
    }
}
