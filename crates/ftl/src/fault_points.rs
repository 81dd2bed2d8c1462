//! Protections of the log that a test can switch off.

tantalum_base::fault_points! {
    /// Recovery accepts a batch whose end is missing.
    HalfBatches,
    /// Recovery reuses the versions of changes that it dropped.
    NoVersionSkip,
    /// Recovery accepts any copy as the one in force.
    NoCopyRank,
    /// A checkpoint's footer does not wait until the other pages are durable.
    NoSyncBeforeFooter,
    /// Zones are reset while the changes that replaced their pages may still be lost.
    NoWaitForReplacements,
    /// Copies are not synced before cleaning resets the original's zone.
    NoSyncOfCopies,
    /// Zones are reset although no watermark elsewhere covers their versions.
    NoWatermark,
    /// Cleaning resets a zone without listing the versions that no zone holds afterwards.
    DeadVersionsUnlisted,
    /// Cleaning does not list the pages that a cache evicted.
    GoneUnlisted,
    /// Recovery accepts older content of a page that a cache has evicted since.
    ForgottenPagesTaken,
    /// Zones are opened without an anchor that declares them.
    ZonesUndeclared,
    /// A device counts as closed, with nothing to replay, although its checkpoint does not cover every
    /// change.
    UncoveredTakenForClean,
    /// Copies stay in force after a failed sync may have dropped them.
    CopiesNotTakenBack,
    /// A flush does not wait for earlier batches of the log.
    FlushLeavesGaps,
    /// A batch that changes nothing is acknowledged as durable before the earlier changes that it relies on
    /// are durable.
    NothingAwaited,
    /// Zones are reset while they are being read.
    NoWaitForReaders,
    /// A share is visible before all of it is in force.
    SharesSeenByHalves,
    /// Contents that were read are not checked.
    NoChecksum,
    /// Writes are acknowledged and frames freed before they are durable.
    EarlyAcknowledgement,
    /// The mapping's metadata pages are not checked when they are read.
    OwnPagesUnchecked,
    /// A page that the medium has lost is forgotten.
    LostPagesForgotten,
    /// Cleaning treats a page that cannot be read now as lost.
    UnreadableTakenForLost,
    /// Changes continue after acknowledged ones that could not be written.
    LaterChangesOutlive,
    /// Recovery mistakes decayed durable content for the end of the log.
    DamageTakenForEnd,
    /// Shares are acknowledged without being logged.
    SharesNotLogged,
    /// Cleaning does not name the other pages of a slot that it copied.
    ReferencesNotWritten,
    /// Cleaning copies slots of shares that are not durable yet.
    CopiesOfUndurableShares,
    /// A command whose future is dropped stops midway.
    GivenUpMidway,
    /// The footer of a dump is written before its pages.
    DumpFooterFirst,
    /// A dump leaves out the changed mapping entries.
    DeltasNotDumped,
    /// A device dumps nothing if it has only remapped pages since it was opened.
    UnwrittenForgotten,
    /// An unlogged remapping is acknowledged before the changes that it builds on are durable.
    UnwrittenNotAwaited,
    /// A share that also trims is in force before it is certain that no dump will undo it.
    TrimsOutliveShares,
    /// A dump records the copies of a zone that was being emptied as in force, instead of the originals.
    CopiesKeptAtPowerLoss,
    /// More mapping entries may change than the stored energy can dump.
    NoDeltaLimit,
    /// The dump area is cleared before its content is durable elsewhere.
    DumpClearedEarly,
    /// The checkpoint after a replay does not record which dumps it invalidates.
    DumpNotMadeVoid,
    /// Frames of a dump are written back over newer content.
    FramesOverNewer,
    /// A cache whose log lost changes that home has continues with its old content.
    HomeAheadUnnoticed,
    /// Cleaning uses all the bandwidth of the medium, even if hosts wait behind it.
    CleaningUnpaced,
    /// With one log, hosts write behind copies whose originals are not reset yet.
    WritesBehindUnfinishedCopies,
    /// A page that a share is about to change counts as clean because home has the content that readers
    /// still see.
    UnseenSharesClean,
    /// Zones release their room although the checkpoint in force may name them.
    RoomGivenBackEarly,
    /// A check leaves out content that is not in force.
    OldContentUnchecked,
    /// A check reports content as damaged that was never known to be whole.
    LeftoversTakenForDamage,
    /// A check applies the durability of one run of the device to earlier runs.
    RunsNotToldApart,
}
