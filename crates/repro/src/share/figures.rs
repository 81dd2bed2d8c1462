//! Figures 5 and 6 and table 1: InnoDB's three modes, by size of the buffer and of a page.
use tantalum_base::Result;
use tantalum_hosts::double_write::Form;

use super::super::{Progress, Row, Scale};
use super::link_bench::{self, Case, Outcome, Size};
use super::one_log::Cleaned;

/// The axis of figures 5(b) and 6, with pages of 4 KiB.
const BUFFERS_MB: [u32; 3] = [50, 100, 150];
/// The axis of figure 5(a), with a buffer of 50 MB.
const PAGES_KIB: [u32; 3] = [4, 8, 16];
/// What figures 5(a) and 5(b) have in common, and what figure 6 and table 1 are of.
const COMMON: Case = Case { buffer_megabytes: 50, page_kib: 4 };

/// Section 5.3.1, "The Effect of SHARE on IO Activities": reductions in percent, whatever the buffer.
const WRITES_SAVED: f64 = 45.0;
const CLEANINGS_SAVED: f64 = 55.0;
const COPIES_SAVED: f64 = 75.0;
/// "The Effect of SHARE on Throughput": more than two times as much as with the double write, and less
/// than one percent from what there is without; over all buffer and page sizes.
const TIMES_DOUBLE_WRITE: f64 = 2.0;
const PERCENT_FROM_OFF: f64 = 1.0;

/// Table 1: hundredths of a percent that an operation has of LinkBench's load (its standard
/// configuration), and its mean latency in milliseconds with the double write and with SHARE. In the
/// paper's order, from `Get_Node` on.
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

/// Measures every size of the buffer and of a page.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let common = measure(COMMON, scale, seed, progress)?;
    rows.extend(common.throughput("Figure 5a"));
    for page_kib in PAGES_KIB.into_iter().filter(|page_kib| *page_kib != COMMON.page_kib) {
        let case = Case { page_kib, ..COMMON };
        rows.extend(measure(case, scale, seed, progress)?.throughput("Figure 5a"));
    }
    for buffer_megabytes in BUFFERS_MB {
        let case = Case { buffer_megabytes, ..COMMON };
        if case == COMMON {
            rows.extend(common.throughput("Figure 5b"));
            rows.extend(common.activities());
            rows.extend(common.latencies());
            continue;
        }
        let compared = measure(case, scale, seed, progress)?;
        rows.extend(compared.throughput("Figure 5b"));
        rows.extend(compared.activities());
    }
    Ok(())
}

pub(super) fn measure(case: Case, scale: Scale, seed: u64, progress: Progress) -> Result<Compared> {
    let mut form = |form: Form| {
        progress(&format!("{case}, {}", form.name()));
        link_bench::measure(form, case, Size::of(scale), seed)
    };
    Ok(Compared { case, on: form(Form::On)?, share: form(Form::Share)?, off: form(Form::Off)? })
}

/// A count of figure 6: where, what, in which unit, the paper's reduction, and how to get it.
type Count = (&'static str, &'static str, &'static str, f64, fn(&Outcome) -> u64);

const COUNTS: [Count; 3] = [
    ("Figure 6a", "host page writes", "pages", WRITES_SAVED, |run| run.host.pages_written()),
    ("Figure 6b", "cleanings", "zones", CLEANINGS_SAVED, |run| run.cleanings),
    ("Figure 6c", "pages copied back", "pages", COPIES_SAVED, |run| run.copied_pages),
];

/// The same of a drive that cleans as the board's firmware does.
type OneLogCount = (&'static str, &'static str, f64, fn(&Cleaned) -> u64);

const ONE_LOG_COUNTS: [OneLogCount; 2] = [
    ("Figure 6b", "cleanings", CLEANINGS_SAVED, |cleaned| cleaned.blocks),
    ("Figure 6c", "pages copied back", COPIES_SAVED, |cleaned| cleaned.copied_pages),
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
        for (figure, metric, saved, count) in ONE_LOG_COUNTS {
            let measured = percent_saved(count(&self.on.one_log), count(&self.share.one_log));
            let case = "SHARE saves of DWB-On, one log";
            rows.push(self.row(figure, case, metric, "%", Some(saved), measured));
        }
        rows
    }

    /// Table 1, its ten operations taken together.
    fn latencies(&self) -> Vec<Row> {
        let (on, share) = mean_latencies_ms();
        let (metric, unit) = ("mean latency of a transaction", "ms");
        [(Form::On, on, &self.on), (Form::Share, share, &self.share)]
            .map(|(form, paper, run)| {
                let measured = run.mean_latency_ms();
                let mut row = self.row("Table 1", form.name(), metric, unit, Some(paper), measured);
                // That the drive programs one page at a time was chosen after it.
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

    /// Whatever an engine's page has of the device's, all of it is shared, and nothing is written again for that.
    #[test]
    fn pages_are_shared_whole() {
        for page_kib in [4, 16] {
            let case = Case { buffer_megabytes: 50, page_kib };
            let share = link_bench::measure(Form::Share, case, Size::of(Scale::Small), 1).unwrap();
            assert_eq!(share.share_copied_pages, 0, "the table of shared pages is large enough");
            assert_eq!(share.host.shared_pages, share.host.area_pages, "{case}");
            assert!(share.host.shared_pages.is_multiple_of(u64::from(page_kib / 4)), "{share:?}");
        }
    }

    /// 16 clients at those latencies make 286 and 658 transactions a second.
    #[test]
    fn table_1_tells_the_throughput() {
        let (on, share) = mean_latencies_ms();
        assert!((55.0..57.0).contains(&on) && (24.0..25.0).contains(&share), "{on} {share}");
    }
}
