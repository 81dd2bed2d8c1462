//! A trace for a device, in memory.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, FastSet, PageNo, Result};
use tantalum_trace::{OpenOptions, PageEvent, open_pages};

/// Page events whose pages are numbered from 0 without gaps, in the order of their numbers in
/// the trace: what was next to each other still is, unless there was a gap.
#[derive(Clone, Debug)]
pub struct DeviceTrace {
    /// What rows call it.
    pub name: String,
    /// The events.
    pub events: Vec<PageEvent>,
    /// Distinct pages.
    pub pages: u64,
}

impl DeviceTrace {
    /// Takes all of `events` into memory.
    pub fn collect(
        name: &str,
        events: impl Iterator<Item = Result<PageEvent>>,
    ) -> Result<DeviceTrace> {
        let mut events = events.collect::<Result<Vec<PageEvent>>>()?;
        let mut seen: FastSet<u64> = FastSet::default();
        for (page, pages) in events.iter().filter_map(range) {
            let end = page.0.checked_add(u64::from(pages)).ok_or_else(|| {
                let context = format!("{name}: {pages} pages from {page} pass the last number");
                Error::new(ErrorKind::OutOfRange, context)
            })?;
            seen.extend(page.0..end);
        }
        let mut numbers: Vec<u64> = seen.into_iter().collect();
        numbers.sort_unstable();
        for event in &mut events {
            if let PageEvent::Read { page, .. }
            | PageEvent::Write { page, .. }
            | PageEvent::Trim { page, .. } = event
            {
                // Every page of the trace is among the numbers.
                page.0 = numbers.partition_point(|number| *number < page.0) as u64;
            }
        }
        Ok(DeviceTrace { name: name.to_owned(), events, pages: numbers.len() as u64 })
    }

    /// Reads the trace at `path` (or the generator that it is the text of), named after the file
    /// without its endings.
    pub fn load(path: &Path, options: &OpenOptions) -> Result<DeviceTrace> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut stem = name.as_ref();
        for end in [".zst", ".gz", ".csv"] {
            stem = stem.strip_suffix(end).unwrap_or(stem);
        }
        DeviceTrace::collect(stem, open_pages(path, options)?)
    }
}

fn range(event: &PageEvent) -> Option<(PageNo, u32)> {
    match *event {
        PageEvent::Read { page, pages }
        | PageEvent::Write { page, pages }
        | PageEvent::Trim { page, pages } => Some((page, pages)),
        PageEvent::Commit => None,
    }
}
