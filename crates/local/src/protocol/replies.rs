//! Encodes and decodes a server's answers.
use super::calls::level;
use super::fields::{Fields, Put};
use super::{Kind, frame, malformed};
use crate::changes::Changed;
use crate::request::Answer;
use tantalum_base::{Error, ErrorKind, Result, TxId};

/// Maximum length of an error's text.
const TEXT_BYTES_MAX: usize = 4096;

/// The frame that answers `number`.
pub fn encode_reply(number: u64, reply: &Result<Answer>) -> Vec<u8> {
    match reply {
        Ok(answer) => frame(Kind::Done, number, |body| {
            body.u64(answer.last_change);
            body.u64(answer.tx.0);
            body.u32(answer.level as u32);
            let ranges = match &answer.changed {
                Changed::Pages(ranges) => &ranges[..],
                Changed::Everything => &[],
            };
            body.u32(u32::from(answer.changed == Changed::Everything));
            body.u32(ranges.len() as u32);
            body.u32(0);
            ranges.iter().for_each(|range| body.range(*range));
            body.contents(answer.pages.iter());
        }),
        Err(error) => frame(Kind::Refused, number, |body| {
            body.u32(error.kind() as u32);
            // If this cuts a character in two, the other side shows it as invalid.
            let text = error.to_string().into_bytes();
            body.extend_from_slice(&text[..text.len().min(TEXT_BYTES_MAX)]);
        }),
    }
}

/// The answer in a frame of `kind` with this `body`.
///
/// # Errors
/// The error that the server sent; `Format` if it is not an answer.
pub fn decode_reply(kind: Kind, body: &[u8]) -> Result<Answer> {
    let mut fields = Fields(body);
    match kind {
        Kind::Done => {
            let (last_change, tx) = (fields.u64()?, TxId(fields.u64()?));
            let (level, everything) = (level(fields.u32()?)?, fields.u32()? != 0);
            let (count, _) = (fields.u32()? as usize, fields.u32()?);
            let mut ranges = Fields(fields.bytes(count.saturating_mul(16))?);
            let changed = match everything {
                true => Changed::Everything,
                false => Changed::Pages((0..count).map(|_| ranges.range()).collect::<Result<_>>()?),
            };
            Ok(Answer { pages: fields.contents()?, tx, level, last_change, changed })
        }
        Kind::Refused => Err(refusal(&mut fields)?),
        _ => Err(malformed("an unknown answer")),
    }
}

/// Decodes an error that the server sent.
pub(super) fn refusal(fields: &mut Fields<'_>) -> Result<Error> {
    let number = fields.u32()? as usize;
    // A newer server may have more kinds.
    let kind = ErrorKind::ALL.get(number).copied().unwrap_or(ErrorKind::Io);
    Ok(Error::new(kind, String::from_utf8_lossy(fields.0)))
}
