//! TxFlash's recovery: reads every page of the drive and checks the cycles.
use tantalum_base::{FastMap, PageNo, Result, SlotNo, Version, ZoneNo};
use tantalum_media::{SlotKind, ZoneMedia};

/// The result of reading the whole drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleScan {
    /// Number of slots whose spare area was read.
    pub slots: u64,
    /// Number of committed cycles: cycles found complete, and cycles whose missing pages were
    /// cleaned away long after the commit.
    pub committed: u64,
    /// Number of cycles with missing pages that were never committed.
    pub broken: u64,
    /// The current version and place of every page that was written, sorted by page.
    pub mapping: Vec<(PageNo, Version, SlotNo)>,
}

/// A cycle: its number of pages, and how many of them were found.
#[derive(Clone, Copy, Default)]
struct Cycle {
    pages: u32,
    found: u32,
}

/// One version of a page.
struct Found {
    page: PageNo,
    version: Version,
    slot: SlotNo,
    /// First version of its cycle; `None` for a copy made by cleaning, whose cycle was complete.
    cycle: Option<Version>,
}

/// Reads every zone of `media` and checks the cycles found: a transaction is committed if its cycle
/// is complete. If pages of a cycle have been replaced and erased since, the watermark of later
/// appends proves the commit instead (TxFlash's SCC erases in an order that allows the same
/// conclusion, section 4.2.1). This is correct only until a recovery drops a broken cycle: its
/// pages would have to be erased before the watermark passes them, which our log does not need and
/// does not do. So the result is correct for a drive on which no broken cycle was dropped before.
///
/// # Errors
/// The errors of the medium.
pub async fn scan_cycles<M: ZoneMedia>(media: &M) -> Result<CycleScan> {
    let geometry = media.geometry();
    let mut scan = CycleScan::default();
    let mut cycles: FastMap<u64, Cycle> = FastMap::default();
    let mut found: Vec<Found> = Vec::new();
    let mut durable = Version::NEVER;
    for zone in (0..geometry.zones).map(ZoneNo) {
        for append in media.scan_spares(zone).await? {
            durable = durable.max(append.header.durable);
            scan.slots += append.spares.len() as u64;
            let first = append.header.batch_first;
            for (offset, spare) in (append.first_offset..).zip(&append.spares) {
                let Some(spare) = spare else { continue };
                let slot = geometry.slot(zone, offset);
                let cycle = match spare.kind {
                    SlotKind::Data | SlotKind::Clean => Some(first),
                    SlotKind::Copy | SlotKind::RemappedCopy | SlotKind::CleanCopy => None,
                    SlotKind::Record | SlotKind::Checkpoint | SlotKind::Delta | SlotKind::Dump => {
                        continue;
                    }
                };
                if let Some(first) = cycle {
                    let cycle = cycles.entry(first.0).or_default();
                    cycle.pages = append.header.batch_len;
                    cycle.found += 1;
                }
                found.push(Found { page: spare.page, version: spare.version, slot, cycle });
            }
        }
    }
    let is_committed = |first: u64, cycle: &Cycle| {
        cycle.found >= cycle.pages || first + u64::from(cycle.pages) - 1 <= durable.0
    };
    for (first, cycle) in &cycles {
        match is_committed(*first, cycle) {
            true => scan.committed += 1,
            false => scan.broken += 1,
        }
    }
    found.retain(|found| match found.cycle {
        Some(first) => is_committed(first.0, &cycles[&first.0]),
        None => true,
    });
    found.sort_unstable_by_key(|found| (found.page, std::cmp::Reverse(found.version), found.slot));
    found.dedup_by_key(|found| found.page);
    let mapping = found.into_iter().map(|Found { page, version, slot, .. }| (page, version, slot));
    scan.mapping = mapping.collect();
    Ok(scan)
}
