//! Protections of the middle tier that a test can switch off.

tantalum_base::fault_points! {
    /// An epoch is committed before its contents are durable in the journal.
    NoSyncBeforeCommit,
    /// A journal is written over while it says that the epoch in it is committed.
    CommittedWrittenOver,
    /// Both copies of a journal's head are written at the same time.
    HeadsWrittenTogether,
    /// The index of a committed epoch is not compared with what was committed.
    IndexUnchecked,
    /// Contents that are read back from a journal are not checked.
    ContentsUnchecked,
    /// An epoch goes to the journal before the flash has all of it for good.
    EpochNotSettled,
    /// Pages are marked clean before home has them durably.
    HomeNotFlushed,
    /// A page may change though the present epoch needs what it holds.
    PagesNotPreserved,
    /// An epoch that is found in the journal replaces what home has of pages that are clean.
    CleanPagesReplaced,
    /// A home that is ahead of the flash is read before it has all of the epoch in its journal.
    HomeNotCaughtUp,
    /// A volume over a home is opened, and nothing beside home says that its flash may have what home lacks.
    HomeNotClaimed,
    /// The ends of a home are changed, for its claim, before the journal has what they held.
    ClaimNotJournaled,
    /// A change of the claim that was cut short is made again from what home has, not from what was saved.
    ClaimToggled,
    /// What is trimmed in the claimed bytes of a home becomes zeros on the medium.
    TrimsUnclaimed,
    /// A home on which somebody wrote over the claim is opened.
    ClaimNotChecked,
    /// A home without a claim that somebody changed is opened.
    ChangesUnnoticed,
    /// Pages go home one by one, and nothing says so in the journal.
    HomeNotForetold,
    /// What was changed while an epoch was written down counts as part of it after a crash.
    LaterChangesClean,
    /// Pages of an epoch that the flash has lost count as part of it after a crash.
    UnreadPagesClean,
    /// A page that the flash cannot read counts as lost at once: the epoch is committed without it.
    EpochWithoutUnreadable,
    /// Where pages go home one by one, those go too of which the flash refused a write, as they are when they are read.
    RefusedWritesGoHome,
    /// More ranges may be trimmed than the journal has room for.
    TrimsUnlimited,
    /// Changes are acknowledged before home has them, in a mode that promises otherwise.
    HomeNotAwaited,
    /// A page comes into the cache though it changed since it was read from home.
    StalePagesTakenIn,
    /// Transactions are staged though nothing more may be newer than at home.
    StagedWithoutRoom,
}
