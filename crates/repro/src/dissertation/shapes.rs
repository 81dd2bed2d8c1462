//! Statements and drawings of the dissertation about its figures, besides their numbers. Series have the dissertation's names,
//! without a policy's parameters.
use super::super::Relation::{Above, Below, Falling, Rising, Within};
use super::super::lines::{Drawing, all_over, least, line, over};
use super::super::{Rows, Shape};

/// The panels of a figure that contain `series`, each once.
fn panels<'a>(rows: &Rows<'a>, figure: &str, series: &str) -> Vec<&'a str> {
    let places = rows.0.iter().filter(|row| row.figure == figure);
    let places = places.filter_map(|row| row.place.as_ref());
    let mut panels: Vec<&str> = Vec::new();
    for place in places.filter(|place| place.series == series) {
        if !panels.contains(&place.panel.as_str()) {
            panels.push(&place.panel);
        }
    }
    panels
}

/// For each position along a drawing, the largest number among `series` and `its`, over that of `its`: 1 if its own is the largest.
fn from_largest(
    rows: &Rows<'_>,
    drawing: Drawing<'_>,
    series: &[&str],
    its: &str,
) -> Option<Vec<f64>> {
    let mut largest = line(rows, drawing, None, its)?;
    let own = largest.clone();
    for other in series {
        let other = line(rows, drawing, None, other)?;
        largest.iter_mut().zip(other).for_each(|(largest, other)| *largest = largest.max(other));
    }
    Some(largest.iter().zip(own).map(|(largest, own)| largest / own).collect())
}

const OTHERS: [&str; 5] = ["LRU", "LRU-K", "CFLRU", "LRU-WSR", "REF"];
const BOTH_CFDC: [&str; 2] = ["CFDC", "CFDC-k"];
const TIME: &str = "execution time";
const WRITES: &str = "page flushes";

/// Chapter 3.
pub(crate) const CFDC: &[Shape] = &[
    Shape {
        figure: "Figure 3.5",
        claim: "both CFDC take less time than any other algorithm, at any size of the buffer: theirs over ours",
        expected: Above(1.0),
        measure: |rows| all_over(rows, ("Figure 3.5", TIME), &OTHERS, &BOTH_CFDC),
    },
    Shape {
        figure: "Figure 3.5",
        claim: "CFDC-k takes a little less time than CFDC-1",
        expected: Within(0.85, 1.0),
        measure: |rows| over(rows, ("Figure 3.5", TIME), "CFDC-k", "CFDC"),
    },
    Shape {
        figure: "Figure 3.5",
        claim: "REF \"is still the third-best in terms of execution times\": the best of the others but CFDC over it, sum of the sizes of the buffer",
        expected: Above(1.0),
        measure: |rows| {
            let sum = |series: &str| -> Option<f64> {
                Some(line(rows, ("Figure 3.5", TIME), None, series)?.iter().sum())
            };
            let others = ["LRU", "LRU-K", "CFLRU", "LRU-WSR"].map(sum);
            let best = others.into_iter().try_fold(f64::MAX, |best, sum| Some(best.min(sum?)))?;
            Some(vec![best / sum("REF")?])
        },
    },
    Shape {
        figure: "Figure 3.5",
        claim: "REF suffers from \"a high write count\", higher than LRU's",
        expected: Above(1.0),
        measure: |rows| over(rows, ("Figure 3.5", WRITES), "REF", "LRU"),
    },
    Shape {
        figure: "Figure 3.5",
        claim: "REF \"suffers from a low hit ratio\", lower than that of any other: theirs over its",
        expected: Above(1.0),
        measure: |rows| {
            let others = ["LRU", "LRU-K", "CFLRU", "LRU-WSR", "CFDC", "CFDC-k"];
            all_over(rows, ("Figure 3.5", "hit ratio"), &others, &["REF"])
        },
    },
    Shape {
        figure: "Figure 3.5",
        claim: "LRU-k takes less time than CFLRU and LRU-WSR: theirs over its",
        expected: Above(1.0),
        measure: |rows| all_over(rows, ("Figure 3.5", TIME), &["CFLRU", "LRU-WSR"], &["LRU-K"]),
    },
    Shape {
        figure: "Figure 3.6",
        claim: "CFDC has the lowest cluster-switch factor at any number of scans: the others' over its",
        expected: Above(1.0),
        measure: |rows| {
            let drawing = ("Figure 3.6", "cluster-switch factor (CSF)");
            all_over(rows, drawing, &OTHERS, &BOTH_CFDC)
        },
    },
    Shape {
        figure: "Figure 3.7",
        claim: "a larger window makes CFLRU write less",
        expected: Falling,
        measure: |rows| line(rows, ("Figure 3.7", WRITES), None, "CFLRU"),
    },
    Shape {
        figure: "Figure 3.7",
        claim: "a larger window makes CFDC write less",
        expected: Falling,
        measure: |rows| line(rows, ("Figure 3.7", WRITES), None, "CFDC"),
    },
    Shape {
        figure: "Figure 3.7",
        claim: "a larger window makes REF write more",
        expected: Rising,
        measure: |rows| line(rows, ("Figure 3.7", WRITES), None, "REF"),
    },
    Shape {
        figure: "Figure 3.7",
        claim: "CFDC takes less time the larger the window is, up to 0.9",
        expected: Falling,
        measure: |rows| {
            let mut times = line(rows, ("Figure 3.7", TIME), None, "CFDC")?;
            // The last of six is 0.99.
            times.truncate(5);
            Some(times)
        },
    },
    Shape {
        figure: "Figure 3.7",
        claim: "CFDC takes more time again with a window of 0.99: over that with 0.9",
        expected: Above(1.0),
        measure: |rows| match line(rows, ("Figure 3.7", TIME), None, "CFDC")?[..] {
            [.., most, all]
                if rows
                    .metric("Figure 3.7", "cfdc:window=0.99,cluster=16, 1000 pages", TIME)
                    .is_some() =>
            {
                Some(vec![all / most])
            }
            _ => None,
        },
    },
    Shape {
        figure: "Figure 3.8",
        claim: "CFDC takes less time than any other algorithm, at any size of the buffer, with the best windows",
        expected: Above(1.0),
        measure: |rows| {
            let others = ["LRU", "LRU-WSR", "CFLRU", "REF"];
            all_over(rows, ("Figure 3.8", TIME), &others, &["CFDC"])
        },
    },
];

const FIVE: [&str; 5] = ["LRU", "CFLRU", "LRU-WSR", "REF", "CFDC"];

/// Joules over seconds of every series of a figure.
fn watts(rows: &Rows<'_>, figure: &'static str, series: &str) -> Option<Vec<f64>> {
    let joules = line(rows, (figure, "energy"), None, series)?;
    let seconds = line(rows, (figure, TIME), None, series)?;
    Some(joules.iter().zip(seconds).map(|(joules, seconds)| joules / seconds).collect())
}

/// The number of `series` for `device`.
fn on(rows: &Rows<'_>, metric: &'static str, series: &str, device: &str) -> Option<f64> {
    let found = rows.all("Figure 4.2", |row| {
        let place = row.place.as_ref();
        row.metric == metric
            && row.case.starts_with(device)
            && place.is_some_and(|place| place.series == series)
    })?;
    found.first().copied()
}

/// Longest time over shortest on `device`.
fn spread(rows: &Rows<'_>, device: &str) -> Option<f64> {
    let times: Option<Vec<f64>> = FIVE.iter().map(|its| on(rows, TIME, its, device)).collect();
    let times = times?;
    let longest = times.iter().copied().fold(f64::MIN, f64::max);
    Some(longest / times.iter().copied().fold(f64::MAX, f64::min))
}

/// Chapter 4.
pub(crate) const ENERGY: &[Shape] = &[
    Shape {
        figure: "Figure 4.2",
        claim: "CFDC takes least time on every device: the others' over its",
        expected: Above(1.0),
        measure: |rows| {
            let others = ["LRU", "CFLRU", "LRU-WSR", "REF"];
            all_over(rows, ("Figure 4.2", TIME), &others, &["CFDC"])
        },
    },
    Shape {
        figure: "Figure 4.2",
        claim: "CFLRU takes less time than LRU on every device: LRU's over its",
        expected: Above(1.0),
        measure: |rows| over(rows, ("Figure 4.2", TIME), "LRU", "CFLRU"),
    },
    Shape {
        figure: "Figure 4.2",
        claim: "LRU-WSR takes more time than LRU on every device",
        expected: Above(1.0),
        measure: |rows| over(rows, ("Figure 4.2", TIME), "LRU-WSR", "LRU"),
    },
    Shape {
        figure: "Figure 4.2",
        claim: "REF takes most time on every device but SSD2: the longest over its",
        expected: Within(1.0, 1.0),
        measure: |rows| {
            let all = from_largest(rows, ("Figure 4.2", TIME), &FIVE, "REF")?;
            // SSD2 is the fourth of the five devices.
            let other = |at: &usize| super::super::energy::DATA_DISKS[*at].0 != "mtron";
            Some((0..all.len()).filter(other).map(|at| all[at]).collect())
        },
    },
    Shape {
        figure: "Figure 4.2",
        claim: "on SSD2 REF is not the slowest: LRU's time over its",
        expected: Above(1.0),
        measure: |rows| {
            Some(vec![on(rows, TIME, "LRU", "mtron")? / on(rows, TIME, "REF", "mtron")?])
        },
    },
    Shape {
        figure: "Figure 4.2",
        claim: "algorithms are closer together on SSD3 than on SSD2: longest over shortest time, there over here",
        expected: Below(1.0),
        measure: |rows| Some(vec![spread(rows, "x25-m")? / spread(rows, "mtron")?]),
    },
    Shape {
        figure: "Figure 4.3",
        claim: "average power is about the same under every algorithm: each one's over that of LRU",
        expected: Within(0.95, 1.05),
        measure: |rows| {
            let lru = watts(rows, "Figure 4.2", "LRU")?;
            let mut numbers = Vec::new();
            for series in FIVE {
                let its = watts(rows, "Figure 4.2", series)?;
                numbers.extend(its.iter().zip(&lru).map(|(its, lru)| its / lru));
            }
            Some(numbers)
        },
    },
    Shape {
        figure: "Figure 4.4",
        claim: "the power of REF rises with the buffer",
        expected: Rising,
        measure: |rows| line(rows, ("Figure 4.4", "average power"), None, "REF"),
    },
    Shape {
        figure: "Figure 4.4",
        claim: "the power of the others slightly falls with the buffer: with the largest over with the smallest",
        expected: Within(0.97, 1.0),
        measure: |rows| {
            let ends = |series: &&str| {
                let watts = line(rows, ("Figure 4.4", "average power"), None, series)?;
                Some(watts.last()? / watts.first()?)
            };
            ["LRU", "CFLRU", "LRU-WSR", "CFDC"].iter().map(ends).collect()
        },
    },
    Shape {
        figure: "Figure 4.4",
        claim: "energy mirrors time: power with the largest buffer over that with the smallest, whatever the time does",
        expected: Within(0.9, 1.1),
        measure: |rows| {
            let ends = |series: &&str| {
                let watts = watts(rows, "Figure 4.4", series)?;
                Some(watts.last()? / watts.first()?)
            };
            FIVE.iter().map(ends).collect()
        },
    },
];

const VIRTUAL: &str = "virtual execution time";
const CFLRU_WINDOWS: [&str; 3] = super::runs::CFLRU_WINDOWS;
const CFDC_WINDOWS: [&str; 3] = super::runs::CFDC_WINDOWS;

/// The numbers of `series` in figure 5.4 at the dissertation's sizes, one panel after the other.
fn figure_5_4(rows: &Rows<'_>, series: &[&str]) -> Option<Vec<f64>> {
    // Other traces have no LRU-WSR.
    let panels = panels(rows, "Figure 5.4", "lru_wsr");
    let mut numbers = Vec::new();
    for panel in &panels {
        numbers.extend(least(rows, ("Figure 5.4", VIRTUAL), Some(panel), series)?);
    }
    (!numbers.is_empty()).then_some(numbers)
}

/// CASA's counts of table 5.2 with `pages`, from 1:1 to 1:128.
fn casa_counts(rows: &Rows<'_>, pages: u32, metric: &str) -> Option<Vec<f64>> {
    let of = |ratio: u32| {
        rows.metric("Table 5.2", &format!("casa:cost=1:{ratio}, {pages} pages"), metric)
    };
    [1, 4, 16, 64, 128].into_iter().map(of).collect()
}

/// Differences from one number to the next, with both sizes of table 5.2.
fn steps(rows: &Rows<'_>, metric: &str) -> Option<Vec<f64>> {
    let mut steps = Vec::new();
    for pages in [1_000, 10_000] {
        let counts = casa_counts(rows, pages, metric)?;
        steps.extend(counts.windows(2).map(|pair| pair[1] - pair[0]));
    }
    Some(steps)
}

/// CASA's real time over the best of the others on `device`.
fn figure_5_6(rows: &Rows<'_>, device: &str) -> Option<Vec<f64>> {
    let drawing = ("Figure 5.6", TIME);
    let others = [&CFLRU_WINDOWS[..], &["ccflru", "lru_wsr"]].concat();
    let best = least(rows, drawing, Some(device), &others)?;
    let its = line(rows, drawing, Some(device), "casa")?;
    Some(its.iter().zip(best).map(|(its, best)| its / best.min(1.0)).collect())
}

/// Chapter 5.
pub(crate) const CASA: &[Shape] = &[
    Shape {
        figure: "Figure 5.2",
        claim: "at 1:1 the time of CASA closely approaches that of LRU",
        expected: Within(0.95, 1.05),
        measure: |rows| line(rows, ("Figure 5.2", VIRTUAL), Some("writes cost 1"), "CASA"),
    },
    Shape {
        figure: "Figure 5.2",
        claim: "at 1:1 CCFLRU takes more than one and a half times as long as LRU",
        expected: Above(1.5),
        measure: |rows| line(rows, ("Figure 5.2", VIRTUAL), Some("writes cost 1"), "CCFLRU"),
    },
    Shape {
        figure: "Figure 5.2",
        claim: "at 1:64 CASA takes less time than LRU",
        expected: Below(1.0),
        measure: |rows| line(rows, ("Figure 5.2", VIRTUAL), Some("writes cost 64"), "CASA"),
    },
    Shape {
        figure: "Figure 5.2",
        claim: "at 1:64 CASA takes less time than CFLRU with its best window",
        expected: Below(1.0),
        measure: |rows| {
            let of = |series| line(rows, ("Figure 5.2", VIRTUAL), Some("writes cost 64"), series);
            let (casa, cflru) = (of("CASA")?, of("CFLRU")?);
            Some(casa.iter().zip(cflru).map(|(casa, cflru)| casa / cflru).collect())
        },
    },
    Shape {
        figure: "Table 5.2",
        claim: "CASA writes less the more a write costs: from one ratio to the next",
        expected: Below(0.0),
        measure: |rows| steps(rows, "physical writes"),
    },
    Shape {
        figure: "Table 5.2",
        claim: "CASA reads more the more a write costs: from one ratio to the next",
        expected: Above(0.0),
        measure: |rows| steps(rows, "physical reads"),
    },
    Shape {
        figure: "Figure 5.4",
        claim: "CASA takes less time than LRU at every ratio and size",
        expected: Below(1.0),
        measure: |rows| figure_5_4(rows, &["casa"]),
    },
    Shape {
        figure: "Figure 5.4",
        claim: "CASA has the best time at nearly every ratio and size, and is slightly behind otherwise: over the best of the others",
        expected: Below(1.05),
        measure: |rows| {
            let others = [&CFLRU_WINDOWS[..], &["ccflru", "lru_wsr"]].concat();
            let (casa, best) = (figure_5_4(rows, &["casa"])?, figure_5_4(rows, &others)?);
            Some(casa.iter().zip(best).map(|(casa, best)| casa / best.min(1.0)).collect())
        },
    },
    Shape {
        figure: "Figure 5.6",
        claim: "CASA has the best time on the SSD: over the best of the others",
        expected: Below(1.02),
        measure: |rows| figure_5_6(rows, "x25-m"),
    },
    Shape {
        figure: "Figure 5.6",
        claim: "CASA is comparable to CFLRU with its best window on the disk: over the best of the others",
        expected: Below(1.05),
        measure: |rows| figure_5_6(rows, "wd1500hlfs"),
    },
    Shape {
        figure: "Figure 5.7",
        claim: "SAWC takes about the time of CFDC, without a parameter: over the mean of CFDC's three windows",
        expected: Within(0.75, 1.25),
        measure: |rows| {
            let of = |series| line(rows, ("Figure 5.7", TIME), None, series);
            let [a, b, c] = CFDC_WINDOWS.map(of);
            let (a, b, c) = (a?, b?, c?);
            let means = a.iter().zip(b).zip(c).map(|((a, b), c)| (a + b + c) / 3.0);
            Some(of("sawc")?.iter().zip(means).map(|(sawc, mean)| sawc / mean).collect())
        },
    },
    Shape {
        figure: "Figure 5.7",
        claim: "SAWC writes moderately more than CASA",
        expected: Within(1.0, 1.14),
        measure: |rows| over(rows, ("Figure 5.7", WRITES), "sawc", "casa"),
    },
    Shape {
        figure: "Figure 5.7",
        claim: "SAWC switches clusters far less often than CASA",
        expected: Below(0.8),
        measure: |rows| over(rows, ("Figure 5.7", "cluster switches (CSC)"), "sawc", "casa"),
    },
    Shape {
        figure: "Figure 5.7",
        claim: "SAWC and CASA have about the same hit ratio",
        expected: Within(0.98, 1.02),
        measure: |rows| over(rows, ("Figure 5.7", "hit ratio"), "sawc", "casa"),
    },
    Shape {
        figure: "Figure 5.8",
        claim: "with few updates CASA and SAWC have a higher hit ratio than CFDC with any window: theirs over its",
        expected: Above(1.0),
        measure: |rows| {
            all_over(rows, ("Figure 5.8", "hit ratio"), &["casa", "sawc"], &CFDC_WINDOWS)
        },
    },
    Shape {
        figure: "Figure 5.8",
        claim: "the hit ratio dominates the time with few updates: CFDC with any window takes longer than CASA and SAWC",
        expected: Above(1.0),
        measure: |rows| all_over(rows, ("Figure 5.8", TIME), &CFDC_WINDOWS, &["casa", "sawc"]),
    },
];
