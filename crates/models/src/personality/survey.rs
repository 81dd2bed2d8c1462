//! Finds the erase blocks that each logical block needs, after a scan: the rule that keeps recovery
//! simple.
//!
//! The highest version of a page is the current one, wherever it lies. A merge copies pages with
//! their old versions and erases its sources only when the copy is complete. So at any power cut
//! either the sources or the copy hold all current pages of a logical block, and it needs at most
//! two erase blocks. The fewest that hold everything are kept; the others hold nothing else.
use std::collections::BTreeMap;
use tantalum_base::{Error, ErrorKind, PageNo, Result, Version, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Block, Blocks, Place, Role};
use crate::fault_points::Fault;

/// The erase blocks of one logical block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Block with pages at their offsets.
    pub data: Option<ZoneNo>,
    /// Block with the newer pages, or with the rest.
    pub log: Option<ZoneNo>,
}

/// The results of a scan.
pub(super) struct Survey {
    newest: BTreeMap<PageNo, Version>,
    /// The current pages in shared logs.
    pub shared: BTreeMap<PageNo, Place>,
    /// Erase blocks by logical block, without shared logs.
    by_logical: BTreeMap<u64, Vec<ZoneNo>>,
}

impl Survey {
    /// Evaluates the results of a scan.
    pub fn new<M: ZoneMedia>(blocks: &Blocks<M>) -> Self {
        let mut newest: BTreeMap<PageNo, Version> = BTreeMap::new();
        let mut shared: BTreeMap<PageNo, (Version, Place)> = BTreeMap::new();
        let mut by_logical: BTreeMap<u64, Vec<ZoneNo>> = BTreeMap::new();
        for (zone, block) in blocks.numbered().filter(|(_, block)| block.opening > 0) {
            for (offset, spare) in block.contents() {
                let known = newest.entry(spare.page).or_default();
                *known = (*known).max(spare.version);
                if block.role == Role::Shared {
                    let found = (spare.version, Place { block: zone, offset });
                    let known = shared.entry(spare.page).or_insert(found);
                    *known = (*known).max(found);
                }
            }
            if block.role != Role::Shared
                && let Some((_, first)) = block.contents().next()
            {
                by_logical.entry(blocks.split(first.page).0).or_default().push(zone);
            }
        }
        let in_force = |(page, (version, place)): (PageNo, (Version, Place))| {
            (newest[&page] == version).then_some((page, place))
        };
        let shared = shared.into_iter().filter_map(in_force).collect();
        Survey { newest, shared, by_logical }
    }

    /// Keeps the blocks that each logical block needs, and erases the rest.
    ///
    /// # Errors
    /// `Corrupt` if more than two erase blocks would be needed.
    pub async fn keep<M: ZoneMedia>(&self, blocks: &mut Blocks<M>) -> Result<BTreeMap<u64, Kept>> {
        let mut all = BTreeMap::new();
        for (&logical, zones) in &self.by_logical {
            let kept = self.choose(blocks, logical, zones)?;
            for zone in zones {
                if kept.data != Some(*zone) && kept.log != Some(*zone) {
                    blocks.release(*zone).await?;
                }
            }
            if kept != Kept::default() {
                all.insert(logical, kept);
            }
        }
        Ok(all)
    }

    fn choose<M: ZoneMedia>(
        &self,
        blocks: &Blocks<M>,
        logical: u64,
        zones: &[ZoneNo],
    ) -> Result<Kept> {
        let first = logical * u64::from(blocks.pages_per_block);
        let range = PageNo(first)..PageNo(first + u64::from(blocks.pages_per_block));
        let needed: Vec<(PageNo, Version)> = self
            .newest
            .range(range)
            .filter(|(page, _)| !self.shared.contains_key(page))
            .map(|(page, version)| (*page, *version))
            .collect();
        if needed.is_empty() {
            return Ok(Kept::default());
        }
        // The newest first: if several would do, this selects the copy and not its sources.
        let mut zones = zones.to_vec();
        zones.sort_by_key(|zone| std::cmp::Reverse(blocks.get(*zone).opening));
        if Fault::AnyCopyCounts.is_planted() {
            // The newest, even if it does not hold everything.
            return Ok(Kept { data: zones.first().copied(), log: None });
        }
        let holds = |zone: ZoneNo, page: PageNo, version: Version| {
            let mut contents = blocks.get(zone).contents();
            contents.any(|(_, spare)| spare.page == page && spare.version == version)
        };
        let cover = |zones: &[ZoneNo]| {
            needed
                .iter()
                .all(|(page, version)| zones.iter().any(|zone| holds(*zone, *page, *version)))
        };
        let ordered = |zone: &ZoneNo| is_in_place(blocks, blocks.get(*zone));
        if let Some(zone) = zones.iter().find(|zone| cover(&[**zone])) {
            return Ok(match ordered(zone) {
                true => Kept { data: Some(*zone), log: None },
                false => Kept { data: None, log: Some(*zone) },
            });
        }
        for (at, log) in zones.iter().enumerate() {
            for data in zones[at + 1..].iter().filter(|zone| ordered(zone)) {
                if cover(&[*data, *log]) {
                    return Ok(Kept { data: Some(*data), log: Some(*log) });
                }
            }
        }
        let context = format!("logical block {logical} is spread over more than two of {zones:?}");
        Err(Error::new(ErrorKind::Corrupt, context))
    }
}

/// Whether every page of `block` lies at its offset.
pub(super) fn is_in_place<M: ZoneMedia>(blocks: &Blocks<M>, block: &Block) -> bool {
    block.contents().all(|(offset, spare)| blocks.split(spare.page).1 == offset)
}
