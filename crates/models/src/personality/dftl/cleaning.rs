//! Cleaning of DFTL's blocks, such that it always ends.
//!
//! Emptying a data block takes as many slots as it has pages in force, and as many again in the
//! worst case for their entries in the map: it may take more slots than it frees. But what it takes
//! for the map leaves garbage in map blocks, and emptying these takes nothing besides. Free slots
//! and garbage together are what is left beside pages and map; each block that is emptied turns
//! garbage of data into free slots for good. So whenever less than three blocks are free, map blocks
//! come first until they hold no garbage, and then there are enough for a data block again.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::super::blocks::Block;
use super::{Dftl, ENTRIES, Place, Role, Slot};

impl<M: ZoneMedia> Dftl<M> {
    /// Cleans until any request can be carried out, and any block be emptied after it.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        // One slot of data and one of the map for the request.
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

    /// The block with the least in force, of those that hold garbage and can be emptied now; one
    /// of the map where free blocks are few.
    fn choose(&mut self) -> Option<ZoneNo> {
        let few = self.blocks.free_count() < 3;
        let (data, map) = (self.best(Role::Data), self.best(Role::Map));
        match (data, map) {
            (_, Some((.., zone))) if few => Some(zone),
            (Some(data), Some(map)) => Some(data.min(map).2),
            // What is garbage in the open block counts, too.
            (_, None) if few && self.map.is_some_and(|open| self.has_garbage(open)) => {
                self.map.take()
            }
            (data, map) => data.or(map).map(|(.., zone)| zone),
        }
    }

    /// The block of `role` with the least in force that holds garbage; its rank with it.
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

    /// Copies what is in force in `victim`, and erases it.
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
