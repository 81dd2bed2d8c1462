//! Protections of the simulated devices that tests can switch off.

tantalum_base::fault_points! {
    /// In a device without a write cache, the later of two changes to the same pages may take effect
    /// first.
    ChangesOvertake,
    /// A redo log's recovery redoes incomplete transactions.
    LogRedoesUncommitted,
    /// A redo log's recovery reuses the numbers of dropped transactions.
    NumbersReused,
    /// A redo log's recovery drops damaged transactions as if a power cut had interrupted them.
    LogDamageForgotten,
    /// Contents read from a redo log are not checked.
    LogUnchecked,
    /// Contents read by a personality are not checked.
    BlocksUnchecked,
    /// The recovery of a personality accepts any copy of a page as the newest.
    AnyCopyCounts,
    /// A TxCache sets the commit flag before the last page is in NVRAM.
    EarlyCommitFlag,
    /// A TxCache writes uncommitted pages to their home locations.
    UncommittedGoesHome,
    /// A TxCache's recovery rolls forward uncommitted transactions.
    RedoUncommitted,
    /// A TxCache's recovery does not complete the mapping of committed transactions.
    NoRedo,
    /// A TxCache frees the committed version of a page before the newer one is committed.
    OldVersionFreed,
    /// A TxCache lets commits and aborts overtake other commands of their transaction.
    ControlOvertakes,
    /// A TxCache accepts changes outside of transactions to pages that a transaction holds.
    HeldPagesOpen,
}
