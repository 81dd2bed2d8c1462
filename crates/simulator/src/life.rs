//! A scenario: the life of one device, from its format through every power-on period.
use tantalum_base::PAGE_BYTES;
use tantalum_media::Fate;
use tantalum_media::block_store::LostBlocks;
use tantalum_models::rig::IoFault;

use super::command::Command;
use super::passing::Passing;

/// The life of a device. Together with the device and the medium it determines everything that happens, to
/// the last operation; `text` writes it as text and reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Seed of schedules, latencies and the random choices at a cut.
    pub seed: u64,
    /// Logical pages of the device.
    pub pages: u64,
    /// All power-on periods. After the last one the device is opened once more, checked and closed.
    pub power_ons: Vec<PowerOn>,
}

/// One power-on period: the device is formatted (the first time) or recovered and checked, clients run,
/// and the power is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerOn {
    /// The commands of each client; clients run concurrently, each one command after the other.
    pub clients: Vec<Vec<Command>>,
    /// The way it ends.
    pub end: End,
    /// Programs of the medium that fail, counted from the start of the period. NAND only.
    pub failing_programs: Vec<u64>,
    /// Reads of the medium, of one durable slot each, at which the slot is damaged, counted from the start
    /// of the period.
    pub decaying_reads: Vec<u64>,
    /// Appends that are reported as done but not written, counted from the start of the period.
    pub lost_writes: Vec<LostWrite>,
    /// Writes and syncs of a file that fail. Files only.
    pub io_faults: Vec<IoFault>,
    /// I/O errors that pass.
    pub passing: Vec<Passing>,
    /// Damage done while the power is off after the end.
    pub strikes: Vec<Strike>,
}

/// An append that is reported as done but not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// Its number since the start of the period.
    pub append: u64,
    /// The part of it that is not written.
    pub part: LostBlocks,
}

/// Damage to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// The slot: counted backwards from the newest append, with the header of each before its pages; after
    /// the oldest come all other slots of the medium, and then the newest append again.
    pub place: u64,
    /// The kind of damage.
    pub how: How,
}

/// Number of bits in a slot.
pub(super) const SLOT_BITS: u32 = 8 * PAGE_BYTES as u32;

/// The effect of a strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One bit of the slot is flipped; on NAND the content does not match its spare.
    Flip(u32),
    /// The slot is zeros; on NAND the flash page cannot be read.
    Wipe,
    /// The metadata beside the page is gone: on NAND the spare area of the flash page, on a file the
    /// header page of the append.
    Spare,
}

/// How a power-on period ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The power is cut when every client is done; operations in flight meet fates of their own.
    #[default]
    Dark,
    /// The device is closed in good order first.
    Close,
    /// The power is cut at an operation; if that is not reached, as with `Dark`.
    Cut(Cut),
}

/// The place of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The kind of operations that are counted.
    pub at: CutAt,
    /// Number of operations since the start of the period (since the format, the first time) that complete
    /// before the cut: a small number falls into the recovery.
    pub after: u64,
    /// The fate of the operation that is cut.
    pub fate: Fate,
}

/// The kind of operations that a cut counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutAt {
    /// Operations of the medium that change it.
    Media,
    /// Stores to NVRAM.
    Nvram,
    /// Writes, zeroings and syncs of the home behind a cache.
    Home,
    /// Writes and syncs of the journal beside the home.
    Journal,
}

impl CutAt {
    /// All of them, the medium first.
    pub const ALL: [CutAt; 4] = [CutAt::Media, CutAt::Nvram, CutAt::Home, CutAt::Journal];

    /// The prefix of the operation's number in a text.
    pub(super) fn letter(self) -> &'static str {
        match self {
            CutAt::Media => "",
            CutAt::Nvram => "n",
            CutAt::Home => "h",
            CutAt::Journal => "j",
        }
    }
}

/// Numbers of operations of each kind at which power can be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations([u64; CutAt::ALL.len()]);

impl Operations {
    /// Calls `count` for each kind.
    pub(super) fn counted(count: impl Fn(CutAt) -> u64) -> Self {
        Operations(CutAt::ALL.map(count))
    }

    /// The number of one kind.
    pub fn at(&self, at: CutAt) -> u64 {
        self.0[at as usize]
    }

    /// The difference to `before`.
    pub(super) fn since(&self, before: Operations) -> Self {
        Self::counted(|at| self.at(at).saturating_sub(before.at(at)))
    }

    /// The same without the operations of the medium.
    pub(super) fn beside_the_medium(self) -> Self {
        Self::counted(|at| if at == CutAt::Media { 0 } else { self.at(at) })
    }
}

impl Cut {
    /// A cut at an operation of the medium.
    pub fn media(after: u64, fate: Fate) -> End {
        End::Cut(Cut { at: CutAt::Media, after, fate })
    }
}

impl Life {
    /// Number of commands of all clients.
    pub fn commands(&self) -> usize {
        let clients = self.power_ons.iter().flat_map(|power_on| &power_on.clients);
        clients.map(Vec::len).sum()
    }

    /// Maximum number of clients at one time.
    pub fn clients(&self) -> usize {
        self.power_ons.iter().map(|power_on| power_on.clients.len()).max().unwrap_or(0)
    }

    /// Whether anything is damaged, while the power is off or as it is read, or lost as it is written.
    pub fn is_damaged(&self) -> bool {
        let is_damaged = |power_on: &PowerOn| {
            let PowerOn { strikes, lost_writes, decaying_reads, .. } = power_on;
            !(strikes.is_empty() && lost_writes.is_empty() && decaying_reads.is_empty())
        };
        self.power_ons.iter().any(is_damaged)
    }

    /// Number of planned cuts.
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
