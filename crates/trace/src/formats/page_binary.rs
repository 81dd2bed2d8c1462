//! `page_binary`: page events of 16 bytes each, little-endian, after 16 bytes that name the format.
//!
//! ```text
//! head     "tantalum pages 1"
//! record   page u64, pages u32, op u8 (1 read, 2 write, 3 trim, 4 commit point), 3 bytes of 0
//! ```
//! Nothing is dropped: requests of several pages are kept as such. A commit point has 0 pages.
use super::records::{u32_at, u64_at};
use super::{Decode, Encode, Fault, Format, Head};
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Spec};

/// The format `page_binary`.
#[derive(Debug)]
pub struct PageBinary;

const MAGIC: &[u8; RECORD_BYTES] = b"tantalum pages 1";
const RECORD_BYTES: usize = 16;
/// Most pages of a read or write: with 4096 bytes each they are 2^40 bytes.
const PAGES_MAX: u32 = 1 << 28;

impl Format<PageEvent> for PageBinary {
    fn name(&self) -> &'static str {
        "page_binary"
    }

    /// The first 16 bytes name the format.
    fn detect(&self, head: &Head<'_>) -> bool {
        head.bytes.starts_with(MAGIC)
    }

    /// Accepts `check` (`yes`, `no`): whether impossible records are refused.
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        let checks = spec.word("check", &["yes", "no"])? == "yes";
        Ok(Box::new(Decoder { begun: false, checks }))
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

struct Encoder;

impl Encode<PageEvent> for Encoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
    }

    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        let (op, page, pages) = match *event {
            PageEvent::Read { page, pages } => (1, page, pages),
            PageEvent::Write { page, pages } => (2, page, pages),
            PageEvent::Trim { page, pages } => (3, page, pages),
            PageEvent::Commit => (4, PageNo(0), 0),
        };
        out.extend_from_slice(&page.0.to_le_bytes());
        out.extend_from_slice(&pages.to_le_bytes());
        out.extend_from_slice(&[op, 0, 0, 0]);
    }
}

struct Decoder {
    begun: bool,
    checks: bool,
}

impl Decode<PageEvent> for Decoder {
    fn decode(
        &mut self,
        chunk: &[u8],
        _last: bool,
        out: &mut Vec<PageEvent>,
    ) -> Result<usize, Fault> {
        for (number, record) in chunk.chunks_exact(RECORD_BYTES).enumerate() {
            let fault = |reason: &str| Fault { at: number * RECORD_BYTES, reason: reason.into() };
            if !self.begun {
                if record != MAGIC {
                    return Err(fault("the trace does not begin with \"tantalum pages 1\""));
                }
                self.begun = true;
                continue;
            }
            let (page, pages) = (PageNo(u64_at(record, 0)), u32_at(record, 8));
            let event = match record[12..] {
                [1, 0, 0, 0] => PageEvent::Read { page, pages },
                [2, 0, 0, 0] => PageEvent::Write { page, pages },
                [3, 0, 0, 0] => PageEvent::Trim { page, pages },
                [4, 0, 0, 0] if page.0 == 0 && pages == 0 => {
                    out.push(PageEvent::Commit);
                    continue;
                }
                _ => return Err(fault("the op is none of 1 to 4")),
            };
            if self.checks && pages > PAGES_MAX && !matches!(event, PageEvent::Trim { .. }) {
                return Err(fault(
                    "a request for more than 2^28 pages is impossible: the trace is damaged \
                     (--trace-format page_binary:check=no accepts it)",
                ));
            }
            // The last page must have a number, too.
            if pages == 0 || page.0.checked_add(u64::from(pages) - 1).is_none() {
                return Err(fault("no pages, or pages over 64 bits"));
            }
            out.push(event);
        }
        Ok(chunk.len() / RECORD_BYTES * RECORD_BYTES)
    }

    fn is_binary(&self) -> bool {
        true
    }
}
