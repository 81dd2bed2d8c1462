//! Reads: mapping, medium, checksum.
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo};
use tantalum_media::{Spare, ZoneMedia};

use crate::ftl::Ftl;
use crate::map::{Entry, Place};
use crate::planted::{Fault, is_planted};

impl<M: ZoneMedia> Ftl<M> {
    /// Reads `pages` into `out` (same length). A page never written or trimmed reads as zeros.
    ///
    /// # Errors
    /// `Checksum` or `Uncorrectable`, with page and slot, where the medium does not give back
    /// what was written: never a wrong byte.
    pub async fn read(&self, pages: &[PageNo], out: &mut [M::Page]) -> Result<()> {
        assert_eq!(pages.len(), out.len());
        if let ([page], [out]) = (pages, &mut *out) {
            return self.read_one(*page, out).await;
        }
        // (index in `out`, what the mapping expects) of the pages that are on media.
        let mut mapped = Vec::with_capacity(pages.len());
        let mut slots = Vec::with_capacity(pages.len());
        {
            let state = self.state.borrow();
            for (index, (page, out)) in pages.iter().zip(out.iter_mut()).enumerate() {
                let entry = state.map.get(*page);
                match entry.place {
                    Place::At(slot) => {
                        slots.push(slot);
                        mapped.push((index, entry));
                    }
                    Place::Unmapped => *out = M::Page::zero(),
                    Place::Lost => return Err(lost(*page)),
                }
            }
        }
        if slots.is_empty() {
            return Ok(());
        }
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let read = self.media.read_with_spares(&slots, &mut contents, &mut spares).await;
        for (((index, entry), content), spare) in mapped.into_iter().zip(contents).zip(spares) {
            if read.is_ok() && entry.holds(pages[index], &content, spare.as_ref()) {
                out[index] = content;
            } else {
                // Moved meanwhile, or damaged: one at a time finds out which, and where.
                self.read_one(pages[index], &mut out[index]).await?;
            }
        }
        Ok(())
    }

    /// Reads one page; again where cleaning moved it meanwhile.
    async fn read_one(&self, page: PageNo, out: &mut M::Page) -> Result<()> {
        loop {
            let entry = self.state.borrow().map.get(page);
            let slot = match entry.place {
                Place::At(slot) => slot,
                Place::Unmapped => {
                    *out = M::Page::zero();
                    return Ok(());
                }
                Place::Lost => return Err(lost(page)),
            };
            let mut spare = [None];
            let one = std::slice::from_mut(out);
            let read = self.media.read_with_spares(&[slot], one, &mut spare).await;
            let [spare] = spare;
            let failure = match read {
                Ok(()) if is_planted(Fault::NoChecksum) => return Ok(()),
                Ok(()) if entry.holds(page, out, spare.as_ref()) => return Ok(()),
                Ok(()) => wrong_content(page, slot, &entry, out, spare.as_ref()),
                Err(error) => error.wrap(format!("reading page {page} at slot {slot}")),
            };
            if self.state.borrow().map.get(page) == entry {
                return Err(failure);
            }
        }
    }
}

/// The error for a page that the medium lost.
pub(crate) fn lost(page: PageNo) -> Error {
    Error::new(ErrorKind::Uncorrectable, format!("page {page} was lost by the medium"))
}

/// The error for a page whose content does not match what the mapping expects.
pub(crate) fn wrong_content<P: Payload>(
    page: PageNo,
    slot: SlotNo,
    entry: &Entry,
    content: &P,
    spare: Option<&Spare>,
) -> Error {
    let (version, found) = (entry.version, content.checksum());
    let expected = spare.map_or(entry.checksum, |spare| spare.checksum);
    let mut context = format!(
        "page {page} at slot {slot}: content has checksum {found:08x}, version {version} was \
         written with {expected:08x}"
    );
    if let Some(spare) = spare.filter(|_| found == expected) {
        let (other, written) = (spare.page, spare.version);
        context = format!(
            "page {page} at slot {slot}: version {version} should be there, and it holds version \
             {written} of page {other}"
        );
    }
    Error::new(ErrorKind::Checksum, context)
}
