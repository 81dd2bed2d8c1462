//! Table 2: page sizes of 16, 8 and 4 KiB.
use tantalum_base::Result;

use super::super::load::Access;
use super::super::{Progress, Row, Scale};
use super::rig::{Requests, Rig};

/// Device pages of 4 KiB in a page, and the paper's name.
const SIZES: [(u32, &str); 3] = [(4, "16 KiB"), (2, "8 KiB"), (1, "4 KiB")];
const THREADS: u32 = 128;
/// The order in which they run: the device was aged with pages of 4 KiB.
const RUN_ORDER: [usize; 3] = [2, 1, 0];

/// A line of the table.
struct Line {
    device: &'static str,
    parameters: &'static str,
    case: &'static str,
    metric: &'static str,
    access: Access,
    clients: u32,
    paper: [u32; 3],
    /// Columns that set a parameter.
    calibrated: &'static [usize],
}

const FSYNC_EACH: Access = Access::Write { per_fsync: Some(1) };
const FSYNC_256: Access = Access::Write { per_fsync: Some(256) };
const NO_FSYNC: Access = Access::Write { per_fsync: None };

const LINES: [Line; 6] = [
    Line {
        device: "durassd",
        parameters: ",barrier=off",
        case: "durassd, read-only, 128 threads",
        metric: "random read",
        access: Access::Read,
        clients: THREADS,
        paper: [29_870, 57_847, 89_083],
        calibrated: &[2],
    },
    Line {
        device: "durassd",
        parameters: ",barrier=on",
        case: "durassd, write-only, fsync every 1",
        metric: "random write",
        access: FSYNC_EACH,
        clients: 1,
        paper: [196, 206, 225],
        calibrated: &[],
    },
    Line {
        device: "durassd",
        parameters: ",barrier=on",
        case: "durassd, write-only, fsync every 256",
        metric: "random write",
        access: FSYNC_256,
        clients: 1,
        paper: [4_563, 7_978, 12_647],
        calibrated: &[0],
    },
    Line {
        device: "durassd",
        parameters: ",barrier=off",
        case: "durassd, write-only, 128 threads, no barrier",
        metric: "random write",
        access: NO_FSYNC,
        clients: THREADS,
        paper: [13_446, 25_546, 49_009],
        calibrated: &[2],
    },
    Line {
        device: "cheetah-15k6",
        parameters: "",
        case: "disk, read-only, 128 threads",
        metric: "random read",
        access: Access::Read,
        clients: THREADS,
        paper: [516, 528, 538],
        calibrated: &[],
    },
    Line {
        device: "cheetah-15k6",
        parameters: "",
        case: "disk, write-only, 128 threads",
        metric: "random write",
        access: NO_FSYNC,
        clients: THREADS,
        paper: [428, 439, 444],
        calibrated: &[],
    },
];

/// Measures every line.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    for line in &LINES {
        progress(line.case);
        let rig = Rig::new(line.device, line.parameters, scale, seed)?;
        let mut measured = [0.0; 3];
        for at in RUN_ORDER {
            let (pages, size) = SIZES[at];
            progress(&format!("{}, {size}", line.case));
            let requests = requests(line, pages, &rig, scale);
            measured[at] = rig.iops(line.access, line.clients, pages, requests)?;
        }
        rows.extend(SIZES.iter().enumerate().map(|(at, (_, size))| {
            let (case, what) = (format!("{}, {size}", line.case), (line.metric, "IOPS"));
            let paper = Some(f64::from(line.paper[at]));
            let row = Row::new("Table 2", case, what, paper, measured[at]);
            let row = row.at("", line.case, ("page", *size));
            Row { calibrated: line.calibrated.contains(&at), ..row }
        }));
    }
    Ok(())
}

fn requests(line: &Line, pages: u32, rig: &Rig, scale: Scale) -> Requests {
    let small = scale == Scale::Small;
    match line.access {
        Access::Write { per_fsync: Some(writes) } => {
            let (writes, fsyncs) = (u64::from(writes), if small { 24 } else { 96 });
            let fsyncs = if writes > 1 { fsyncs / 4 } else { fsyncs };
            Requests { warm_up: 4 * writes, measured: fsyncs * writes }
        }
        _ if line.device == "cheetah-15k6" => {
            Requests { warm_up: 6_144, measured: if small { 5_000 } else { 10_000 } }
        }
        Access::Read => Requests { warm_up: 1_000, measured: if small { 10_000 } else { 100_000 } },
        Access::Write { per_fsync: None } => {
            // A steady state with pages of one size is not steady with pages of another.
            let whole_file = rig.pages() / u64::from(pages);
            let measured = whole_file / if small { 4 } else { 2 };
            Requests { warm_up: if pages == 1 { measured / 8 } else { whole_file }, measured }
        }
    }
}
