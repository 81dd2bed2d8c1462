//! Protections of stores that a test can switch off.

tantalum_base::fault_points! {
    /// A file or a block device is opened for writing although others use it.
    OthersNotAsked,
}
