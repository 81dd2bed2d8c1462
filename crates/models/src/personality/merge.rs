//! What block-mapped layers share.
use tantalum_base::{PageNo, Result, ZoneNo};
use tantalum_media::ZoneMedia;

use super::blocks::{Blocks, Place};

/// Of the `places` of a block's pages, by offset, those up to the last page that holds something.
pub(super) fn up_to_last(mut places: Vec<Option<Place>>) -> Vec<Option<Place>> {
    let end = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    places.truncate(end);
    places
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
