//! `alibaba`: the block traces of Alibaba Cloud's virtual disks, as CSV without a header:
//! `device_id,opcode,offset,length,timestamp`.
//!
//! Source: the README of the traces, and Li, Wang, Lee, Shi, "An in-depth analysis of cloud block
//! storage workloads in large-scale production", IISWC 2020. Offset and length are bytes, the
//! opcode is R or W, each device is a volume. Dropped: the time (in microseconds).
use super::lines::{self, Fields, Line, Lines, check_end};
use super::volumes::Volumes;
use super::{Decode, Format, Head};
use crate::event::{BlockEvent, BlockOp};
use tantalum_base::{Result, Spec};

/// The format `alibaba`.
#[derive(Debug)]
pub struct Alibaba;

const COLUMNS: [&str; 5] = ["device_id", "opcode", "offset", "length", "timestamp"];

impl Format<BlockEvent> for Alibaba {
    fn name(&self) -> &'static str {
        "alibaba"
    }

    /// A number, R or W, and three more numbers: no other format has five columns with the letter
    /// in the second.
    fn detect(&self, head: &Head<'_>) -> bool {
        let mut parser = Parser { volumes: Volumes::any_number() };
        head.every_line(
            |line| lines::is_header(line, &COLUMNS),
            |line| parser.line(line, &mut Vec::new()).is_ok(),
        )
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        Ok(Box::new(Lines::new(Parser { volumes: Volumes::any_number() })))
    }
}

struct Parser {
    volumes: Volumes,
}

impl Line<BlockEvent> for Parser {
    fn is_header(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(lines::is_header(line, &COLUMNS))
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<BlockEvent>) -> Result<(), String> {
        let mut fields = Fields::new(line, b',');
        fields.number("device_id")?;
        let volume = line[..fields.at() - 1].trim_ascii();
        let op = match fields.text("opcode")? {
            b"R" | b"r" => BlockOp::Read,
            b"W" | b"w" => BlockOp::Write,
            _ => return Err("the opcode is not R or W".to_owned()),
        };
        let offset = fields.number("offset")?;
        let length = fields.number_u32("length")?;
        fields.number("timestamp")?;
        fields.end("the five of an Alibaba trace")?;
        check_end(offset, length)?;
        let file_kind = self.volumes.of(volume)?;
        out.push(BlockEvent { op, file_kind, offset, length });
        Ok(())
    }

    fn names(&self) -> &[String] {
        self.volumes.names()
    }
}
