//! Preconditioning: brings a device into the state after long use.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, PageRange, Result, Rng, Stamp};
use tantalum_models::Simulated;
use tantalum_runtime::{DeviceCounters, LifeCycle, Virtual, spawn_all};

use super::expected::Expected;

/// How a device is aged: it is filled in order, then overwritten at random until the write
/// amplification of a round differs by less than `steady` from that of the previous round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Age {
    /// Share of the device that is filled, 0 to 1.
    pub fill: f64,
    /// Random overwrites in a round, as a share of the filled pages.
    pub round: f64,
    /// Relative difference between two rounds at which the aging ends.
    pub steady: f64,
    /// Maximum number of rounds.
    pub rounds_max: u32,
}

impl Default for Age {
    fn default() -> Self {
        Age { fill: 1.0, round: 0.5, steady: 0.03, rounds_max: 20 }
    }
}

/// Number of commands in flight.
const WRITERS: u64 = 64;

/// Ages a device, bypassing its link if it has one: the cost of aging does not matter. A disk is
/// left alone, and so is cloud storage.
pub async fn age(
    runtime: &Virtual,
    simulated: &Simulated<Stamp>,
    expected: &Rc<RefCell<Expected>>,
    age: &Age,
    seed: u64,
) -> Result<()> {
    match &simulated.ages {
        Some(device) => age_bare(runtime, device, expected, age, seed).await,
        None => Ok(()),
    }
}

/// The same for a device without a link.
pub async fn age_bare<D: LifeCycle + PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    expected: &Rc<RefCell<Expected>>,
    age: &Age,
    seed: u64,
) -> Result<()> {
    let pages = (device.limits().pages as f64 * age.fill.clamp(0.0, 1.0)) as u64;
    if pages == 0 {
        return Ok(());
    }
    let most = u64::from(device.limits().atomic_write_pages_max);
    let next = Rc::new(Cell::new(0));
    overwrite(runtime, device, expected, move || {
        let first = next.get();
        let len = most.min(pages - first);
        next.set(first + len);
        (len > 0).then_some(PageRange::new(PageNo(first), len))
    })
    .await?;
    let rng = Rc::new(RefCell::new(Rng::split(seed, "age")));
    let round = ((pages as f64 * age.round) as u64).max(1);
    let mut before = None::<f64>;
    for _ in 0..age.rounds_max {
        let start = device.counters();
        let (rng, left) = (Rc::clone(&rng), Rc::new(Cell::new(round)));
        overwrite(runtime, device, expected, move || {
            left.set(left.get().checked_sub(1)?);
            Some(PageRange::new(PageNo(rng.borrow_mut().below(pages)), 1))
        })
        .await?;
        let end = device.counters();
        // A redo log writes the same for every write, and its zones are not cleaned.
        let programmed = (end.slots_programmed - start.slots_programmed) as f64;
        let written = end.layer_pages_written - start.layer_pages_written;
        let now = programmed / written.max(1) as f64;
        // Merges empty blocks, as cleaning does.
        let emptied = |counted: &DeviceCounters| counted.zones_cleaned + counted.merges;
        let cleaned = emptied(&end) > emptied(&start);
        if cleaned && before.is_some_and(|before| (now / before - 1.0).abs() < age.steady) {
            break;
        }
        before = Some(now);
    }
    Ok(())
}

/// Writes the ranges that `next` returns, many at a time.
async fn overwrite<D: PageDevice<Page = Stamp>>(
    runtime: &Virtual,
    device: &Rc<D>,
    expected: &Rc<RefCell<Expected>>,
    next: impl FnMut() -> Option<PageRange> + 'static,
) -> Result<()> {
    let next = Rc::new(RefCell::new(next));
    let writer = |_| {
        let (device, expected) = (Rc::clone(device), Rc::clone(expected));
        let next = Rc::clone(&next);
        async move {
            let mut contents = Vec::new();
            loop {
                let Some(range) = (next.borrow_mut())() else { return Ok(()) };
                // The device serves writes in the order of their arrival, so two writes of one page
                // need not wait for each other.
                expected.borrow_mut().write(range, &mut contents);
                device.write(range.first, &contents, None).await?;
            }
        }
    };
    spawn_all(runtime, "ager", (0..WRITERS).map(writer)).await
}
