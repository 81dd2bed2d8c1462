//! Protections of what several processes do on one volume that a test can switch off.

tantalum_base::fault_points! {
    /// What a client held when it died stays locked.
    LocksOutliveClients,
    /// What a client had not committed when it died stays open, and holds its pages.
    TransactionsOutliveClients,
    /// Locks of a client that died are free before what it had asked for is done.
    LocksFreeBeforeRequestsEnd,
    /// Who keeps pages in memory is not told which of them changed.
    ChangesUntold,
    /// A lock that cannot be had is refused at once, and whoever asks again and again may never be there in time.
    NobodyWaitsForLocks,
}
