//! Grows a volume: more pages, and more zones behind the existing ones.
//!
//! 0. If an earlier growth did not update the configuration, that is done now.
//! 1. The volume is opened in its old size, and closed. The pages that unfinished transactions staged behind its pages are given
//!    up, as hosts' pages will take the place of the staging area.
//! 2. The file is extended. The part behind the zones of the superblock has no meaning yet.
//! 3. The copies of the superblock are written, one after the other, each durable before the next. From the first one on the
//!    volume has its new size (`copies`).
//! 4. The volume is opened once in its new size, and closed, so that a checkpoint records it as well.
//! 5. The configuration gets the new capacity. Until then the old capacity is accepted, because the superblock records it.
//!
//! An interruption at any point leaves a sound volume of the old or the new size, and repeating the call continues from there.
use serde::Deserialize;
use std::path::Path;
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Result, ResultExt};
use tantalum_media::BlockStore;
use tantalum_media::block_store::{FileStore, FileStoreOptions, Place, is_there};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live, Runtime};

use crate::config::{Kind, MediaType, VolumeConfig};
use crate::fault_points::Fault;
use crate::flash::{check_sizes, open_flash, plan_as, read_superblock, within_data, write_copy};
use crate::lost_flash::without_data;
use crate::new_config::write_whole;
use crate::no_room::told_as_no_room;
use crate::open_options::OpenOptions;
use crate::sizes;
use crate::superblock::{COPIES, Superblock};

/// A volume before and after growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resized {
    /// The superblock before.
    pub before: Superblock,
    /// The superblock now; equal to `before` if the volume had the size already.
    pub after: Superblock,
}

/// Grows the volume of `config` to `capacity` (such as `"2GiB"`), and writes the new capacity to the configuration. The volume
/// must not be open. The capacity in `config` is ignored.
///
/// # Errors
/// `InvalidInput` if the volume would shrink, or cannot have that size; `Unsupported` if it is tiered or in memory; `OutOfSpace`
/// if there is no room; `Locked`; as of opening. After an error the volume has its old size or the new one.
pub fn resize_volume(config: &VolumeConfig, capacity: &str) -> Result<Resized> {
    let pages = sizes::pages("SIZE", capacity)?;
    refuse_others(config)?;
    // Growing makes no requests that a trace should have.
    let config = &VolumeConfig { record: None, ..config.clone() };
    let live = Live::new(LiveOptions::default())?;
    let path = config.data_path()?;
    if !is_there(&path)? {
        return Err(without_data(&path, config));
    }
    let options = FileStoreOptions { sparse: config.media.sparse, ..Default::default() };
    let store = FileStore::open(&live, &path, options)?;
    let resized = {
        let (store, config) = (store.clone(), config.clone());
        live.run(async move {
            let planned = plan_growth(&store, &config, pages).await;
            planned.map_err(within_data(&config))
        })?
    };
    let Resized { before, after } = resized;
    if after != before {
        catch_up(config, &resized)?;
        in_phase(&live, settle(live.clone(), store.clone(), config.clone()))?;
        grow(config, &store, after.store_bytes())?;
        in_phase(&live, write_growth(store.clone(), resized))?;
    }
    // This runs even if the volume has its new size already: an earlier growth may have been interrupted here.
    in_phase(&live, settle(live.clone(), store, config.with_sizes_of(&after)))?;
    say_capacity(&config.path, capacity).context(|| {
        format!(
            "the volume has its new size, but {} could not be updated: set device.capacity = \"{capacity}\" there",
            config.path.display()
        )
    })?;
    Ok(resized)
}

fn refuse_others(config: &VolumeConfig) -> Result<()> {
    let context = if config.kind == Kind::Tiered {
        "a tiered volume does not grow: `tantalum detach` it, then make the home larger or choose another media.size, and \
         `tantalum attach --force` it again with a new configuration"
    } else if config.media.media_type == MediaType::Memory {
        "a volume in memory is created each time it is opened: change device.capacity"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Unsupported, context))
}

/// Extends the store. The room of a file is allocated, unless the file is sparse.
fn grow(config: &VolumeConfig, store: &FileStore, bytes: u64) -> Result<()> {
    let path = config.data_path()?;
    store.grow(bytes).map_err(|error| match Place::of(&path).is_device() {
        true => error,
        false => told_as_no_room(error, &path, bytes).wrap("make room, or choose a smaller size"),
    })
}

/// Runs one phase, and drops its tasks before the next one begins.
fn in_phase(live: &Live, phase: impl Future<Output = Result<()>> + 'static) -> Result<()> {
    let done = live.run(phase);
    live.drop_tasks();
    done
}

/// The superblocks of the volume on `store` now and with `pages` pages.
///
/// # Errors
/// As of [`resize_volume`].
pub async fn plan_growth<S: BlockStore>(
    store: &S,
    config: &VolumeConfig,
    pages: u64,
) -> Result<Resized> {
    let before = read_superblock(store).await?;
    let invalid = |context: String| Err(Error::new(ErrorKind::InvalidInput, context));
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    check_sizes(&before, store, &config.with_sizes_of(&before))?;
    if pages == before.pages {
        return Ok(Resized { before, after: before });
    }
    if pages < before.pages {
        return invalid(format!(
            "the volume has {} bytes and would have {}: a volume does not shrink (copy it to a new, smaller one)",
            bytes(before.pages),
            bytes(pages)
        ));
    }
    if before.is_staged && 2 * pages >= u64::from(u32::MAX) - 8 {
        return invalid(format!("{} bytes are over the limit of 8 TiB", bytes(pages)));
    }
    let wanted = config.with_sizes_of(&Superblock { pages, ..before });
    let planned = plan_as(&wanted, before.volume_id, before.is_staged)?;
    let (growths, pages_before) = (before.growths.wrapping_add(1), before.pages);
    let after = Superblock { growths, pages_before, ..planned };
    // More pages need more zones.
    assert!(after.is_grown_from(&before), "{before:?} cannot become {after:?}");
    Ok(Resized { before, after })
}

/// Opens the volume on `store`, discards staged pages, and closes it.
///
/// # Errors
/// As of opening and closing.
pub async fn settle<R: Runtime, S: BlockStore + Clone>(
    runtime: R,
    store: S,
    config: VolumeConfig,
) -> Result<()> {
    let superblock = read_superblock(&store).await?;
    let config = config.with_sizes_of(&superblock);
    if Fault::GrownOverStaged.is_planted() {
        return Ok(());
    }
    let (volume, _) = open_flash(&runtime, store, &config, OpenOptions::default()).await?;
    let ssd = volume.device();
    ssd.clear_staged().await?;
    volume.close().await?;
    let left = ssd.ftl().mapped_from(PageNo(superblock.pages));
    if left > 0 {
        let context = format!("{left} pages of unfinished transactions could not be given up");
        return Err(Error::new(ErrorKind::Unsupported, context));
    }
    Ok(())
}

/// Writes the new superblock of `resized` to the volume on `store`, which must be [settled](settle) and long enough.
///
/// # Errors
/// `Io` and the like: the volume then has the old or the new size.
pub async fn write_growth<S: BlockStore>(store: S, resized: Resized) -> Result<()> {
    // The file's new length is durable first.
    store.sync().await?;
    if Fault::GrownCopiesTogether.is_planted() {
        return crate::flash::write_copies(&store, &resized.after).await;
    }
    for copy in 0..COPIES {
        write_copy(&store, copy, &resized.after).await?;
        store.sync().await?;
    }
    Ok(())
}

/// Writes the present capacity to the configuration, if an interrupted earlier growth left an older one there. This must precede
/// the growth: afterwards the superblock records the present capacity as the previous one, and no earlier one.
fn catch_up(config: &VolumeConfig, Resized { before, after }: &Resized) -> Result<()> {
    let says = config.capacity_pages()?;
    match says == before.pages || says == after.pages {
        true => Ok(()),
        false => say_capacity(&config.path, &size_text(before.pages)),
    }
}

/// `pages` as a size, in the largest unit that is exact.
fn size_text(pages: u64) -> String {
    let units = [("TiB", 28_u32), ("GiB", 18), ("MiB", 8)];
    match units.into_iter().find(|(_, shift)| pages.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{}{unit}", pages >> shift),
        None => format!("{}KiB", pages * (PAGE_BYTES as u64 / 1024)),
    }
}

/// Changes the capacity in the configuration at `path`; everything else in it stays.
fn say_capacity(path: &Path, capacity: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Sizes {
        device: Device,
    }
    #[derive(Deserialize)]
    struct Device {
        capacity: toml::Spanned<String>,
    }
    // If it is a link, its target is replaced.
    let path = std::fs::canonicalize(path).context(|| format!("finding {}", path.display()))?;
    let reading = || format!("reading {}", path.display());
    let mut text = std::fs::read_to_string(&path).context(reading)?;
    let sizes: Sizes = toml::from_str(&text)
        .map_err(|error| Error::new(ErrorKind::InvalidInput, error.message().to_owned()))?;
    if sizes.device.capacity.get_ref() == capacity {
        return Ok(());
    }
    text.replace_range(sizes.device.capacity.span(), &format!("\"{capacity}\""));
    VolumeConfig::parse(&text, &path)?;
    let permissions = std::fs::metadata(&path).context(reading)?.permissions();
    write_whole(&path, &text, permissions).context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::template;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_configuration_never_lags_by_two_growths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.toml");
        let read = || VolumeConfig::read(&path).unwrap();
        let config = VolumeConfig::parse(&template("6MiB"), &path).unwrap();
        let superblock = |pages| Superblock { pages, ..plan_as(&config, 7, true).unwrap() };
        let growth = Resized { before: superblock(1536), after: superblock(2048) };
        // As left by an interrupted growth; from before any growth; already right for this one.
        for (says, then) in
            [("4MiB", "6MiB"), ("6MiB", "6MiB"), ("6144KiB", "6144KiB"), ("8MiB", "8MiB")]
        {
            std::fs::write(&path, template(says)).unwrap();
            catch_up(&read(), &growth).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), template(then), "{says}");
        }
        assert_eq!((size_text(1 << 19), size_text(3)), ("2GiB".into(), "12KiB".into()));
    }

    #[test]
    fn a_configuration_says_the_new_capacity_and_all_else_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("v.toml"));
        let mine = "\n# capacity = \"mine\"\n";
        std::fs::write(&real, template("1GiB") + mine).unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        say_capacity(&link, "2GiB").unwrap();
        assert_eq!(std::fs::read_to_string(&link).unwrap(), template("2GiB") + mine);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(say_capacity(&link, "nothing").is_err());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), template("2GiB") + mine);
    }
}
