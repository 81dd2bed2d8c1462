//! Recognizes a home that is a member of a larger unit, such as an array. Such a home is refused, because a cache over one
//! member would damage the unit. The error names the unit.
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tantalum_base::{ErrorKind, Result, ResultExt};

use crate::refusals::MEMBER;

use crate::content::{KNOWN, MD_MAGIC};

const ZFS_MAGIC: u64 = 0x00ba_b10c;
const KIB: u64 = 1024;

/// Refuses the home in `file` if it is a member of an md array, an LVM volume group or a ZFS pool, or swap space.
///
/// # Errors
/// `InvalidInput` with the kind of member; `Io`.
pub(crate) fn refuse_member(file: &File, path: &Path) -> Result<()> {
    let bytes = (&mut &*file).seek(SeekFrom::End(0)).context(|| "measuring the home")?;
    let member = member(file, bytes).context(|| format!("reading {}", path.display()))?;
    let Some(what) = member else { return Ok(()) };
    let context =
        format!("{} is {what}: {MEMBER}, or clear it first (`wipefs` shows it)", path.display());
    Err(MEMBER.error(ErrorKind::InvalidInput, context))
}

/// Whether the system would recognize anything on the home in `file`: a file system, a partition table, a container.
///
/// # Errors
/// `Io`.
pub(crate) fn is_known(file: &File, path: &Path) -> Result<bool> {
    let reading = || format!("reading {}", path.display());
    let bytes = (&mut &*file).seek(SeekFrom::End(0)).context(reading)?;
    for (at, magic, _) in KNOWN {
        if has(file, bytes, Some(at), magic).context(reading)? {
            return Ok(true);
        }
    }
    Ok(member(file, bytes).context(reading)?.is_some())
}

/// Whether a file of `bytes` bytes has `magic` at offset `at`.
fn has(file: &File, bytes: u64, at: Option<u64>, magic: &[u8]) -> std::io::Result<bool> {
    match at {
        Some(at) if at + magic.len() as u64 <= bytes => {
            let mut found = vec![0; magic.len()];
            file.read_exact_at(&mut found, at)?;
            Ok(found == magic)
        }
        _ => Ok(false),
    }
}

fn member(file: &File, bytes: u64) -> std::io::Result<Option<&'static str>> {
    let has = |at, magic: &[u8]| has(file, bytes, at, magic);
    // Superblocks of versions 1.1, 1.2, 1.0 and 0.90.
    let ends = [
        Some(0),
        Some(4 * KIB),
        bytes.checked_sub(8 * KIB).map(|at| at & !(4 * KIB - 1)),
        (bytes & !(64 * KIB - 1)).checked_sub(64 * KIB),
    ];
    for at in ends {
        if has(at, &MD_MAGIC)? {
            return Ok(Some("a member of an md array (mdadm)"));
        }
    }
    for sector in 0..4 {
        if has(Some(sector * 512), b"LABELONE")? {
            return Ok(Some("a physical volume of LVM"));
        }
    }
    for page in [4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB] {
        for magic in [b"SWAPSPACE2", b"SWAP-SPACE"] {
            if has(Some(page - 10), magic)? {
                return Ok(Some("swap space"));
            }
        }
    }
    // The uberblocks in the second half of each of the four labels.
    let end = bytes & !(256 * KIB - 1);
    let labels = [Some(0), Some(256 * KIB), end.checked_sub(512 * KIB), end.checked_sub(256 * KIB)];
    for label in labels.into_iter().flatten() {
        let mut ring = vec![0; 128 * KIB as usize];
        if label + 256 * KIB > bytes {
            continue;
        }
        file.read_exact_at(&mut ring, label + 128 * KIB)?;
        let is_uberblock = |block: &[u8]| {
            block.starts_with(&ZFS_MAGIC.to_le_bytes())
                || block.starts_with(&ZFS_MAGIC.to_be_bytes())
        };
        if ring.chunks(KIB as usize).any(is_uberblock) {
            return Ok(Some("a member of a ZFS pool"));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 3 << 20;

    fn told(bytes: u64, at: u64, magic: &[u8]) -> Option<&'static str> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file.write_all_at(magic, at).unwrap();
        member(&file, bytes).unwrap()
    }

    #[test]
    fn members_are_known_by_what_their_tools_write() {
        // As mdadm, pvcreate, mkswap and zpool place them.
        for (at, magic, what) in [
            (0, &MD_MAGIC[..], "md"),
            (4096, &MD_MAGIC, "md"),
            (BYTES - 8192, &MD_MAGIC, "md"),
            (BYTES - 65536, &MD_MAGIC, "md"),
            (512, b"LABELONE", "LVM"),
            (4086, b"SWAPSPACE2", "swap"),
            (128 << 10, &ZFS_MAGIC.to_le_bytes(), "ZFS"),
            (BYTES - (96 << 10), &ZFS_MAGIC.to_be_bytes(), "ZFS"),
        ] {
            let told = told(BYTES, at, magic);
            assert!(told.is_some_and(|told| told.contains(what)), "{what} at {at}: {told:?}");
        }
        // An end that is not a multiple of 64 KiB.
        assert!(told(BYTES + 40960, BYTES - 65536, &MD_MAGIC).is_some());
        for bytes in [0, 512, 4096, BYTES] {
            assert_eq!(told(bytes, 0, b""), None);
        }
        assert_eq!(told(BYTES, 1080, &[0x53, 0xef]), None, "a file system may be a home");
    }
}
