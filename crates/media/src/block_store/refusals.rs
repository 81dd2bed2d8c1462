//! Why a file or a block device is not opened: the fixed words of each refusal.
tantalum_base::refusals! {
    /// It is a folder.
    FOLDER = "is a folder: wanted is a file or a block device",
    /// The user has no permission.
    NOT_ALLOWED = "may not be opened by this user",
    /// A file system on it is mounted.
    MOUNTED = "is mounted at",
    /// The kernel swaps there.
    SWAP = "is swap space",
    /// It is a part of a device of the device mapper, or of an array.
    PART = "is a part of",
    /// It lies behind a loop device that somebody has open.
    LOOP = "is in use: stop the program that uses it first",
    /// A process of this program has it.
    OPEN = "another process (pid",
    /// Somebody has it, and nothing says who.
    IN_USE = "is in use, and nothing says by whom",
}
