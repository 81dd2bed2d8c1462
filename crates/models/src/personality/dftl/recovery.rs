//! Recovery of DFTL: the spare areas of data blocks contain all information, and the map is written
//! anew.
//!
//! The map on flash lacks all entries that were dirty in memory, so it is not read: its blocks are
//! erased, which makes room to write it again. If two places have the same version, the one in the
//! older block counts: a block that cleaning had started to fill with copies becomes free again, so
//! a cut costs no room.
use std::collections::BTreeMap;
use tantalum_base::{PageNo, Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use super::{Blocks, Dftl, ENTRIES, Place, Role, Slot};
use crate::fault_points::Fault;

impl<M: ZoneMedia> Dftl<M> {
    /// Recovers the layer from the content of the blocks.
    pub async fn recover(blocks: Blocks<M>, pages: u64, cmt: u32) -> Result<Self> {
        let mut this = Dftl::new(blocks, pages, cmt);
        let mut newest: BTreeMap<PageNo, (Version, Place)> = BTreeMap::new();
        let in_use = this.blocks.numbered().filter(|(_, block)| block.opening > 0);
        let mut in_use: Vec<(u64, ZoneNo, Role)> =
            in_use.map(|(zone, block)| (block.opening, zone, block.role)).collect();
        in_use.sort_unstable_by_key(|(opening, ..)| *opening);
        for (_, zone, _) in in_use.iter().filter(|(.., role)| *role == Role::Data) {
            for (offset, spare) in this.blocks.get(*zone).contents() {
                let place = Place { block: *zone, offset };
                let known = newest.entry(spare.page).or_insert((spare.version, place));
                if spare.version > known.0 && !Fault::AnyCopyCounts.is_planted() {
                    *known = (spare.version, place);
                }
            }
        }
        for (_, place) in newest.values() {
            this.validate(*place);
        }
        for (_, zone, role) in in_use {
            if role == Role::Map || this.live[zone.index()] == 0 {
                this.blocks.release(zone).await?;
            }
        }
        let mut map: BTreeMap<u64, BTreeMap<PageNo, Slot>> = BTreeMap::new();
        for (page, (_, place)) in newest {
            map.entry(page.0 / ENTRIES).or_default().insert(page, this.slot(place));
        }
        for (number, entries) in map {
            this.write_back(number, entries).await?;
        }
        Ok(this)
    }
}
