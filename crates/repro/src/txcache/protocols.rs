//! Figures 4 and 5: throughput and flash write size of the four protocols on the four traces.
use tantalum_base::Result;
use tantalum_models::tx_cache::HeaderRelease;

use super::super::{Progress, Row};
use super::Setup;
use super::devices::{Device, measure};
use super::replay::Measured;

/// Section IV-B and IV-C, by trace: how many more transactions per second TxCache does, and how much less it writes, in
/// percent, compared with WAL and with TxFlash.
const PAPER: [(&str, [f64; 2], [f64; 2]); 4] = [
    ("fileserver", [14.3, 0.9], [46.9, -3.5]),
    ("varmail", [63.0, 115.1], [98.8, 98.8]),
    ("webproxy", [51.0, 20.5], [58.6, 29.4]),
    ("TPC-C", [121.4, 47.4], [52.6, 9.7]),
];
/// Section IV-B: the throughput cost of transactions compared with NVCache, at most and on average.
const PENALTY_MAX: f64 = 4.1;
const PENALTY_MEAN: f64 = 1.4;

/// The label of the figures' x axis.
pub(super) const TRACE: &str = "trace";

/// The results of the devices on one trace.
pub(super) struct Compared {
    pub trace: &'static str,
    pub wal: Measured,
    /// WAL whose commits first wait for their pages and then for a record.
    pub recorded_wal: Measured,
    pub tx_flash: Measured,
    pub tx_cache: Measured,
    pub nv_cache: Measured,
    /// TxCache whose headers are free once their pages are in the mapping, not only once these are written back (III-C).
    pub mapped: Measured,
}

impl Compared {
    /// The throughput cost of transactions, in percent of NVCache's.
    pub fn penalty(&self) -> f64 {
        -gain(&self.tx_cache, &self.nv_cache)
    }

    /// The same if headers are held until all pages are in the mapping.
    pub fn penalty_mapped(&self) -> f64 {
        -gain(&self.mapped, &self.nv_cache)
    }

    fn all(&self) -> [(Device, &Measured); 6] {
        [
            (Device::Wal(0), &self.wal),
            (Device::RecordedWal(0), &self.recorded_wal),
            (Device::TxFlash, &self.tx_flash),
            (Device::TxCache(0, HeaderRelease::WrittenBack), &self.tx_cache),
            (Device::TxCache(0, HeaderRelease::Mapped), &self.mapped),
            (Device::NvCache(0), &self.nv_cache),
        ]
    }

    fn against(&self) -> [(&'static str, &Measured); 2] {
        [("WAL", &self.wal), ("TxFlash", &self.tx_flash)]
    }
}

/// How many more transactions per second `new` does than `old`, in percent.
pub(super) fn gain(new: &Measured, old: &Measured) -> f64 {
    (new.transactions_per_s / old.transactions_per_s - 1.0) * 100.0
}

/// How much less `new` programs than `old`, in percent.
pub(super) fn saving(new: &Measured, old: &Measured) -> f64 {
    (1.0 - new.pages_programmed / old.pages_programmed) * 100.0
}

pub(super) fn run(setup: &Setup, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let compared = compare(setup, progress)?;
    for compared in &compared {
        for (device, measured) in compared.all() {
            rows.extend(absolute(compared.trace, device, measured));
        }
    }
    for (compared, (trace, throughput, writes)) in compared.iter().zip(PAPER) {
        debug_assert_eq!(compared.trace, trace);
        for ((name, other), paper) in compared.against().into_iter().zip(throughput) {
            let case = format!("{trace}, TxCache over {name}");
            let measured = gain(&compared.tx_cache, other);
            let row = percent("Figure 4", case, "throughput gain", Some(paper), measured);
            rows.push(row.at("", format!("over {name}"), (TRACE, trace)));
        }
        for ((name, other), paper) in compared.against().into_iter().zip(writes) {
            let case = format!("{trace}, TxCache below {name}");
            let measured = saving(&compared.tx_cache, other);
            let row = percent("Figure 5", case, "write size saved", Some(paper), measured);
            rows.push(row.at("", format!("below {name}"), (TRACE, trace)));
        }
        let case = format!("{trace}, TxCache below NVCache");
        let row = percent("Figure 4", case, "throughput penalty", None, compared.penalty());
        rows.push(row.at("", "TxCache", (TRACE, trace)));
        let case = format!("{trace}, TxCache, headers until mapped, below NVCache");
        let row = percent("Figure 4", case, "throughput penalty", None, compared.penalty_mapped());
        rows.push(row.at("", "TxCache, headers until mapped", (TRACE, trace)));
    }
    let paper = [Some(PENALTY_MAX), Some(PENALTY_MEAN)];
    rows.extend(penalties("TxCache", &compared, Compared::penalty, paper));
    // The paper's headers are free "only after all pages have been written back" (III-C), so it has no number for these.
    let name = "TxCache, headers until mapped,";
    rows.extend(penalties(name, &compared, Compared::penalty_mapped, [None, None]));
    Ok(())
}

/// The largest penalty and the mean, and those of the paper.
fn penalties(
    name: &str,
    compared: &[Compared],
    penalty: fn(&Compared) -> f64,
    [paper_most, paper_mean]: [Option<f64>; 2],
) -> [Row; 2] {
    let penalties = || compared.iter().map(penalty);
    let most = penalties().fold(f64::MIN, f64::max);
    let mean = penalties().sum::<f64>() / compared.len() as f64;
    [("largest penalty", paper_most, most), ("mean penalty", paper_mean, mean)].map(
        |(case, paper, measured)| {
            let case = format!("{case}, {name} below NVCache");
            percent("Figure 4", case, "throughput penalty", paper, measured)
        },
    )
}

pub(super) fn percent(
    figure: &'static str,
    case: String,
    metric: &'static str,
    paper: Option<f64>,
    measured: f64,
) -> Row {
    Row::new(figure, case, (metric, "%"), paper, measured)
}

/// Runs all devices on all traces.
pub(super) fn compare(setup: &Setup, progress: Progress) -> Result<Vec<Compared>> {
    let pages = setup.cache_pages;
    let mut all = Vec::new();
    for trace in &setup.traces {
        let mut on = |device: Device| {
            progress(&format!("figures 4 and 5: {} on {}", trace.name, device.name()));
            measure(device, &setup.sizes, trace)
        };
        all.push(Compared {
            trace: trace.name,
            wal: on(Device::Wal(pages))?,
            recorded_wal: on(Device::RecordedWal(pages))?,
            tx_flash: on(Device::TxFlash)?,
            tx_cache: on(Device::TxCache(pages, HeaderRelease::WrittenBack))?,
            nv_cache: on(Device::NvCache(pages))?,
            mapped: on(Device::TxCache(pages, HeaderRelease::Mapped))?,
        });
    }
    Ok(all)
}

/// The results of `device` on `trace`: the bars of both figures, for which the paper has only drawings.
pub(super) fn absolute(trace: &str, device: Device, measured: &Measured) -> Vec<Row> {
    let case = format!("{trace}, {}", device.name());
    let row = |figure, what, measured| {
        Row::new(figure, &*case, what, None, measured).at("", device.name(), (TRACE, trace))
    };
    let mut rows = vec![
        row("Figure 4", ("throughput", "transactions/s"), measured.transactions_per_s),
        row("Figure 5", ("flash writes", "pages"), measured.pages_programmed),
    ];
    if measured.parts > 1.0 {
        rows.push(row("Figure 4", ("parts", "a transaction"), measured.parts));
    }
    rows
}
