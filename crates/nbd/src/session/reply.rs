//! The outcome of a request, as bytes for the client.
use super::replies::{Replies, are_kept};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::meta_context::ALLOCATION_ID;
use crate::protocol::structured::{
    self, CHUNK_BYTES, DATA_HEADER_BYTES, DESCRIPTOR_BYTES, Descriptor, HOLE_BYTES, WORDS_BYTES_MAX,
};
use crate::protocol::transmission::{CMD_FLAG_DF, Request, SIMPLE_REPLY_BYTES, simple_reply};
use crate::span::Span;
use tantalum_base::{PageBuf, PageRange};

/// The outcome of a request.
#[derive(Clone, Copy)]
pub(crate) enum Outcome<'a> {
    /// It is done.
    Done,
    /// The bytes of a span, in its covering pages.
    Read(Span, &'a [PageBuf]),
    /// The status of consecutive bytes, at least one.
    Status(&'a [Descriptor]),
    /// An error, with its message.
    Failed(ErrorCode, &'a str),
}

impl Outcome<'_> {
    /// An estimate of the bytes that `write` appends, without those of pages that are kept; for long replies, not too low.
    pub(crate) fn bytes(&self, request: &Request, structured: bool) -> usize {
        match self {
            Outcome::Done => SIMPLE_REPLY_BYTES,
            Outcome::Read(span, pages) if structured => {
                let parts = parts(*span, pages, request.has(CMD_FLAG_DF));
                parts.map(|part| part.chunk_bytes()).sum::<usize>().max(CHUNK_BYTES)
            }
            Outcome::Read(_, pages) if are_kept(pages.len()) => SIMPLE_REPLY_BYTES,
            Outcome::Read(span, _) => SIMPLE_REPLY_BYTES + span.length as usize,
            Outcome::Status(extents) => CHUNK_BYTES + 4 + DESCRIPTOR_BYTES * extents.len(),
            Outcome::Failed(..) if structured => CHUNK_BYTES + WORDS_BYTES_MAX,
            Outcome::Failed(..) => SIMPLE_REPLY_BYTES,
        }
    }

    /// Appends the reply to `request`. Success without data is always a simple reply, even with structured replies
    /// negotiated: it is shorter.
    pub(crate) fn write(&self, out: &mut Replies, request: &Request, structured: bool) {
        let cookie = request.cookie;
        match self {
            Outcome::Done => out.bytes().extend_from_slice(&simple_reply(cookie, None)),
            Outcome::Read(span, pages) if structured => {
                write_parts(out, request, *span, pages);
            }
            Outcome::Read(span, pages) => {
                out.bytes().extend_from_slice(&simple_reply(cookie, None));
                out.push(*span, pages);
            }
            Outcome::Status(extents) => {
                structured::status(out.bytes(), cookie, ALLOCATION_ID, extents);
            }
            Outcome::Failed(error, words) if structured => {
                structured::error(out.bytes(), cookie, *error, words);
            }
            Outcome::Failed(error, _) => {
                out.bytes().extend_from_slice(&simple_reply(cookie, Some(*error)));
            }
        }
    }
}

/// A part of a read: either all of its covering pages have content, or none has.
struct Part<'a> {
    span: Span,
    pages: &'a [PageBuf],
    is_hole: bool,
}

impl Part<'_> {
    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES
            + match self.is_hole {
                true => HOLE_BYTES,
                false if are_kept(self.pages.len()) => DATA_HEADER_BYTES,
                false => DATA_HEADER_BYTES + self.span.length as usize,
            }
    }
}

/// The parts of a read, in ascending order. With `one`, there is a single part, which is data if any of it is. Holes
/// are recognized in the pages that were read, so that they are correct even if the device changes meanwhile.
fn parts(span: Span, pages: &[PageBuf], one: bool) -> impl Iterator<Item = Part<'_>> {
    let mut first = span.covering().first;
    let alike = move |left: &PageBuf, right: &PageBuf| {
        one || left.is_shared_zero() == right.is_shared_zero()
    };
    pages.chunk_by(alike).map(move |pages| {
        let range = PageRange::new(first, pages.len() as u64);
        first = range.end();
        let is_hole = pages.iter().all(PageBuf::is_shared_zero);
        Part { span: span.inside(range), pages, is_hole }
    })
}

fn write_parts(out: &mut Replies, request: &Request, span: Span, pages: &[PageBuf]) {
    let cookie = request.cookie;
    let mut parts = parts(span, pages, request.has(CMD_FLAG_DF)).peekable();
    if parts.peek().is_none() {
        return structured::none(out.bytes(), cookie);
    }
    while let Some(part) = parts.next() {
        let (is_last, offset) = (parts.peek().is_none(), part.span.offset);
        if part.is_hole {
            structured::hole(out.bytes(), cookie, is_last, offset, part.span.length as u32);
        } else {
            structured::data(out.bytes(), cookie, is_last, offset, part.span.length as usize);
            out.push(part.span, part.pages);
        }
    }
}
