//! `tencent`: the block traces of Tencent's cloud block storage, as CSV without a header:
//! `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Source: the README of the traces (SNIA), and Zhang, Huang, Zhou, et al., "OSCA: an online-model
//! based cache allocation scheme in cloud block storage systems", ATC 2020. Offset and size count
//! sectors of 512 bytes, the type is 0 (read) or 1 (write). Dropped: the time (in seconds).
use super::lines::{Fields, check_end, sectors};
use super::volume_lines::VolumeLines;
use super::volumes::Volumes;
use crate::event::{BlockEvent, BlockOp};
use std::ops::Range;

/// The format `tencent`.
#[derive(Debug)]
pub struct Tencent;

/// The years 2001 to 2033 as Unix seconds: a first column in this range is recognized as a time.
const UNIX_SECONDS: Range<u64> = 1_000_000_000..2_000_000_000;

/// Five numbers of which the first is a Unix time and the fourth 0 or 1.
impl VolumeLines for Tencent {
    const NAME: &'static str = "tencent";
    const COLUMNS: &'static [&'static str] = &["Timestamp", "Offset", "Size", "IOType", "VolumeID"];

    fn is_sure(line: &[u8]) -> bool {
        let time = Fields::new(line, b',').number("timestamp");
        time.is_ok_and(|time| UNIX_SECONDS.contains(&time))
    }

    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String> {
        let mut fields = Fields::new(line, b',');
        fields.number("timestamp")?;
        let offset = sectors(fields.number("offset")?, "offset")?;
        let length = sectors(fields.number("size")?, "size")?;
        let length = u32::try_from(length).map_err(|_| "the size is over 32 bits in bytes")?;
        let op = match fields.text("type")? {
            b"0" => BlockOp::Read,
            b"1" => BlockOp::Write,
            _ => return Err("the type is not 0 (read) or 1 (write)".to_owned()),
        };
        let from = fields.at();
        fields.number("volume")?;
        fields.end("the five of a Tencent trace")?;
        check_end(offset, length)?;
        let file_kind = volumes.of(line[from..].trim_ascii())?;
        Ok(BlockEvent { op, file_kind, offset, length })
    }
}
