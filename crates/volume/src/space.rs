//! The space that flash and journal of a new tiered volume need, its place, and the check that it is free.
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tantalum_base::size::human_bytes;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Refusal, Result, ResultExt};
use tantalum_media::block_store::Place;

use crate::config::VolumeConfig;
use crate::create::staging_path;
use crate::flash::plan;
use crate::places::file_system_in_memory;
use crate::refusals::{DEVICE_TOO_SMALL, NO_ROOM};
use crate::store::{is_journal_sparse, journal_bytes};
use crate::tiered::home_config;

/// The space that a store needs, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSpace {
    /// `"flash"` or `"journal"`.
    pub store: &'static str,
    /// Its file, or its block device.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Bytes that an existing file has already allocated.
    pub held_bytes: u64,
    /// Whether the file is created without allocating its content.
    pub is_sparse: bool,
    /// The device or file system with the space.
    pub holder: Holder,
}

/// The device or file system that provides a store's space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The store is a block device.
    Device {
        /// Its size.
        bytes: u64,
    },
    /// The store is a file.
    FileSystem {
        /// Its mount point.
        mounted_at: PathBuf,
        /// Its device number.
        number: u64,
        /// Bytes available to unprivileged users; `None` if the file system does not report them.
        free_bytes: Option<u64>,
        /// Whether it is in memory.
        in_memory: bool,
    },
}

impl StoreSpace {
    /// Bytes still to be allocated.
    pub fn missing_bytes(&self) -> u64 {
        if self.is_sparse { 0 } else { self.bytes.saturating_sub(self.held_bytes) }
    }
}

/// The space needed by the flash and the journal of `config`.
///
/// # Errors
/// `InvalidInput` if a size is invalid; `Io` if a place cannot be examined.
pub fn spaces(config: &VolumeConfig) -> Result<[StoreSpace; 2]> {
    let flash = config.data_path()?;
    let journal = home_config(config)?.journal_path(&config.path);
    let flash_bytes = plan(config, 0)?.store_bytes();
    Ok([
        space("flash", flash, flash_bytes, config.media.sparse)?,
        space("journal", journal, journal_bytes(config)?, is_journal_sparse(config))?,
    ])
}

/// Limit on dirty data, which is newer in the flash of `config` than on the home.
///
/// # Errors
/// `InvalidInput` if a size is invalid.
pub fn dirty_bytes_max(config: &VolumeConfig) -> Result<u64> {
    let cache = home_config(config)?.cache_options(&plan(config, 0)?.geometry())?;
    Ok(cache.dirty_pages_max * PAGE_BYTES as u64)
}

fn space(store: &'static str, path: PathBuf, bytes: u64, is_sparse: bool) -> Result<StoreSpace> {
    // An interrupted creation may have left a file under another name, which is reused.
    let held = |path: &Path| std::fs::metadata(path).map_or(0, |there| there.blocks() * 512);
    let held_bytes = held(&path).max(held(&staging_path(&path))).min(bytes);
    let holder = holder_of(&path)?;
    Ok(StoreSpace { store, path, bytes, held_bytes, is_sparse, holder })
}

/// The device or file system for a store at `path`, which need not exist yet.
///
/// # Errors
/// `Io` if it cannot be examined.
pub fn holder_of(path: &Path) -> Result<Holder> {
    let looking = || format!("looking at {}", path.display());
    if Place::of(path).is_device() {
        let mut device = std::fs::File::open(path).context(looking)?;
        return Ok(Holder::Device { bytes: device.seek(SeekFrom::End(0)).context(looking)? });
    }
    let absolute = std::path::absolute(path).context(looking)?;
    // A folder that is created with the volume does not exist yet.
    let there = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let there = there.canonicalize().context(looking)?;
    let number = std::fs::metadata(&there).context(looking)?.dev();
    let is_its = |path: &&Path| std::fs::metadata(path).is_ok_and(|its| its.dev() == number);
    let mounted_at = there.ancestors().take_while(is_its).last().unwrap_or(&there).to_path_buf();
    let free = rustix::fs::statvfs(&there).map_err(std::io::Error::from).context(looking)?;
    // As `df` reports it: blocks reserved for the administrator do not count as room for a volume, even if the administrator
    // creates it.
    let free_bytes = free.f_bavail.saturating_mul(free.f_frsize);
    // A file system without blocks, such as one provided by a program, does not count free ones.
    let free_bytes = (free.f_blocks > 0).then_some(free_bytes);
    let in_memory = file_system_in_memory(&there).is_some();
    Ok(Holder::FileSystem { mounted_at, number, free_bytes, in_memory })
}

/// Refuses if the space that these stores need is not free.
///
/// # Errors
/// `OutOfSpace` with the file system or the device, the bytes needed, and the bytes free.
pub fn refuse_without_space(spaces: &[StoreSpace]) -> Result<()> {
    for space in spaces {
        match &space.holder {
            Holder::Device { bytes } if *bytes < space.bytes => {
                return Err(lacking(
                    DEVICE_TOO_SMALL,
                    &format!(
                        "the {} needs {}, {DEVICE_TOO_SMALL} {} has {}",
                        space.store,
                        human_bytes(space.bytes),
                        space.path.display(),
                        human_bytes(*bytes)
                    ),
                ));
            }
            Holder::FileSystem { mounted_at, number, free_bytes: Some(free_bytes), .. } => {
                let its: Vec<_> = spaces.iter().filter(|other| is_on(other, *number)).collect();
                let missing_bytes: u64 = its.iter().map(|space| space.missing_bytes()).sum();
                if missing_bytes > *free_bytes {
                    return Err(lacking(
                        NO_ROOM,
                        &format!(
                            "the file system at {} has {} {NO_ROOM} {}",
                            mounted_at.display(),
                            human_bytes(*free_bytes),
                            wanted(&its)
                        ),
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_on(space: &StoreSpace, file_system: u64) -> bool {
    matches!(space.holder, Holder::FileSystem { number, .. } if number == file_system)
        && space.missing_bytes() > 0
}

/// The bytes that each of these stores needs, with its path.
fn wanted(spaces: &[&StoreSpace]) -> String {
    let each = spaces.iter().map(|space| {
        let bytes = human_bytes(space.missing_bytes());
        format!("{bytes} for the {} {}", space.store, space.path.display())
    });
    each.collect::<Vec<_>>().join(" and ")
}

fn lacking(refusal: Refusal, what: &str) -> Error {
    let context = format!(
        "{what}: name another place (--flash, --journal), or use less of the flash (--flash-size, \
         media.size in an existing configuration), which makes the journal smaller, too"
    );
    refusal.error(ErrorKind::OutOfSpace, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that a file system reserves for the administrator do not count as room for a volume, even if the administrator
    /// creates it. In a full run the tests run as root, who could use these blocks.
    #[test]
    fn free_is_what_df_says() {
        let folder = tempfile::tempdir().unwrap();
        let df = || {
            let run = std::process::Command::new("df")
                .args(["--block-size=1", "--output=avail"])
                .arg(folder.path())
                .output()
                .ok()?;
            String::from_utf8(run.stdout).ok()?.lines().nth(1)?.trim().parse::<u64>().ok()
        };
        // Other processes write there as well.
        for _ in 0..1000 {
            let Some(before) = df() else { return };
            let Ok(Holder::FileSystem { free_bytes, .. }) = holder_of(&folder.path().join("new"))
            else {
                panic!("a folder is on a file system");
            };
            if free_bytes == Some(before) {
                return;
            }
        }
        panic!("the free space is another than df says");
    }

    fn on(number: u64, store: &'static str, bytes: u64, is_sparse: bool) -> StoreSpace {
        let mounted_at = PathBuf::from(format!("/mnt/{number}"));
        let free_bytes = Some(10 << 20);
        let holder = Holder::FileSystem { mounted_at, number, free_bytes, in_memory: false };
        StoreSpace { store, path: store.into(), bytes, held_bytes: 0, is_sparse, holder }
    }

    #[test]
    fn what_two_stores_take_of_one_file_system_is_added() {
        let pair = |second, is_sparse| {
            [on(1, "flash", 6 << 20, false), on(second, "journal", 5 << 20, is_sparse)]
        };
        refuse_without_space(&pair(2, false)).unwrap();
        refuse_without_space(&pair(1, true)).unwrap();
        let error = refuse_without_space(&pair(1, false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        let told = error.to_string();
        for said in ["/mnt/1", "10.0 MiB free", "6.0 MiB for the flash", "5.0 MiB for the journal"]
        {
            assert!(told.contains(said), "{told}");
        }
        let mut held = pair(1, false);
        held[0].held_bytes = 2 << 20;
        refuse_without_space(&held).unwrap();
        let device = StoreSpace {
            holder: Holder::Device { bytes: 1 << 20 },
            ..on(1, "flash", 6 << 20, false)
        };
        assert!(refuse_without_space(&[device]).unwrap_err().to_string().contains("the device"));
    }
}
