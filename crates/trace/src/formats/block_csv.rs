//! `block_csv`: one system call per line, header `op,file_kind,offset,length`.
//!
//! Op R or W (bytes at an offset), F (sync), D (discard), T (truncate, offset is the new size) or U
//! (unlink).
//! Files of a kind are laid end to end in one address space; a `.map.csv` beside the trace lists them (see
//! [`crate::layout`]).
use super::lines::{self, Fields, Line, Lines, check_end};
use super::volumes::Volumes;
use super::{Decode, Encode, Format, Head, number};
use crate::event::{BlockEvent, BlockOp};
use tantalum_base::{Result, Spec};

/// The format `block_csv`.
#[derive(Debug)]
pub struct BlockCsv;

/// No engine has as many kinds of file: a file with more is not such a trace.
const KINDS_MAX: usize = 256;

const COLUMNS: [&str; 4] = ["op", "file_kind", "offset", "length"];

impl Format<BlockEvent> for BlockCsv {
    fn name(&self) -> &'static str {
        "block_csv"
    }

    /// The header, or four columns that begin with one of the letters.
    fn detect(&self, head: &Head<'_>) -> bool {
        let mut parser = Parser { kinds: Volumes::new(KINDS_MAX) };
        let mut lines = head.lines();
        let Some(first) = lines.next() else { return false };
        lines::is_header(first, &COLUMNS) || parser.line(first, &mut Vec::new()).is_ok()
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        Ok(Box::new(Lines::new(Parser { kinds: Volumes::new(KINDS_MAX) })))
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<BlockEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

struct Encoder;

impl Encode<BlockEvent> for Encoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(COLUMNS.join(",").as_bytes());
        out.push(b'\n');
    }

    fn encode(&mut self, event: &BlockEvent, names: &[String], out: &mut Vec<u8>) {
        out.extend_from_slice(&[event.op.letter(), b',']);
        let name = names.get(usize::from(event.file_kind.0));
        out.extend_from_slice(name.map_or("other", String::as_str).as_bytes());
        out.push(b',');
        number::write(event.offset, out);
        out.push(b',');
        number::write(u64::from(event.length), out);
        out.push(b'\n');
    }
}

struct Parser {
    kinds: Volumes,
}

impl Line<BlockEvent> for Parser {
    /// Traces of this format are written by programs, as all that this project writes.
    const ENDS_LINES_BELOW_HEADER: bool = true;

    fn read_header(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(lines::is_header(line, &COLUMNS))
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<BlockEvent>) -> Result<(), String> {
        let mut fields = Fields::new(line, b',');
        let op = match fields.text("op")? {
            [letter] => {
                BlockOp::ALL.into_iter().find(|op| op.letter() == letter.to_ascii_uppercase())
            }
            _ => None,
        };
        let op = op.ok_or("the op is not R, W, F, D, T or U")?;
        let kind = fields.text("file kind")?;
        let offset = fields.number("offset")?;
        let length = fields.number_u32("length")?;
        fields.end("the four op,file_kind,offset,length")?;
        check_end(offset, length)?;
        let file_kind = self.kinds.of(kind)?;
        out.push(BlockEvent { op, file_kind, offset, length });
        Ok(())
    }

    fn names(&self) -> &[String] {
        self.kinds.names()
    }
}
