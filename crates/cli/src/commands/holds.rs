//! Determines the content of a volume from its first pages, and the process that has it open: for `tantalum stat`.
use super::serve::control::Stat;
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload};
use tantalum_volume::content::{CONTENT_BYTES, content_of};

/// No page is written.
const NOTHING: &str = "nothing";
/// Pages are written, in no known format.
const UNKNOWN: &str = "unknown";
/// The limit of one step: as many as for an NBD client's block status.
const LOOKED_AT_PAGES_MAX: u64 = 65_536;

/// Adds the content of `device`, which `stat` describes. It stays unknown if the first pages cannot be read.
pub async fn tell_content(stat: &mut Stat, device: &impl PageDevice<Page = PageBuf>) {
    let is_unmapped = stat.contains(&("mapped_bytes", 0u64.into()));
    let holds = first_bytes(device).await.map(|bytes| match content_of(&bytes) {
        Some(name) => name,
        None if is_unmapped && is_empty(device) => NOTHING,
        None => UNKNOWN,
    });
    stat.push(("holds", holds.map(str::to_owned).into()));
}

/// Adds the process `pid`, which has the volume open.
pub fn tell_holder(stat: &mut Stat, pid: u32) {
    stat.push(("open_by", program(pid).into()));
    stat.push(("open_by_pid", u64::from(pid).into()));
}

/// Whether all pages are holes, write cache included, among the first pages that may be examined in one step. A cache
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

/// The name of a process, if the kernel reports it.
fn program(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.ok().map(|name| name.trim_end().to_owned())
}
