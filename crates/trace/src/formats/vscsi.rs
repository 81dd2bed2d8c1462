//! `vscsi`: the binary traces of virtual disks by CloudPhysics, versions 1 (32 bytes per record) and 2 (40 bytes).
//!
//! Source: the layout in libCacheSim's reader (`traceReader/customizedReader/vscsi.h`); Waldspurger, Park, Garthwaite,
//! Ahmad, FAST 2015, used these traces. All little-endian, no header:
//!
//! ```text
//! version 1   sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, ts u64
//! version 2   cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64
//! ```
//!
//! `cmd` is the SCSI operation code, `len` counts bytes, `lbn` sectors of 512 bytes; the upper byte of `ver` is the
//! version. Reads and writes are kept as such, SYNCHRONIZE CACHE is a sync; all other commands move no data and are
//! dropped, as are the times.
use super::lines::{SECTOR_BYTES, check_end};
use super::plausible::Plausible;
use super::records::{u16_at, u32_at, u64_at};
use super::{Decode, Fault, Format, Head};
use crate::event::{BlockEvent, BlockOp, FileKind};
use tantalum_base::{Result, Spec};

/// The format `vscsi`.
#[derive(Debug)]
pub struct Vscsi;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

impl Version {
    const ALL: [Version; 2] = [Version::One, Version::Two];

    const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// Whether `record` has the mark of this version.
    fn is_of(self, record: &[u8]) -> bool {
        match self {
            Version::One => u16_at(record, 14) >> 8 == 1,
            Version::Two => u16_at(record, 2) >> 8 == 2,
        }
    }

    /// The version of every record of `head`, if only one version fits.
    fn of(head: &Head<'_>) -> Option<Version> {
        let mut fitting = Version::ALL.into_iter().filter(|version| {
            let bytes = version.record_bytes();
            head.is_records(bytes) && head.records(bytes).all(|record| version.is_of(record))
        });
        fitting.next().filter(|_| fitting.next().is_none())
    }
}

impl Format<BlockEvent> for Vscsi {
    fn name(&self) -> &'static str {
        "vscsi"
    }

    /// Every record has its version in a byte that no text has.
    fn detect(&self, head: &Head<'_>) -> bool {
        Version::of(head).is_some()
    }

    /// Accepts `version` (1, 2, or `any`: recognized from the records) and `check` (`yes`, `no`): whether impossible
    /// records are refused.
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        let version = match spec.word("version", &["any", "1", "2"])? {
            "1" => Some(Version::One),
            "2" => Some(Version::Two),
            _ => None,
        };
        let plausible = Plausible::of(spec, "vscsi", 1_000_000)?;
        Ok(Box::new(Decoder { version, plausible, has_others: false, names: ["disk".to_owned()] }))
    }

    fn is_one_volume(&self) -> bool {
        true
    }
}

struct Decoder {
    version: Option<Version>,
    plausible: Plausible,
    /// Whether there were commands that move no data.
    has_others: bool,
    names: [String; 1],
}

impl Decode<BlockEvent> for Decoder {
    fn decode(
        &mut self,
        chunk: &[u8],
        last: bool,
        out: &mut Vec<BlockEvent>,
    ) -> Result<usize, Fault> {
        if self.version.is_none() {
            let bytes = &chunk[..chunk.len().min(Head::BYTES_MAX as usize)];
            let head = Head { bytes, whole: last && bytes.len() == chunk.len() };
            if chunk.is_empty() || (!last && chunk.len() < 2 * Version::Two.record_bytes()) {
                return Ok(0);
            }
            // A trace of a single record is long enough if its version is certain.
            self.version = Version::of(&head).or_else(|| {
                let only = |version: &Version| {
                    chunk.len() == version.record_bytes() && version.is_of(chunk)
                };
                Version::ALL.into_iter().find(only)
            });
        }
        let Some(version) = self.version else {
            let reason = "the records are of neither version 1 nor version 2".to_owned();
            return Err(Fault { at: 0, reason });
        };
        let bytes = version.record_bytes();
        for (number, record) in chunk.chunks_exact(bytes).enumerate() {
            let fault = |reason| Fault { at: number * bytes, reason };
            let event = event(version, record).map_err(fault)?;
            let checked = self.plausible.check(u64_at(record, 24), || event.and_then(odd_range));
            checked.map_err(fault)?;
            self.has_others |= event.is_none();
            out.extend(event);
        }
        Ok(chunk.len() / bytes * bytes)
    }

    fn dropped(&self) -> Vec<&'static str> {
        if self.has_others { vec!["times", "other commands"] } else { vec!["times"] }
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn is_binary(&self) -> bool {
        true
    }
}

/// No disk is larger, and no command moves more at once.
const DISK_BYTES_MAX: u64 = 1 << 56;
const COMMAND_BYTES_MAX: u32 = 1 << 30;

/// Why `event` is impossible, if it is.
fn odd_range(event: BlockEvent) -> Option<String> {
    if event.offset > DISK_BYTES_MAX {
        return Some(format!("the block lies {} bytes into the disk", event.offset));
    }
    let is_long = event.length > COMMAND_BYTES_MAX && event.op == BlockOp::Read;
    is_long.then(|| format!("a command reads {} bytes", event.length))
}

#[inline]
fn event(version: Version, record: &[u8]) -> Result<Option<BlockEvent>, String> {
    if !version.is_of(record) {
        return Err("the record is of another version than those before".to_owned());
    }
    let (command, length, block) = match version {
        Version::One => (u16_at(record, 12), u32_at(record, 4), u64_at(record, 16)),
        Version::Two => (u16_at(record, 0), u32_at(record, 8), u64_at(record, 16)),
    };
    let op = match command {
        // READ of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => BlockOp::Read,
        // WRITE, WRITE AND VERIFY, WRITE SAME, COMPARE AND WRITE.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 | 0x89 => BlockOp::Write,
        // SYNCHRONIZE CACHE.
        0x35 | 0x91 => BlockOp::Flush,
        0..=0xff => return Ok(None),
        _ => return Err(format!("the command {command:#x} is not a SCSI operation code")),
    };
    let file_kind = FileKind(0);
    if op == BlockOp::Flush {
        return Ok(Some(BlockEvent { op, file_kind, offset: 0, length: 0 }));
    }
    let offset = block.checked_mul(SECTOR_BYTES).ok_or("the block is over 64 bits in bytes")?;
    check_end(offset, length)?;
    Ok(Some(BlockEvent { op, file_kind, offset, length }))
}
