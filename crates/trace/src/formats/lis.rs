//! `lis`: the traces published with ARC, `first count ignored request` per line, separated by blanks.
//!
//! Source: Megiddo, Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003, section 5, whose traces
//! (OLTP, P1 to P14, S1 to S3, DS1 and others) are distributed in this form. A line reads the blocks from `first` to
//! `first + count - 1`; a block is a page here, as it is an entry of the cache in the paper, whatever its size.
//! Dropped: the third field, which is 0 throughout, and the request's number.
//!
//! A written trace has reads and writes as reads, numbered from 0; trims and commit points are dropped.
use super::lines::{Line, Lines};
use super::{Decode, Encode, Format, Head, number};
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Spec};

/// The format `lis`.
#[derive(Debug)]
pub struct Lis;

impl Format<PageEvent> for Lis {
    fn name(&self) -> &'static str {
        "lis"
    }

    /// Four numbers per line, separated by blanks only.
    fn detect(&self, head: &Head<'_>) -> bool {
        head.every_line(|_| false, |line| event(line).is_ok())
    }

    fn detect_ending(&self, ending: &str) -> bool {
        ending.eq_ignore_ascii_case("lis")
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        Ok(Box::new(Lines::new(Parser)))
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder { requests: 0 })))
    }
}

/// The event of `line`.
fn event(line: &[u8]) -> Result<PageEvent, String> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut numbers = [0; 4];
    let mut count = 0;
    for word in words {
        let name = *COLUMNS.get(count).ok_or("more columns than the four of a .lis trace")?;
        let too_long = || format!("the {name} is not a number of at most 64 bits");
        numbers[count] = number::whole(word).ok_or_else(too_long)?;
        count += 1;
    }
    if let Some(missing) = COLUMNS.get(count) {
        return Err(format!("the column {missing} is missing"));
    }
    let [first, blocks, ..] = numbers;
    let pages = u32::try_from(blocks).map_err(|_| "the number of blocks is over 32 bits")?;
    if pages == 0 {
        return Err("a request for no blocks".to_owned());
    }
    match first.checked_add(u64::from(pages) - 1) {
        Some(_) => Ok(PageEvent::Read { page: PageNo(first), pages }),
        None => Err("the last block is over 64 bits".to_owned()),
    }
}

const COLUMNS: [&str; 4] = ["first block", "number of blocks", "third field", "request number"];

struct Parser;

impl Line<PageEvent> for Parser {
    fn read_header(&mut self, _line: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<PageEvent>) -> Result<(), String> {
        out.push(event(line)?);
        Ok(())
    }
}

struct Encoder {
    requests: u64,
}

impl Encode<PageEvent> for Encoder {
    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        let (PageEvent::Read { page, pages } | PageEvent::Write { page, pages }) = *event else {
            return;
        };
        number::write(page.0, out);
        out.push(b' ');
        number::write(u64::from(pages), out);
        out.extend_from_slice(b" 0 ");
        number::write(self.requests, out);
        out.push(b'\n');
        self.requests += 1;
    }
}
