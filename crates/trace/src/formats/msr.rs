//! `msr`: the block traces of Microsoft Research Cambridge, as CSV without a header:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Source: the README of the traces, and Narayanan, Donnelly, Rowstron, "Write off-loading", FAST
//! 2008. Offset and size are bytes. Host and disk together are the volume, named as the files are
//! (`usr_0`). Dropped: the times (of Windows, in 100 ns).
use super::lines::{self, Fields, Line, Lines, check_end};
use super::volumes::Volumes;
use super::{Decode, Format, Head};
use crate::event::{BlockEvent, BlockOp};
use tantalum_base::{Result, Spec};

/// The format `msr`.
#[derive(Debug)]
pub struct Msr;

const COLUMNS: [&str; 7] =
    ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];

impl Format<BlockEvent> for Msr {
    fn name(&self) -> &'static str {
        "msr"
    }

    /// Seven columns of which the fourth says Read or Write: no other format has them.
    fn detect(&self, head: &Head<'_>) -> bool {
        let mut parser = Parser::new();
        head.every_line(
            |line| lines::is_header(line, &COLUMNS),
            |line| parser.line(line, &mut Vec::new()).is_ok(),
        )
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        Ok(Box::new(Lines::new(Parser::new())))
    }
}

struct Parser {
    volumes: Volumes,
}

impl Parser {
    fn new() -> Self {
        Parser { volumes: Volumes::any_number() }
    }
}

impl Line<BlockEvent> for Parser {
    fn is_header(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(lines::is_header(line, &COLUMNS))
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<BlockEvent>) -> Result<(), String> {
        let mut fields = Fields::new(line, b',');
        fields.number("timestamp")?;
        let from = fields.at();
        fields.skip("hostname")?;
        fields.number("disk number")?;
        let volume = line[from..fields.at().min(line.len() + 1) - 1].trim_ascii();
        let op = match fields.text("type")? {
            b"Read" => BlockOp::Read,
            b"Write" => BlockOp::Write,
            other if other.eq_ignore_ascii_case(b"read") => BlockOp::Read,
            other if other.eq_ignore_ascii_case(b"write") => BlockOp::Write,
            _ => return Err("the type is not Read or Write".to_owned()),
        };
        let offset = fields.number("offset")?;
        let length = fields.number_u32("size")?;
        fields.number("response time")?;
        fields.end("the seven of an MSR trace")?;
        check_end(offset, length)?;
        let file_kind = self.volumes.of(volume)?;
        out.push(BlockEvent { op, file_kind, offset, length });
        Ok(())
    }

    fn names(&self) -> &[String] {
        self.volumes.names()
    }
}
