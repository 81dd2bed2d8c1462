//! Protections of the log that a test can switch off.

tantalum_base::fault_points! {
    /// Recovery accepts a batch whose end is missing.
    HalfBatches,
    /// Recovery reuses the versions that it dropped.
    NoVersionSkip,
    /// Recovery takes any copy as the one in force.
    NoCopyRank,
    /// A checkpoint's footer does not wait until the other pages are durable.
    NoSyncBeforeFooter,
    /// Zones are reset while what replaced their pages may still be lost.
    NoWaitForReplacements,
    /// Copies are not synced before cleaning resets the original's zone.
    NoSyncOfCopies,
    /// Zones are reset though no watermark elsewhere covers their versions.
    NoWatermark,
    /// Cleaning does not list the versions that no zone holds once it has reset one.
    DeadVersionsUnlisted,
    /// Cleaning does not list the pages that a cache let go.
    GoneUnlisted,
    /// Recovery takes older content of a page that a cache let go since.
    ForgottenPagesTaken,
    /// Zones are opened that no anchor declares.
    ZonesUndeclared,
    /// A device counts as closed, with nothing to replay, though its checkpoint does not cover every change.
    UncoveredTakenForClean,
    /// Copies stay in force after a failed sync may have dropped them.
    CopiesNotTakenBack,
    /// A flush does not wait for earlier batches of the log.
    FlushLeavesGaps,
    /// A batch that changes nothing is acknowledged as durable before the changes that made it so are.
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
    /// Cleaning takes a page that cannot be read now for lost.
    UnreadableTakenForLost,
    /// Changes go on behind acknowledged ones that could not be written.
    LaterChangesOutlive,
    /// Recovery takes decayed durable content for the end of the log.
    DamageTakenForEnd,
    /// Shares are acknowledged without having been logged.
    SharesNotLogged,
    /// Cleaning does not name the other pages of a slot that it copied.
    ReferencesNotWritten,
    /// Cleaning copies slots of shares that are not durable yet.
    CopiesOfUndurableShares,
    /// A command whose future is dropped stops midway.
    GivenUpMidway,
    /// The footer of a dump is written before its pages.
    DumpFooterFirst,
    /// A dump leaves out the mapping entries that changed.
    DeltasNotDumped,
    /// A device that has only remapped pages since it was opened dumps nothing.
    UnwrittenForgotten,
    /// A remapping that is in no log is acknowledged before the changes that it builds on are durable.
    UnwrittenNotAwaited,
    /// A share that trims as well is in force before it is sure that a dump does not take it back.
    TrimsOutliveShares,
    /// A dump has the copies of a zone that was being emptied in force, and not the originals.
    CopiesKeptAtPowerLoss,
    /// Changed mapping entries are not limited to what the stored energy can dump.
    NoDeltaLimit,
    /// The dump area is cleared before what was in it is durable elsewhere.
    DumpClearedEarly,
    /// The checkpoint after a replay does not say which dumps it makes void.
    DumpNotMadeVoid,
    /// Frames of a dump are written back over newer content.
    FramesOverNewer,
    /// A cache whose log lost changes that home has goes on with what it has.
    HomeAheadUnnoticed,
    /// Cleaning takes all that the medium can do, whoever waits behind it.
    CleaningUnpaced,
    /// With one log hosts write behind copies whose originals are not gone yet.
    WritesBehindUnfinishedCopies,
    /// A page that a share is about to change counts as clean when home has what readers still see.
    UnseenSharesClean,
    /// Zones give room back though the checkpoint in force may name them.
    RoomGivenBackEarly,
    /// A check leaves out what is not in force.
    OldContentUnchecked,
    /// A check takes for damaged what nothing says was whole once.
    LeftoversTakenForDamage,
    /// A check takes what one run of the device made durable for durable in those before.
    RunsNotToldApart,
}
