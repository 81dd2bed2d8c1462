//! Protections of the middle tier that a test can switch off.

tantalum_base::fault_points! {
    /// An epoch is committed before its contents are durable in the journal.
    NoSyncBeforeCommit,
    /// A journal is overwritten while its head still says that its epoch is committed.
    CommittedWrittenOver,
    /// Both copies of a journal's head are written at the same time.
    HeadsWrittenTogether,
    /// The index of a committed epoch is not compared with the committed checksum.
    IndexUnchecked,
    /// Contents that are read back from a journal are not checked.
    ContentsUnchecked,
    /// An epoch is written to the journal before all of it is durable in the flash.
    EpochNotSettled,
    /// Pages are marked clean before the home has them durably.
    HomeNotFlushed,
    /// A page may change although the present epoch still needs its content.
    PagesNotPreserved,
    /// An epoch found in the journal overwrites clean pages on the home.
    CleanPagesReplaced,
    /// A home that is ahead of the flash is read before it has all of the epoch in its journal.
    HomeNotCaughtUp,
    /// A volume over a home is opened, and the journal beside the home does not record that its
    /// flash may have newer content.
    HomeNotClaimed,
    /// The ends of a home are changed for its claim before their content is in the journal.
    ClaimNotJournaled,
    /// An interrupted change of the claim is redone from the home's content, not from the saved
    /// content.
    ClaimToggled,
    /// Trims in the claimed bytes of a home become zeros on the medium.
    TrimsUnclaimed,
    /// A home is opened although another program wrote over its claim.
    ClaimNotChecked,
    /// A home without a claim is opened although another program changed it.
    ChangesUnnoticed,
    /// Pages are destaged without an epoch, and the journal does not record this.
    HomeNotForetold,
    /// Changes made while an epoch was written to the journal count as part of it after a crash.
    LaterChangesClean,
    /// Pages of an epoch that the flash has lost count as part of it after a crash.
    UnreadPagesClean,
    /// A page that the flash cannot read counts as lost at once: the epoch is committed without it.
    EpochWithoutUnreadable,
    /// Without epochs, pages are destaged with their current content even if the flash refused
    /// their last write.
    RefusedWritesGoHome,
    /// More ranges may be trimmed than the journal has room for.
    TrimsUnlimited,
    /// Changes are acknowledged before they are on the home, in a mode that promises this.
    HomeNotAwaited,
    /// A page is admitted to the cache although it changed since it was read from the home.
    StalePagesTakenIn,
    /// Transactions are staged although no more pages may be newer than on the home.
    StagedWithoutRoom,
}
