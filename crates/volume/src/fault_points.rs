//! Protections of a volume that a test can switch off.

tantalum_base::fault_points! {
    /// Both copies of the superblock are written together when a volume grows.
    GrownCopiesTogether,
    /// What unfinished transactions left behind the volume's pages is not given up before it grows over them.
    GrownOverStaged,
    /// A home that was rescued is taken as its flash left it, whatever it was used for since.
    RescuedHomeUnwatched,
    /// A new volume's flash is written before it is known that home and journal can be had.
    StoresNotAskedFirst,
}
