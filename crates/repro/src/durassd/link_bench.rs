//! Figures 5 and 6 and table 3: LinkBench on MySQL, by write barriers, double write, page size and buffer.
//!
//! The paper's database of 100 GB is scaled down to the number of nodes in [`Size`], about 1 KB each; the buffer has the same
//! proportion to it.
use hdrhistogram::Histogram;
use tantalum_base::Result;
use tantalum_hosts::double_write::Form;
use tantalum_hosts::workload::link_bench::Operation;

use super::super::{Progress, Row, Scale};
use super::machine::{Barriers, CLIENTS, Cell, Outcome, Size, measure};

/// The buffer of figure 5 and table 3: 10 GB of 100.
const BUFFER_PERCENT: u32 = 10;

/// The buffers of figure 6. The paper's text does not state them; these are chosen. Smaller ones have no frame for each client's page.
const BUFFERS_PERCENT: [u32; 3] = [5, 7, 10];

/// Device pages of 4 KiB in a page, and the name of its size.
const PAGE_SIZES: [(u32, &str); 3] = [(1, "4 KiB"), (2, "8 KiB"), (4, "16 KiB")];

/// A line of table 3: mean, 25th, 50th, 75th and 99th percentile and maximum in milliseconds, for ON/ON with 16 KiB and OFF/OFF with 4
/// KiB.
type Latencies = (Operation, [[f64; 6]; 2]);

/// The names of the columns.
const COLUMNS: [&str; 6] = ["mean", "P25", "P50", "P75", "P99", "max"];
const P99: usize = 4;

const CONFIGURATIONS: [&str; 2] = ["ON/ON, 16 KiB", "OFF/OFF, 4 KiB"];

/// Appended to a case without barriers of the data, in which the log's drive keeps its barriers.
const LOG_KEEPS: &str = ", log with barriers";

const TABLE_3: [Latencies; 10] = {
    use Operation::*;
    [
        (GetNode, [[67.0, 2.0, 4.0, 8.0, 900.0, 4238.1], [1.5, 0.9, 2.0, 2.0, 7.0, 533.1]]),
        (CountLink, [[45.5, 0.6, 3.0, 4.0, 800.0, 3274.6], [1.2, 0.6, 0.9, 2.0, 5.0, 42.8]]),
        (GetLinkList, [[65.3, 0.6, 1.0, 5.0, 1000.0, 14892.6], [1.4, 0.6, 2.0, 2.0, 7.0, 515.4]]),
        (MultigetLink, [[67.6, 0.6, 2.0, 5.0, 1000.0, 3047.2], [1.3, 0.6, 0.9, 2.0, 7.0, 44.1]]),
        (AddNode, [[51.6, 6.0, 8.0, 9.0, 1000.0, 4891.1], [8.9, 8.0, 9.0, 10.0, 16.0, 523.0]]),
        (
            DeleteNode,
            [[82.2, 8.0, 10.0, 16.0, 1000.0, 4267.4], [9.6, 9.0, 10.0, 11.0, 17.0, 539.1]],
        ),
        (
            UpdateNode,
            [[86.8, 8.0, 10.0, 17.0, 2000.0, 5779.1], [9.8, 9.0, 10.0, 11.0, 18.0, 540.2]],
        ),
        (
            AddLink,
            [[214.9, 11.0, 22.0, 300.0, 2000.0, 7051.0], [11.2, 9.0, 11.0, 13.0, 23.0, 540.3]],
        ),
        (DeleteLink, [[115.4, 3.0, 7.0, 93.0, 2000.0, 4841.2], [5.4, 0.9, 3.0, 10.0, 20.0, 522.1]]),
        (
            UpdateLink,
            [[217.6, 9.0, 22.0, 300.0, 2000.0, 9026.1], [11.1, 10.0, 11.0, 11.0, 23.0, 543.1]],
        ),
    ]
};

/// The results with pages of one size.
struct Measured {
    size: &'static str,
    /// By barrier (on, off, off but for the log's drive) and double write (on, off): `[barriers][double write]`.
    configurations: [[Outcome; 2]; 3],
    /// By buffer, OFF/OFF.
    buffers: Vec<(u32, Outcome)>,
}

/// Measures everything; at the small scale only the largest and the smallest pages, and two buffers.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let small = scale == Scale::Small;
    let mut all = Vec::new();
    for (page_pages, size) in PAGE_SIZES {
        if small && page_pages == 2 {
            continue;
        }
        progress(&format!("LinkBench, pages of {size}"));
        all.push(Measured::new(page_pages, size, scale, seed)?);
    }
    for measured in &all {
        measured.add_figure_5(rows);
    }
    add_ratios(&all, rows);
    for measured in &all {
        measured.add_figure_6(rows);
    }
    add_table_3(&all, rows);
    Ok(())
}

impl Measured {
    fn new(page_pages: u32, size: &'static str, scale: Scale, seed: u64) -> Result<Measured> {
        let cell = |barriers, buffer_percent| Cell { barriers, buffer_percent };
        let each = [Barriers::On, Barriers::Off, Barriers::OfTheLog];
        let each = each.map(|barriers| cell(barriers, BUFFER_PERCENT));
        let buffers: Vec<u32> = match scale {
            Scale::Small => vec![7],
            _ => BUFFERS_PERCENT[..BUFFERS_PERCENT.len() - 1].to_vec(),
        };
        let more = buffers.iter().map(|percent| cell(Barriers::Off, *percent));
        let sizes = Size::of(scale);
        let mut on = measure(Form::On, page_pages, (sizes, each.to_vec()), seed)?.into_iter();
        let cells = each.into_iter().chain(more).collect();
        let mut off = measure(Form::Off, page_pages, (sizes, cells), seed)?.into_iter();
        let mut next = || [on.next(), off.next()].map(|outcome| outcome.expect("one a cell"));
        let configurations = [next(), next(), next()];
        let buffers = buffers.into_iter().zip(off).collect();
        Ok(Measured { size, configurations, buffers })
    }

    fn of(&self, barriers: Barriers, double_write: &str) -> &Outcome {
        let barriers = match barriers {
            Barriers::On => 0,
            Barriers::Off => 1,
            Barriers::OfTheLog => 2,
        };
        &self.configurations[barriers][usize::from(double_write == "OFF")]
    }

    fn throughput(&self, barriers: Barriers, double_write: &str) -> f64 {
        self.of(barriers, double_write).report.throughput()
    }

    /// The figure is a drawing; two of its bars follow from table 3.
    fn add_figure_5(&self, rows: &mut Vec<Row>) {
        for barriers in [Barriers::On, Barriers::Off, Barriers::OfTheLog] {
            for double_write in ["ON", "OFF"] {
                let configuration = format!("{}/{double_write}", name(barriers));
                let case = format!("{configuration}, {}", self.size);
                let column = CONFIGURATIONS.iter().position(|name| *name == case);
                let measured = self.throughput(barriers, double_write);
                let (what, kept) = (("throughput", "transactions/s"), kept(barriers));
                let paper = column.map(paper_throughput);
                let row = Row::new("Figure 5", format!("{case}{kept}"), what, paper, measured);
                rows.push(row.at("", format!("{configuration}{kept}"), ("page", self.size)));
            }
        }
    }

    fn add_figure_6(&self, rows: &mut Vec<Row>) {
        let largest = (BUFFER_PERCENT, self.of(Barriers::Off, "OFF"));
        let buffers = self.buffers.iter().map(|(percent, outcome)| (*percent, outcome));
        for (percent, outcome) in buffers.chain(std::iter::once(largest)) {
            let case = format!("OFF/OFF, {}, buffer of {percent} %", self.size);
            let axis = ("buffer, % of the database", percent);
            let missed = ("miss ratio", "%");
            let row = Row::new("Figure 6a", case.clone(), missed, None, outcome.miss_percent);
            rows.push(row.at("", self.size, axis));
            let what = ("throughput", "transactions/s");
            let row = Row::new("Figure 6b", case, what, None, outcome.report.throughput());
            rows.push(row.at("", self.size, axis));
        }
    }
}

/// The ratios that the text states (section 4.3.1).
fn add_ratios(all: &[Measured], rows: &mut Vec<Row>) {
    let (Some(small), Some(large)) = (all.first(), all.last()) else { return };
    let mut add = |case: &str, paper, measured| {
        rows.push(Row::new("Figure 5", case, ("throughput", "times"), Some(paper), measured));
    };
    let of = |barriers, double_write| small.throughput(barriers, double_write);
    let with = Barriers::On;
    let case = "double write off over on, 4 KiB, barriers on";
    add(case, 2.0, of(with, "OFF") / of(with, "ON"));
    for without in [Barriers::Off, Barriers::OfTheLog] {
        let kept = kept(without);
        let mut add = |case: &str, paper, measured| add(&format!("{case}{kept}"), paper, measured);
        let best_over_worst = of(without, "OFF") / large.throughput(with, "ON");
        add("OFF/OFF with 4 KiB over ON/ON with 16 KiB", 20.0, best_over_worst);
        let case = "barriers off over on, 4 KiB, double write";
        add(&format!("{case} on"), 6.0, of(without, "ON") / of(with, "ON"));
        add(&format!("{case} off"), 6.0, of(without, "OFF") / of(with, "OFF"));
        let case = "double write off over on, 4 KiB, barriers off";
        add(case, 1.25, of(without, "OFF") / of(without, "ON"));
        let by_size = of(without, "OFF") / large.throughput(without, "OFF");
        add("4 KiB over 16 KiB, OFF/OFF", 2.0, by_size);
    }
}

/// The paper's name of a configuration's barriers.
fn name(barriers: Barriers) -> &'static str {
    if barriers == Barriers::On { "ON" } else { "OFF" }
}

/// The end of the names of cases with these barriers.
fn kept(barriers: Barriers) -> &'static str {
    if barriers == Barriers::OfTheLog { LOG_KEEPS } else { "" }
}

/// The throughput of a closed loop of the paper's clients according to its mean latencies (Little's law).
fn paper_throughput(column: usize) -> f64 {
    let means = TABLE_3
        .iter()
        .map(|(operation, latencies)| operation.percent() / 100.0 * latencies[column][0] / 1_000.0);
    f64::from(CLIENTS) / means.sum::<f64>()
}

fn add_table_3(all: &[Measured], rows: &mut Vec<Row>) {
    let (Some(small), Some(large)) = (all.first(), all.last()) else { return };
    let outcomes = [
        (0, Barriers::On, large.of(Barriers::On, "ON")),
        (1, Barriers::Off, small.of(Barriers::Off, "OFF")),
        (1, Barriers::OfTheLog, small.of(Barriers::OfTheLog, "OFF")),
    ];
    for (operation, paper) in &TABLE_3 {
        let latencies = |outcome: &Outcome| columns(outcome.report.latencies(*operation));
        let measured = outcomes.map(|(column, barriers, outcome)| {
            let name = format!("{}{}", CONFIGURATIONS[column], kept(barriers));
            (column, name, latencies(outcome))
        });
        for (configuration, name, measured) in &measured {
            for (column, heading) in COLUMNS.iter().enumerate() {
                let case = format!("{name}, {}, {heading}", operation.name());
                let paper = paper[*configuration][column];
                let row =
                    Row::new("Table 3", case, ("latency", "ms"), Some(paper), measured[column]);
                let row = row.at(name, operation.name(), ("of a transaction", *heading));
                // The computing time of a transaction was set by it.
                let calibrated = *operation == Operation::CountLink && *configuration == 0;
                rows.push(Row { calibrated: calibrated && *heading == "P25", ..row });
            }
        }
        let [(_, worst, of_worst), best @ ..] = &measured;
        for (_, best, of_best) in best {
            let case = format!("{worst} over {best}, {}, P99", operation.name());
            let paper = Some(paper[0][P99] / paper[1][P99]);
            let times = of_worst[P99] / of_best[P99];
            rows.push(Row::new("Table 3", case, ("latency", "times"), paper, times));
        }
    }
}

/// The columns of the table, in milliseconds.
fn columns(latencies: &Histogram<u64>) -> [f64; 6] {
    let at = |quantile| latencies.value_at_quantile(quantile) as f64;
    let of = [latencies.mean(), at(0.25), at(0.5), at(0.75), at(0.99), latencies.max() as f64];
    of.map(|latency_ns| latency_ns / 1e6)
}
