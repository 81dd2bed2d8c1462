//! Functions shared by the block-mapped layers.
use tantalum_base::{PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place};

/// The places of a block's pages, by offset, cut off after the last page with content.
pub(super) fn up_to_last(mut places: Vec<Option<Place>>) -> Vec<Option<Place>> {
    let end = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    places.truncate(end);
    places
}

/// Appends to `target` the pages of `logical` from `sources`, from the first offset that it does
/// not hold yet; pages without a source are padded.
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
