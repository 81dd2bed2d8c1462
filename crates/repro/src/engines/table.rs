//! What a cell came to, as rows.
use super::super::Row;
use super::cell::Cell;
use super::measure::{Outcome, Recovery, Wear};
use super::served::Service;

/// What rows are of.
pub(super) const FIGURE: &str = "Engines, YCSB A";

/// Times that a block may be erased. Chosen: as flash of multi-level cells of the time was rated.
const RATED_ERASES: f64 = 3_000.0;

/// The flash of a whole drive, of which the simulated one is a part: 512 GiB for DuraSSD's 480 GB.
const WHOLE_FLASH_BYTES: f64 = 512.0 * GIB;
const GIB: f64 = (1_u64 << 30) as f64;

const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

/// What is counted, and its unit.
pub(super) type Metric = (&'static str, &'static str);

pub(super) const THROUGHPUT: Metric = ("throughput", "operations/s");
pub(super) const READ_P99: Metric = ("P99 of a read", "ms");
pub(super) const UPDATE_P99: Metric = ("P99 of an update", "ms");
pub(super) const WRITTEN: Metric = ("written to the device by an update", "KiB");
pub(super) const PROGRAMMED: Metric = ("programmed into flash by an update", "KiB");
pub(super) const ERASED: Metric = ("erased in flash by an update", "KiB");
pub(super) const ENDURANCE: Metric = ("updates until the flash is worn out", "millions per GiB");
pub(super) const LIFETIME: Metric = ("lifetime of a whole drive at this throughput", "years");
pub(super) const RECOVERY: Metric = ("recovery until the engine serves", "ms");
pub(super) const DEVICE_RECOVERY: Metric = ("recovery until the device serves", "ms");

/// The rows of a cell.
pub(super) fn rows(cell: &Cell, outcome: &Outcome) -> Vec<Row> {
    let Recovery { device_ms, engine_ms } = outcome.recovery;
    let mut numbers = service(&outcome.service);
    let whole_bytes = WHOLE_FLASH_BYTES / f64::from(cell.device.flash_divisor());
    numbers.extend(wear(&outcome.wear, whole_bytes));
    numbers.extend([(RECOVERY, engine_ms), (DEVICE_RECOVERY, device_ms)]);
    let row = |(what, measured)| {
        let row = Row::new(FIGURE, cell.name(), what, None, measured);
        row.at("", cell.engine.name(), ("device", cell.device.name()))
    };
    numbers.into_iter().map(row).collect()
}

/// What clients see, and what the device is given.
pub(super) fn service(service: &Service) -> Vec<(Metric, f64)> {
    vec![
        (THROUGHPUT, service.throughput),
        (READ_P99, service.read_p99_ms),
        (UPDATE_P99, service.update_p99_ms),
        (WRITTEN, service.written_bytes / 1024.0),
    ]
}

/// What becomes of the flash, of which a whole drive has so much. Where nothing was erased there is no lifetime to tell.
fn wear(wear: &Wear, whole_bytes: f64) -> Vec<(Metric, f64)> {
    let mut numbers =
        vec![(PROGRAMMED, wear.programmed_bytes / 1024.0), (ERASED, wear.erased_bytes / 1024.0)];
    if wear.erased_bytes > 0.0 {
        let seconds = RATED_ERASES * whole_bytes / wear.erased_bytes_per_second;
        numbers.push((ENDURANCE, RATED_ERASES * GIB / wear.erased_bytes / 1e6));
        numbers.push((LIFETIME, seconds / SECONDS_PER_YEAR));
    }
    numbers
}
