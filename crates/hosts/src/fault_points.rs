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
    /// A page is written while the log of its changes may still be lost.
    PagesBeforeLog,
    /// A commit is acknowledged while its log may still be lost.
    NoFlushAfterLog,
    /// The changes of a transaction are logged page by page.
    GroupsCutShort,
    /// The log is written over where recovery needs it.
    NoWaitForLogRoom,
    /// Homes are written while their copies may still be lost.
    NoFlushBeforeHomes,
    /// The double-write area is used again while the homes may still be torn.
    NoFlushAfterHomes,
    /// The log before a checkpoint is given up while the checkpoint may still be lost.
    NoFlushAfterCheckpoint,
    /// What recovery found in the log may still be lost when pages with it are written.
    NoFlushBeforeRecovery,
    /// A record is taken for whole whatever its checksum says.
    ChecksumsIgnored,
    /// A record is read also from the middle of another one, where what a user stored may look like one.
    RecordsAnywhere,
    /// A damaged block of the log is taken for its end, whatever is behind it.
    LogDamageTakenForItsEnd,
    /// A page is read that has changes of which the log knows nothing.
    NewerPagesTaken,
    /// The tasks of an engine whose opening is given up write on.
    OpeningGoesOn,
    /// A redo change is made in a page that lacks the one before it.
    LostWritesIgnored,
    /// No page is logged whole at its first change after a checkpoint.
    NoWholePages,
    /// Pages that are changed while a checkpoint is under way are logged as before it.
    WholePagesTooLate,
    /// A recovery reads pages that the log replaces later.
    ReplacedPagesRead,
    /// A checkpoint gives up the log while homes may still be lost.
    NoFlushBeforeCheckpoint,
}
