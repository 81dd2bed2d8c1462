//! Why a volume is not made, opened or given up: the fixed words of each refusal.
//!
//! Those of files and devices are in `tantalum_media`, those of homes and journals in `tantalum_cache`.
tantalum_base::refusals! {
    // The configuration.
    /// There is no such file.
    NO_CONFIGURATION = "does not exist: name the configuration of a volume",
    /// A folder in place of the file in it.
    CONFIGURATION_FOLDER = "is a folder: name the configuration in it",
    /// A file of no bytes.
    CONFIGURATION_EMPTY = "is empty: remove it",
    /// Something else than text.
    NOT_A_CONFIGURATION = "is no configuration; wanted is the VOLUME.toml",
    /// A line that makes no sense.
    CONFIGURATION_LINE = ", line",
    /// A command for tiered volumes.
    NOT_TIERED = "is no tiered volume",
    /// A new configuration needs options.
    OPTIONS_MISSING = "does not exist; --home",
    /// Options and configuration name different places.
    OTHER_PLACE = "there: change",
    /// Options and configuration name different claims.
    OTHER_CLAIM = "says home.claim",

    // What becomes a volume.
    /// A volume that is in memory.
    IN_MEMORY = "a volume in memory is created each time it is opened",
    /// There is no such home.
    NO_HOME = "does not exist: name the image or the block device",
    /// A home without bytes.
    HOME_EMPTY = "is empty: the volume is as large as its home",
    /// A home that is no whole sectors.
    HOME_SECTORS = "which is no multiple of the 512 of a sector",
    /// A flash that cannot hold what it has to.
    FLASH_TOO_SMALL = "is too small a flash",
    /// A flash that is beyond what zones can be numbered.
    FLASH_ZONES = "zones: wanted are",
    /// Two stores at one place.
    SAME_FILE = "are the same file",
    /// A file in a folder that is not there.
    NO_FOLDER = "there is no folder",
    /// A file among the names of devices.
    AMONG_DEVICES = "in memory, and lost with the next start of the machine",
    /// A file system without room.
    NO_ROOM = "free, and wanted are",
    /// A device that is too small.
    DEVICE_TOO_SMALL = "and the device",
    /// A journal that says whose the home is.
    HOME_OWNED = "says that the home belongs to",
    /// A journal that does not answer.
    OWNER_UNREAD = "says that the home belongs to a volume cannot be read now",
    /// A home with a claim.
    HOME_CLAIMED = "belongs to volume",
    /// An unclaim of a home whose journal is there.
    JOURNAL_THERE = "that volume, which loses nothing",
    /// A part of something else.
    MEMBER = "put the cache over what is made of it",
    /// A home without a sector of zeros.
    NO_ZERO_SECTOR = "so that a claim could not be seen there",
    /// The volume is there already.
    ATTACHED = "is attached already",
    /// Another volume is there already.
    VOLUME_THERE = "is a volume already",
    /// A file is there already.
    FILE_THERE = "is a file already",
    /// A device holds something already.
    DEVICE_THERE = "is a device with something on it already",
    /// It could not be claimed; the volume is made.
    NOT_CLAIMED = "the volume is made, and its home is not claimed yet",

    // What is opened.
    /// There is no file of the volume.
    FLASH_GONE = "does not exist",
    /// The flash is no volume.
    FLASH_BLANK = "holds no Tantalum volume",
    /// The home is an image of its own.
    TAKEN_OFF = "nothing is missing: the volume was detached, or rescued",
    /// There is no journal.
    JOURNAL_GONE = "the journal beside the home, does not exist",
    /// There is no home.
    HOME_GONE = "does not exist: put it back",
    /// A home of fewer bytes.
    HOME_SHORTER = "it became shorter, or is another one",
    /// A file of some bytes.
    TOO_SHORT = "too short to be a Tantalum volume",
    /// A volume of the other kind.
    OTHER_KIND = "it is a volume of kind",
    /// A volume of another capacity.
    OTHER_CAPACITY = "device.capacity is",
    /// A volume of other zones.
    OTHER_ZONES = "differs from when the volume was created",
    /// A volume of which the end is missing.
    CUT_SHORT = "it was cut short",
    /// A home that is not as it was written.
    COMPARED = "home does not hold page",
    /// A superblock of another version.
    OTHER_VERSION = "the volume has format version",
    /// Two superblocks.
    CONTRADICTION = "the copies of the superblock contradict each other",

    // What is given up.
    /// A rescue of a volume whose flash is there.
    FLASH_THERE = "is there and looks like the volume's flash",
    /// A rescue of a volume whose flash does not answer.
    FLASH_UNREAD = "cannot be read now, and may be later (--force",
    /// A rescue of a volume that is destaged densely.
    DENSE = "nothing but the flash knows what is missing",
    /// A detach of a flash that has lost pages.
    PAGES_LOST = "which has lost them",

    // The cache's mode.
    /// A volume without a server.
    NOT_SERVED = "is not being served",
}
