//! Writing a new VOLUME.toml, in which all that is not asked for stands commented, with its default.
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tantalum_base::{Result, ResultExt};

use crate::config::VolumeConfig;
use crate::folder::sync_name;

/// A VOLUME.toml with every setting at its default, commented. `{…}` are filled in by
/// [`template`].
const TEMPLATE: &str = include_str!("volume.toml");

/// The text of a new VOLUME.toml for a volume of `capacity` (such as `"1GiB"`).
pub fn template(capacity: &str) -> String {
    TEMPLATE.replace("{capacity}", capacity)
}

/// Writes a new VOLUME.toml for a volume of `capacity`, in a `sparse` file or not, to `path`, and reads it. It is there whole
/// or not at all whenever this is cut short. Its folder is made where it does not exist, but not what that lies in.
///
/// # Errors
/// `InvalidInput` where the capacity makes no sense: nothing is written then; `Io` where the file
/// cannot be written.
pub fn write_new(path: &Path, capacity: &str, sparse: bool) -> Result<VolumeConfig> {
    let mut text = template(capacity);
    if sparse {
        text = text.replace("# sparse = false", "sparse = true");
    }
    // Parsed before it is written: a wrong capacity leaves no file.
    let config = VolumeConfig::parse(&text, path)?;
    make_folder_of(path)?;
    write_whole(path, &text).context(|| format!("writing {}", path.display()))?;
    Ok(config)
}

fn make_folder_of(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let made = match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.and_then(|()| sync_name(folder)),
    };
    made.context(|| format!("making the folder {}", folder.display()))
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".creating");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    sync_name(path)
}

/// A VOLUME.toml of a tiered volume, likewise.
const TIERED_TEMPLATE: &str = include_str!("tiered.toml");

/// What a new tiered volume is made of, as text.
#[derive(Clone, Copy, Debug)]
pub struct NewTiered<'a> {
    /// What hosts see.
    pub capacity: &'a str,
    /// The flash's path.
    pub flash: &'a str,
    /// How much of it is used.
    pub flash_size: &'a str,
    /// The home's path.
    pub home: &'a str,
}

/// Writes a new VOLUME.toml for a tiered volume to `path`, and reads it.
///
/// # Errors
/// As [`write_new`].
pub fn write_new_tiered(path: &Path, new: NewTiered<'_>) -> Result<VolumeConfig> {
    // As they stand in quotes there.
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let text = TIERED_TEMPLATE
        .replace("{capacity}", &quoted(new.capacity))
        .replace("{flash_size}", &quoted(new.flash_size))
        .replace("{flash}", &quoted(new.flash))
        .replace("{home}", &quoted(new.home));
    let config = VolumeConfig::parse(&text, path)?;
    make_folder_of(path)?;
    write_whole(path, &text).context(|| format!("writing {}", path.display()))?;
    Ok(config)
}
