//! `spc`: ASCII traces of the Storage Performance Council, among them UMass's Financial and WebSearch:
//! `asu,lba,size,opcode,timestamp`, and optional fields behind them.
//!
//! Source: "SPC trace file format specification", revision 1.0.1, 2002. The address counts blocks
//! of 512 bytes, the size bytes; the opcode is R or W in either case. Each application specific
//! unit (ASU) is a volume. Dropped: the time and the fields after it.
use super::lines::{Fields, check_end, sectors};
use super::volume_lines::VolumeLines;
use super::volumes::Volumes;
use crate::event::{BlockEvent, BlockOp};

/// The format `spc`.
#[derive(Debug)]
pub struct Spc;

/// Three numbers, R or W, and a time: no other format has the letter in the fourth column.
impl VolumeLines for Spc {
    const NAME: &'static str = "spc";

    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String> {
        let mut fields = Fields::new(line, b',');
        let asu = fields.number("asu")?;
        let volume = line[..fields.at() - 1].trim_ascii();
        let offset = sectors(fields.number("lba")?, "lba")?;
        let length = fields.number_u32("size")?;
        let op = match fields.text("opcode")? {
            b"R" | b"r" => BlockOp::Read,
            b"W" | b"w" => BlockOp::Write,
            _ => return Err("the opcode is not R or W".to_owned()),
        };
        if !is_seconds(fields.text("timestamp")?) {
            return Err("the timestamp is not a number of seconds".to_owned());
        }
        check_end(offset, length)?;
        if asu > u64::from(u16::MAX) {
            return Err("the asu is over 16 bits".to_owned());
        }
        let file_kind = volumes.of(volume)?;
        Ok(BlockEvent { op, file_kind, offset, length })
    }
}

/// Whether `field` is digits with at most one decimal point, and begins with a digit.
fn is_seconds(field: &[u8]) -> bool {
    let mut points = 0;
    let sound = field.iter().all(|byte| match byte {
        b'.' => {
            points += 1;
            points == 1
        }
        byte => byte.is_ascii_digit(),
    });
    sound && field.first().is_some_and(u8::is_ascii_digit)
}
