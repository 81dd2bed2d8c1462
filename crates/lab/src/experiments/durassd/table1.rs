//! Table 1: random writes of 4 KiB a second, by one client that waits for each, with an fsync
//! after every so many writes.
use std::cell::RefCell;
use std::rc::Rc;
use tantalum_base::{Error, ErrorKind, PageDevice, Result};
use tantalum_runtime::Virtual;
use tantalum_runtime::virtual_time::Schedule;
use tantalum_ssd::DeviceConfig;

use super::super::load::{self, Access, Load};
use super::super::{Progress, Row, Scale};
use crate::device_replay::Expected;

/// The columns: writes per fsync, the last without any.
const PER_FSYNC: [Option<u32>; 9] =
    [Some(1), Some(4), Some(8), Some(16), Some(32), Some(64), Some(128), Some(256), None];

/// A line of the table: the device, what the paper calls it, its numbers, and the columns that
/// set the device's parameters.
struct Line {
    device: &'static str,
    case: &'static str,
    paper: [f64; 9],
    calibrated: &'static [usize],
}

const LINES: [Line; 3] = [
    Line {
        device: "ssd-a:capacity=2GiB",
        case: "ssd-a, cache on",
        paper: [256.0, 759.0, 1297.0, 2219.0, 3595.0, 5094.0, 6794.0, 8782.0, 11681.0],
        calibrated: &[0, 8],
    },
    Line {
        device: "ssd-b:capacity=2GiB",
        case: "ssd-b, cache on",
        paper: [655.0, 1762.0, 2319.0, 3152.0, 4046.0, 5177.0, 6318.0, 8575.0, 8456.0],
        calibrated: &[0, 8],
    },
    Line {
        device: "durassd:capacity=2GiB",
        case: "durassd, cache on, no barrier",
        paper: [14484.0, 14800.0, 14813.0, 14824.0, 14840.0, 14863.0, 15063.0, 15181.0, 15458.0],
        calibrated: &[0, 8],
    },
];

/// Measures every line.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in &LINES {
        for (column, per_fsync) in PER_FSYNC.into_iter().enumerate() {
            let every = match per_fsync {
                Some(writes) => format!("fsync every {writes}"),
                None => "no fsync".to_owned(),
            };
            let case = format!("{}, {every}", line.case);
            progress(&case);
            rows.push(Row {
                figure: "Table 1",
                case,
                metric: "random write 4 KiB",
                unit: "IOPS",
                paper: Some(line.paper[column]),
                measured: measure(line.device, per_fsync, scale, seed)?,
                calibrated: line.calibrated.contains(&column),
            });
        }
    }
    Ok(rows)
}

fn measure(device: &str, per_fsync: Option<u32>, scale: Scale, seed: u64) -> Result<f64> {
    let config = DeviceConfig::parse(device)?;
    let requests = match scale {
        Scale::Small => 1_024,
        Scale::Full => 20_480,
    };
    let runtime = Virtual::new(Schedule::Fifo);
    let run = {
        let runtime = runtime.clone();
        async move {
            let device = config.build(&runtime, seed).await?;
            let pages = device.limits().pages;
            let expected = Rc::new(RefCell::new(Expected::new(pages)));
            let load = Load {
                access: Access::Write { per_fsync },
                clients: 1,
                pages_per_request: 1,
                warm_up: requests / 4,
                requests,
                pages,
            };
            load::run(&runtime, &device, &expected, load, seed).await
        }
    };
    let measured = runtime.run(run).map_err(|deadlock| {
        Error::with_source(ErrorKind::Corrupt, format!("random writes on {device}"), deadlock)
    })?;
    // Tasks hold the device, the device holds the runtime: without this neither would go.
    runtime.drop_tasks();
    measured
}
