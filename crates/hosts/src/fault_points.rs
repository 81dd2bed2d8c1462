//! Protections of the engines that a test can switch off.

tantalum_base::fault_points! {
    /// A header is written while pages that it refers to may still be lost.
    NoFlushBeforeHeader,
    /// A commit is acknowledged while its header may still be lost.
    NoFlushAfterHeader,
    /// The directory names a new file whose content may still be lost.
    NoFlushBeforeSwitch,
    /// An old file is deleted while the directory may still name it.
    NoFlushBeforeDeletion,
    /// The directory is changed again while its last change may still be lost.
    NoFlushBetweenDirectories,
    /// A file is deleted while it is being read.
    NoWaitForReaders,
    /// A document that outgrew its place is shared into it anyway.
    SharesCutShort,
    /// A compaction leaves out the changes that commits made while it copied.
    NoCatchUp,
    /// Documents are remapped before, not together with, the header.
    SharesSeenBeforeTheHeader,
    /// A page is written while the log of its changes may still be lost.
    PagesBeforeLog,
    /// A commit is acknowledged while its log may still be lost.
    NoFlushAfterLog,
    /// The changes of a transaction are logged page by page, not as one group.
    GroupsCutShort,
    /// The log is overwritten at a place that recovery needs.
    NoWaitForLogRoom,
    /// Homes are written while their copies may still be lost.
    NoFlushBeforeHomes,
    /// The double-write area is reused while the homes may still be torn.
    NoFlushAfterHomes,
    /// The log before a checkpoint is freed while the checkpoint may still be lost.
    NoFlushAfterCheckpoint,
    /// Pages are written with changes from the log that may still be lost.
    NoFlushBeforeRecovery,
    /// A record counts as whole even if its checksum is wrong.
    ChecksumsIgnored,
    /// A record is also read from the middle of another one, where a user's value may look like a
    /// record.
    RecordsAnywhere,
    /// A damaged block of the log counts as its end, even if more blocks follow.
    LogDamageTakenForItsEnd,
    /// A page is accepted although the log lacks some of its changes.
    NewerPagesTaken,
    /// If the opening of an engine is given up, its tasks continue to write.
    OpeningGoesOn,
    /// A redo change is applied to a page that lacks the previous change.
    LostWritesIgnored,
    /// No page is logged whole at its first change after a checkpoint.
    NoWholePages,
    /// Pages that are changed during a checkpoint are logged as if it had not begun.
    WholePagesTooLate,
    /// A recovery reads pages that the log replaces later.
    ReplacedPagesRead,
    /// A checkpoint frees the log while homes may still be lost.
    NoFlushBeforeCheckpoint,
}
