//! `plain_text`: an object's number a line, as libCacheSim's `txt` traces. Each is a read of the
//! page of that number.
//!
//! Written, it holds the pages read and written, one a line; what was done to them is dropped, as
//! are trims and commit points.
use super::{Decode, Encode, Format, Head, number, page_csv};
use crate::event::PageEvent;
use tantalum_base::{Result, Spec};

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
        Ok(page_csv::pages_decoder())
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

struct Encoder;

impl Encode<PageEvent> for Encoder {
    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        for (page, _) in event.requests() {
            number::write(page.0, out);
            out.push(b'\n');
        }
    }
}
