//! The contents that pages ever had: each names its page, and pages share only with those that [`right_of`] tells.
use tantalum_base::{PAGE_BYTES, PageBuf, PageDevice, PageNo, PageRange, Payload, Rng};
use tantalum_runtime::{Runtime, Virtual};

use crate::structures::Says;

/// Pages that may be left pages of shares.
const LEFT: std::ops::Range<u64> = 200..250;

/// The right page of a left page.
fn right_of(page: u64) -> Option<u64> {
    LEFT.contains(&page).then(|| page - 100)
}

/// The content of `page` by its write `number`.
pub(super) fn content(page: u64, number: u64) -> PageBuf {
    let mut bytes = [0; PAGE_BYTES];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    // A CRC of the bytes before it would give all contents the same CRC.
    let mark = (page << 32 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[16..24].copy_from_slice(&mark.to_le_bytes());
    PageBuf::from_bytes(&bytes)
}

/// The page for which `bytes` were written; `None` if no host wrote them.
fn written_for(bytes: &PageBuf) -> Option<u64> {
    let long = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let page = long(0).checked_sub(1)?;
    (*bytes == content(page, long(8))).then_some(page)
}

/// Whether `page` may read as `bytes`: zeros, which every page once was, or a content of its own, or of a page that it shared with.
/// If changed structures say more than the truth, also what they say.
pub(super) fn is_answer(page: u64, bytes: &PageBuf, says: Says) -> bool {
    let is_own = |of: u64| of == page || right_of(page) == Some(of);
    match (says, written_for(bytes)) {
        (Says::OtherContent, _) => true,
        (_, None) => *bytes == PageBuf::zero(),
        (Says::OtherPage, Some(_)) => true,
        (Says::Truth, Some(of)) => is_own(of),
    }
}

/// Changes `device`, of which `pages` are used, until it has been cleaned. With `staged`, also by transactions that outgrow their
/// memory.
pub(super) async fn use_device<D: PageDevice<Page = PageBuf>>(
    device: &D,
    pages: u64,
    rounds: u64,
    seed: u64,
    staged: bool,
) {
    let mut rng = Rng::split(seed, "a device in use");
    for round in 0..rounds {
        // Many go to few pages, so that zones with shared contents among theirs are cleaned.
        let most = if rng.chance(0.4) { 90 } else { pages - 8 };
        let first = rng.below(most);
        let number = seed * 10_000 + round;
        match round % 9 {
            7 => device.trim(PageRange::new(PageNo(first), 3)).await.expect("trimmed"),
            5 | 8 => {
                let left = LEFT.start + rng.below(45);
                let pair = |page| right_of(page).map(|right| (PageNo(page), PageNo(right)));
                let pairs: Vec<_> = (left..left + 3).filter_map(pair).collect();
                // A page without content cannot be shared.
                let _ = device.share(&pairs).await;
            }
            6 if staged && device.limits().transactions_max > 0 => {
                let tx = device.begin().await.expect("begun");
                for page in (0..pages).step_by(5).skip(rng.below(20) as usize).take(40) {
                    let new = [content(page, number)];
                    // There may be no room for it.
                    let _ = device.write(PageNo(page), &new, Some(tx)).await;
                }
                let _ = device.commit(tx).await;
            }
            _ => {
                let new: Vec<PageBuf> =
                    (first..first + 4).map(|page| content(page, number)).collect();
                device.write(PageNo(first), &new, None).await.expect("written");
            }
        }
        if round % 3 == 0 {
            device.flush().await.expect("durable");
        }
    }
}

/// Lets the tasks of a device run.
pub(super) async fn rest(runtime: &Virtual) {
    runtime.sleep(200_000_000).await;
}
