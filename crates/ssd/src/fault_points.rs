//! Protections of the device that a test can switch off.

tantalum_base::fault_points! {
    /// The write cache's content is not written back at closing.
    CacheDroppedAtClose,
}
