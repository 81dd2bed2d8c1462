//! Protections for volumes used by several processes that a test can switch off.

tantalum_base::fault_points! {
    /// Locks of a dead client stay locked.
    LocksOutliveClients,
    /// Transactions of a dead client stay open and hold their pages.
    TransactionsOutliveClients,
    /// Locks of a dead client are released before its requests are done.
    LocksFreeBeforeRequestsEnd,
    /// Clients with pages in memory are not told which pages changed.
    ChangesUntold,
    /// An unavailable lock is refused at once, so a client that requests it repeatedly may never get it.
    NobodyWaitsForLocks,
}
