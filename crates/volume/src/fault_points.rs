//! Protections of a volume that a test can switch off.

tantalum_base::fault_points! {
    /// Both copies of the superblock are written together when a volume grows.
    GrownCopiesTogether,
    /// Pages that unfinished transactions left behind the volume's pages are not given up before the volume
    /// grows over them.
    GrownOverStaged,
    /// A rescued home counts as unchanged even if it was used since.
    RescuedHomeUnwatched,
    /// The flash of a new volume is written before home and journal are checked to be available.
    StoresNotAskedFirst,
    /// A home without a claim is taken without a journal if its pages are the flash's.
    UnclaimedHomeTaken,
    /// A home without a journal counts as one without a claim if it shows none, even if it could not show one.
    UnseenClaimIgnored,
}
