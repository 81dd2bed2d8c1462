//! `plain_text`: one object's number per line, as libCacheSim's `txt` traces. Each is a read of the page of that
//! number. On request, each line is any text instead, and each text is an object.
//!
//! A written trace has the pages read and written, one per line; operations, trims and commit points are dropped.
use super::ids::TextIds;
use super::lines::{Line, Lines};
use super::{Decode, Encode, Format, Head, number, page_csv};
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Spec};

/// The format `plain_text`.
#[derive(Debug)]
pub struct PlainText;

impl Format<PageEvent> for PlainText {
    fn name(&self) -> &'static str {
        "plain_text"
    }

    /// Never: such a trace is recognized as `page_csv` without a header, with the same result.
    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    /// Accepts `ids` (`number`, `text`).
    fn decoder(&self, spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        Ok(match spec.word("ids", &["number", "text"])? {
            "text" => Box::new(Lines::new(Parser(TextIds::default()))),
            _ => page_csv::pages_decoder(),
        })
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

/// Lines of text, each of which is an object.
struct Parser(TextIds);

impl Line<PageEvent> for Parser {
    fn read_header(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<PageEvent>) -> Result<(), String> {
        out.push(PageEvent::one(PageNo(self.0.page(line)), false));
        Ok(())
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
