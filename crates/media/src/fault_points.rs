//! Protections of stores that a test can switch off.

tantalum_base::fault_points! {
    /// A file or a block device is opened to be written, whoever else uses it.
    OthersNotAsked,
}
