use super::cell::{Device, Engine, Host};
use super::flash::flash;
use super::measure::{Outcome, Zones, measure_on};
use super::*;
use std::rc::Rc;
use tantalum_base::{ErrorKind, PageDevice, Stamp};
use tantalum_hosts::workload::ycsb::Workload;
use tantalum_runtime::{DeviceKind, Opening, Virtual};

/// The minimum size at which a pool has frames for all clients.
const TINY: Sizes = Sizes { drive_pages: 64 << 8, ageing: 0.0, operations: 500, cuts: 2 };

/// The load of all tests except those of the loads' names.
const YCSB_A: Load = Load::Ycsb(Workload::A);

fn cell(engine: Engine, device: Device) -> Cell {
    Cell { engine, device, host: Host::of(engine, device).unwrap() }
}

#[test]
fn only_documents_in_transactions_have_no_cell() {
    let is = |cell: &Cell, engine, device| (cell.engine, cell.device) == (engine, device);
    let cells = Cell::all(YCSB_A);
    let has = |engine, device| cells.iter().any(|cell| is(cell, engine, device));
    for engine in Engine::ALL {
        for device in Device::ALL {
            let expected = (engine, device) != (Engine::Documents, Device::Transactions);
            assert_eq!(has(engine, device), expected, "{engine:?} on {device:?}");
        }
    }
}

/// A load counts its own operations, and reports nothing about changes if it makes none; through a power
/// cut as well.
#[test]
fn every_load_runs_and_tells_what_it_has() {
    let sizes = Sizes { cuts: 1, ..TINY };
    for load in Load::ALL {
        let engine = if load.runs_on(Engine::Documents) { Engine::Documents } else { Engine::Wal };
        let cell = cell(engine, Device::Share);
        let outcome = measure(cell, load, &sizes, 4).unwrap();
        let rows = table::rows(&cell, load, &outcome);
        assert!(rows.iter().all(|row| row.measured.is_finite()), "{rows:#?}");
        let tells = |metric: table::Metric| rows.iter().any(|row| row.metric == metric.0);
        let is = |workloads: &[Workload]| workloads.iter().any(|of| load == Load::Ycsb(*of));
        assert_eq!(tells(table::WRITTEN), !is(&[Workload::C]), "{load:?}");
        assert_eq!(tells(table::UPDATE_P99), is(&[Workload::A, Workload::B]), "{load:?}");
        assert_eq!(tells(table::INSERT_P99), is(&[Workload::D, Workload::E]), "{load:?}");
        assert_eq!(tells(table::SCAN_P99), is(&[Workload::E]), "{load:?}");
        assert_eq!(tells(table::READ_MODIFY_WRITE_P99), is(&[Workload::F]), "{load:?}");
        assert_eq!(tells(table::PAYMENT_P99), load == Load::Tpcc, "{load:?}");
        assert_eq!(tells(table::COMPACTIONS), engine == Engine::Documents, "{load:?}");
    }
}

#[test]
fn the_same_seed_measures_the_same() {
    let of = |seed| measure(cell(Engine::Wal, Device::Share), YCSB_A, &TINY, seed).unwrap();
    assert_eq!(of(5), of(5));
    assert_ne!(of(5), of(6));
}

/// A device without its stored energy.
struct WithoutEnergy<K>(K);

impl<K: DeviceKind<Virtual, Zones>> DeviceKind<Virtual, Zones> for WithoutEnergy<K> {
    type Device = K::Device;
    type Kept = K::Kept;
    type Report = K::Report;

    async fn format(&self, on: Opening<Virtual, Zones, K::Kept>) -> Result<Rc<K::Device>> {
        self.0.format(on).await
    }

    async fn open(
        &self,
        on: Opening<Virtual, Zones, K::Kept>,
    ) -> Result<(Rc<K::Device>, K::Report)> {
        self.0.open(on).await
    }
}

fn measured<K>(kind: K, engine: Engine, device: Device) -> Result<Outcome>
where
    K: DeviceKind<Virtual, Zones>,
    K::Device: PageDevice<Page = Stamp>,
{
    let config = flash(device, TINY.drive_pages)?;
    measure_on(kind, &config, (cell(engine, Device::DuraSsd), YCSB_A), &TINY, 3)
}

/// Every engine loses acknowledged changes if DuraSSD's capacitors are missing, and that is noticed.
#[test]
fn what_is_acknowledged_and_lost_is_noticed() {
    for engine in Engine::ALL {
        let kind = flash(Device::DuraSsd, TINY.drive_pages).unwrap().kind(3);
        measured(kind, engine, Device::DuraSsd).unwrap();
        let lost = measured(WithoutEnergy(kind), engine, Device::DuraSsd).unwrap_err();
        assert!(matches!(lost.kind(), ErrorKind::Corrupt | ErrorKind::Format), "{lost}");
    }
}

/// Forms that write each page once are not safe on a plain SSD whose flushes do not arrive.
#[test]
fn what_durassd_allows_a_plain_ssd_does_not() {
    for engine in Engine::ALL {
        let plain = flash(Device::Plain, TINY.drive_pages).unwrap().with_barrier(false);
        let lost = measured(plain.kind(3), engine, Device::Plain).unwrap_err();
        assert!(matches!(lost.kind(), ErrorKind::Corrupt | ErrorKind::Format), "{lost}");
    }
}
