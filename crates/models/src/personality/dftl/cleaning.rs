//! Cleaning of DFTL's blocks, in an order that guarantees that it ends.
//!
//! Cleaning a data block takes as many slots as it has valid pages, and in the worst case as many
//! again for their entries in the map: it may take more slots than it frees. But the map writes
//! leave garbage in map blocks, and cleaning those takes no further map writes. Free slots plus
//! garbage are a constant: all slots minus pages and map. Each cleaned block turns garbage of data
//! into free slots for good. So whenever fewer than three blocks are free, map blocks are cleaned
//! first until they hold no garbage; then there are enough free blocks for a data block again.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::super::blocks::Block;
use super::{Dftl, ENTRIES, Place, Role, Slot};

impl<M: ZoneMedia> Dftl<M> {
    /// Cleans until any request can be served, and any block can be cleaned after it.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        // The request takes one slot for data and one for the map.
        let wanted = 4 * u64::from(self.blocks.pages_per_block) + 2;
        while self.free_slots() < wanted {
            let Some(victim) = self.choose() else {
                let context = "cleaning finds nothing to give up: blocks were retired";
                return Err(Error::new(ErrorKind::OutOfSpace, context));
            };
            self.empty(victim).await?;
        }
        Ok(())
    }

    fn free_slots(&self) -> u64 {
        let room = |open: Option<ZoneNo>| open.map_or(0, |open| self.blocks.room(open));
        u64::from(self.blocks.free_count()) * u64::from(self.blocks.pages_per_block)
            + u64::from(room(self.data))
            + u64::from(room(self.map))
    }

    /// Of the blocks that hold garbage and can be cleaned now, the one with the fewest valid pages;
    /// a map block if free blocks are few.
    fn choose(&mut self) -> Option<ZoneNo> {
        let few = self.blocks.free_count() < 3;
        let (data, map) = (self.best(Role::Data), self.best(Role::Map));
        match (data, map) {
            (_, Some((.., zone))) if few => Some(zone),
            (Some(data), Some(map)) => Some(data.min(map).2),
            // Garbage in the open block counts as well.
            (_, None) if few && self.map.is_some_and(|open| self.has_garbage(open)) => {
                self.map.take()
            }
            (data, map) => data.or(map).map(|(.., zone)| zone),
        }
    }

    /// Of the blocks of `role` that hold garbage, the one with the fewest valid pages, with its
    /// rank.
    fn best(&self, role: Role) -> Option<(u32, u64, ZoneNo)> {
        let candidates = self.blocks.numbered().filter(|(zone, block)| {
            block.opening > 0
                && block.role == role
                && self.data != Some(*zone)
                && self.map != Some(*zone)
                && self.live[zone.index()] < self.blocks.pages_per_block
        });
        let rank = |(zone, block): (ZoneNo, &Block)| (self.live[zone.index()], block.opening, zone);
        candidates.map(rank).min()
    }

    fn has_garbage(&self, block: ZoneNo) -> bool {
        self.live[block.index()] < self.blocks.get(block).filled()
    }

    /// Copies the valid pages of `victim` and erases it.
    async fn empty(&mut self, victim: ZoneNo) -> Result<()> {
        match self.blocks.get(victim).role {
            Role::Map => self.empty_map(victim).await?,
            _ => self.empty_data(victim).await?,
        }
        assert_eq!(self.live[victim.index()], 0, "{victim:?} is erased with pages in force");
        self.blocks.statistics.blocks_cleaned += 1;
        self.blocks.release(victim).await
    }

    async fn empty_data(&mut self, victim: ZoneNo) -> Result<()> {
        let mut moved: BTreeMap<u64, BTreeMap<PageNo, Slot>> = BTreeMap::new();
        for from in self.in_force(victim) {
            let spare = self.blocks.get(victim).get(from.offset);
            let page = spare.expect("a slot in force holds a page").page;
            let block = self.blocks.with_room(&mut self.data, Role::Data).await?;
            let to = self.blocks.copy(block, from).await?;
            self.validate(to);
            self.invalidate(from);
            let slot = self.slot(to);
            if self.cmt.contains(page) {
                self.cmt.set(page, slot);
            } else {
                moved.entry(page.0 / ENTRIES).or_default().insert(page, slot);
            }
        }
        for (number, changes) in moved {
            self.write_back(number, changes).await?;
        }
        Ok(())
    }

    async fn empty_map(&mut self, victim: ZoneNo) -> Result<()> {
        for from in self.in_force(victim) {
            let spare = self.blocks.get(victim).spares[from.offset as usize];
            let number = spare.expect("a slot in force holds a page of the map").page;
            self.write_back(number.0, BTreeMap::new()).await?;
        }
        Ok(())
    }

    fn in_force(&self, block: ZoneNo) -> Vec<Place> {
        let places = (0..self.blocks.pages_per_block).map(|offset| Place { block, offset });
        places.filter(|place| self.valid[self.slot(*place).0 as usize]).collect()
    }
}
