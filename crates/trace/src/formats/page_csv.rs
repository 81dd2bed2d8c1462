//! `page_csv`: one page per line. The header is `op,page` or `page`; without a header, the first line shows which
//! columns there are.
//!
//! `R,17` reads page 17, `W,17` updates it, `T,17` discards it, `C,` (page left empty) is a commit point. With the
//! single column `page`, every line is a read.
//!
//! A trace with a header was written by a program, as are all traces recorded here, and ends its lines: a line without
//! an end was cut off. In a trace without a header, as people write them, the last line may lack its end.
use super::{Decode, Encode, Fault, Format, Head, ended_lines, first_line, number, whole_lines};
use crate::event::PageEvent;
use tantalum_base::{PageNo, Result, Spec};

/// The format `page_csv`.
#[derive(Debug)]
pub struct PageCsv;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Columns {
    OpPage,
    Page,
}

impl Columns {
    /// The columns that a header line names.
    fn of_header(line: &[u8]) -> Option<Columns> {
        let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii();
        if line.eq_ignore_ascii_case(b"op,page") {
            Some(Columns::OpPage)
        } else if line.eq_ignore_ascii_case(b"page") {
            Some(Columns::Page)
        } else {
            None
        }
    }

    /// The columns of a line of data.
    fn of_data(line: &[u8]) -> Option<Columns> {
        match line {
            [op, b',', page @ ..] => {
                let sound = event(*op, number::whole(page)).is_some();
                let commit = op.eq_ignore_ascii_case(&b'C') && page.is_empty();
                (sound || commit).then_some(Columns::OpPage)
            }
            _ => number::whole(line).map(|_| Columns::Page),
        }
    }
}

fn event(op: u8, page: Option<u64>) -> Option<PageEvent> {
    let page = PageNo(page?);
    match op {
        b'R' | b'r' => Some(PageEvent::Read { page, pages: 1 }),
        b'W' | b'w' => Some(PageEvent::Write { page, pages: 1 }),
        b'T' | b't' => Some(PageEvent::Trim { page, pages: 1 }),
        _ => None,
    }
}

impl Format<PageEvent> for PageCsv {
    fn name(&self) -> &'static str {
        "page_csv"
    }

    /// The header, or a first line that is a request.
    fn detect(&self, head: &Head<'_>) -> bool {
        let line = head.lines().next().unwrap_or_default();
        Columns::of_header(line).or_else(|| Columns::of_data(line)).is_some()
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<PageEvent>>> {
        Ok(Box::new(Decoder { columns: None, ends_lines: false }))
    }

    fn encoder(&self, _spec: &mut Spec<'_>) -> Result<Option<Box<dyn Encode<PageEvent>>>> {
        Ok(Some(Box::new(Encoder)))
    }
}

struct Encoder;

impl Encode<PageEvent> for Encoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"op,page\n");
    }

    fn encode(&mut self, event: &PageEvent, _names: &[String], out: &mut Vec<u8>) {
        let (op, page, pages) = match *event {
            PageEvent::Read { page, pages } => (b'R', page, pages),
            PageEvent::Write { page, pages } => (b'W', page, pages),
            PageEvent::Trim { page, pages } => (b'T', page, pages),
            PageEvent::Commit => return out.extend_from_slice(b"C,\n"),
        };
        for page in page.0..page.0.saturating_add(u64::from(pages)) {
            out.extend_from_slice(&[op, b',']);
            number::write(page, out);
            out.push(b'\n');
        }
    }
}

/// A decoder for page numbers only, without a header.
pub(super) fn pages_decoder() -> Box<dyn Decode<PageEvent>> {
    Box::new(Decoder { columns: Some(Columns::Page), ends_lines: false })
}

struct Decoder {
    /// Known after the first line.
    columns: Option<Columns>,
    /// Whether a line without an end was cut off.
    ends_lines: bool,
}

impl Decode<PageEvent> for Decoder {
    fn decode(
        &mut self,
        chunk: &[u8],
        last: bool,
        out: &mut Vec<PageEvent>,
    ) -> Result<usize, Fault> {
        let mut lines = &chunk[..whole_lines(chunk, last)];
        let mut at = 0;
        if self.columns.is_none() && !lines.is_empty() {
            let line = first_line(lines);
            if let Some(columns) = Columns::of_header(line) {
                self.columns = Some(columns);
                self.ends_lines = true;
                at = lines.iter().position(|&byte| byte == b'\n').map_or(lines.len(), |at| at + 1);
            } else if let Some(columns) = Columns::of_data(line) {
                self.columns = Some(columns);
            } else {
                let reason = "the first line is neither a header (op,page or page) nor a request";
                return Err(Fault { at: 0, reason: reason.to_owned() });
            }
        }
        if self.ends_lines {
            lines = &lines[..ended_lines(lines)];
            at = at.min(lines.len());
        }
        match self.columns {
            Some(Columns::OpPage) => decode_op_page(lines, at, out)?,
            Some(Columns::Page) => decode_page(lines, at, out)?,
            None => {}
        }
        Ok(lines.len())
    }
}

/// Decodes lines `op,page` from `at` on. The common form of a line is decoded here; all other forms (blanks, commits,
/// carriage returns, faults) are left to `odd_line`.
fn decode_op_page(lines: &[u8], mut at: usize, out: &mut Vec<PageEvent>) -> Result<(), Fault> {
    while at < lines.len() {
        if lines.get(at + 1) == Some(&b',')
            && let Some((page, end)) = number::read(lines, at + 2)
            && lines.get(end) == Some(&b'\n')
        {
            let page = PageNo(page);
            match lines[at] {
                b'R' => out.push(PageEvent::Read { page, pages: 1 }),
                b'W' => out.push(PageEvent::Write { page, pages: 1 }),
                _ => out.extend(odd_line(&lines[at..end], at)?),
            }
            at = end + 1;
        } else {
            let end = lines[at..].iter().position(|&byte| byte == b'\n');
            let end = end.map_or(lines.len(), |length| at + length);
            out.extend(odd_line(&lines[at..end], at)?);
            at = end + 1;
        }
    }
    Ok(())
}

/// Decodes a line of `op,page` without its end, in any allowed spelling; `None` for a blank line.
fn odd_line(line: &[u8], at: usize) -> Result<Option<PageEvent>, Fault> {
    let fault = |reason: &str| Err(Fault { at, reason: reason.to_owned() });
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let (op, page) = (fields.next().unwrap_or_default(), fields.next());
    if fields.next().is_some() {
        return fault("more than the two columns op,page");
    }
    match (op, page) {
        (b"C" | b"c", None | Some(b"")) => Ok(Some(PageEvent::Commit)),
        (b"C" | b"c", Some(_)) => fault("a commit point (C) has no page"),
        ([op @ (b'R' | b'W' | b'T' | b'r' | b'w' | b't')], Some(page)) => {
            match event(*op, number::whole(page)) {
                Some(event) => Ok(Some(event)),
                None => fault("the page is not a number of at most 64 bits"),
            }
        }
        ([_], Some(_)) => fault("the op is not R, W, T or C"),
        (_, None) => fault("one column, and op,page has two"),
        _ => fault("the op is not one letter of R, W, T, C"),
    }
}

/// Decodes lines with a page number only, from `at` on.
fn decode_page(lines: &[u8], mut at: usize, out: &mut Vec<PageEvent>) -> Result<(), Fault> {
    while at < lines.len() {
        if let Some((page, end)) = number::read(lines, at)
            && lines.get(end) == Some(&b'\n')
        {
            out.push(PageEvent::Read { page: PageNo(page), pages: 1 });
            at = end + 1;
            continue;
        }
        let end = lines[at..].iter().position(|&byte| byte == b'\n');
        let end = end.map_or(lines.len(), |length| at + length);
        let line = lines[at..end].trim_ascii();
        match number::whole(line) {
            Some(page) => out.push(PageEvent::Read { page: PageNo(page), pages: 1 }),
            None if line.is_empty() => {}
            None => {
                let reason = "the page is not a number of at most 64 bits (--trace-format plain_text:ids=text takes \
                              any text for an object)";
                return Err(Fault { at, reason: reason.to_owned() });
            }
        }
        at = end + 1;
    }
    Ok(())
}
