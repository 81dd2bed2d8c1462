//! `msr`: the block traces of Microsoft Research Cambridge, as CSV without a header:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Source: the README of the traces, and Narayanan, Donnelly, Rowstron, "Write off-loading", FAST
//! 2008. Offset and size are bytes. Host and disk together are the volume, named as the files are
//! (`usr_0`). Dropped: the times (of Windows, in 100 ns).
use super::lines::{Fields, check_end};
use super::volume_lines::VolumeLines;
use super::volumes::Volumes;
use crate::event::{BlockEvent, BlockOp};

/// The format `msr`.
#[derive(Debug)]
pub struct Msr;

/// Seven columns of which the fourth is Read or Write: no other format has them.
impl VolumeLines for Msr {
    const NAME: &'static str = "msr";
    const COLUMNS: &'static [&'static str] =
        &["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];

    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String> {
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
        let file_kind = volumes.of(volume)?;
        Ok(BlockEvent { op, file_kind, offset, length })
    }
}
