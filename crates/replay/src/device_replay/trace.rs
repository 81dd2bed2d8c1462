//! A trace for a device, in memory.
use std::path::Path;
use tantalum_base::{Error, ErrorKind, FastSet, PageNo, Result};
use tantalum_trace::{Expression, OpenOptions, PageEvent, open_pages};

use crate::in_memory::InMemory;

/// Page events whose pages are numbered from 0 without gaps, in the order of their numbers in the
/// trace: neighbours stay neighbours, and gaps disappear.
#[derive(Clone, Debug)]
pub struct DeviceTrace {
    /// Its name in rows.
    pub name: String,
    /// The events. Trims shrink to pages that are read or written anywhere in the trace; trims
    /// without such a page are left out.
    pub events: Vec<PageEvent>,
    /// Distinct pages read or written.
    pub pages: u64,
}

impl DeviceTrace {
    /// Collects all of `events` in memory.
    ///
    /// # Errors
    /// `OutOfSpace` if they exceed the memory, `OutOfRange` if pages go beyond the highest number; those of `events`.
    pub fn collect(
        name: &str,
        events: impl Iterator<Item = Result<PageEvent>>,
    ) -> Result<DeviceTrace> {
        let mut collected = InMemory::new();
        for event in events {
            collected.push(event?, name)?;
        }
        let mut events = collected.into_vec();
        let mut seen: FastSet<u64> = FastSet::default();
        for event in &events {
            let Some((page, pages)) = event.range() else { continue };
            let end = page.0.checked_add(u64::from(pages)).ok_or_else(|| {
                let context =
                    format!("{name}: {pages} pages from {page} on exceed the highest page number");
                Error::new(ErrorKind::OutOfRange, context)
            })?;
            // A trim may cover a whole disk.
            if !matches!(event, PageEvent::Trim { .. }) {
                seen.extend(page.0..end);
            }
        }
        let mut numbers: Vec<u64> = seen.into_iter().collect();
        numbers.sort_unstable();
        let rank = |page: u64| numbers.partition_point(|number| *number < page) as u64;
        for event in &mut events {
            if let Some((page, pages)) = event.range() {
                let (first, end) = (rank(page.0), rank(page.0 + u64::from(pages)));
                *event = event.at(PageNo(first), (end - first) as u32);
            }
        }
        events.retain(|event| !matches!(event, PageEvent::Trim { pages: 0, .. }));
        Ok(DeviceTrace { name: name.to_owned(), events, pages: numbers.len() as u64 })
    }

    /// Reads the trace at `path` (or runs the generator that it describes), named after the file
    /// without its extensions.
    pub fn load(path: &Path, options: &OpenOptions) -> Result<DeviceTrace> {
        let name = Expression::File(path.to_owned()).name();
        DeviceTrace::collect(&name, open_pages(path, options)?)
    }
}
