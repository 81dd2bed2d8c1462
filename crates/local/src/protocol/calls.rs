//! Encodes and decodes a client's calls.
use super::fields::{Fields, Put};
use super::{Kind, PAGES_MAX, frame, malformed};
use crate::locks::Level;
use crate::request::{Call, Raise, Request};
use tantalum_base::{Result, TxId};

/// A flag of reads and writes: they belong to a transaction.
const IN_TRANSACTION: u32 = 1;

/// The frame of `call`.
pub fn encode_call(number: u64, call: &Call) -> Vec<u8> {
    let put_tx = |body: &mut Vec<u8>, tx: &Option<TxId>, pages: u32| {
        body.u32(pages);
        body.u32(if tx.is_some() { IN_TRANSACTION } else { 0 });
        body.u64(tx.map_or(0, |tx| tx.0));
    };
    let request = match call {
        Call::Device(request) => request,
        Call::Raise(Raise { holder, wanted, seen, view }) => {
            return frame(Kind::Raise, number, |body| {
                body.u64(*holder);
                body.u64(*seen);
                body.range(*view);
                body.u32(*wanted as u32);
            });
        }
        Call::Lower { holder, wanted } => {
            return frame(Kind::Lower, number, |body| {
                body.u64(*holder);
                body.u32(*wanted as u32);
            });
        }
        Call::IsReserved => return frame(Kind::IsReserved, number, |_| ()),
    };
    match request {
        Request::Read { first, pages, tx } => frame(Kind::Read, number, |body| {
            body.u64(first.0);
            put_tx(body, tx, *pages as u32);
        }),
        Request::Write { first, pages, tx } => frame(Kind::Write, number, |body| {
            body.u64(first.0);
            put_tx(body, tx, pages.len() as u32);
            body.contents(pages.iter());
        }),
        Request::WriteScattered(pages) => frame(Kind::WriteScattered, number, |body| {
            body.u32(pages.len() as u32);
            pages.iter().for_each(|(page, _)| body.u64(page.0));
            body.contents(pages.iter().map(|(_, content)| content));
        }),
        Request::Flush => frame(Kind::Flush, number, |_| ()),
        Request::Trim(range) => frame(Kind::Trim, number, |body| body.range(*range)),
        Request::Share(pairs) => frame(Kind::Share, number, |body| {
            for (left, right) in pairs {
                body.u64(left.0);
                body.u64(right.0);
            }
        }),
        Request::Begin => frame(Kind::Begin, number, |_| ()),
        Request::Commit(tx) => frame(Kind::Commit, number, |body| body.u64(tx.0)),
        Request::Abort(tx) => frame(Kind::Abort, number, |body| body.u64(tx.0)),
    }
}

/// The call in a frame of `kind` with this `body`.
///
/// # Errors
/// `Format` if it is not a call.
pub fn decode_call(kind: Kind, body: &[u8]) -> Result<Call> {
    let mut fields = Fields(body);
    let call = match kind {
        Kind::Raise => Call::Raise(Raise {
            holder: fields.u64()?,
            seen: fields.u64()?,
            view: fields.range()?,
            wanted: level(fields.u32()?)?,
        }),
        Kind::Lower => {
            let (holder, wanted) = (fields.u64()?, level(fields.u32()?)?);
            if wanted > Level::Shared {
                return Err(malformed("an invalid level for lowering a lock"));
            }
            Call::Lower { holder, wanted }
        }
        Kind::IsReserved => Call::IsReserved,
        _ => Call::Device(decode_request(kind, &mut fields)?),
    };
    fields.end()?;
    Ok(call)
}

fn decode_request(kind: Kind, fields: &mut Fields<'_>) -> Result<Request> {
    Ok(match kind {
        Kind::Read => {
            let (first, (pages, tx)) = (fields.page()?, pages_and_tx(fields)?);
            Request::Read { first, pages, tx }
        }
        Kind::Write => {
            let (first, (pages, tx)) = (fields.page()?, pages_and_tx(fields)?);
            let content = fields.contents()?;
            if content.len() != pages {
                return Err(malformed("another number of pages than it announced"));
            }
            Request::Write { first, pages: content, tx }
        }
        Kind::WriteScattered => {
            let count = fields.u32()? as usize;
            let mut numbers = Fields(fields.bytes(count.saturating_mul(8))?);
            let content = fields.contents()?;
            if content.len() != count {
                return Err(malformed("another number of pages than it announced"));
            }
            let pages = content.into_iter().map(|content| Ok((numbers.page()?, content)));
            Request::WriteScattered(pages.collect::<Result<_>>()?)
        }
        Kind::Flush => Request::Flush,
        Kind::Trim => Request::Trim(fields.range()?),
        Kind::Share => Request::Share(fields.pairs()?),
        Kind::Begin => Request::Begin,
        Kind::Commit => Request::Commit(TxId(fields.u64()?)),
        Kind::Abort => Request::Abort(TxId(fields.u64()?)),
        _ => return Err(malformed("an unknown request")),
    })
}

fn pages_and_tx(fields: &mut Fields<'_>) -> Result<(usize, Option<TxId>)> {
    let (pages, flags, tx) = (fields.u32()? as usize, fields.u32()?, TxId(fields.u64()?));
    match flags {
        _ if pages > PAGES_MAX => Err(malformed("a request for too many pages")),
        0 => Ok((pages, None)),
        IN_TRANSACTION => Ok((pages, Some(tx))),
        _ => Err(malformed("unknown flags")),
    }
}

pub(super) fn level(number: u32) -> Result<Level> {
    let levels = [Level::None, Level::Shared, Level::Reserved, Level::Pending, Level::Exclusive];
    let level = levels.into_iter().find(|level| *level as u32 == number);
    level.ok_or_else(|| malformed("an unknown lock level"))
}
