//! Recognizes the content of a volume or a home by its magic numbers.
use tantalum_base::PAGE_BYTES;

/// The number of leading bytes that [`content_of`] examines.
pub const CONTENT_BYTES: usize = 17 * PAGE_BYTES;

/// Magic numbers of common file systems, containers and partition tables, with their offsets. A disk may have
/// several; the first one in this table counts.
pub(crate) const KNOWN: [(u64, &[u8], &str); 21] = [
    (0, b"LUKS\xba\xbe", "LUKS"),
    (0, b"XFSB", "XFS"),
    (EXT_MAGIC_AT, &[0x53, 0xef], "ext2"),
    (65_600, b"_BHRfS_M", "btrfs"),
    (1024, &0xf2f5_2010_u32.to_le_bytes(), "F2FS"),
    (4120, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca], "bcachefs"),
    (1024, &0xe0f5_e1e2_u32.to_le_bytes(), "EROFS"),
    (0, b"hsqs", "squashfs"),
    (32_769, b"CD001", "ISO 9660"),
    (32_769, b"BEA01", "UDF"),
    (1024, b"H+", "HFS+"),
    (32_768, b"JFS1", "JFS"),
    (65_588, b"ReIsEr", "Reiserfs"),
    (0, b"QFI\xfb", "an image of QEMU"),
    (3, b"NTFS    ", "NTFS"),
    (3, b"EXFAT   ", "exFAT"),
    (54, b"FAT1", "FAT"),
    (82, b"FAT32", "FAT"),
    // For both sector sizes. A GPT disk also has an MBR in front that marks the disk as used.
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (510, &[0x55, 0xaa], "an MBR partition table"),
];

/// Magic numbers of members of larger units, and of databases. These are not mounted.
const OTHERS: [(u64, &[u8], &str); 16] = [
    // SQLite on a volume, behind its header page; a database that was copied there as a file.
    (0, b"TANTSQLT", "SQLite"),
    (0, b"SQLite format 3\0", "SQLite"),
    (0, &MD_MAGIC, "a member of an md array"),
    (4096, &MD_MAGIC, "a member of an md array"),
    (0, LVM, "a physical volume of LVM"),
    (512, LVM, "a physical volume of LVM"),
    (1024, LVM, "a physical volume of LVM"),
    (1536, LVM, "a physical volume of LVM"),
    (4086, b"SWAPSPACE2", "swap space"),
    (8182, b"SWAPSPACE2", "swap space"),
    (16_374, b"SWAPSPACE2", "swap space"),
    (65_526, b"SWAPSPACE2", "swap space"),
    (4086, b"SWAP-SPACE", "swap space"),
    (8182, b"SWAP-SPACE", "swap space"),
    (16_374, b"SWAP-SPACE", "swap space"),
    (65_526, b"SWAP-SPACE", "swap space"),
];

pub(crate) const MD_MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
const LVM: &[u8] = b"LABELONE";

const EXT_MAGIC_AT: u64 = 1080;
/// Offset of the feature bits in the superblock of ext2, ext3 and ext4, 32 bits each.
const EXT_COMPATIBLE_AT: usize = 1024 + 92;
const EXT_INCOMPATIBLE_AT: usize = 1024 + 96;
const EXT_HAS_JOURNAL: u32 = 0x4;
/// Extents, 64 bits, flexible groups: ext3 has none of them.
const EXT4_ONLY: u32 = 0x40 | 0x80 | 0x200;

/// The name of the content that begins with these bytes ([`CONTENT_BYTES`] are enough); `None` if it is unknown.
pub fn content_of(first: &[u8]) -> Option<&'static str> {
    let has = |at: u64, magic: &[u8]| {
        first.get(at as usize..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    let mut known = OTHERS.iter().chain(&KNOWN);
    let (at, _, name) = known.find(|(at, magic, _)| has(*at, magic))?;
    Some(if *at == EXT_MAGIC_AT { ext(first) } else { *name })
}

/// Distinguishes ext2, ext3 and ext4.
fn ext(first: &[u8]) -> &'static str {
    let word = |at: usize| {
        let bytes = first.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    match (word(EXT_INCOMPATIBLE_AT) & EXT4_ONLY, word(EXT_COMPATIBLE_AT) & EXT_HAS_JOURNAL) {
        (1.., _) => "ext4",
        (0, 1..) => "ext3",
        (0, 0) => "ext2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(put: &[(usize, &[u8])]) -> Option<&'static str> {
        let mut bytes = vec![0; CONTENT_BYTES];
        for (at, magic) in put {
            bytes[*at..at + magic.len()].copy_from_slice(magic);
        }
        content_of(&bytes)
    }

    #[test]
    fn contents_have_their_names() {
        for (at, magic, name) in OTHERS.iter().chain(&KNOWN) {
            assert_eq!(told(&[(*at as usize, magic)]), Some(*name), "{name} at {at}");
        }
        assert_eq!(told(&[]), None);
        assert_eq!(content_of(&[]), None);
        let magic: (usize, &[u8]) = (1080, &[0x53, 0xef]);
        assert_eq!(told(&[magic, (EXT_COMPATIBLE_AT, &[4])]), Some("ext3"));
        assert_eq!(
            told(&[magic, (EXT_COMPATIBLE_AT, &[4]), (EXT_INCOMPATIBLE_AT, &[0x40])]),
            Some("ext4")
        );
    }

    #[test]
    fn a_table_of_partitions_counts_behind_all_else() {
        let mbr: (usize, &[u8]) = (510, &[0x55, 0xaa]);
        assert_eq!(told(&[mbr, (512, b"EFI PART")]), Some("a GPT partition table"));
        assert_eq!(told(&[mbr, (82, b"FAT32")]), Some("FAT"));
        assert_eq!(told(&[mbr, (1080, &[0x53, 0xef])]), Some("ext2"), "with code to boot in front");
    }
}
