//! Possible causes of the figures of chapter 4 that are missed: for each a number, which may rule it out.
use std::sync::Arc;
use tantalum_base::Result;
use tantalum_replay::buffer_replay::BufferReplayRow;
use tantalum_replay::cache_replay::CacheTrace;

use super::super::Row;
use super::energy::{CFDC, CFLRU, Measured, REF};
use super::runs::over;

/// The text's devices: SSD2, on which CFDC gains most here, and those whose savings over REF it states, HDD1 and SSD3.
const DEVICES: [&str; 3] = ["mtron", "wd800aajs", "x25-m"];

/// Warehouses of the dissertation's trace (appendix B.1.1) and of ours.
const WAREHOUSES: u32 = 50;
const OUR_WAREHOUSES: u32 = 10;

/// REF as in section 3.3, and with other windows and other numbers of victim blocks.
const REFS: [&str; 5] = [
    REF,
    "ref:window=0.25,block=16,victims=4",
    "ref:window=0.75,block=16,victims=4",
    "ref:window=0.5,block=16,victims=1",
    "ref:window=0.5,block=16,victims=16",
];

fn joules(run: &BufferReplayRow) -> Option<f64> {
    Measured::of(run.clone()).map(|measured| measured.taken.joules())
}

/// How much less in percent.
fn less(ours: f64, theirs: f64) -> f64 {
    100.0 * (1.0 - ours / theirs)
}

/// Figure 4.2 with a buffer of `pages` scaled to the warehouses of our trace.
pub(super) fn proportions(
    trace: &Arc<CacheTrace>,
    pages: u32,
    seed: u64,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let pages = pages * OUR_WAREHOUSES / WAREHOUSES;
    for device in DEVICES {
        let runs = over(device, trace, &[CFDC, CFLRU, "lru", REF], &[pages], seed)?;
        let [cfdc, cflru, lru, other] = &runs[..] else { continue };
        let mut row = |name: &str, what, measured| {
            let case = format!("{device}, {pages} pages, CFDC over {name}");
            rows.push(Row::new("Tried", case, (what, "%"), None, measured));
        };
        row("CFLRU", "gain", less(cfdc.seconds, cflru.seconds));
        row("LRU", "gain", less(cfdc.seconds, lru.seconds));
        if let (Some(ours), Some(theirs)) = (joules(cfdc), joules(other)) {
            row("REF", "energy saved", less(ours, theirs));
        }
    }
    Ok(())
}

/// CFDC's savings over REF with other parameters, on the two devices for which the text states them.
pub(super) fn parameters_of_ref(
    trace: &Arc<CacheTrace>,
    pages: u32,
    seed: u64,
    rows: &mut Vec<Row>,
) -> Result<()> {
    for device in &DEVICES[1..] {
        let cfdc = over(device, trace, &[CFDC], &[pages], seed)?;
        for run in over(device, trace, &REFS, &[pages], seed)? {
            let saved = cfdc.iter().find_map(|cfdc| Some(less(joules(cfdc)?, joules(&run)?)));
            let Some(saved) = saved else { continue };
            let case = format!("{device}, CFDC over {}", run.policy);
            rows.push(Row::new("Tried", case, ("energy saved", "%"), None, saved));
            let accesses =
                |run: &BufferReplayRow| (run.pool.physical_reads + run.pool.physical_writes) as f64;
            let Some(cfdc) = cfdc.first() else { continue };
            let case = format!("{device}, {} over CFDC", run.policy);
            let ratio = accesses(&run) / accesses(cfdc);
            rows.push(Row::new("Tried", case, ("reads and writes", "ratio"), None, ratio));
        }
    }
    Ok(())
}
