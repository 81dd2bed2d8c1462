//! The cells of the comparison: engines, devices, and the form of an engine on a device.
use tantalum_hosts::docstore::Mode;
use tantalum_hosts::double_write::Form;
use tantalum_hosts::wal_engine::WalForm;

use super::load::Load;

/// A storage engine of [`tantalum_hosts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    DoubleWrite,
    Wal,
    Documents,
}

impl Engine {
    pub(super) const ALL: [Engine; 3] = [Engine::DoubleWrite, Engine::Wal, Engine::Documents];

    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::DoubleWrite => "double_write",
            Engine::Wal => "wal_engine",
            Engine::Documents => "docstore",
        }
    }
}

/// The devices: the same flash with different firmware, or flash before a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// A volatile cache, written back page by page. It tears writes that are longer than a page.
    Plain,
    /// A cache that is dumped on stored energy: acknowledged writes are durable, and each is atomic.
    DuraSsd,
    /// A volatile cache that keeps the order of writes, and the SHARE command.
    Share,
    /// The same cache, and transactions.
    Transactions,
    /// A quarter of the flash, with the same cache, before a disk.
    Tiered,
}

impl Device {
    pub(super) const ALL: [Device; 5] =
        [Device::Plain, Device::DuraSsd, Device::Share, Device::Transactions, Device::Tiered];

    pub(super) fn name(self) -> &'static str {
        match self {
            Device::Plain => "plain SSD",
            Device::DuraSsd => "DuraSSD",
            Device::Share => "SHARE",
            Device::Transactions => "transactions",
            Device::Tiered => "tiered",
        }
    }

    /// The divisor of the number of flash blocks, relative to the others: a cache is smaller than its home.
    pub(super) fn flash_divisor(self) -> u32 {
        if self == Device::Tiered { 4 } else { 1 }
    }
}

/// An engine in its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    DoubleWrite(Form),
    Wal(WalForm),
    Documents(Mode),
}

impl Host {
    /// The engine in the cheapest form that is safe on this device; `None` if no form uses the device's feature.
    pub(super) fn of(engine: Engine, device: Device) -> Option<Host> {
        Some(match engine {
            Engine::DoubleWrite => Host::DoubleWrite(match device {
                Device::Plain => Form::On,
                Device::DuraSsd | Device::Tiered => Form::Off,
                Device::Share => Form::Share,
                Device::Transactions => Form::Transactions,
            }),
            Engine::Wal => Host::Wal(match device {
                Device::Plain => WalForm::FullPages,
                Device::DuraSsd | Device::Tiered => WalForm::NoFullPages,
                Device::Share => WalForm::Share,
                Device::Transactions => WalForm::Transactions,
            }),
            Engine::Documents => Host::Documents(match device {
                Device::Plain | Device::DuraSsd | Device::Tiered => Mode::Original,
                Device::Share => Mode::Share,
                // Documents have no form in which a commit is a transaction of the device.
                Device::Transactions => return None,
            }),
        })
    }

    /// The name of the form in the papers.
    pub(super) fn form(self) -> &'static str {
        match self {
            Host::DoubleWrite(form) => form.name(),
            Host::Wal(form) => form.name(),
            Host::Documents(mode) => mode.name(),
        }
    }
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) engine: Engine,
    pub(super) device: Device,
    pub(super) host: Host,
}

impl Cell {
    /// All cells that can run a load, engine by engine.
    pub(super) fn all(load: Load) -> Vec<Cell> {
        let of = |engine| {
            let on =
                move |device| Host::of(engine, device).map(|host| Cell { engine, device, host });
            Device::ALL.into_iter().filter_map(on)
        };
        Engine::ALL.into_iter().filter(|engine| load.runs_on(*engine)).flat_map(of).collect()
    }

    /// Its name in rows.
    pub(super) fn name(&self) -> String {
        format!("{}, {}, {}", self.engine.name(), self.device.name(), self.host.form())
    }
}
