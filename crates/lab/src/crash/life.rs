//! A scenario: the life of one device, from its format through every time that it had power.
use tantalum_media::Fate;

use super::command::Command;

/// The life of a device. Together with the device and the medium it says all that happens, to the
/// last operation; `text` writes it down and reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Seed of schedules, latencies and of what is left to chance at a cut.
    pub seed: u64,
    /// Logical pages of the device.
    pub pages: u64,
    /// Every time it has power. After the last one it is opened once more, checked and closed.
    pub power_ons: Vec<PowerOn>,
}

/// One time with power: the device is formatted (the first time) or recovered and checked, clients
/// run, and the power goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerOn {
    /// The commands of each client; clients run concurrently, each one command after the other.
    pub clients: Vec<Vec<Command>>,
    /// How it ends.
    pub end: End,
    /// Programs of the medium that fail, counted from the power-on. NAND only.
    pub failing_programs: Vec<u64>,
    /// Reads of the medium, of one slot each, at which what is read decays, counted from the power-on;
    /// where that is nothing that may decay, it is the first behind it that may.
    pub decaying_reads: Vec<u64>,
}

/// How a time with power ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The power goes when every client is done; what is in flight meets fates of its own.
    #[default]
    Dark,
    /// The device is closed in good order first.
    Close,
    /// The power goes at an operation, or else, where that is not reached, as with `Dark`.
    Cut(Cut),
}

/// Where power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What is counted.
    pub at: CutAt,
    /// Operations since the power-on (since the format, the first time) that complete before: a
    /// small number falls into the recovery.
    pub after: u64,
    /// What becomes of the one that is cut.
    pub fate: Fate,
}

/// What a cut counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutAt {
    /// Operations of the medium that change it.
    Media,
    /// Stores to NVRAM.
    Nvram,
}

impl Cut {
    /// At an operation of the medium.
    pub fn media(after: u64, fate: Fate) -> End {
        End::Cut(Cut { at: CutAt::Media, after, fate })
    }
}

impl Life {
    /// Commands of all clients.
    pub fn commands(&self) -> usize {
        let clients = self.power_ons.iter().flat_map(|power_on| &power_on.clients);
        clients.map(Vec::len).sum()
    }

    /// Most clients at one time.
    pub fn clients(&self) -> usize {
        self.power_ons.iter().map(|power_on| power_on.clients.len()).max().unwrap_or(0)
    }

    /// Whether anything decays.
    pub fn decays(&self) -> bool {
        self.power_ons.iter().any(|power_on| !power_on.decaying_reads.is_empty())
    }

    /// Planned cuts.
    pub fn cuts(&self) -> usize {
        let is_cut = |power_on: &&PowerOn| matches!(power_on.end, End::Cut(_));
        self.power_ons.iter().filter(is_cut).count()
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
