//! Reads: look up the mapping, read the medium, verify the checksum.
use tantalum_base::{Error, ErrorKind, PageNo, Payload, Result, SlotNo};
use tantalum_media::{Spare, ZoneMedia};

use crate::fault_points::Fault;
use crate::ftl::Ftl;
use crate::map::{MapEntry, Place};

impl<M: ZoneMedia> Ftl<M> {
    /// Reads `pages` into `out` (same length), all as of one moment. A page that was never written or was trimmed
    /// reads as zeros.
    ///
    /// # Errors
    /// `Checksum` or `Uncorrectable`, with page and slot, if the medium does not return the content that was written:
    /// never a wrong byte. `Unmapped` for a page of a cache that is [at home](Self::at_home).
    pub async fn read(&self, pages: &[PageNo], out: &mut [M::Page]) -> Result<()> {
        assert_eq!(pages.len(), out.len());
        if let ([page], [out]) = (pages, &mut *out) {
            return self.read_one(*page, out).await;
        }
        self.read_at_once(pages.iter().copied().zip(0..), out).await
    }

    /// Reads each of the `wanted` pages into `out`, at the index given with it, all as of the first poll. So a caller
    /// that reads other pages from a cache in the same step gets all of them as of one moment.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn read_at_once(
        &self,
        wanted: impl IntoIterator<Item = (PageNo, usize)>,
        out: &mut [M::Page],
    ) -> Result<()> {
        let wanted = wanted.into_iter();
        let most = wanted.size_hint().0;
        let (mut found, mut slots) = (Vec::with_capacity(most), Vec::with_capacity(most));
        {
            let parts = self.parts.borrow();
            for (page, index) in wanted {
                let entry = parts.visible(page);
                match entry.place {
                    Place::At(slot) => {
                        slots.push(slot);
                        found.push((page, index, entry));
                    }
                    Place::Unmapped => out[index] = M::Page::zero(),
                    Place::Lost => return Err(lost(page)),
                    Place::Home => return Err(not_here(page)),
                }
            }
        }
        if slots.is_empty() {
            return Ok(());
        }
        // Pinned slots keep their content, even if newer content is mapped elsewhere.
        let _pinned = self.pins.pin(&slots);
        let mut contents = vec![M::Page::zero(); slots.len()];
        let mut spares = vec![None; slots.len()];
        let read = self.media.read_with_spares(&slots, &mut contents, &mut spares).await;
        let contents = contents.into_iter().zip(spares);
        for ((page, index, entry), (content, spare)) in found.into_iter().zip(contents) {
            if read.is_ok() && entry.holds(page, &content, spare.as_ref()) {
                out[index] = content;
            } else {
                // Something is damaged: reading page by page finds it.
                self.read_version(page, entry, &mut out[index]).await?;
            }
        }
        Ok(())
    }

    /// Reads one page; retries if it was written meanwhile.
    async fn read_one(&self, page: PageNo, out: &mut M::Page) -> Result<()> {
        loop {
            let entry = self.parts.borrow().visible(page);
            if entry.place == Place::Unmapped {
                *out = M::Page::zero();
                return Ok(());
            }
            let read = self.read_version(page, entry, out).await;
            if read.is_ok() || self.parts.borrow().visible(page).version == entry.version {
                return read;
            }
        }
    }

    /// Reads the version of `page` in `entry`, from its new place if cleaning has moved it.
    async fn read_version(
        &self,
        page: PageNo,
        mut entry: MapEntry,
        out: &mut M::Page,
    ) -> Result<()> {
        loop {
            let slot = match entry.place {
                Place::At(slot) => slot,
                Place::Home => return Err(not_here(page)),
                Place::Lost | Place::Unmapped => return Err(lost(page)),
            };
            let Err(failure) = self.read_slot(page, slot, &entry, out).await else {
                return Ok(());
            };
            let now = self.parts.borrow().visible(page);
            if now.version != entry.version || now.place == entry.place {
                return Err(failure);
            }
            entry = now;
        }
    }

    /// Reads `slot`, which must hold `page` as `entry` describes.
    async fn read_slot(
        &self,
        page: PageNo,
        slot: SlotNo,
        entry: &MapEntry,
        out: &mut M::Page,
    ) -> Result<()> {
        let mut spare = [None];
        let one = std::slice::from_mut(out);
        let read = self.media.read_with_spares(&[slot], one, &mut spare).await;
        let [spare] = spare;
        match read {
            Ok(()) if Fault::NoChecksum.is_planted() => Ok(()),
            Ok(()) if entry.holds(page, out, spare.as_ref()) => Ok(()),
            Ok(()) => Err(wrong_content(page, slot, entry, out, spare.as_ref())),
            Err(error) => Err(error.wrap(format!("reading page {page} at slot {slot}"))),
        }
    }
}

/// Whether an error means that content is damaged. Otherwise an operation failed, which implies nothing about the
/// content.
pub(crate) fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Uncorrectable)
}

/// The error for a page of a cache whose content is only at home.
fn not_here(page: PageNo) -> Error {
    Error::new(ErrorKind::Unmapped, format!("page {page} is not in the cache"))
}

/// The error for a page that the medium lost.
pub(crate) fn lost(page: PageNo) -> Error {
    Error::new(ErrorKind::Uncorrectable, format!("page {page} was lost by the medium"))
}

/// The error for a page whose content does not match the mapping.
pub(crate) fn wrong_content<P: Payload>(
    page: PageNo,
    slot: SlotNo,
    entry: &MapEntry,
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
            "page {page} at slot {slot}: version {version} was expected, but the slot holds version \
             {written} of page {other}"
        );
    }
    Error::new(ErrorKind::Checksum, context)
}
