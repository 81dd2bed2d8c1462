//! Determines the kind of the content of a volume from its first pages.
use crate::content::{CONTENT_BYTES, content_of};
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload};

/// No page is written.
const NOTHING: &str = "nothing";
/// Pages are written, in no known format.
const UNKNOWN: &str = "unknown";
/// The limit of one step: as many as for an NBD client's block status.
const LOOKED_AT_PAGES_MAX: u64 = 65_536;

/// The kind of the content of `device`, which has no mapped page if `is_unmapped`. `None` if the first pages cannot be read.
pub(crate) async fn content_name(
    device: &impl PageDevice<Page = PageBuf>,
    is_unmapped: bool,
) -> Option<&'static str> {
    let bytes = first_bytes(device).await?;
    Some(match content_of(&bytes) {
        Some(name) => name,
        None if is_unmapped && is_empty(device) => NOTHING,
        None => UNKNOWN,
    })
}

/// Whether all of the first pages are holes, also in the write cache; as many pages as may be examined in one step. A cache
/// never reports holes, as its home may have content that the cache does not know.
fn is_empty(device: &impl PageDevice) -> bool {
    let (mut at, pages) = (0, device.limits().pages.min(LOOKED_AT_PAGES_MAX));
    while at < pages {
        let extent = device.extent(PageRange::new(PageNo(at), pages - at));
        if !extent.is_hole {
            return false;
        }
        at += extent.pages;
    }
    true
}

/// The first bytes of `device`; `None` if they cannot be read.
async fn first_bytes(device: &impl PageDevice<Page = PageBuf>) -> Option<Vec<u8>> {
    let count = device.limits().pages.min((CONTENT_BYTES / PAGE_BYTES) as u64);
    let mut pages = vec![PageBuf::zero(); count as usize];
    device.read(PageNo(0), &mut pages, None).await.ok()?;
    Some(pages.iter().flat_map(|page| page.iter().copied()).collect())
}
