//! Writes a new VOLUME.toml. Settings that were not chosen are comments with their defaults.
use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tantalum_base::{Error, ErrorKind, Result, ResultExt};

use crate::config::{Kind, VolumeConfig};
use crate::folder::{rename_new, sync_name};
use crate::refusals::JUST_MADE;
use crate::unfinished_creation::{begin_creation, end_creation};

/// A VOLUME.toml with every setting at its default, as comments. [`template`] fills in `{…}`.
const TEMPLATE: &str = include_str!("volume.toml");

/// The data of a volume, as the template names them.
const DEFAULT_DATA: &str = "data.tantalum";

/// The text of a new VOLUME.toml for a volume of `capacity` (such as `"1GiB"`).
pub fn template(capacity: &str) -> String {
    TEMPLATE.replace("{capacity}", capacity)
}

/// Settings of a new VOLUME.toml that differ from the defaults, as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewSettings<'a> {
    /// `device.durability`.
    pub durability: Option<&'a str>,
    /// `device.cache`.
    pub cache: Option<&'a str>,
    /// `buffer.size`.
    pub buffer: Option<&'a str>,
    /// `media.sparse`.
    pub sparse: bool,
    /// `home.claim`.
    pub claim: Option<&'a str>,
    /// `home.size`.
    pub home_size: Option<&'a str>,
}

impl NewSettings<'_> {
    /// The text of a template in which these settings are active instead of comments.
    fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut say = |default: &str, said: String| {
            assert!(text.contains(default), "{default:?} is not in the template");
            text = text.replacen(default, &said, 1);
        };
        if self.sparse {
            say("# sparse = false", "sparse = true".to_owned());
        }
        if let Some(durability) = self.durability {
            let said = format!("durability = \"{}\"", quoted(durability));
            say("# durability = \"on_ack\"", said);
        }
        if let Some(cache) = self.cache {
            say("# cache = \"8MiB\"", format!("cache = \"{}\"", quoted(cache)));
        }
        if let Some(claim) = self.claim {
            say("# claim = \"xor\"", format!("claim = \"{}\"", quoted(claim)));
        }
        if let Some(size) = self.home_size {
            say("# size = \"1000000000B\"", format!("size = \"{}\"", quoted(size)));
        }
        if let Some(buffer) = self.buffer {
            let said = format!("[buffer]\nsize = \"{}\"", quoted(buffer));
            say("# [buffer]\n# size = \"64MiB\"", said);
        }
        text
    }
}

/// `text` escaped for use between quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes a new VOLUME.toml for a volume of `capacity` with these `settings` to `path`, and reads it. If this is
/// interrupted, the file exists completely or not at all. An existing file is not replaced. The file's folder is created if it
/// does not exist, but not that folder's parent. From now until the volume exists,
/// [`is_creation_unfinished`](crate::is_creation_unfinished) is true.
///
/// # Errors
/// `InvalidInput` if a setting is invalid, and nothing is written; `Locked` if another one has written it; `Io` if the file
/// cannot be written.
pub fn write_new(path: &Path, capacity: &str, settings: &NewSettings<'_>) -> Result<VolumeConfig> {
    write_text(path, &settings.apply(&template(capacity)))
}

/// Writes `text` if it is a valid configuration.
fn write_text(path: &Path, text: &str) -> Result<VolumeConfig> {
    // Parsed before it is written: an invalid setting leaves no file.
    let config = VolumeConfig::parse_new(text, path)?;
    make_folder_of(path)?;
    begin_creation(&config);
    match write_exclusively(path, text) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let context = format!("{} {JUST_MADE}: open it, or try again", path.display());
            Err(JUST_MADE.error(ErrorKind::Locked, context))
        }
        written => written.map(|()| config).context(|| format!("writing {}", path.display())),
    }
}

fn make_folder_of(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let made = match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.and_then(|()| sync_name(folder)),
    };
    made.context(|| {
        let advice = match folder.parent().is_none_or(|it| it == Path::new("") || it.exists()) {
            true => "",
            false => ": the folder in which it would be does not exist; make that first",
        };
        format!("making the folder {}{advice}", folder.display())
    })
}

/// Writes `text` over the file at `path`, completely or not at all, with these `permissions`.
pub(crate) fn write_whole(
    path: &Path,
    text: &str,
    permissions: std::fs::Permissions,
) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".creating");
    let mut file = File::create(&unfinished)?;
    file.set_permissions(permissions)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    sync_name(path)
}

/// Writes `text` to a new file at `path`, completely or not at all. Only one of several callers succeeds.
///
/// # Errors
/// `AlreadyExists` if there is a file, or another caller writes it; as of the file system.
fn write_exclusively(path: &Path, text: &str) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".creating");
    let unfinished = Path::new(&unfinished);
    // A file left by a killed program is used again. It is emptied only under the lock, when no other caller uses it.
    let mut file = File::options().create(true).truncate(false).write(true).open(unfinished)?;
    match file.try_lock() {
        Ok(()) if is_at(&file, unfinished) => {}
        Ok(()) | Err(TryLockError::WouldBlock) => {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut write = || {
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        rename_new(unfinished, path)
    };
    write().inspect_err(|_| {
        // If this fails, the original error is reported.
        let _ = std::fs::remove_file(unfinished);
    })?;
    sync_name(path)
}

/// Whether `path` still names `file`, which another caller may have renamed before it was locked here.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().map(identity).ok() == std::fs::metadata(path).map(identity).ok()
}

/// A configuration about to be written, and its folder, which is created with it. A failure leaves neither.
pub struct NewConfig {
    path: PathBuf,
    makes_folder: bool,
    /// Whether data existed at the default path before.
    has_old_data: bool,
}

impl NewConfig {
    /// The configuration at `path`, which does not exist yet.
    pub fn at(path: &Path) -> NewConfig {
        let folder = folder_of(path);
        let has_old_data = folder.join(DEFAULT_DATA).exists();
        NewConfig { path: path.to_owned(), makes_folder: !folder.exists(), has_old_data }
    }

    /// Removes the configuration, which this caller wrote, after the volume's creation failed with `error`. It stays if another
    /// caller found the configuration and is creating the volume, or has created it.
    pub fn discard_after(&self, error: &Error) {
        // No other caller finishes the creation of a tiered volume.
        let is_flash =
            VolumeConfig::read(&self.path).is_ok_and(|config| config.kind == Kind::Flash);
        let is_taken = is_flash
            && !self.has_old_data
            && (error.kind() == ErrorKind::Locked
                || folder_of(&self.path).join(DEFAULT_DATA).exists());
        if !is_taken {
            self.discard();
        }
    }

    /// Removes the configuration and the folder that was created for it.
    pub fn discard(&self) {
        if self.path.is_file() {
            if let Ok(config) = VolumeConfig::read(&self.path) {
                end_creation(&config);
            }
            // If this fails, the original error is reported.
            let _ = std::fs::remove_file(&self.path);
        }
        if self.makes_folder {
            // If the folder has other files by now, this fails and the folder stays.
            let _ = std::fs::remove_dir(folder_of(&self.path));
        }
    }
}

/// The folder of the file at `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The template of a tiered volume's VOLUME.toml, also with all defaults as comments.
const TIERED_TEMPLATE: &str = include_str!("tiered.toml");

/// The settings of a new tiered volume, as text.
#[derive(Clone, Copy, Debug)]
pub struct NewTiered<'a> {
    /// Capacity, as hosts see it.
    pub capacity: &'a str,
    /// The flash's path.
    pub flash: &'a str,
    /// The size of the used part of the flash.
    pub flash_size: &'a str,
    /// The home's path.
    pub home: &'a str,
    /// The path of the journal, if it is not beside the home.
    pub journal: Option<&'a str>,
    /// Other settings.
    pub settings: NewSettings<'a>,
}

/// Writes a new VOLUME.toml for a tiered volume to `path`, and reads it.
///
/// # Errors
/// As [`write_new`].
pub fn write_new_tiered(path: &Path, new: NewTiered<'_>) -> Result<VolumeConfig> {
    write_text(path, &tiered_text(new))
}

/// The configuration that [`write_new_tiered`] would write to `path`, parsed. Nothing is written.
///
/// # Errors
/// `InvalidInput` if a setting is invalid.
pub fn parse_new_tiered(path: &Path, new: NewTiered<'_>) -> Result<VolumeConfig> {
    VolumeConfig::parse_new(&tiered_text(new), path)
}

fn tiered_text(new: NewTiered<'_>) -> String {
    let beside = "# journal = \"{home}.journal\"";
    assert!(TIERED_TEMPLATE.contains(beside), "{beside} is not in the template");
    let text = match new.journal {
        Some(path) => TIERED_TEMPLATE.replace(beside, &format!("journal = \"{}\"", quoted(path))),
        None => TIERED_TEMPLATE.to_owned(),
    };
    let text = text
        .replace("{capacity}", &quoted(new.capacity))
        .replace("{flash_size}", &quoted(new.flash_size))
        .replace("{flash}", &quoted(new.flash))
        .replace("{home}", &quoted(new.home));
    new.settings.apply(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DurabilityConfig;

    #[test]
    fn each_setting_has_its_place_in_the_templates() {
        let (durability, buffer) = (Some("on_flush"), Some("5MiB"));
        let settings = NewSettings {
            durability,
            cache: Some("16MiB"),
            buffer,
            sparse: true,
            ..NewSettings::default()
        };
        let text = settings.apply(&template("1GiB"));
        let config = VolumeConfig::parse(&text, Path::new("v.toml")).unwrap();
        assert_eq!(config.device.durability, Some(DurabilityConfig::OnFlush));
        assert_eq!(config.ssd_options().unwrap().cache_pages, 4096);
        assert_eq!(config.ssd_options().unwrap().transaction_pages_max, 1024);
        assert_eq!(config.buffer_pages().unwrap(), 1280);
        assert!(config.media.sparse);
        // The template of a tiered volume has no durability setting.
        let text = NewSettings { durability: None, claim: Some("none"), ..settings };
        let text = text.apply(TIERED_TEMPLATE);
        assert!(text.contains("\nclaim = \"none\"\n"), "{text}");
        for said in ["\nsparse = true\n", "\ncache = \"16MiB\"\n", "\n[buffer]\nsize = \"5MiB\"\n"]
        {
            assert!(text.contains(said), "{said}");
        }
    }

    /// Each setting in a comment is the default, or the text above it names the default.
    #[test]
    fn a_template_says_of_what_is_no_default_what_holds_without_it() {
        let parsed = |text: &str| {
            let text = text.replace("{capacity}", "1GiB");
            format!("{:?}", VolumeConfig::parse(&text, Path::new("v.toml")).unwrap())
        };
        let lines: Vec<&str> = TEMPLATE.lines().collect();
        let (mut settings, mut others) = (0, 0);
        for (at, line) in lines.iter().enumerate() {
            let Some(setting) = line.strip_prefix("# ") else { continue };
            let is_setting = setting
                .split_once(" = ")
                .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            // Settings of a table in comments have no effect without it.
            if !is_setting || lines[..at].contains(&"# [buffer]") {
                continue;
            }
            settings += 1;
            let mut said = lines.clone();
            said[at] = setting;
            // The text shows this setting's default, which applies if the cache has room for it.
            let is_bounded = setting.starts_with("transaction_memory");
            if is_bounded || parsed(&said.join("\n")) == parsed(TEMPLATE) {
                continue;
            }
            others += 1;
            let text: Vec<&str> = lines[..at]
                .iter()
                .rev()
                .copied()
                .take_while(|line| line.starts_with("# ") && !line.contains(" = "))
                .collect();
            let text = text.join(" ").to_lowercase();
            let says = text.contains("without") || text.contains("by default");
            assert!(says, "{setting} is no default: {text}");
        }
        assert!(settings > 5 && others < settings, "{others} of {settings}");
    }
}
