//! Finding the newest checkpoint on media, and reading it.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageBuf, Result, SlotNo, ZoneNo};
use tantalum_media::{SlotKind, ZoneMedia};

use crate::checkpoint::{self, Footer, PieceHeader, PieceKind, ZONE_ENTRIES, ZoneEntry};
use crate::ftl::Ftl;
use crate::zones::Stream;

/// A checkpoint as read from media.
pub(crate) struct Checkpoint {
    pub id: u64,
    pub footer: Footer,
    pub places: Vec<SlotNo>,
    pub zones: Vec<ZoneEntry>,
    pub map: Vec<(PieceHeader, PageBuf)>,
}

/// Pages of checkpoints, as found in the meta zones.
#[derive(Default)]
struct CheckpointSlots {
    // By id, then by number.
    by_id: BTreeMap<u64, BTreeMap<u64, SlotNo>>,
    // The highest of which another page says that it was finished.
    finished: u64,
}

impl<M: ZoneMedia> Ftl<M> {
    /// Pages of checkpoints in the meta zones, and which checkpoints were finished.
    async fn checkpoint_slots(&self, epochs: &[Option<(u64, u8)>]) -> Result<CheckpointSlots> {
        let mut slots = CheckpointSlots::default();
        for (zone, epoch) in epochs.iter().enumerate() {
            let Some((epoch, stream)) = *epoch else { continue };
            if stream != Stream::Meta as u8 {
                continue;
            }
            let zone = ZoneNo(zone as u32);
            let mut latest = 0;
            for append in self.media.scan(zone, 0, Some(epoch)).await? {
                for (index, spare) in append.spares.iter().enumerate() {
                    if let Some(spare) = spare.filter(|spare| spare.kind == SlotKind::Checkpoint) {
                        let slot = self.geometry.slot(zone, append.first_offset + index as u32);
                        let id = spare.version.0;
                        slots.by_id.entry(id).or_default().insert(spare.page.0, slot);
                        if id > latest {
                            // Behind one that was not finished, the next takes a zone of its own.
                            slots.finished = slots.finished.max(latest);
                            latest = id;
                        }
                    }
                }
            }
        }
        Ok(slots)
    }

    pub(crate) async fn highest_checkpoint_id(
        &self,
        epochs: &[Option<(u64, u8)>],
        least: u64,
    ) -> Result<u64> {
        let slots = self.checkpoint_slots(epochs).await?;
        Ok(slots.by_id.keys().next_back().copied().unwrap_or(0).max(least))
    }

    /// The newest checkpoint with a footer. All of it must be there: older ones may not be whole
    /// any more, and what was trimmed since would come back.
    pub(crate) async fn find_checkpoint(&self, epochs: &[Option<(u64, u8)>]) -> Result<Checkpoint> {
        let CheckpointSlots { by_id, finished } = self.checkpoint_slots(epochs).await?;
        for (id, slots) in by_id.into_iter().rev() {
            let Some((number, slot)) = slots.last_key_value() else { continue };
            let page = self.media.read_meta(*slot).await?;
            let header = checkpoint::decode_header(&page);
            if header.is_none_or(|header| header.kind != PieceKind::Footer || header.id != id) {
                if id <= finished {
                    let context = format!("the footer of checkpoint {id} is damaged");
                    return Err(Error::new(ErrorKind::Corrupt, context));
                }
                continue;
            }
            let footer = checkpoint::decode_footer(&page);
            if u64::from(footer.pieces) != number + 1 || slots.len() as u64 != number + 1 {
                // The footer was written when all the others were durable.
                let context = format!(
                    "of the {} pages of checkpoint {id} only {} are intact",
                    footer.pieces,
                    slots.len()
                );
                return Err(Error::new(ErrorKind::Corrupt, context));
            }
            if footer.pages != self.options.pages {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "the device was made with {} pages and is opened with {}",
                        footer.pages, self.options.pages
                    ),
                ));
            }
            return self.read_checkpoint(id, footer, slots.into_values().collect()).await;
        }
        Err(Error::new(ErrorKind::Corrupt, "no whole checkpoint was found on the medium"))
    }

    async fn read_checkpoint(
        &self,
        id: u64,
        footer: Footer,
        places: Vec<SlotNo>,
    ) -> Result<Checkpoint> {
        let mut zones = vec![ZoneEntry::default(); self.geometry.zones as usize];
        let mut map = Vec::new();
        for slot in &places {
            let page = self.media.read_meta(*slot).await?;
            let header = checkpoint::decode_header(&page).ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!("slot {slot} holds no page of checkpoint {id}"),
                )
            })?;
            match header.kind {
                PieceKind::Zones => {
                    let first = header.index as usize * ZONE_ENTRIES;
                    let table = zones.iter_mut().skip(first);
                    table
                        .zip(checkpoint::decode_zones(&page))
                        .for_each(|(zone, read)| *zone = read);
                }
                PieceKind::Map => map.push((header, page)),
                PieceKind::Footer => {}
            }
        }
        Ok(Checkpoint { id, footer, places, zones, map })
    }
}
