//! The fixed words of each refusal to create, open or give up a volume.
//!
//! Those of files and devices are in `tantalum_media`, those of homes and journals in `tantalum_cache`.
tantalum_base::refusals! {
    // Other programs.
    /// The server of the volume does not answer.
    NO_ANSWER = "does not answer in 10 s",

    // The configuration.
    /// Another caller creates the volume at the same time.
    JUST_MADE = "was made by another program, or another thread, at this moment",
    /// The file does not exist.
    NO_CONFIGURATION = "does not exist: name the configuration of a volume",
    /// A folder was named instead of the file in it.
    CONFIGURATION_FOLDER = "is a folder: name the configuration in it",
    /// The file is empty.
    CONFIGURATION_EMPTY = "is empty: remove it",
    /// The file is not text.
    NOT_A_CONFIGURATION = "is not a configuration: name the VOLUME.toml",
    /// A line is invalid.
    CONFIGURATION_LINE = ", line",
    /// The buffer, or the map of the pages, is larger than the memory.
    TOO_MUCH_MEMORY = "of memory that this process may use",
    /// The command is for tiered volumes.
    NOT_TIERED = "is not a tiered volume",
    /// A new configuration needs options.
    OPTIONS_MISSING = "does not exist; --home",
    /// Options and configuration name different places.
    OTHER_PLACE = "there: change",
    /// Options and configuration name different claims.
    OTHER_CLAIM = "says home.claim",

    // Creating a volume.
    /// The volume is in memory.
    IN_MEMORY = "a volume in memory is created each time it is opened",
    /// The home does not exist.
    NO_HOME = "does not exist: name the image or the block device",
    /// The home is empty.
    HOME_EMPTY = "is empty: the volume is as large as its home",
    /// The home is not a whole number of sectors.
    HOME_SECTORS = "which is not a multiple of the 512 of a sector",
    /// The flash is too small for its settings.
    FLASH_TOO_SMALL = "is too small for the flash",
    /// The flash has more zones than can be numbered.
    FLASH_ZONES = "zones: the limits are",
    /// Two stores are the same file.
    SAME_FILE = "are the same file",
    /// The folder of a file does not exist.
    NO_FOLDER = "there is no folder",
    /// A file is among the device nodes.
    AMONG_DEVICES = "in memory, and lost with the next start of the machine",
    /// The file system has no room.
    NO_ROOM = "free, and the volume needs",
    /// The device is too small.
    DEVICE_TOO_SMALL = "and the device",
    /// A journal says that the home belongs to a volume.
    HOME_OWNED = "says that the home belongs to",
    /// A journal cannot be read now.
    OWNER_UNREAD = "says that the home belongs to a volume cannot be read now",
    /// The home has a claim.
    HOME_CLAIMED = "belongs to volume",
    /// A home is unclaimed although its journal exists.
    JOURNAL_THERE = "that volume, which loses nothing",
    /// The home is a member of a larger unit.
    MEMBER = "put the cache over the device that is made of it",
    /// The home has no sector of zeros.
    NO_ZERO_SECTOR = "so that a claim could not be seen there",
    /// The volume is attached already.
    ATTACHED = "is attached already",
    /// Another volume is there already.
    VOLUME_THERE = "is a volume already",
    /// A file is there already.
    FILE_THERE = "is a file already",
    /// A device holds something already.
    DEVICE_THERE = "is a device with something on it already",
    /// The volume was created, but its home could not be claimed.
    NOT_CLAIMED = "the volume is made, and its home is not claimed yet",

    // Opening a volume.
    /// The volume's file is not there yet.
    CREATION_UNFINISHED = "its creation was cut short, or goes on",
    /// The volume's file does not exist.
    FLASH_GONE = "does not exist",
    /// The flash holds no volume.
    FLASH_BLANK = "holds no Tantalum volume",
    /// The home is an image of its own.
    TAKEN_OFF = "nothing is missing: the volume was detached, or rescued",
    /// The journal does not exist.
    JOURNAL_GONE = "the journal beside the home, does not exist",
    /// The home does not exist.
    HOME_GONE = "does not exist: put it back",
    /// The home has fewer bytes than before.
    HOME_SHORTER = "it became shorter, or is another one",
    /// The file is too short.
    TOO_SHORT = "too short to be a Tantalum volume",
    /// The file is long enough, and holds something else.
    NO_VOLUME = "this is no Tantalum volume",
    /// The volume is of the other kind.
    OTHER_KIND = "it is a volume of kind",
    /// The volume has another capacity.
    OTHER_CAPACITY = "device.capacity is",
    /// The volume has other zones.
    OTHER_ZONES = "differs from when the volume was created",
    /// The end of the volume is missing.
    CUT_SHORT = "it was cut short",
    /// The home has other content than the flash expects.
    COMPARED = "home does not hold page",
    /// Nothing shows that the home is the volume's own.
    UNPROVEN = "no page shows that this home is the volume's own",
    /// The home has no claim, and the record of its use without the cache is lost.
    CLAIM_GONE = "the journal is lost, and the home has no claim that would show that it was not used without its cache",
    /// It is unknown whether the ends of the home are stored with a claim.
    CLAIM_UNKNOWN = "nothing tells whether the home has a claim",
    /// The home was detached or rescued, and changed since.
    GIVEN_BACK = "the volume was rescued or detached, and its home was changed since",
    /// The superblock has another version.
    OTHER_VERSION = "the volume has format version",
    /// The two copies of the superblock contradict each other.
    CONTRADICTION = "the copies of the superblock contradict each other",

    // Giving up a volume.
    /// A rescue although the flash is there.
    FLASH_THERE = "is there and looks like the volume's flash",
    /// A rescue although the flash may only be unreadable now.
    FLASH_UNREAD = "cannot be read now, and may be later (--force",
    /// A rescue of a home that may be another disk, as it cannot show its claim.
    NOT_SHOWN = "the home cannot show whose it is",
    /// A rescue of a volume with dense destaging.
    DENSE = "only the flash has the pages that home lacks",
    /// A detach although the flash has lost pages.
    PAGES_LOST = "which has lost them",

    // Changing the cache's mode.
    /// The volume has no server.
    NOT_SERVED = "is not being served",
}
