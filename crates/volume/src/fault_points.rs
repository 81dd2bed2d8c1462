//! Protections of a volume that a test can switch off.

tantalum_base::fault_points! {
    /// Both copies of the superblock are written together when a volume grows.
    GrownCopiesTogether,
    /// Pages that unfinished transactions left behind the volume's pages are not given up before the volume
    /// grows over them.
    GrownOverStaged,
    /// A rescued home is trusted to be as its flash left it, even if it was used since.
    RescuedHomeUnwatched,
    /// The flash of a new volume is written before it is known that home and journal are available.
    StoresNotAskedFirst,
    /// A home without a journal is taken to have no claim if it shows none, though it could not show one.
    UnseenClaimIgnored,
}
