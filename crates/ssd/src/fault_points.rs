//! Protections of the device that a test can switch off.

tantalum_base::fault_points! {
    /// Closing does not write back the content of the write cache.
    CacheDroppedAtClose,
    /// A transaction that outgrew its memory is committed in two parts.
    CommittedInParts,
    /// A clone is made in two parts.
    ClonedInParts,
    /// Staging pages count as free again before their transaction commits.
    StagedPagesFree,
    /// A change outside of transactions is accepted even if a transaction holds the page.
    HeldPagesOpen,
    /// `settle` succeeds once everything that can become durable is durable, although a failed
    /// change can still be read.
    FailedTakenForSettled,
}
