//! Protections of the log that a test can switch off.

tantalum_base::fault_points! {
    /// Recovery accepts a batch of which the end is missing.
    HalfBatches,
    /// Recovery uses the versions again that it dropped.
    NoVersionSkip,
    /// Recovery takes any copy for the one in force.
    NoCopyRank,
    /// A checkpoint's footer does not wait for what it points to.
    NoSyncBeforeFooter,
    /// Zones are reset while what replaced their pages may still vanish.
    NoWaitForReplacements,
    /// What cleaning copied is not synced before the original goes.
    NoSyncOfCopies,
    /// Zones are reset though no watermark elsewhere covers what was in them.
    NoWatermark,
    /// Cleaning does not list the versions that are found nowhere once it has reset a zone.
    DeadVersionsUnlisted,
    /// Zones are opened though no anchor says that they may be.
    ZonesUndeclared,
    /// What cleaning copied stays in force where a sync dropped it.
    CopiesNotTakenBack,
    /// A flush does not wait for what is before it in the log.
    FlushLeavesGaps,
    /// Zones are reset while they are being read.
    NoWaitForReaders,
    /// A share is seen before all of it is in force.
    SharesSeenByHalves,
    /// Contents that were read are not checked.
    NoChecksum,
    /// Writes are acknowledged and frames given up before they are durable.
    EarlyAcknowledgement,
    /// Pages of the mapping's own are not checked when they are read.
    OwnPagesUnchecked,
    /// Cleaning forgets a page that the medium cannot give back.
    LostPagesForgotten,
    /// Recovery takes durable content that has decayed for the end of the log.
    DamageTakenForEnd,
    /// Shares are acknowledged without having been logged.
    SharesNotLogged,
    /// Cleaning does not write down which other pages share what it copied.
    SharersLeftBehind,
    /// Cleaning copies for pages whose share is not durable yet.
    SharersAheadOfLog,
    /// A command of which the caller drops the future stays where it is.
    GivenUpMidway,
    /// The footer of a dump is written before its pages.
    DumpFooterFirst,
    /// A dump leaves out the mapping entries that changed.
    DeltasNotDumped,
    /// Changed mapping entries are neither backed up nor held to what the stored energy can dump.
    NoDeltaLimit,
    /// The dump area is cleared before what was in it is durable elsewhere.
    DumpClearedEarly,
    /// The checkpoint after a replay does not say which dump it makes void.
    DumpNotMadeVoid,
    /// Frames of a dump are written back over what came after them.
    FramesOverNewer,
}
