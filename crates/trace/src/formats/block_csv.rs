//! `block_csv`: one system call a line, header `op,file_kind,offset,length`.
//!
//! Op R or W (bytes at an offset), F (sync), T (truncate, offset is the new size) or U (unlink).
//! Files of a kind are laid end to end in one address space; a `.map.csv` beside the trace tells
//! them apart (see [`crate::layout`]).
use super::{Decode, Fault, Format, first_line, number, whole_lines};
use crate::event::{BlockEvent, BlockOp, FileKind};

/// The format `block_csv`.
#[derive(Debug)]
pub struct BlockCsv;

/// More kinds of file than any engine has: a trace with more is not one.
const KINDS_MAX: usize = 256;

const HEADER: &[u8] = b"op,file_kind,offset,length";

impl Format<BlockEvent> for BlockCsv {
    fn name(&self) -> &'static str {
        "block_csv"
    }

    fn detect(&self, head: &[u8]) -> bool {
        let line = first_line(head);
        line.eq_ignore_ascii_case(HEADER)
            || parse(line, &mut Vec::new()).is_ok_and(|event| event.is_some())
    }

    fn decoder(&self) -> Box<dyn Decode<BlockEvent>> {
        Box::new(Decoder { names: Vec::new(), begun: false })
    }

    fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(HEADER);
        out.push(b'\n');
    }

    fn encode(&self, event: &BlockEvent, names: &[String], out: &mut Vec<u8>) {
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

struct Decoder {
    names: Vec<String>,
    begun: bool,
}

impl Decode<BlockEvent> for Decoder {
    fn decode(
        &mut self,
        chunk: &[u8],
        last: bool,
        out: &mut Vec<BlockEvent>,
    ) -> Result<usize, Fault> {
        let lines = &chunk[..whole_lines(chunk, last)];
        let mut at = 0;
        while at < lines.len() {
            let end = lines[at..].iter().position(|&byte| byte == b'\n');
            let end = end.map_or(lines.len(), |length| at + length);
            let line = lines[at..end].trim_ascii();
            if self.begun || !line.eq_ignore_ascii_case(HEADER) {
                match parse(line, &mut self.names) {
                    Ok(event) => out.extend(event),
                    Err(reason) => return Err(Fault { at, reason }),
                }
            }
            self.begun = true;
            at = end + 1;
        }
        Ok(lines.len())
    }

    fn names(&self) -> &[String] {
        &self.names
    }
}

/// One line without its end; a blank one says nothing. Kinds not seen before join `names`.
fn parse(line: &[u8], names: &mut Vec<String>) -> Result<Option<BlockEvent>, String> {
    if line.is_empty() {
        return Ok(None);
    }
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let mut next = |column: &str| {
        fields
            .next()
            .ok_or_else(|| format!("the column {column} is missing (op,file_kind,offset,length)"))
    };
    let (op, kind) = (next("op")?, next("file_kind")?);
    let (offset, length) = (next("offset")?, next("length")?);
    if fields.next().is_some() {
        return Err("more than the four columns op,file_kind,offset,length".to_owned());
    }
    let op = match op {
        [letter] => BlockOp::ALL.into_iter().find(|op| op.letter() == letter.to_ascii_uppercase()),
        _ => None,
    };
    let op = op.ok_or("the op is not R, W, F, T or U")?;
    let offset = number::whole(offset).ok_or("the offset is not a number of at most 64 bits")?;
    let length = number::whole(length).and_then(|length| u32::try_from(length).ok());
    let length = length.ok_or("the length is not a number of at most 32 bits")?;
    if offset.checked_add(u64::from(length)).is_none() {
        return Err("offset and length together are over 64 bits".to_owned());
    }
    let file_kind = kind_of(kind, names)?;
    Ok(Some(BlockEvent { op, file_kind, offset, length }))
}

fn kind_of(kind: &[u8], names: &mut Vec<String>) -> Result<FileKind, String> {
    if let Some(at) = names.iter().position(|name| name.as_bytes() == kind) {
        return Ok(FileKind(at as u16));
    }
    let name = std::str::from_utf8(kind).map_err(|_| "the file kind is not UTF-8")?;
    if name.is_empty() || name.len() > 64 {
        return Err("the file kind is not a name of 1 to 64 bytes".to_owned());
    }
    if names.len() == KINDS_MAX {
        return Err(format!("more than {KINDS_MAX} kinds of file"));
    }
    names.push(name.to_owned());
    Ok(FileKind(names.len() as u16 - 1))
}
