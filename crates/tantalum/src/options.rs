//! Options for opening a volume.

/// How a volume is opened; the default is to read and write it, on the threads of its callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open read-only: every change is refused with `ReadOnly`, even beginning a transaction, and a flush does nothing. Nothing
    /// is written, neither to the volume nor beside it, so this works on a file without write permission, and on a read-only or
    /// full file system. Several readers may have the volume open at once. Readers and a writer exclude each other (`Locked`).
    pub read_only: bool,
    /// Open even if durable changes are damaged and it is unknown which pages they belong to, or if a part of the map is
    /// damaged. Pages may then have older content, or reads of them may fail. Without this option, opening fails with
    /// `Corrupt`. It is only for a process that opens the file itself, and not through a server.
    pub accept_loss: bool,
    /// The threads on which the volume runs, if this process opens the file itself.
    pub placement: Placement,
}

/// The threads on which a volume runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the callers' threads: no thread switches, and each caller makes its own system calls. Cleaning and checkpoints
    /// progress only during calls.
    #[default]
    Caller,
    /// On a thread of its own: many callers share its group commits, and it cleans even without calls.
    Thread,
}

impl OpenOptions {
    /// Options for opening read-only.
    pub const READ_ONLY: OpenOptions =
        OpenOptions { read_only: true, accept_loss: false, placement: Placement::Caller };

    /// The options of the device.
    pub(crate) fn of_device(self) -> tantalum_volume::OpenOptions {
        let OpenOptions { read_only, accept_loss, placement: _ } = self;
        // The system's page cache keeps its content after a program ends, and a program may have no cache of its own.
        tantalum_volume::OpenOptions { read_only, accept_loss, system_cache: true }
    }
}
