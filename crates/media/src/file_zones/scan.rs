//! Finds the appends in a zone, slot by slot.
use super::header::{self, Place};
use crate::zone::{ScannedAppend, Spare};
use tantalum_base::checksum::crc32c;

/// Accepts the slots of a zone in order and finds the appends among them.
///
/// A slot whose content matches its checksum in the header of an append is a page of that append. Any other slot is
/// tried as a header, even inside an append: if pages never landed, the slots still hold content of an earlier
/// opening of the zone, and an old append can extend over newer ones. So several appends may cover a slot until
/// [`finish`](Self::finish) determines the current epoch.
pub(super) struct Scanner {
    volume_id: u128,
    zone: u32,
    slots_per_zone: u32,
    epoch: Option<u64>,
    found: Vec<Candidate>,
    // Indexes in `found` of the appends that extend past the current slot.
    open: Vec<usize>,
}

struct Candidate {
    append: ScannedAppend,
    // All spares in the header, whether or not the content of the slots matched.
    spares: Vec<Spare>,
}

impl Scanner {
    pub(super) fn new(volume_id: u128, zone: u32, slots_per_zone: u32, epoch: Option<u64>) -> Self {
        Scanner { volume_id, zone, slots_per_zone, epoch, found: Vec::new(), open: Vec::new() }
    }

    /// Processes the content of the slot at `offset`.
    pub(super) fn slot(&mut self, offset: u32, content: &[u8]) {
        self.checked_slot(offset, content, || crc32c(content));
    }

    /// Processes the content of the slot at `offset`. `checksum` computes its checksum, which is not always needed.
    pub(super) fn checked_slot(
        &mut self,
        offset: u32,
        content: &[u8],
        checksum: impl FnOnce() -> u32,
    ) {
        let found = &mut self.found;
        self.open.retain(|&index| found[index].append.end_offset > offset);
        if !self.open.is_empty() {
            let checksum = checksum();
            let mut known = false;
            for &index in &self.open {
                let Candidate { append, spares } = &mut found[index];
                let at = (offset - append.first_offset) as usize;
                if spares[at].checksum == checksum {
                    append.spares[at] = Some(spares[at]);
                    known = true;
                }
            }
            if known {
                return;
            }
        }
        if header::looks_like_header(content) {
            self.try_header(offset, content);
        }
    }

    fn try_header(&mut self, offset: u32, content: &[u8]) {
        let place = Place { volume_id: self.volume_id, zone: self.zone, offset };
        let Some((header, spares)) = header::decode(content, place) else { return };
        let first_offset = offset + 1;
        let end_offset = first_offset + spares.len() as u32;
        if end_offset > self.slots_per_zone || self.epoch.is_some_and(|epoch| epoch != header.epoch)
        {
            return;
        }
        let append = ScannedAppend {
            header,
            first_offset,
            end_offset,
            spares: vec![None; spares.len()],
            damaged: Vec::new(),
        };
        self.open.push(self.found.len());
        self.found.push(Candidate { append, spares });
    }

    /// The appends of the requested epoch, or else of the latest one. Epochs only grow, so all other appends are
    /// leftovers from before a reset.
    pub(super) fn finish(self) -> Vec<ScannedAppend> {
        let Some(epoch) = self.found.iter().map(|found| found.append.header.epoch).max() else {
            return Vec::new();
        };
        let mut appends: Vec<ScannedAppend> = Vec::with_capacity(self.found.len());
        for Candidate { mut append, spares } in self.found {
            // Appends of one epoch never overlap, so an append inside another one is a page that looks like a header.
            let inside = appends.last().is_some_and(|last| append.first_offset <= last.end_offset);
            if append.header.epoch == epoch && !inside {
                let written = (0..).zip(spares).zip(&append.spares);
                let damaged = written.filter(|(_, found)| found.is_none()).map(|(spare, _)| spare);
                append.damaged = damaged.collect();
                appends.push(append);
            }
        }
        appends
    }
}
