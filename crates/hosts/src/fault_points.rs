//! Protections of the engines that a test can switch off.

tantalum_base::fault_points! {
    /// A header is written while what it refers to may still be lost.
    NoFlushBeforeHeader,
    /// A commit is acknowledged while its header may still be lost.
    NoFlushAfterHeader,
    /// The directory names a new file while what is in it may still be lost.
    NoFlushBeforeSwitch,
    /// An old file is deleted while the directory may still name it.
    NoFlushBeforeDeletion,
    /// The directory is changed again while its last change may still be lost.
    NoFlushBetweenDirectories,
    /// A file is deleted while it is being read.
    NoWaitForReaders,
    /// A document that outgrew its place is shared into it all the same.
    SharesCutShort,
    /// A compaction leaves out what commits changed while it copied.
    NoCatchUp,
    /// Documents are remapped before, not together with, the header.
    SharesSeenBeforeTheHeader,
}
