//! `plain_text`: an object's number a line, as libCacheSim's `txt` traces. Each is a read of the
//! page of that number. Where it is asked for, a line is any text instead, and each is an object.
//!
//! Written, it holds the pages read and written, one a line; what was done to them is dropped, as
//! are trims and commit points.
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

    /// Never: such a trace is `page_csv` without a header, which reads the same.
    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    /// Takes `ids` (`number`, `text`).
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

/// Lines of text, each an object's.
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
