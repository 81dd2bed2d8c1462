//! Translation layers compared: the programs and erases of each for the same writes.
//!
//! No paper has this table; `docs/devices/ftl-personalities.md` has the results.
use std::rc::Rc;
use tantalum_base::{PageDevice, PageNo, Result, Rng, Stamp};
use tantalum_ftl::{Ftl, FtlOptions};
use tantalum_media::ErasedZones;
use tantalum_models::personality::PersonalityConfig;
use tantalum_runtime::{DeviceKind, Runtime, Virtual};

use super::Relation::{Below, Rising, Within};
use super::{Row, Rows, Scale, Shape};

const FIGURE: &str = "translation layers";
const BLOCK_PAGES: u64 = 64;
/// The name of the main task in a report of a deadlock.
const A_LOAD: &str = "a load on a translation layer";

/// The layers; pages, over-provisioning and blocks are the same for all.
const LAYERS: [&str; 5] =
    ["block-map", "bast:logs=16", "fast:logs=16", "dftl:cmt=512", "dftl:cmt=4k"];

/// The cost of one load on each of `layers`.
fn costs(rows: &Rows<'_>, layers: &[&str], load: &str) -> Option<Vec<f64>> {
    let cost = |layer: &&str| {
        let case = format!("{layer}, {load}");
        rows.metric(FIGURE, &case, "write amplification")
    };
    layers.iter().map(cost).collect()
}

/// Known relations between these layers, from no particular paper.
pub(super) const SHAPES: &[Shape] = &[
    Shape {
        figure: FIGURE,
        claim: "writes in order cost next to nothing on any layer: write amplification",
        expected: Within(1.0, 1.1),
        measure: |rows| {
            let others = ["block-map", "bast:logs=16", "fast:logs=16", "dftl:cmt=4k", "page map"];
            costs(rows, &others, "sequential")
        },
    },
    Shape {
        figure: FIGURE,
        claim: "the coarser the map, the more uniform writes cost: DFTL, FAST, BAST, block map",
        expected: Rising,
        measure: |rows| {
            let coarser = ["dftl:cmt=4k", "fast:logs=16", "bast:logs=16", "block-map"];
            costs(rows, &coarser, "uniform")
        },
    },
    Shape {
        figure: FIGURE,
        claim: "a larger cached table does not cost DFTL more under uniform writes: its cost over that with a smaller one",
        expected: Below(1.000_001),
        measure: |rows| {
            let costs = costs(rows, &["dftl:cmt=4k", "dftl:cmt=512"], "uniform")?;
            Some(vec![costs[0] / costs[1]])
        },
    },
];

/// The order of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Sequential,
    Uniform,
    HotCold,
    Runs,
}

const ORDERS: [(Order, &str); 4] = [
    (Order::Sequential, "sequential"),
    (Order::Runs, "runs of 32 pages"),
    (Order::HotCold, "90 % to 10 % of the pages"),
    (Order::Uniform, "uniform"),
];

/// The pages of a load, one after the other.
struct Pages {
    order: Order,
    pages: u64,
    rng: Rng,
    at: u64,
    left: u64,
}

impl Pages {
    fn new(order: Order, pages: u64, seed: u64) -> Self {
        Pages { order, pages, rng: Rng::split(seed, "personalities"), at: 0, left: 0 }
    }

    fn next(&mut self) -> PageNo {
        let (rng, pages) = (&mut self.rng, self.pages);
        PageNo(match self.order {
            Order::Sequential => {
                self.at = (self.at + 1) % pages;
                self.at
            }
            Order::Uniform => rng.below(pages),
            Order::HotCold if rng.chance(0.9) => rng.below(pages / 10),
            Order::HotCold => rng.below(pages),
            Order::Runs => {
                if self.left == 0 {
                    (self.at, self.left) = (rng.below(pages / 32) * 32, 32);
                }
                self.left -= 1;
                self.at += 1;
                self.at - 1
            }
        })
    }
}

/// Programs and erases of a load.
struct Spent {
    programs: u64,
    erases: u64,
    seconds: f64,
}

/// Fills each device and overwrites it with each load.
pub fn personalities(
    scale: Scale,
    seed: u64,
    progress: &mut dyn FnMut(&str),
    rows: &mut Vec<Row>,
) -> Result<()> {
    let (pages, overwrites) = match scale {
        Scale::Small => (8192, 1),
        Scale::Full | Scale::Paper => (16_384, 4),
    };
    for (order, load) in ORDERS {
        for layer in LAYERS.iter().copied().chain(["page map"]) {
            let writes = overwrites * pages;
            let spent = match layer {
                "page map" => page_map(order, pages, writes, seed)?,
                _ => personality(layer, order, pages, writes, seed)?,
            };
            let mut row = |metric, unit, measured| {
                let case = format!("{layer}, {load}");
                progress(&format!("{case}: {metric} {measured:.3} {unit}"));
                let row = Row::new(FIGURE, case, (metric, unit), None, measured);
                rows.push(row.at("", layer, ("writes", load)));
            };
            row("write amplification", "ratio", spent.programs as f64 / writes as f64);
            row("erases", "per 1000 writes", 1000.0 * spent.erases as f64 / writes as f64);
            row("time a write", "µs", spent.seconds * 1e6 / writes as f64);
        }
    }
    Ok(())
}

fn config(layer: &str, pages: u64) -> Result<PersonalityConfig> {
    let joint = if layer.contains(':') { ',' } else { ':' };
    PersonalityConfig::parse(&format!("{layer}{joint}pages={pages},op=0.1,block={BLOCK_PAGES}"))
}

fn personality(layer: &str, order: Order, pages: u64, writes: u64, seed: u64) -> Result<Spent> {
    let config = config(layer, pages)?;
    Virtual::alone(A_LOAD, move |clock| async move {
        let zones = config.new_zones::<_, Stamp>(&clock, seed)?;
        let device = config.kind().make(&clock, ErasedZones::new(zones)).await?;
        for page in (0..pages).map(PageNo) {
            device.write(page, &[Stamp::new(page, 1)], None).await?;
        }
        let (before, start_ns) = (device.statistics(), clock.now_ns());
        let mut chosen = Pages::new(order, pages, seed);
        for count in 2..2 + writes {
            let page = chosen.next();
            device.write(page, &[Stamp::new(page, count)], None).await?;
        }
        let after = device.statistics();
        Ok(Spent {
            programs: after.programs - before.programs,
            erases: after.erases - before.erases,
            seconds: (clock.now_ns() - start_ns) as f64 / 1e9,
        })
    })
}

/// The page-mapping FTL on the same amount of the same flash as DFTL.
fn page_map(order: Order, pages: u64, writes: u64, seed: u64) -> Result<Spent> {
    let config = config("dftl:cmt=4k", pages)?;
    Virtual::alone(A_LOAD, move |clock| async move {
        let zones = config.new_zones::<_, Stamp>(&clock, seed)?;
        let ftl = Ftl::format(ErasedZones::new(zones), FtlOptions::new(pages)).await?;
        let cleaner = Rc::clone(&ftl);
        clock.spawn("cleaner", async move { cleaner.run_cleaner().await });
        let checkpointer = Rc::clone(&ftl);
        clock.spawn("checkpointer", async move { checkpointer.run_checkpointer().await });
        for page in (0..pages).map(PageNo) {
            ftl.write(&[(page, Stamp::new(page, 1))], true).await?;
        }
        let (before, start_ns) = (ftl.statistics(), clock.now_ns());
        let mut chosen = Pages::new(order, pages, seed);
        for count in 2..2 + writes {
            let page = chosen.next();
            ftl.write(&[(page, Stamp::new(page, count))], true).await?;
        }
        let after = ftl.statistics();
        Ok(Spent {
            programs: after.slots_programmed - before.slots_programmed,
            erases: after.zone_resets - before.zone_resets,
            seconds: (clock.now_ns() - start_ns) as f64 / 1e9,
        })
    })
}
