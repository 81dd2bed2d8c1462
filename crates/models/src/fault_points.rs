//! Protections of the simulated devices that a test can switch off.

tantalum_base::fault_points! {
    /// Of two changes of the same pages in a device without a write cache the later may be done first.
    ChangesOvertake,
    /// A redo log's recovery redoes what is not there as a whole.
    LogRedoesUncommitted,
    /// A redo log's recovery gives the numbers of dropped transactions to new ones.
    NumbersReused,
    /// A redo log's recovery drops what is damaged as if a power cut had left it so.
    LogDamageForgotten,
    /// Contents that were read from a redo log are not checked.
    LogUnchecked,
    /// Contents that a personality read are not checked.
    BlocksUnchecked,
    /// The recovery of a personality takes any copy of a page for the newest.
    AnyCopyCounts,
    /// A TxCache sets the commit flag before the last page is in NVRAM.
    EarlyCommitFlag,
    /// A TxCache writes pages of open transactions to their home locations.
    UncommittedGoesHome,
    /// A TxCache's recovery rolls forward what was not committed.
    RedoUncommitted,
    /// A TxCache's recovery does not complete the mapping of what was committed.
    NoRedo,
    /// A TxCache gives the committed version of a page up before the newer one is committed.
    OldVersionFreed,
    /// A TxCache lets commits and aborts overtake commands of their transaction.
    ControlOvertakes,
    /// A TxCache does not refuse who changes a page outside of transactions that a transaction holds.
    HeldPagesOpen,
}
