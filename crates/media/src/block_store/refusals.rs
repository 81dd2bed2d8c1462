//! Refusals to open a file or a block device: the fixed words of each.
tantalum_base::refusals! {
    /// It is a folder.
    FOLDER = "is a folder: a file or a block device is needed",
    /// It is a pipe, a socket, or a device without blocks.
    NO_STORE = ": a file or a block device is needed",
    /// The user has no permission.
    NOT_ALLOWED = "may not be opened by this user",
    /// The kernel writes nothing to it.
    READ_ONLY_DEVICE = "is a read-only device",
    /// A file system on it is mounted.
    MOUNTED = "is mounted at",
    /// The kernel uses it as swap space.
    SWAP = "is swap space",
    /// It is part of a device-mapper device, or of an array.
    PART = "is a part of",
    /// It is the backing store of a loop device that a process has open.
    LOOP = "is in use: stop the program that uses it first",
    /// This process has it open.
    OPEN_HERE = "is open in this process already",
    /// Another process of this program has it open.
    OPEN = "another process (pid",
    /// It is in use by an unknown process.
    IN_USE = "is in use by an unknown holder",
}
