//! What the merges of hybrid layers share.
use tantalum_base::{PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place};

/// Offset behind the last page of `logical` that holds something.
pub(super) fn last_page<M: ZoneMedia>(
    blocks: &Blocks<M>,
    logical: u64,
    find: impl Fn(PageNo) -> Option<Place>,
) -> u32 {
    let first = logical * u64::from(blocks.pages_per_block);
    let held = |offset: &u32| find(PageNo(first + u64::from(*offset))).is_some();
    (0..blocks.pages_per_block).rev().find(held).map_or(0, |last| last + 1)
}

/// Appends to `target` what `sources` say of the offsets of `logical` behind what it holds;
/// nothing where there is no source.
pub(super) async fn copy_all<M: ZoneMedia>(
    blocks: &mut Blocks<M>,
    logical: u64,
    sources: &[Option<Place>],
    target: ZoneNo,
) -> Result<()> {
    let first = logical * u64::from(blocks.pages_per_block);
    for offset in blocks.get(target).filled()..sources.len() as u32 {
        match sources[offset as usize] {
            Some(from) => blocks.copy(target, from).await?,
            None => blocks.pad(target, PageNo(first + u64::from(offset))).await?,
        };
    }
    Ok(())
}
