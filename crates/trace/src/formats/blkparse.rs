//! `blkparse`: the text that `blkparse` makes of a recording by Linux's `blktrace`:
//!
//! ```text
//!   8,0    3        1     0.000107000   697  Q  FWS 223490 + 8 [kjournald]
//! device cpu sequence time           pid action rwbs sector + sectors [process]
//! ```
//! Source: blkparse(1) of blktrace 1.2. A request passes through several actions, of which one is selected: `action=Q`
//! (queued: the requests of the layers above, before merging; the default), `D` (issued to the driver, after merging)
//! or `C` (completed). `rwbs` is an F for a flush before the request, then R, W, D (discard) or N (no data moved), then
//! flags of which F is forced unit access. A flush is a sync before the request, forced unit access one after it.
//! Devices are volumes, named like `8:0`. Dropped: cpu, times, processes, other actions, and the summary.
use super::lines::{Line, Lines, check_end, sectors};
use super::volumes::Volumes;
use super::{Decode, Format, Head, number};
use crate::event::{BlockEvent, BlockOp, FileKind};
use tantalum_base::{Result, Spec};

/// The format `blkparse`.
#[derive(Debug)]
pub struct Blkparse;

impl Format<BlockEvent> for Blkparse {
    fn name(&self) -> &'static str {
        "blkparse"
    }

    /// Each line before the summary has device, cpu, sequence, time with a decimal point, process and action, separated
    /// by blanks.
    fn detect(&self, head: &Head<'_>) -> bool {
        let mut events = head.lines().take_while(|line| !begins_summary(line)).peekable();
        events.peek().is_some() && events.all(|line| Record::of(line).is_some())
    }

    /// Accepts `action` (`Q`, `D` or `C`).
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        let action = spec.word("action", &["Q", "D", "C"])?;
        let volumes = Volumes::any_number();
        Ok(Box::new(Lines::new(Parser { action, volumes, device: Vec::new(), summary: false })))
    }
}

/// The fields of an event's line before those of its action.
struct Record<'a> {
    device: &'a [u8],
    action: &'a [u8],
    rest: Words<'a>,
}

impl<'a> Record<'a> {
    #[inline]
    fn of(line: &'a [u8]) -> Option<Record<'a>> {
        let mut words = Words { line, at: 0 };
        let device = words.next()?;
        let comma = memchr::memchr(b',', device)?;
        number::whole(&device[..comma])?;
        number::whole(&device[comma + 1..])?;
        // Cpu, sequence, time and process.
        number::whole(words.next()?)?;
        number::whole(words.next()?)?;
        let time = words.next()?;
        let (_, end) = number::read(time, 0)?;
        time.get(end).filter(|&&byte| byte == b'.')?;
        number::whole(words.next()?)?;
        let action = words.next().filter(|action| action.len() <= 2)?;
        Some(Record { device, action, rest: words })
    }
}

/// Whether a line begins the summary of blkparse at the end: `CPU0 (sda):` or `Total (sda):`.
fn begins_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total (")
}

/// The words of a line, separated by any number of blanks.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let rest = self.line.get(self.at..)?;
        let from = rest.iter().position(|byte| !is_blank(byte))?;
        let rest = &rest[from..];
        let length = rest.iter().position(is_blank).unwrap_or(rest.len());
        self.at += from + length;
        Some(&rest[..length])
    }
}

struct Parser {
    action: &'static str,
    volumes: Volumes,
    /// The device's name, as a key for lookups.
    device: Vec<u8>,
    /// Whether the summary at the end has begun.
    summary: bool,
}

/// The parsed `rwbs` field.
struct Kind {
    flush_before: bool,
    flush_behind: bool,
    op: Option<BlockOp>,
}

impl Kind {
    fn of(rwbs: &[u8]) -> Option<Kind> {
        let (flush_before, rest) = match rwbs {
            [b'F', rest @ ..] => (true, rest),
            _ => (false, rwbs),
        };
        let op = match rest.first() {
            Some(b'R') => Some(BlockOp::Read),
            Some(b'W') => Some(BlockOp::Write),
            Some(b'D') => Some(BlockOp::Discard),
            // No data moved, or a second F of kernels that mark a bare flush so.
            Some(b'N' | b'F') => None,
            None if flush_before => None,
            _ => return None,
        };
        Some(Kind { flush_before, flush_behind: rest.len() > 1 && rest[1..].contains(&b'F'), op })
    }
}

impl Line<BlockEvent> for Parser {
    fn read_header(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<BlockEvent>) -> Result<(), String> {
        let Some(mut record) = Record::of(line) else {
            self.summary = self.summary || begins_summary(line);
            return if self.summary {
                Ok(())
            } else {
                Err("neither an event (device, cpu, sequence, time, process, action) nor the \
                     summary (CPU0 (sda): ...)"
                    .to_owned())
            };
        };
        self.summary = false;
        if record.action != self.action.as_bytes() {
            return Ok(());
        }
        let kind = record.rest.next().and_then(Kind::of);
        let kind = kind.ok_or("the kind of request (RWBS) has none of R, W, D, N and F")?;
        self.device.clear();
        self.device
            .extend(record.device.iter().map(|&byte| if byte == b',' { b':' } else { byte }));
        let file_kind = self.volumes.of(&self.device)?;
        let flush = BlockEvent { op: BlockOp::Flush, file_kind, offset: 0, length: 0 };
        out.extend(kind.flush_before.then_some(flush));
        if let Some(op) = kind.op {
            out.extend(range(&mut record.rest, op, file_kind, kind.flush_before)?);
        }
        out.extend(kind.flush_behind.then_some(flush));
        Ok(())
    }

    fn dropped(&self) -> Vec<&'static str> {
        vec!["times", "processes", "other actions"]
    }

    fn names(&self) -> &[String] {
        self.volumes.names()
    }
}

/// The event of `sector + sectors`. A flush may have no range: `[process]`, or at completion `sector [error]`.
fn range(
    words: &mut Words<'_>,
    op: BlockOp,
    file_kind: FileKind,
    is_flush: bool,
) -> Result<Option<BlockEvent>, String> {
    let first = words.next().unwrap_or_default();
    let Some(sector) = number::whole(first) else {
        let empty = is_flush || first.starts_with(b"[");
        return if empty { Ok(None) } else { Err("the sector is not a number".to_owned()) };
    };
    if words.next() != Some(b"+") {
        return Ok(None);
    }
    let count = words.next().and_then(number::whole).ok_or("the sectors are not a number")?;
    let offset = sectors(sector, "sector")?;
    let length = sectors(count, "size")?;
    let length = u32::try_from(length).map_err(|_| "the size is over 32 bits in bytes")?;
    check_end(offset, length)?;
    Ok(Some(BlockEvent { op, file_kind, offset, length }))
}
