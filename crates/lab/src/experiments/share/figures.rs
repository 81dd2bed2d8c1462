//! Figures 5 and 6: InnoDB's three modes, by size of the buffer.
use tantalum_base::Result;
use tantalum_hosts::double_write::Form;

use super::super::{Progress, Row, Scale};
use super::link_bench::{self, Outcome, Size};

/// The axis of figures 5(b) and 6.
const BUFFERS_MB: [u32; 3] = [50, 100, 150];

/// Section 5.3.1, "The Effect of SHARE on IO Activities": reductions in percent, whatever the buffer.
const WRITES_SAVED: f64 = 45.0;
const CLEANINGS_SAVED: f64 = 55.0;
const COPIES_SAVED: f64 = 75.0;
/// "The Effect of SHARE on Throughput": more than two times as much as with the double write, and less
/// than one percent from what there is without.
const TIMES_DOUBLE_WRITE: f64 = 2.0;
const PERCENT_FROM_OFF: f64 = 1.0;

/// One buffer size in the three forms.
pub(super) struct Buffer {
    pub(super) megabytes: u32,
    pub(super) on: Outcome,
    pub(super) share: Outcome,
    pub(super) off: Outcome,
}

/// Measures every buffer size.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for megabytes in BUFFERS_MB {
        rows.extend(measure(megabytes, scale, seed, progress)?.rows());
    }
    Ok(rows)
}

pub(super) fn measure(
    megabytes: u32,
    scale: Scale,
    seed: u64,
    progress: Progress,
) -> Result<Buffer> {
    let mut form = |form: Form| {
        progress(&format!("{}, {}", buffer_name(megabytes), form.name()));
        link_bench::measure(form, megabytes, Size::of(scale), seed)
    };
    Ok(Buffer { megabytes, on: form(Form::On)?, share: form(Form::Share)?, off: form(Form::Off)? })
}

fn buffer_name(megabytes: u32) -> String {
    format!("{megabytes} MB buffer, 4 KiB pages")
}

/// A count of figure 6: where, what, in which unit, the paper's reduction, and how to get it.
type Count = (&'static str, &'static str, &'static str, f64, fn(&Outcome) -> u64);

const COUNTS: [Count; 3] = [
    ("Figure 6a", "host page writes", "pages", WRITES_SAVED, |run| run.host.pages_written()),
    ("Figure 6b", "cleanings", "zones", CLEANINGS_SAVED, |run| run.cleanings),
    ("Figure 6c", "pages copied back", "pages", COPIES_SAVED, |run| run.copied_pages),
];

impl Buffer {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (form, run) in self.runs() {
            rows.push(self.row(
                "Figure 5b",
                form.name(),
                "throughput",
                "tps",
                None,
                run.throughput,
            ));
        }
        let (on, share) = (self.on.throughput, self.share.throughput);
        let off = self.off.throughput;
        let (times, apart) = (share / on, 100.0 * (share / off - 1.0).abs());
        let over = "SHARE over DWB-On";
        let metric = "throughput, paper: more than";
        rows.push(self.row("Figure 5b", over, metric, "times", Some(TIMES_DOUBLE_WRITE), times));
        let metric = "difference of throughput, paper: less than";
        let beside = "SHARE beside DWB-Off";
        rows.push(self.row("Figure 5b", beside, metric, "%", Some(PERCENT_FROM_OFF), apart));
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
        rows
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
        let case = format!("{}, {what}", buffer_name(self.megabytes));
        Row { figure, case, metric, unit, paper, measured, calibrated: false }
    }
}

pub(super) fn percent_saved(from: u64, to: u64) -> f64 {
    100.0 * (1.0 - to as f64 / from.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's chain: fewer writes, still fewer cleanings, yet fewer copies; and a throughput
    /// beside that of no double write at all.
    #[test]
    fn share_saves_writes_and_more_cleanings_and_yet_more_copies() {
        for megabytes in [50, 150] {
            let Buffer { on, share, off, .. } =
                measure(megabytes, Scale::Small, 1, &mut |_| {}).unwrap();
            let writes = percent_saved(on.host.pages_written(), share.host.pages_written());
            let cleanings = percent_saved(on.cleanings, share.cleanings);
            let copies = percent_saved(on.copied_pages, share.copied_pages);
            assert!((43.0..48.0).contains(&writes), "{megabytes} MB: {writes} % of the writes");
            assert!(cleanings > 43.0, "{megabytes} MB: {cleanings} % of the cleanings");
            assert!(copies > cleanings, "{megabytes} MB: {copies} % of the copies");
            assert_eq!(share.share_copied_pages, 0, "the table of shared pages is large enough");
            assert_eq!(share.host.shared_pages, share.host.area_pages, "{megabytes} MB");
            assert!(share.throughput > 1.3 * on.throughput, "{megabytes} MB");
            let apart = (share.throughput / off.throughput - 1.0).abs();
            assert!(apart < 0.04, "{megabytes} MB: {apart} from no double write");
        }
    }
}
