//! Figures 5 and 6 and table 1: InnoDB's three modes, by size of the buffer and of a page.
use tantalum_base::Result;
use tantalum_hosts::double_write::Form;

use super::super::{Progress, Row, Scale};
use super::link_bench::{self, Case, Outcome, Size};

/// The axis of figures 5(b) and 6, with pages of 4 KiB.
const BUFFERS_MB: [u32; 3] = [50, 100, 150];
/// The axis of figure 5(a), with a buffer of 50 MB.
const PAGES_KIB: [u32; 3] = [4, 8, 16];
/// The case that figures 5(a) and 5(b) share, and that figure 6 and table 1 use.
const COMMON: Case = Case { buffer_megabytes: 50, page_kib: 4 };

/// Section 5.3.1, "The Effect of SHARE on IO Activities": reductions in percent, for every buffer size.
const WRITES_SAVED: f64 = 45.0;
const CLEANINGS_SAVED: f64 = 55.0;
const COPIES_SAVED: f64 = 75.0;
/// "The Effect of SHARE on Throughput": more than two times the throughput with the double write, and within one
/// percent of that without; over all buffer and page sizes.
const TIMES_DOUBLE_WRITE: f64 = 2.0;
const PERCENT_FROM_OFF: f64 = 1.0;

/// Table 1: the share of an operation in LinkBench's load in hundredths of a percent (its standard
/// configuration), and its mean latency in milliseconds with the double write and with SHARE. In the paper's
/// order, from `Get_Node` on.
const LATENCIES: [(f64, f64, f64); 10] = [
    (1293.0, 51.4, 23.9),
    (489.0, 32.8, 14.4),
    (53.0, 40.7, 15.2),
    (5071.0, 39.4, 17.2),
    (257.0, 6.3, 1.5),
    (737.0, 64.0, 28.3),
    (101.0, 62.6, 26.3),
    (899.0, 119.3, 49.7),
    (299.0, 70.5, 30.3),
    (801.0, 114.9, 49.4),
];

/// One case in the three forms.
pub(super) struct Compared {
    pub(super) case: Case,
    pub(super) on: Outcome,
    pub(super) share: Outcome,
    pub(super) off: Outcome,
}

/// Measures every buffer size with every page size.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let mut grid = Vec::new();
    for page_kib in PAGES_KIB {
        grid.extend(measure(page_kib, &BUFFERS_MB, Size::of(scale), seed, progress)?);
    }
    let along = |same: fn(&Case) -> bool| grid.iter().filter(move |of| same(&of.case));
    for compared in along(|case| case.buffer_megabytes == COMMON.buffer_megabytes) {
        rows.extend(compared.throughput("Figure 5a"));
    }
    for compared in along(|case| case.page_kib == COMMON.page_kib) {
        rows.extend(compared.throughput("Figure 5b"));
        rows.extend(compared.activities());
        if compared.case == COMMON {
            rows.extend(compared.latencies());
        }
    }
    rows.extend(grid.iter().flat_map(Compared::in_grid));
    Ok(())
}

/// Measures one page size with each buffer.
pub(super) fn measure(
    page_kib: u32,
    buffers_megabytes: &[u32],
    size: Size,
    seed: u64,
    progress: Progress,
) -> Result<Vec<Compared>> {
    let mut form = |form: Form| {
        progress(&format!("{page_kib} KiB pages, {}", form.name()));
        link_bench::measure(form, page_kib, (buffers_megabytes.to_vec(), size), seed)
    };
    let (on, share, off) = (form(Form::On)?, form(Form::Share)?, form(Form::Off)?);
    let outcomes = on.into_iter().zip(share).zip(off).zip(buffers_megabytes);
    let compared = outcomes.map(|(((on, share), off), buffer)| {
        let case = Case { buffer_megabytes: *buffer, page_kib };
        Compared { case, on, share, off }
    });
    Ok(compared.collect())
}

/// A count of figure 6: figure, metric, unit, the paper's reduction, and its source.
type Count = (&'static str, &'static str, &'static str, f64, fn(&Outcome) -> u64);

const COUNTS: [Count; 3] = [
    ("Figure 6a", "host page writes", "pages", WRITES_SAVED, |run| run.host.pages_written()),
    ("Figure 6b", "cleanings", "zones", CLEANINGS_SAVED, |run| run.cleanings),
    ("Figure 6c", "pages copied back", "pages", COPIES_SAVED, |run| run.copied_pages),
];

impl Compared {
    /// Figures 5(a) and 5(b).
    fn throughput(&self, figure: &'static str) -> Vec<Row> {
        let metric = "throughput";
        let mut rows: Vec<Row> = self
            .runs()
            .map(|(form, run)| self.row(figure, form.name(), metric, "tps", None, run.throughput))
            .into();
        let share = self.share.throughput;
        let times = share / self.on.throughput;
        let apart = 100.0 * (share / self.off.throughput - 1.0).abs();
        let over = "SHARE over DWB-On";
        let metric = "throughput, paper: more than";
        rows.push(self.row(figure, over, metric, "times", Some(TIMES_DOUBLE_WRITE), times).bound());
        let metric = "difference of throughput, paper: less than";
        let beside = "SHARE beside DWB-Off";
        rows.push(self.row(figure, beside, metric, "%", Some(PERCENT_FROM_OFF), apart).bound());
        rows
    }

    /// Figure 6.
    fn activities(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (figure, metric, unit, saved, count) in COUNTS {
            for (form, run) in self.runs() {
                rows.push(self.row(figure, form.name(), metric, unit, None, count(run) as f64));
            }
            let measured = percent_saved(count(&self.on), count(&self.share));
            let mut row =
                self.row(figure, "SHARE saves of DWB-On", metric, "%", Some(saved), measured);
            // The rate of metadata writes was set by it.
            row.calibrated = figure == "Figure 6a";
            rows.push(row);
        }
        for (form, run) in self.runs() {
            let written = run.host.pages_written().max(1) as f64;
            let (metric, copied) = ("copies a page written", run.copied_pages as f64 / written);
            rows.push(self.row("Figure 6c", form.name(), metric, "pages", None, copied));
            let metric = "content on the drive";
            rows.push(self.row("Figure 6c", form.name(), metric, "%", None, run.live_percent));
        }
        rows
    }

    /// The range over both axes of figure 5.
    fn in_grid(&self) -> Vec<Row> {
        let (metric, of) = ("throughput", "SHARE over DWB-On");
        let times = self.share.throughput / self.on.throughput;
        let mut rows = vec![self.row("Figure 5", of, metric, "times", None, times)];
        let saved = |count: fn(&Outcome) -> u64| percent_saved(count(&self.on), count(&self.share));
        for (_, metric, _, _, count) in COUNTS {
            let case = "SHARE saves of DWB-On";
            rows.push(self.row("Figure 5", case, metric, "%", None, saved(count)));
        }
        rows
    }

    /// Table 1, with its ten operations combined.
    fn latencies(&self) -> Vec<Row> {
        let (on, share) = mean_latencies_ms();
        let (metric, unit) = ("mean latency of a transaction", "ms");
        [(Form::On, on, &self.on), (Form::Share, share, &self.share)]
            .map(|(form, paper, run)| {
                let measured = run.mean_latency_ms();
                let mut row = self.row("Table 1", form.name(), metric, unit, Some(paper), measured);
                // This number led to the choice that the drive programs one page at a time.
                row.calibrated = form == Form::Share;
                row
            })
            .into()
    }

    fn runs(&self) -> [(Form, &Outcome); 3] {
        [(Form::On, &self.on), (Form::Share, &self.share), (Form::Off, &self.off)]
    }

    fn row(
        &self,
        figure: &'static str,
        what: &str,
        metric: &'static str,
        unit: &'static str,
        paper: Option<f64>,
        measured: f64,
    ) -> Row {
        let case = format!("{}, {what}", self.case);
        let along = match figure {
            "Figure 5a" => ("page, KiB", self.case.page_kib),
            _ => ("buffer, MB", self.case.buffer_megabytes),
        };
        Row::new(figure, case, (metric, unit), paper, measured).at("", what, along)
    }
}

/// The mean over table 1's operations, with the double write and with SHARE.
fn mean_latencies_ms() -> (f64, f64) {
    let all: f64 = LATENCIES.iter().map(|(share, ..)| share).sum();
    let mean = |latency: fn(&(f64, f64, f64)) -> f64| {
        LATENCIES.iter().map(|row| row.0 * latency(row)).sum::<f64>() / all
    };
    (mean(|row| row.1), mean(|row| row.2))
}

pub(super) fn percent_saved(from: u64, to: u64) -> f64 {
    100.0 * (1.0 - to as f64 / from.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every page size all device pages of an engine's page are shared, and none is written again for that.
    #[test]
    fn pages_are_shared_whole() {
        for page_kib in [4, 16] {
            let size = Size::of(Scale::Small);
            let shares = link_bench::measure(Form::Share, page_kib, (vec![50], size), 1).unwrap();
            let share = shares[0];
            assert_eq!(share.share_copied_pages, 0, "the table of shared pages is large enough");
            // Of a batch in progress when the count began or ended, one part may be counted.
            let batch = u64::from(60 * page_kib / 4);
            let (shared, area) = (share.host.shared_pages, share.host.area_pages);
            assert!(shared.abs_diff(area) <= batch, "{page_kib} KiB: {share:?}");
            assert!(share.host.shared_pages.is_multiple_of(u64::from(page_kib / 4)), "{share:?}");
        }
    }

    /// 16 clients at those latencies make 286 and 658 transactions per second.
    #[test]
    fn table_1_tells_the_throughput() {
        let (on, share) = mean_latencies_ms();
        assert!((55.0..57.0).contains(&on) && (24.0..25.0).contains(&share), "{on} {share}");
    }
}
