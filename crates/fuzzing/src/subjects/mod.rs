//! Devices whose structures are changed, and the judgement of all that they answer afterwards.
//!
//! ```text
//! history  the contents that pages ever had, with which reads are compared
//! flash    a volume of kind flash
//! tiered   a volume with a home and a journal: destaged in epochs, page by page, without a claim, and while it is claimed
//! observed its stores at a chosen moment
//! dump     a simulated device that was cut, and dumped its memory
//! ```
mod dump;
pub(crate) mod flash;
mod history;
mod observed;
#[cfg(test)]
mod tests;
pub(crate) mod tiered;

use std::collections::BTreeMap;
use std::rc::Rc;
use tantalum_base::{PageBuf, PageDevice, PageNo, PageRange, Payload, Result};
use tantalum_runtime::virtual_time::Schedule;
use tantalum_runtime::{First, first};
use tantalum_runtime::{LifeCycle, Runtime, Virtual};
use tantalum_volume::OpenOptions;

use crate::structures::{Changed, Says, Scene, seeds};
pub(crate) use dump::Dumped;
pub(crate) use flash::{Flash, Staged};
use history::{content, is_answer};
pub(crate) use tiered::{Claiming, Dense, Ordered, Unclaimed};

/// Longest time, in virtual nanoseconds, for which an opened device may take to answer everything: an hour.
const HANGS_AFTER_NS: u64 = 3_600_000_000_000;
/// Numbers of contents from here on are written after the change.
const LATER: u64 = 1 << 40;

/// A device whose stores are changed.
pub(crate) trait Subject: 'static {
    type Device: LifeCycle<Page = PageBuf>;
    /// The stores, of which clones share the content.
    type Stores: Clone + 'static;
    /// Hosts read one in so many pages.
    const READ_STEP: usize;
    /// Whether its pages have a home.
    const HAS_HOME: bool;
    /// Time for which the device is open, so that its tasks run.
    const LIFE_NS: u64;

    fn scene() -> &'static Scene;
    fn stores(images: &[Vec<u8>]) -> Self::Stores;
    async fn open(
        runtime: &Virtual,
        stores: Self::Stores,
        options: OpenOptions,
    ) -> Result<Rc<Self::Device>>;
}

/// The contents of pages as they were read; none if the read failed.
type Seen = BTreeMap<u64, Option<PageBuf>>;

/// The result of one input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Refused(String),
    Opened(Seen),
}

/// Changes structures of `S` by `input`, and opens it twice. If the first bit of the first byte is set, loss is accepted.
pub(crate) fn run<S: Subject>(input: &[u8]) {
    let _ = outcome::<S>(input);
}

/// As [`run`]; returns how the device was opened first, and the names of the changed structures.
pub(crate) fn outcome<S: Subject>(input: &[u8]) -> (Outcome, Vec<&'static str>) {
    let (accept_loss, changes) =
        input.split_first().map_or((false, input), |(first, rest)| (first & 1 == 1, rest));
    let Changed { stores, says, is_exhausted, names } = Changed::new(S::scene(), changes);
    let stores = S::stores(&stores);
    let options = OpenOptions { accept_loss, ..OpenOptions::default() };
    // If a change is hidden, or loss is accepted, a page goes back to an older content, and an epoch in a journal may bring the newer
    // one again. If structures lie about pages, cleaning may find out.
    let is_stable = says == Says::Truth && !accept_loss && !S::HAS_HOME;
    let judged = Judged { says, is_stable };
    let (seen, written) = match life::<S>(&stores, options, judged, None) {
        Ok(lived) => lived,
        Err(error) => return (Outcome::Refused(error), names),
    };
    if let Some(written) = written {
        let expected = Some(&written);
        let again = life::<S>(&stores, OpenOptions::default(), judged, expected);
        if let Err(error) = again.map(drop)
            && !is_exhausted
        {
            panic!("it was opened, used and closed, and cannot be opened any more: {error}");
        }
    }
    (Outcome::Opened(seen), names)
}

pub(crate) fn inputs<S: Subject>() -> Vec<Vec<u8>> {
    let mut all = seeds(S::scene(), 0);
    all.extend(seeds(S::scene(), 1).into_iter().step_by(7));
    all
}

type Lived = std::result::Result<(Seen, Option<Seen>), String>;

/// Opens the device on `stores` and reads it. With `expected` contents these are compared; without, the device is changed. Returns
/// the contents read first and, if the device was changed and closed, those to expect from then on; or the error for which it did not open.
fn life<S: Subject>(
    stores: &S::Stores,
    options: OpenOptions,
    judged: Judged,
    expected: Option<&Seen>,
) -> Lived {
    let runtime = Virtual::new(Schedule::Fifo);
    let (live, stores, expected) = (runtime.clone(), stores.clone(), expected.cloned());
    let finished = runtime.run(async move {
        let lived = async {
            let opened = S::open(&live, stores, options).await;
            let device = opened.map_err(|error| error.to_string())?;
            let seen = read_all(&*device, S::READ_STEP, judged.says).await;
            if let Some(expected) = expected {
                judged.compare(&seen, &expected);
                return Ok((seen, None));
            }
            let mut known = seen.clone();
            change(&*device, &mut known).await;
            live.sleep(S::LIFE_NS).await;
            let now = read_all(&*device, S::READ_STEP, judged.says).await;
            judged.compare(&now, &known);
            let closed = device.close().await;
            Ok((seen, closed.is_ok().then_some(known)))
        };
        match first(lived, live.sleep(HANGS_AFTER_NS)).await {
            First::One(lived) => lived,
            First::Other(()) => panic!("it hangs"),
        }
    });
    // The tasks hold the device, and with it the stores.
    runtime.drop_tasks();
    finished.unwrap_or_else(|deadlock| panic!("{deadlock}"))
}

/// Reads one in `step` pages, and those that are changed, and judges each.
async fn read_all<D: PageDevice<Page = PageBuf>>(device: &D, step: usize, says: Says) -> Seen {
    let pages = device.limits().pages;
    let mut seen = Seen::new();
    for page in (0..pages).step_by(step).chain(changed_pages(pages)) {
        let mut out = [PageBuf::zero()];
        let read = device.read(PageNo(page), &mut out, None).await;
        let [out] = out;
        if read.is_ok() && page < LATER {
            let is_true = is_answer(page, &out, says);
            assert!(is_true, "page {page} reads as {:?}, and {says:?} is said", &out[..32]);
        }
        seen.insert(page, read.is_ok().then_some(out));
    }
    seen
}

/// The pages that are changed, of so many: written, trimmed, or shared.
fn changed_pages(pages: u64) -> impl Iterator<Item = u64> {
    [0, 7, 33, 90, 40, 41, 42, 205, 106].into_iter().chain([pages - 1])
}

/// Changes pages of `device`, and puts their new contents into `known`. A change that fails changes nothing.
async fn change<D: PageDevice<Page = PageBuf>>(device: &D, known: &mut Seen) {
    for (number, page) in [0, 7, 33, 90, device.limits().pages - 1].into_iter().enumerate() {
        let new = content(page, LATER + number as u64);
        if device.write(PageNo(page), std::slice::from_ref(&new), None).await.is_ok() {
            known.insert(page, Some(new));
        }
    }
    if device.trim(PageRange::new(PageNo(40), 3)).await.is_ok() {
        (40..43).for_each(|page| _ = known.insert(page, Some(PageBuf::zero())));
    }
    if device.share(&[(PageNo(205), PageNo(105))]).await.is_ok() {
        // Its right page is not among those that are read.
        known.remove(&205);
    }
    if device.share(&[(PageNo(206), PageNo(106))]).await.is_ok() {
        let right = known.get(&106).cloned().flatten();
        known.insert(206, right);
    }
    let _ = device.flush().await;
}

/// The demands on the contents that are read.
#[derive(Clone, Copy)]
struct Judged {
    says: Says,
    /// Whether pages that nobody changes keep their contents.
    is_stable: bool,
}

impl Judged {
    /// Asserts that the `known` contents are `seen` again. A read that failed may succeed later, as some damage is repaired.
    fn compare(self, seen: &Seen, known: &Seen) {
        for (page, known) in known {
            let (Some(known), Some(seen)) = (known, seen.get(page)) else { continue };
            if !self.is_stable && !is_later(known) {
                continue;
            }
            // A page that nobody changed may have been in a slot that an entry of another page names, too.
            let Some(seen) = seen else {
                if !is_later(known) {
                    continue;
                }
                panic!("page {page} was readable, and cannot be read now")
            };
            assert!(
                seen == known,
                "page {page} was {:?}, and reads as {:?}",
                &known[..32],
                &seen[..32]
            );
        }
    }
}

/// Whether a page was written after the change of the structures.
fn is_later(content: &PageBuf) -> bool {
    content[8..16].try_into().map_or(0, u64::from_le_bytes) >= LATER
}
