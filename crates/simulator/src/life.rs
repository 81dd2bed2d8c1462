//! A scenario: the life of one device, from its format through every time that it had power.
use tantalum_base::PAGE_BYTES;
use tantalum_media::Fate;
use tantalum_media::block_store::LostBlocks;
use tantalum_models::rig::IoFault;

use super::command::Command;
use super::passing::Passing;

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
    /// Reads of the medium, of one durable slot each, at which what is read is damaged, counted from the
    /// power-on.
    pub decaying_reads: Vec<u64>,
    /// Appends that are reported done and not there, counted from the power-on.
    pub lost_writes: Vec<LostWrite>,
    /// Writes and syncs of a file that fail. Files only.
    pub io_faults: Vec<IoFault>,
    /// I/O errors that pass.
    pub passing: Vec<Passing>,
    /// What is damaged in the dark behind the end.
    pub strikes: Vec<Strike>,
}

/// An append that is reported done and not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// Its number since the power came on.
    pub append: u64,
    /// How much of it is not there.
    pub part: LostBlocks,
}

/// Damage to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// Which slot: counted from the newest append backwards, of each its header before its pages; behind
    /// the oldest all other slots of the medium, and then from the newest append again.
    pub place: u64,
    /// What becomes of it.
    pub how: How,
}

/// Bits in a slot.
pub(super) const SLOT_BITS: u32 = 8 * PAGE_BYTES as u32;

/// What a strike does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One bit, of those of the slot, is another; on NAND the content is another than its spare says.
    Flip(u32),
    /// The slot is zeros; on NAND the flash page cannot be read.
    Wipe,
    /// What stands beside the page is gone: on NAND the spare area of the flash page, on a file the header
    /// page of the append.
    Spare,
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
    /// Writes, zeroings and syncs of the home that the device is a cache of.
    Home,
    /// Writes and syncs of the journal beside that.
    Journal,
}

impl CutAt {
    /// All of them, the medium first.
    pub const ALL: [CutAt; 4] = [CutAt::Media, CutAt::Nvram, CutAt::Home, CutAt::Journal];

    /// What stands before the number of the operation in a text.
    pub(super) fn letter(self) -> &'static str {
        match self {
            CutAt::Media => "",
            CutAt::Nvram => "n",
            CutAt::Home => "h",
            CutAt::Journal => "j",
        }
    }
}

/// How many operations there were, of each kind at which power can be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations([u64; CutAt::ALL.len()]);

impl Operations {
    /// As `count` says of each kind.
    pub(super) fn counted(count: impl Fn(CutAt) -> u64) -> Self {
        Operations(CutAt::ALL.map(count))
    }

    /// Those of one kind.
    pub fn at(&self, at: CutAt) -> u64 {
        self.0[at as usize]
    }

    /// Those since it was `before`.
    pub(super) fn since(&self, before: Operations) -> Self {
        Self::counted(|at| self.at(at).saturating_sub(before.at(at)))
    }

    /// The same but for those of the medium, of which there are none.
    pub(super) fn beside_the_medium(self) -> Self {
        Self::counted(|at| if at == CutAt::Media { 0 } else { self.at(at) })
    }
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

    /// Whether anything is damaged, in the dark or as it is read, or lost as it is written.
    pub fn is_damaged(&self) -> bool {
        let is_damaged = |power_on: &PowerOn| {
            let PowerOn { strikes, lost_writes, decaying_reads, .. } = power_on;
            !(strikes.is_empty() && lost_writes.is_empty() && decaying_reads.is_empty())
        };
        self.power_ons.iter().any(is_damaged)
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
