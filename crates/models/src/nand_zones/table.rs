//! The table of the blocks of each zone, and of the blocks that replace bad ones.
//!
//! A real controller keeps this table in a reserved area of the array. Here it is part of the
//! simulated array's own state and survives every power cut.
use super::append_log::AppendLog;
use crate::nand::{Array, BlockAddr, NandGeometry};
use tantalum_base::{Payload, ZoneNo};

/// One zone of the table.
#[derive(Default)]
pub(super) struct Zone {
    pub(super) log: AppendLog,
    /// Headers of the content that a reset is about to erase; a power cut may restore that.
    pub(super) log_before_reset: Option<AppendLog>,
    /// Offset of the next append's first slot.
    pub(super) next_offset: u32,
    pub(super) retired: bool,
    /// Whether the zone needs a reset before it can be appended to. This holds even if all its
    /// blocks are erased, as for every medium; such a reset costs nothing.
    pub(super) sealed: bool,
}

/// All zones.
pub(super) struct ZoneTable {
    planes: u32,
    pub(super) zones: Vec<Zone>,
    // The block of each zone in each plane, sorted by zone.
    blocks: Vec<u32>,
    // Good blocks of each plane that belong to no zone; used from the end.
    spare_blocks: Vec<Vec<u32>>,
}

impl ZoneTable {
    /// Zone z gets the z-th good block of each plane. The last `spare_blocks_per_plane` blocks of a
    /// plane without bad blocks belong to no zone. If a plane has more bad blocks than that, the
    /// last zones are retired.
    pub(super) fn new<P: Payload>(array: &Array<P>, spare_blocks_per_plane: u32) -> Self {
        let NandGeometry { blocks_per_plane, .. } = array.geometry;
        let planes = array.geometry.planes();
        let zone_count = blocks_per_plane - spare_blocks_per_plane;
        let mut zones: Vec<Zone> =
            (0..zone_count).map(|_| Zone { sealed: true, ..Zone::default() }).collect();
        let mut blocks = vec![u32::MAX; zone_count as usize * planes as usize];
        let mut spare_blocks = Vec::with_capacity(planes as usize);
        for plane in 0..planes {
            let mut good =
                (0..blocks_per_plane).filter(|&block| !array.is_bad(BlockAddr { plane, block }));
            for (zone, state) in zones.iter_mut().enumerate() {
                match good.next() {
                    Some(block) => blocks[zone * planes as usize + plane as usize] = block,
                    None => state.retired = true,
                }
            }
            let mut spares: Vec<u32> = good.collect();
            spares.reverse();
            spare_blocks.push(spares);
        }
        ZoneTable { planes, zones, blocks, spare_blocks }
    }

    /// The block of `zone` in `plane`.
    #[inline]
    pub(super) fn block(&self, zone: ZoneNo, plane: u32) -> BlockAddr {
        BlockAddr {
            plane,
            block: self.blocks[zone.index() * self.planes as usize + plane as usize],
        }
    }

    /// Number of replacement blocks left in `plane`.
    pub(super) fn spare_blocks(&self, plane: u32) -> u32 {
        self.spare_blocks[plane as usize].len() as u32
    }

    /// Erases those blocks of the zone that need it, and replaces blocks that are or go bad.
    /// Returns the end time. If a plane has no replacement left, the zone is then retired.
    pub(super) fn erase_zone<P: Payload>(
        &mut self,
        array: &mut Array<P>,
        zone: ZoneNo,
        now_ns: u64,
    ) -> u64 {
        let mut end_ns = now_ns;
        for plane in 0..self.planes {
            let place = zone.index() * self.planes as usize + plane as usize;
            let mut from_ns = now_ns;
            loop {
                let at = BlockAddr { plane, block: self.blocks[place] };
                if array.is_erased(at) {
                    break;
                }
                if !array.is_bad(at) {
                    let outcome = array.erase(from_ns, at);
                    from_ns = outcome.end_ns();
                    if outcome.ok {
                        break;
                    }
                }
                match self.spare_blocks[plane as usize].pop() {
                    Some(block) => self.blocks[place] = block,
                    None => {
                        self.zones[zone.index()].retired = true;
                        break;
                    }
                }
            }
            end_ns = end_ns.max(from_ns);
        }
        if self.zones[zone.index()].retired {
            self.give_up(array, zone);
        }
        end_ns
    }

    /// Makes the good blocks of a retired zone replacement blocks for other zones.
    fn give_up<P: Payload>(&mut self, array: &Array<P>, zone: ZoneNo) {
        for plane in 0..self.planes {
            let at = self.block(zone, plane);
            if !array.is_bad(at) {
                self.spare_blocks[plane as usize].push(at.block);
            }
        }
    }

    /// After a loss of power: content that a reset did not erase is restored, and a zone needs a
    /// reset before the next append.
    pub(super) fn power_on<P: Payload>(&mut self, array: &Array<P>) {
        for zone in 0..self.zones.len() {
            if self.zones[zone].retired {
                continue;
            }
            let number = ZoneNo(zone as u32);
            let blank = (0..self.planes).all(|plane| array.is_blank(self.block(number, plane)));
            let state = &mut self.zones[zone];
            let before_reset = state.log_before_reset.take();
            if let Some(log) = before_reset
                && !blank
            {
                state.log = log;
            }
            if blank {
                state.log = AppendLog::default();
            }
            state.sealed = true;
            state.next_offset = 0;
        }
    }
}
