//! How a volume is opened.

/// How a volume is opened; the default is to read and write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// To be read only. Nothing is written, neither to the volume nor beside it: what a writer that was
    /// killed left is recovered in memory alone, nothing is cleaned, and closing leaves all as it was.
    /// So it works on a file that may not be written, and on a read-only or full file system. Every
    /// change is refused as [`ReadOnly`], a transaction's beginning too; a flush has nothing to do.
    ///
    /// Many may have the volume open like that at once, but nobody while another one may write
    /// ([`Locked`]). What is read was recovered as it would be to write; but what nobody was told of as
    /// durable may be gone after a power cut before the next opening to write.
    ///
    /// [`ReadOnly`]: tantalum_base::ErrorKind::ReadOnly
    /// [`Locked`]: tantalum_base::ErrorKind::Locked
    pub read_only: bool,
    /// Also where changes that were durable are damaged and nobody knows which pages they were of, or a
    /// part of the map is: pages may then hold what they held before, or be errors. The report says
    /// what is given up. Otherwise opening is refused as [`Corrupt`].
    ///
    /// Blocks of the store that cannot be read are taken for damaged. Otherwise opening is refused with
    /// the store's error, [`Io`], where it needs one of them: it may pass.
    ///
    /// [`Corrupt`]: tantalum_base::ErrorKind::Corrupt
    /// [`Io`]: tantalum_base::ErrorKind::Io
    pub accept_loss: bool,
}

impl OpenOptions {
    /// To be read only.
    pub const READ_ONLY: OpenOptions = OpenOptions { read_only: true, accept_loss: false };
}
