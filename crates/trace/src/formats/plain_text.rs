//! `plain_text`: an object's number a line, as libCacheSim's `txt` traces. Each is a read of the
//! page of that number.
//!
//! Written, it holds the pages read and written, one a line; what was done to them is dropped, as
//! are trims and commit points.
use super::lines::{Line, Lines};
use super::{Decode, Encode, Format, Head, number};
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Spec};

/// The format `plain_text`.
#[derive(Debug)]
pub struct PlainText;

impl Format<PageEvent> for PlainText {
    fn name(&self) -> &'static str {
        "plain_text"
    }

    /// Never: such a trace is `page_csv` without a header, which reads the same.
    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        Ok(Box::new(Lines::new(Parser)))
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

struct Parser;

impl Line<PageEvent> for Parser {
    fn is_header(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<PageEvent>) -> Result<(), String> {
        let page = number::whole(line).ok_or("the line is not a number of at most 64 bits")?;
        out.push(PageEvent::Read { page: PageNo(page), pages: 1 });
        Ok(())
    }
}

struct Encoder;

impl Encode<PageEvent> for Encoder {
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        for (page, _) in event.requests() {
            number::write(page.0, out);
            out.push(b'\n');
        }
    }
}
