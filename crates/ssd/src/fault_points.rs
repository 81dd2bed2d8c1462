//! Protections of the device that a test can switch off.

tantalum_base::fault_points! {
    /// What is in the write cache is not written back when the device is closed.
    CacheDroppedAtClose,
}
