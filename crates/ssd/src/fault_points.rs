//! Protections of the device that a test can switch off.

tantalum_base::fault_points! {
    /// The write cache's content is not written back at closing.
    CacheDroppedAtClose,
    /// A transaction that outgrew its memory is committed in two parts.
    CommittedInParts,
    /// A clone is made in two parts.
    ClonedInParts,
    /// The pages where one was staged are taken for free before its commit.
    StagedPagesFree,
    /// Who changes a page outside of transactions is not refused where a transaction holds it.
    HeldPagesOpen,
    /// A device counts as settled once all that can become durable is, though a change that failed can still be read.
    FailedTakenForSettled,
}
