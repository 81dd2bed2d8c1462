//! `alibaba`: the block traces of Alibaba Cloud's virtual disks, as CSV without a header:
//! `device_id,opcode,offset,length,timestamp`.
//!
//! Source: the README of the traces, and Li, Wang, Lee, Shi, "An in-depth analysis of cloud block
//! storage workloads in large-scale production", IISWC 2020. Offset and length are bytes, the
//! opcode is R or W, each device is a volume. Dropped: the time (in microseconds).
use super::lines::{Fields, check_end};
use super::volume_lines::VolumeLines;
use super::volumes::Volumes;
use crate::event::{BlockEvent, BlockOp};

/// The format `alibaba`.
#[derive(Debug)]
pub struct Alibaba;

/// A number, R or W, and three more numbers: no other format has five columns with the letter in the
/// second.
impl VolumeLines for Alibaba {
    const NAME: &'static str = "alibaba";
    const COLUMNS: &'static [&'static str] =
        &["device_id", "opcode", "offset", "length", "timestamp"];

    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String> {
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
        let file_kind = volumes.of(volume)?;
        Ok(BlockEvent { op, file_kind, offset, length })
    }
}
