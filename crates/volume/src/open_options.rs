//! Options for opening a volume.

/// Options for opening a volume; the default is to read and write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open read-only. Nothing is written, neither to the volume nor beside it: changes of a killed
    /// writer are recovered in memory only, nothing is cleaned, and closing leaves everything as it
    /// was. So this works on a file without write permission, and on a read-only or full file system.
    /// Every change fails with [`ReadOnly`], even beginning a transaction; a flush does nothing.
    ///
    /// Several readers may have the volume open at once. Readers and a writer exclude each other
    /// ([`Locked`]). Reads return the same recovered content as after opening for writing. However,
    /// content that was never acknowledged as durable may disappear if a power cut comes before the
    /// next opening for writing.
    ///
    /// [`ReadOnly`]: tantalum_base::ErrorKind::ReadOnly
    /// [`Locked`]: tantalum_base::ErrorKind::Locked
    pub read_only: bool,
    /// Open even if durable changes are damaged and it is unknown which pages they belong to, or if a
    /// part of the map is damaged. Pages may then have older content, or reads of them may fail. The
    /// report lists the losses. Without this option, opening fails with [`Corrupt`].
    ///
    /// Unreadable blocks of the store are treated as damaged. Without this option, opening fails with
    /// the store's error, [`Io`], if it needs such a block: the error may be temporary.
    ///
    /// [`Corrupt`]: tantalum_base::ErrorKind::Corrupt
    /// [`Io`]: tantalum_base::ErrorKind::Io
    pub accept_loss: bool,
    /// Read the flash through the system's page cache, if it is a file. `media.system_cache` overrides it.
    pub system_cache: bool,
}

impl OpenOptions {
    /// Options for opening read-only.
    pub const READ_ONLY: OpenOptions =
        OpenOptions { read_only: true, accept_loss: false, system_cache: false };
}
