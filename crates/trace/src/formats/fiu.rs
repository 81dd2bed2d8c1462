//! `fiu`: the block traces of Florida International University (home, mail, web), with fields separated by blanks:
//! `time pid process lba blocks op major minor digest`.
//!
//! Source: the README of the traces (SNIA IOTTA 390 and 391), and Koller, Rangaswami, "I/O Deduplication", FAST 2010.
//! The address and the size count blocks of 512 bytes, the operation is R or W. The name of the process may contain
//! blanks. Device numbers are the volume, named like `6:0`. Dropped: the time (in ns), the process, the digest.
use super::lines::{check_end, sectors};
use super::number;
use super::volume_lines::VolumeLines;
use super::volumes::Volumes;
use crate::event::{BlockEvent, BlockOp};

/// The format `fiu`.
#[derive(Debug)]
pub struct Fiu;

/// Number of fields before the process, and from the address to the device's minor number.
const BEFORE: usize = 2;
const BEHIND: usize = 5;

/// A time and a number, a name, two numbers, R or W, and two numbers: no other format has blanks and the letter in this
/// position.
impl VolumeLines for Fiu {
    const NAME: &'static str = "fiu";
    const DROPPED: &'static [&'static str] = &["times", "processes", "digests"];

    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String> {
        let words: Vec<&[u8]> =
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let (before, rest) = words.split_at(words.len().min(BEFORE));
        for (name, word) in ["time", "process number"].iter().zip(before) {
            whole(word, name)?;
        }
        // The name ends at the first point after which five fields of the right kind follow; most traces have digests
        // last.
        let at = (1..rest.len()).find(|&at| is_request(&rest[at..])).ok_or(
            "behind time, process number and process are no block address, number of blocks, R or W, major and minor \
             device number",
        )?;
        let [lba, blocks, op, major, minor] = &rest[at..at + BEHIND] else {
            return Err("fields are missing".to_owned());
        };
        let offset = sectors(whole(lba, "block address")?, "block address")?;
        let length = sectors(whole(blocks, "number of blocks")?, "number of blocks")?;
        let length = u32::try_from(length).map_err(|_| "the size is over 32 bits in bytes")?;
        let op = if op.eq_ignore_ascii_case(b"R") { BlockOp::Read } else { BlockOp::Write };
        check_end(offset, length)?;
        let file_kind = volumes.of(&[major, &b":"[..], minor].concat())?;
        Ok(BlockEvent { op, file_kind, offset, length })
    }
}

/// Whether `words` are an address, a size, an operation, a device and at most a digest.
fn is_request(words: &[&[u8]]) -> bool {
    let [lba, blocks, op, major, minor, digest @ ..] = words else { return false };
    let is_number = |word: &[u8]| number::whole(word).is_some();
    digest.len() <= 1
        && [*lba, *blocks, *major, *minor].into_iter().all(is_number)
        && matches!(*op, b"R" | b"W" | b"r" | b"w")
}

fn whole(word: &[u8], name: &str) -> Result<u64, String> {
    number::whole(word).ok_or_else(|| format!("the {name} is not a number of at most 64 bits"))
}
