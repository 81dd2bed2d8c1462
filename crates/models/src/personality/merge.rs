//! What block-mapped layers share.
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
    let mut offset = blocks.get(target).filled() as usize;
    while offset < sources.len() {
        let run = blocks.run_pages(target, sources.len() - offset);
        let page = PageNo(first + offset as u64);
        blocks.copy_run(target, page, &sources[offset..offset + run]).await?;
        offset += run;
    }
    Ok(())
}
