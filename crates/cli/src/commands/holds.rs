//! The content of a volume, by its first pages, and the process that has it open: for `tantalum stat`.
use super::serve::control::Stat;
use std::path::Path;
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload};
use tantalum_volume::content::{CONTENT_BYTES, content_of};

/// No page is written.
const NOTHING: &str = "nothing";
/// Pages are written, of no known format.
const UNKNOWN: &str = "unknown";
/// As of a client that asks an NBD server.
const LOOKED_AT_PAGES_MAX: u64 = 65_536;

/// Adds to `stat` what `device`, of which it tells, holds. It stays unknown where the first pages cannot be read.
pub async fn tell_content(stat: &mut Stat, device: &impl PageDevice<Page = PageBuf>) {
    let is_unmapped = stat.contains(&("mapped_bytes", 0u64.into()));
    let holds = first_bytes(device).await.map(|bytes| match content_of(&bytes) {
        Some(name) => name,
        None if is_unmapped && is_empty(device) => NOTHING,
        None => UNKNOWN,
    });
    stat.push(("holds", holds.map(str::to_owned).into()));
}

/// Adds that the process `pid` has the volume open.
pub fn tell_holder(stat: &mut Stat, pid: u32) {
    stat.push(("open_by", program(pid).into()));
    stat.push(("open_by_pid", u64::from(pid).into()));
}

/// Whether no page has content that is not in the log yet, of as many as may be looked at in one step. A cache, whose home may have
/// what it does not know of, says that all pages have some.
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

/// The beginning of `device`; `None` where it cannot be read.
async fn first_bytes(device: &impl PageDevice<Page = PageBuf>) -> Option<Vec<u8>> {
    let count = device.limits().pages.min((CONTENT_BYTES / PAGE_BYTES) as u64);
    let mut pages = vec![PageBuf::zero(); count as usize];
    device.read(PageNo(0), &mut pages, None).await.ok()?;
    Some(pages.iter().flat_map(|page| page.iter().copied()).collect())
}

/// The name of a process, where the kernel tells it.
fn program(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.ok().map(|name| name.trim_end().to_owned())
}
