//! Table 1: random writes of 4 KiB per second, by one client that waits for each, with an fsync
//! after every N writes.
use tantalum_base::Result;

use super::super::load::Access;
use super::super::{Progress, Row, Scale};
use super::rig::{Requests, Rig};

/// The columns: writes per fsync, the last without any.
const PER_FSYNC: [Option<u32>; 9] =
    [Some(1), Some(4), Some(8), Some(16), Some(32), Some(64), Some(128), Some(256), None];
const NO_FSYNC: usize = 8;

/// A line of the table.
struct Line {
    device: &'static str,
    parameters: &'static str,
    case: &'static str,
    paper: [u32; 9],
    /// Columns that set a parameter of the device (`ssd::profile`).
    calibrated: &'static [usize],
}

const LINES: [Line; 9] = [
    Line {
        device: "cheetah-15k6",
        parameters: ",storage-cache=off",
        case: "disk, cache off",
        paper: [58, 111, 130, 143, 151, 155, 156, 157, 158],
        calibrated: &[NO_FSYNC],
    },
    Line {
        device: "cheetah-15k6",
        parameters: "",
        case: "disk, cache on",
        paper: [59, 135, 184, 234, 251, 335, 375, 381, 387],
        calibrated: &[],
    },
    Line {
        device: "ssd-a",
        parameters: ",storage-cache=off",
        case: "ssd-a, cache off",
        paper: [168, 332, 397, 441, 463, 479, 480, 490, 494],
        // It has DuraSSD's flash because its writes take the same time without the cache.
        calibrated: &[NO_FSYNC],
    },
    Line {
        device: "ssd-a",
        parameters: "",
        case: "ssd-a, cache on",
        paper: [256, 759, 1_297, 2_219, 3_595, 5_094, 6_794, 8_782, 11_681],
        calibrated: &[NO_FSYNC],
    },
    Line {
        device: "ssd-b",
        parameters: ",storage-cache=off",
        case: "ssd-b, cache off",
        paper: [603, 732, 889, 995, 1_042, 1_082, 1_114, 1_124, 1_157],
        calibrated: &[NO_FSYNC],
    },
    Line {
        device: "ssd-b",
        parameters: "",
        case: "ssd-b, cache on",
        paper: [655, 1_762, 2_319, 3_152, 4_046, 5_177, 6_318, 8_575, 8_456],
        calibrated: &[0, NO_FSYNC],
    },
    Line {
        device: "durassd",
        parameters: ",storage-cache=off,barrier=on",
        case: "durassd, cache off",
        paper: [249, 330, 438, 467, 482, 490, 495, 497, 498],
        calibrated: &[NO_FSYNC],
    },
    Line {
        device: "durassd",
        parameters: ",barrier=on",
        case: "durassd, cache on",
        paper: [225, 836, 1_556, 2_556, 5_020, 6_969, 10_582, 12_647, 15_319],
        calibrated: &[],
    },
    Line {
        device: "durassd",
        parameters: ",barrier=off",
        case: "durassd, cache on, no barrier",
        paper: [14_484, 14_800, 14_813, 14_824, 14_840, 14_863, 15_063, 15_181, 15_458],
        calibrated: &[NO_FSYNC],
    },
];

/// Measures every line; at the small scale only four of the columns.
pub(super) fn run(scale: Scale, seed: u64, progress: Progress, rows: &mut Vec<Row>) -> Result<()> {
    let columns: &[usize] = match scale {
        Scale::Small => &[0, 2, 5, NO_FSYNC],
        Scale::Full | Scale::Paper => &[0, 1, 2, 3, 4, 5, 6, 7, NO_FSYNC],
    };
    for line in &LINES {
        progress(line.case);
        let rig = Rig::new(line.device, line.parameters, scale, seed)?;
        for &column in columns {
            let per_fsync = PER_FSYNC[column];
            let every = match per_fsync {
                Some(writes) => format!("fsync every {writes}"),
                None => "no fsync".to_owned(),
            };
            let case = format!("{}, {every}", line.case);
            progress(&case);
            let access = Access::Write { per_fsync };
            let what = ("random write 4 KiB", "IOPS");
            let paper = Some(f64::from(line.paper[column]));
            let measured = rig.iops(access, 1, 1, requests(per_fsync, scale))?;
            let writes =
                per_fsync.map_or_else(|| "no fsync".to_owned(), |writes| writes.to_string());
            let row = Row::new("Table 1", case, what, paper, measured);
            let row = row.at("", line.case, ("writes per fsync", writes));
            rows.push(Row { calibrated: line.calibrated.contains(&column), ..row });
        }
    }
    Ok(())
}

/// Some fsyncs before the clock starts; without any, enough writes to fill a disk's cache.
fn requests(per_fsync: Option<u32>, scale: Scale) -> Requests {
    let fsyncs = if scale == Scale::Small { 48 } else { 96 };
    match per_fsync {
        Some(writes) => {
            let writes = u64::from(writes);
            let measured = (fsyncs * writes).clamp(fsyncs * 4, fsyncs * 64);
            // Whole intervals, so that the number of fsyncs matches that of the writes.
            Requests { warm_up: 4 * writes, measured: measured.next_multiple_of(writes) }
        }
        None => Requests { warm_up: 6_144, measured: fsyncs * 128 },
    }
}
