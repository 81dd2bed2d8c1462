//! Parts of traces, one after the other, in one address space: changing workloads, such as the OLTP-DSS-OLTP-DSS of Y.
//! Ou's dissertation, section 5.3.1.
//!
//! Each named trace gets separate pages, in the order of first occurrence, that begin at a multiple of [`ALIGN_PAGES`],
//! so that no two traces share a cluster. A trace that is named again has the same pages again.
use crate::event::PageEvent;
use crate::expression::{Expression, Part};
use crate::open::{OpenOptions, PageEvents};
use tantalum_base::{Error, ErrorKind, PageNo, Result};

/// A trace's pages begin at a multiple of this.
pub const ALIGN_PAGES: u64 = 1024;

/// The events of parts of traces.
#[derive(Debug)]
pub(crate) struct ConcatEvents {
    options: OpenOptions,
    parts: std::vec::IntoIter<Placed>,
    current: Option<Current>,
    /// Whether any part has bytes that are cut into pages.
    is_of_bytes: bool,
}

/// A part, its position in the trace, and its position in the address space.
#[derive(Debug)]
struct Placed {
    trace: Expression,
    first_page: u64,
    from: u64,
    to: u64,
}

#[derive(Debug)]
struct Current {
    part: Placed,
    events: PageEvents,
    /// Requests of the trace read so far.
    passed: u64,
}

/// The size of a whole trace.
struct Whole {
    requests: u64,
    first_page: u64,
}

impl ConcatEvents {
    /// Opens `parts`. Every trace is read once in advance, for its length and its pages.
    pub(crate) fn open(parts: &[Part], options: &OpenOptions) -> Result<ConcatEvents> {
        // Pages are renumbered in the whole, not in the parts.
        let options = OpenOptions { renumber: false, ..options.clone() };
        let mut wholes: Vec<(&Expression, Whole)> = Vec::new();
        let mut next_page = 0_u64;
        let mut placed = Vec::new();
        let mut is_of_bytes = false;
        for part in parts {
            let known = wholes.iter().position(|(trace, _)| **trace == part.trace);
            let at = match known {
                Some(at) => at,
                None => {
                    let events = part.trace.open(&options)?;
                    is_of_bytes |= events.is_of_bytes();
                    let (requests, pages_end) = measure(&part.trace, events)?;
                    wholes.push((&part.trace, Whole { requests, first_page: next_page }));
                    let end = next_page.checked_add(pages_end);
                    let end = end.and_then(|end| end.checked_next_multiple_of(ALIGN_PAGES));
                    next_page = end.ok_or_else(|| too_far(&part.trace))?;
                    wholes.len() - 1
                }
            };
            let whole = &wholes[at].1;
            let (from, to) = range(part, whole.requests)?;
            let first_page = whole.first_page;
            placed.push(Placed { trace: part.trace.clone(), first_page, from, to });
        }
        Ok(ConcatEvents { options, parts: placed.into_iter(), current: None, is_of_bytes })
    }

    /// Whether any part has bytes that are cut into pages.
    pub(crate) fn is_of_bytes(&self) -> bool {
        self.is_of_bytes
    }

    fn step(&mut self) -> Result<Option<PageEvent>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(part) = self.parts.next() else { return Ok(None) };
                let events = part.trace.open(&self.options)?;
                self.current = Some(Current { part, events, passed: 0 });
                continue;
            };
            match current.events.next().transpose()? {
                Some(event) if current.goes_on(&event) => {
                    if let Some(event) = current.take(event)? {
                        return Ok(Some(event));
                    }
                }
                _ => self.current = None,
            }
        }
    }
}

impl Current {
    /// Whether `event` still belongs to the part. Commit points and trims after the last request do.
    fn goes_on(&self, event: &PageEvent) -> bool {
        let is_request = matches!(event, PageEvent::Read { .. } | PageEvent::Write { .. });
        self.passed < self.part.to || !is_request && self.part.from < self.part.to
    }

    /// The portion of `event` that lies in the part, moved to its position.
    fn take(&mut self, event: PageEvent) -> Result<Option<PageEvent>> {
        let (first, pages) = match event {
            PageEvent::Read { page, pages } | PageEvent::Write { page, pages } => (page, pages),
            // A commit point before the first request ends a transaction that is not in the part.
            _ if self.part.from > 0 && self.passed <= self.part.from => return Ok(None),
            _ => return self.moved(event).map(Some),
        };
        let end = self.passed + u64::from(pages);
        let (from, to) = (self.part.from.max(self.passed), self.part.to.min(end));
        let skipped = from - self.passed;
        self.passed = end;
        if from >= to {
            return Ok(None);
        }
        let (page, pages) = (PageNo(first.0 + skipped), (to - from) as u32);
        self.moved(event.at(page, pages)).map(Some)
    }

    fn moved(&self, event: PageEvent) -> Result<PageEvent> {
        event.moved(self.part.first_page).ok_or_else(|| too_far(&self.part.trace))
    }
}

/// The requests of a trace of `whole` requests that are in `part`: from the first number, up to the second.
///
/// # Errors
/// `InvalidInput` for a range that is empty, or goes beyond the trace.
fn range(part: &Part, whole: u64) -> Result<(u64, u64)> {
    let (from, to) = (part.from.requests(whole), part.to.requests(whole));
    let refused = |why: &str| {
        let (name, range) = (part.trace.name(), format!("{}..{}", part.from, part.to));
        let context = format!("the part {name}@{range} {why}: {name} has {whole} requests");
        Err(Error::new(ErrorKind::InvalidInput, context))
    };
    if from.max(to) > whole {
        return refused("goes beyond the trace");
    }
    if from >= to && !part.is_whole() {
        return refused("has no request");
    }
    Ok((from, to))
}

/// The number of requests of a whole trace, and the page after its last.
fn measure(trace: &Expression, events: PageEvents) -> Result<(u64, u64)> {
    let (mut requests, mut pages_end) = (0, 0);
    for event in events {
        let event = event?;
        let Some((page, pages)) = event.range() else { continue };
        let is_trim = matches!(event, PageEvent::Trim { .. });
        requests += if is_trim { 0 } else { u64::from(pages) };
        let end = page.0.checked_add(u64::from(pages)).ok_or_else(|| too_far(trace))?;
        pages_end = end.max(pages_end);
    }
    Ok((requests, pages_end))
}

fn too_far(trace: &Expression) -> Error {
    Error::new(
        ErrorKind::OutOfRange,
        format!(
            "the pages of {} and of the parts before it are over 64 bits together",
            trace.name()
        ),
    )
}

impl Iterator for ConcatEvents {
    type Item = Result<PageEvent>;

    fn next(&mut self) -> Option<Result<PageEvent>> {
        let event = self.step();
        if event.is_err() {
            self.current = None;
            self.parts = Vec::new().into_iter();
        }
        event.transpose()
    }
}
