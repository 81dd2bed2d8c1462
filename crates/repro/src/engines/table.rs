//! The results of a cell, as rows.
use super::super::Row;
use super::cell::Cell;
use super::load::Load;
use super::measure::{Outcome, Recovery, Wear};
use super::served::Service;

/// Number of times that a block may be erased. Chosen: the rating of multi-level-cell flash of the time.
const RATED_ERASES: f64 = 3_000.0;

/// The flash of a whole drive, of which the simulated one is a part: 512 GiB for DuraSSD's 480 GB.
const WHOLE_FLASH_BYTES: f64 = 512.0 * GIB;
const GIB: f64 = (1_u64 << 30) as f64;

const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

/// The name of a metric, and its unit.
pub(super) type Metric = (&'static str, &'static str);

pub(super) const THROUGHPUT: Metric = ("throughput", "operations/s");
pub(super) const READ_P99: Metric = ("P99 of a read", "ms");
pub(super) const UPDATE_P99: Metric = ("P99 of an update", "ms");
pub(super) const INSERT_P99: Metric = ("P99 of an insert", "ms");
pub(super) const SCAN_P99: Metric = ("P99 of a scan", "ms");
pub(super) const READ_MODIFY_WRITE_P99: Metric = ("P99 of a read-modify-write", "ms");
pub(super) const NEW_ORDER_P99: Metric = ("P99 of a New-Order", "ms");
pub(super) const PAYMENT_P99: Metric = ("P99 of a Payment", "ms");
pub(super) const ORDER_STATUS_P99: Metric = ("P99 of an Order-Status", "ms");
pub(super) const DELIVERY_P99: Metric = ("P99 of a Delivery", "ms");
pub(super) const STOCK_LEVEL_P99: Metric = ("P99 of a Stock-Level", "ms");
pub(super) const TRANSACTION_P99: Metric = ("P99 of a transaction", "ms");
pub(super) const ADD_LINK_P99: Metric = ("P99 of an Add-Link", "ms");
pub(super) const DELETE_LINK_P99: Metric = ("P99 of a Delete-Link", "ms");
pub(super) const UPDATE_LINK_P99: Metric = ("P99 of an Update-Link", "ms");
pub(super) const COUNT_LINK_P99: Metric = ("P99 of a Count-Link", "ms");
pub(super) const MULTIGET_LINK_P99: Metric = ("P99 of a Multiget-Link", "ms");
pub(super) const GET_LINK_LIST_P99: Metric = ("P99 of a Get-Link-List", "ms");
pub(super) const GET_NODE_P99: Metric = ("P99 of a Get-Node", "ms");
pub(super) const ADD_NODE_P99: Metric = ("P99 of an Add-Node", "ms");
pub(super) const UPDATE_NODE_P99: Metric = ("P99 of an Update-Node", "ms");
pub(super) const DELETE_NODE_P99: Metric = ("P99 of a Delete-Node", "ms");
pub(super) const WRITTEN: Metric = ("written to the device by a change", "KiB");
pub(super) const COMPACTIONS: Metric = ("compactions meanwhile", "files");
pub(super) const PROGRAMMED: Metric = ("programmed into flash by a change", "KiB");
pub(super) const ERASED: Metric = ("erased in flash by a change", "KiB");
pub(super) const ENDURANCE: Metric = ("changes until the flash is worn out", "millions per GiB");
pub(super) const LIFETIME: Metric = ("lifetime of a whole drive at this throughput", "years");
pub(super) const RECOVERY: Metric = ("recovery until the engine serves", "ms");
pub(super) const DEVICE_RECOVERY: Metric = ("recovery until the device serves", "ms");

/// The rows of a cell under a load.
pub(super) fn rows(cell: &Cell, load: Load, outcome: &Outcome) -> Vec<Row> {
    let Recovery { device_ms, engine_ms } = outcome.recovery;
    let mut numbers = service(&outcome.service);
    let whole_bytes = WHOLE_FLASH_BYTES / f64::from(cell.device.flash_divisor());
    numbers.extend(wear(&outcome.wear, outcome.service.changes, whole_bytes));
    numbers.extend([(RECOVERY, engine_ms), (DEVICE_RECOVERY, device_ms)]);
    let row = |(what, measured)| {
        let row = Row::new(load.figure(), cell.name(), what, None, measured);
        row.at("", cell.engine.name(), ("device", cell.device.name()))
    };
    numbers.into_iter().map(row).collect()
}

/// The results for clients, and the writes to the device per change, if they change anything.
pub(super) fn service(service: &Service) -> Vec<(Metric, f64)> {
    let mut numbers = vec![(THROUGHPUT, service.throughput)];
    numbers.extend(&service.p99_ms);
    if service.changes > 0 {
        numbers.push((WRITTEN, service.written_bytes / 1024.0 / service.changes as f64));
    }
    numbers.extend(service.compactions.map(|compactions| (COMPACTIONS, compactions as f64)));
    numbers
}

/// The wear of the flash, for a whole drive of this size. Empty if nothing was changed, or erased.
fn wear(wear: &Wear, changes: u64, whole_bytes: f64) -> Vec<(Metric, f64)> {
    let mut numbers = Vec::new();
    if changes > 0 {
        let kib = |bytes: f64| bytes / 1024.0 / changes as f64;
        numbers
            .extend([(PROGRAMMED, kib(wear.programmed_bytes)), (ERASED, kib(wear.erased_bytes))]);
    }
    if changes > 0 && wear.erased_bytes > 0.0 {
        let all = RATED_ERASES / wear.erased_bytes;
        numbers.push((ENDURANCE, all * GIB * changes as f64 / 1e6));
        numbers.push((LIFETIME, all * whole_bytes * wear.seconds / SECONDS_PER_YEAR));
    }
    numbers
}
