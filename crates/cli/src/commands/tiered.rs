//! `tantalum attach` and `tantalum detach`: put a cache over a home, and remove it.
use crate::commands::attach_plan;
use crate::commands::room::{tell_room, tell_rounded, tell_spaces};
use anyhow::Context;
use std::path::{Path, PathBuf};
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_media::block_store::{Place, SECTOR_BYTES};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::config::{
    Kind, NewConfig, NewSettings, NewTiered, parse_new_tiered, write_new_tiered,
};
use tantalum_volume::refusals::{
    HOME_EMPTY, HOME_SECTORS, NOT_TIERED, OPTIONS_MISSING, OTHER_CLAIM, OTHER_PLACE, PAGES_LOST,
};
use tantalum_volume::superblock::Superblock;
use tantalum_volume::{
    OpenOptions, VolumeConfig, attach_volume, finish_attach, forget_volume, is_detached,
    journal_in_memory, needs_no_claim, open_home_to_look, open_tiered_volume,
};

/// Put a flash cache over an existing image or disk; its content becomes the volume's
#[derive(clap::Args, Debug)]
#[command(after_help = ATTACH_HELP)]
pub struct AttachArgs {
    /// The volume's configuration; if it does not exist, it is written first, with comments
    pub volume: PathBuf,
    /// The image or block device, for a new configuration
    #[arg(long, value_name = "PATH")]
    pub home: Option<PathBuf>,
    /// The flash: a file or a block device
    #[arg(long, value_name = "PATH", requires = "home")]
    pub flash: Option<PathBuf>,
    /// Bytes of the flash to use: at least 60MiB with a write cache of 8MiB, more with a larger one. With --plan it is
    /// optional, and a size is proposed
    #[arg(long, value_name = "SIZE")]
    pub flash_size: Option<String>,
    /// The journal: a file on storage that is not lost with the flash; by default HOME.journal. Required if the home is
    /// a block device
    #[arg(long, value_name = "PATH")]
    pub journal: Option<PathBuf>,
    /// Mark on the home while it has a cache: xor (prevents mounting it by mistake) or none (it stays a plain image);
    /// by default xor
    #[arg(long, value_name = "CLAIM", value_parser = ["xor", "none"], requires = "home")]
    pub claim: Option<String>,
    /// Give up the content of flash and journal
    #[arg(long)]
    pub force: bool,
    /// Only print the space and settings that would be used, with reasons, and measure home and flash for some seconds;
    /// nothing is kept, and the home is only read
    #[arg(long)]
    plan: bool,
}

const ATTACH_HELP: &str = "The home is as large as the volume. While it has a cache, its first and \
its last MiB are XORed with a text (the claim), so that no program finds a file system there and \
mounts it by mistake; `tantalum stat HOME` reads the text. `tantalum detach` destages all dirty \
pages and takes the claim off. No other program may use the home until then.

Examples:
  tantalum attach vol/VOLUME.toml --home /slow/disk.img --flash /ssd/cache --plan
  tantalum attach vol/VOLUME.toml --home /slow/disk.img --flash /ssd/cache --flash-size 10GiB
  tantalum attach vol/VOLUME.toml --home /dev/sdb --journal /slow/sdb.journal --flash /dev/nvme0n1p4 --flash-size 10GiB";

/// Write all newer pages of the flash to the home, and end the volume: the home is a plain image again
#[derive(clap::Args, Debug)]
#[command(after_help = DETACH_HELP)]
pub struct DetachArgs {
    /// The volume's configuration
    volume: PathBuf,
}

const DETACH_HELP: &str = "Stop the server first. Afterwards the flash is no volume any more; \
`tantalum attach` makes it one again. If detach fails, nothing is lost and it can be repeated.

Examples:
  tantalum detach vol/VOLUME.toml";

/// Runs `attach`.
pub fn attach(args: &AttachArgs) -> anyhow::Result<Verdict> {
    if args.plan {
        return attach_plan::run(args);
    }
    let path = &args.volume;
    let new = (!path.exists()).then(|| NewConfig::at(path));
    let mut gets_none = false;
    let config = if new.is_some() {
        let (Some(home), Some(flash), Some(flash_size)) =
            (&args.home, &args.flash, &args.flash_size)
        else {
            let context =
                format!("{} {OPTIONS_MISSING}, --flash and --flash-size make one", path.display());
            return Err(OPTIONS_MISSING.error(ErrorKind::InvalidInput, context).into());
        };
        let bytes = home_bytes(home)?;
        let capacity = capacity_text(bytes);
        let home_size = odd_size(bytes, &capacity);
        let new = Tiers { home, flash, flash_size, journal: args.journal.as_deref() };
        gets_none = args.claim.is_none() && needs_no_claim(home)?;
        let claim = if gets_none { Some("none") } else { args.claim.as_deref() };
        let settings = NewSettings { claim, home_size, ..NewSettings::default() };
        new.write(path, &capacity, settings)?
    } else {
        existing_config(args)?
    };
    let attached = finish_or_attach(&config, args.force);
    let superblock = attached.inspect_err(|_| new.iter().for_each(NewConfig::discard))?;
    tell_rounded(&config)?;
    print_line(&format!(
        "{}: a volume of {} over {}, with {} of flash in {}, identity {:032x}",
        path.display(),
        human_bytes(config.size_bytes()?),
        home_of(&config),
        human_bytes(superblock.store_bytes()),
        config.data_path()?.display(),
        superblock.volume_id
    ))?;
    tell_room(&config, superblock.store_bytes())?;
    warn_of_memory(&config);
    if gets_none {
        tell_no_claim(&config);
    }
    Ok(Verdict::Good)
}

/// Attaches the volume of `config`, or finishes an earlier attach that was interrupted.
fn finish_or_attach(config: &VolumeConfig, force: bool) -> tantalum_base::Result<Superblock> {
    if !force && let Some(superblock) = finish_attach(config)? {
        eprintln!("note: an attach of this volume had been cut short; it is finished now");
        return Ok(superblock);
    }
    let live = Live::new(LiveOptions::default())?;
    let (handle, made) = (live.clone(), config.clone());
    live.run(async move { attach_volume(&handle, &made, force, tell_spaces).await })
}

/// The existing configuration, which the command line must not contradict.
pub fn existing_config(args: &AttachArgs) -> anyhow::Result<VolumeConfig> {
    let config = VolumeConfig::read(&args.volume)?;
    let named = [&args.home, &args.flash, &args.journal];
    refuse_other_places(&config, named.map(Option::as_deref))?;
    refuse_other_claim(&config, args.claim.as_deref())?;
    let bytes = |size: &str| Size::parse_bytes(size).context("--flash-size");
    if let (Some(asked), Some(says)) = (&args.flash_size, &config.media.size)
        && bytes(asked)? != bytes(says)?
    {
        let path = config.path.display();
        let context =
            format!("--flash-size {asked}: {path} has {says} {OTHER_PLACE} media.size in it");
        return Err(OTHER_PLACE.error(ErrorKind::InvalidInput, context).into());
    }
    Ok(config)
}

/// The parts of a new tiered volume, as given on the command line.
pub struct Tiers<'a> {
    /// The slow file or block device.
    pub home: &'a Path,
    /// The file or block device that caches it.
    pub flash: &'a Path,
    /// The bytes of it to use.
    pub flash_size: &'a str,
    /// The journal, if it is not beside the home.
    pub journal: Option<&'a Path>,
}

impl Tiers<'_> {
    /// Writes a configuration to `path`. Relative paths of the command line become absolute, so that they name the same
    /// files from any folder.
    pub fn write(
        &self,
        path: &Path,
        capacity: &str,
        settings: NewSettings<'_>,
    ) -> anyhow::Result<VolumeConfig> {
        self.make(capacity, settings, |new| write_new_tiered(path, new))
    }

    /// The configuration that would be written.
    pub fn parse(
        &self,
        path: &Path,
        capacity: &str,
        settings: NewSettings<'_>,
    ) -> anyhow::Result<VolumeConfig> {
        self.make(capacity, settings, |new| parse_new_tiered(path, new))
    }

    fn make(
        &self,
        capacity: &str,
        settings: NewSettings<'_>,
        make: impl FnOnce(NewTiered<'_>) -> tantalum_base::Result<VolumeConfig>,
    ) -> anyhow::Result<VolumeConfig> {
        let absolute =
            |path: &Path| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
        let (flash, home) = (absolute(self.flash)?, absolute(self.home)?);
        let journal = self.journal.map(absolute).transpose()?;
        let (journal, flash_size) = (journal.as_deref(), self.flash_size);
        let new = NewTiered { capacity, flash: &flash, flash_size, home: &home, journal, settings };
        Ok(make(new)?)
    }
}

/// Refuses home, flash and journal that are `named` on the command line if an existing configuration has others.
pub fn refuse_other_places(config: &VolumeConfig, named: [Option<&Path>; 3]) -> anyhow::Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    let says = [
        ("--home", "home.path", home.home_path(&config.path)),
        ("--flash", "media.path", config.data_path()?),
        ("--journal", "home.journal", home.journal_path(&config.path)),
    ];
    for ((option, key, says), named) in says.into_iter().zip(named) {
        if let Some(named) = named
            && Place::of(named) != Place::of(&says)
        {
            let (path, says) = (config.path.display(), says.display());
            let context = format!(
                "{option} {}: {path} has {says} {OTHER_PLACE} {key} in it",
                named.display()
            );
            return Err(OTHER_PLACE.error(ErrorKind::InvalidInput, context).into());
        }
    }
    Ok(())
}

/// Warns that the home of a new volume got no claim although the command line did not request that.
pub fn tell_no_claim(config: &VolumeConfig) {
    eprintln!(
        "note: {} gets no claim (home.claim = \"none\"): no sector of 512 bytes in its first and \
         its last MiB is zero, so that a claim could not be seen there, and it shows no file \
         system, partition table or container that could be mounted by mistake; changes made \
         without the cache are noticed at the next opening",
        home_of(config)
    );
}

/// Refuses a claim that is `named` on the command line if an existing configuration has another.
pub fn refuse_other_claim(config: &VolumeConfig, named: Option<&str>) -> anyhow::Result<()> {
    let says = config.home.as_ref().map(|home| home.claim.name());
    match (named, says) {
        (Some(named), Some(says)) if named != says => {
            let context =
                format!("{} {OTHER_CLAIM} = \"{says}\": change it there", config.path.display());
            Err(OTHER_CLAIM.error(ErrorKind::InvalidInput, context).into())
        }
        _ => Ok(()),
    }
}

/// Warns if the journal of a new volume is in memory.
pub fn warn_of_memory(config: &VolumeConfig) {
    if let Some(journal) = journal_in_memory(config) {
        eprintln!(
            "warning: the journal {} is in memory, and lost when the machine stops: without it the \
             volume cannot be opened, and nothing can be rescued if the flash is lost",
            journal.display()
        );
    }
}

/// The size in bytes of an image or a block device, which must be whole sectors.
pub fn home_bytes(home: &Path) -> anyhow::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let path = home.display();
    let bytes = open_home_to_look(home)?
        .seek(SeekFrom::End(0))
        .with_context(|| format!("measuring {path}"))?;
    if bytes == 0 {
        let context =
            format!("the home {path} {HOME_EMPTY} (`truncate -s SIZE {path}` gives a file a size)");
        return Err(HOME_EMPTY.error(ErrorKind::InvalidInput, context).into());
    }
    if !bytes.is_multiple_of(SECTOR_BYTES) {
        let smaller = bytes / SECTOR_BYTES * SECTOR_BYTES;
        let context = format!(
            "the home {path} has {bytes} bytes, {HOME_SECTORS}: make it {} bytes long \
             (`truncate -s {} {path}` adds zeros){}",
            smaller + SECTOR_BYTES,
            smaller + SECTOR_BYTES,
            match smaller {
                0 => String::new(),
                smaller =>
                    format!(", or {smaller}, which gives up its last {} bytes", bytes - smaller),
            }
        );
        return Err(HOME_SECTORS.error(ErrorKind::InvalidInput, context).into());
    }
    Ok(bytes)
}

/// A number of bytes in the form that a configuration uses.
pub fn capacity_text(bytes: u64) -> String {
    match bytes.is_multiple_of(1024) {
        true => format!("{}KiB", bytes / 1024),
        false => format!("{bytes}B"),
    }
}

/// `capacity` as the home's own size if `bytes` ends within a page: the configuration then states it separately.
pub fn odd_size(bytes: u64, capacity: &str) -> Option<&str> {
    (!bytes.is_multiple_of(PAGE_BYTES as u64)).then_some(capacity)
}

/// The path of the home of `config`.
pub fn home_of(config: &VolumeConfig) -> String {
    let home = config.home.as_ref().map(|home| home.home_path(&config.path));
    home.map_or_else(String::new, |home| home.display().to_string())
}

/// The configuration of a tiered volume at `path`.
pub fn tiered_config(path: &Path) -> anyhow::Result<VolumeConfig> {
    let config = VolumeConfig::read(path)?;
    if config.kind != Kind::Tiered {
        let context = format!(
            "{} {NOT_TIERED}: its content is all in {}, and there is no home to destage it to (`tantalum serve` serves it)",
            path.display(),
            config.data_path()?.display()
        );
        return Err(NOT_TIERED.error(ErrorKind::InvalidInput, context).into());
    }
    Ok(config)
}

/// Runs `detach`.
pub fn detach(args: &DetachArgs) -> anyhow::Result<Verdict> {
    let config = tiered_config(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    if was_detached(&live, &config)? {
        return say_is_detached(&config);
    }
    let (handle, opened) = (live.clone(), config.without_buffer());
    let pages = live.run(async move {
        let (volume, _) = open_tiered_volume(&handle, &opened, OpenOptions::default()).await?;
        let tiered = volume.device().device();
        let written = tiered.write_home().await;
        let statistics = tiered.statistics();
        volume.close().await?;
        written?;
        if statistics.lost_pages > 0 {
            let context = format!(
                "{} pages are newer in the flash, {PAGES_LOST}: home has older content of them, and the \
                 volume stays (`tantalum check` names them; write them, or discard them on the served device, and detach it then)",
                statistics.lost_pages
            );
            return Err(PAGES_LOST.error(ErrorKind::Uncorrectable, context));
        }
        Ok::<_, tantalum_base::Error>(statistics.home_pages_written)
    })?;
    // The volume's tasks hold its files until they are dropped.
    live.drop_tasks();
    drop(live);
    let live = Live::new(LiveOptions::default())?;
    let (handle, detached) = (live.clone(), config.clone());
    live.run(async move { forget_volume(&handle, &detached).await })?;
    print_line(&format!(
        "{}: {} written to the home; {} is a plain image now, and the flash is no volume any more",
        args.volume.display(),
        human_bytes(pages * PAGE_BYTES as u64),
        home_of(&config),
    ))?;
    let journal = config.home.as_ref().map(|home| home.journal_path(&config.path));
    let left = [Some(config.data_path()?), journal.filter(|journal| journal.exists())];
    let left: Vec<_> = left.iter().flatten().map(|path| path.display().to_string()).collect();
    print_line(&format!("not needed any more: {}", left.join(" and ")))?;
    Ok(Verdict::Good)
}

/// Whether the volume of `config` was already detached or rescued.
pub fn was_detached(live: &Live, config: &VolumeConfig) -> anyhow::Result<bool> {
    let (handle, config) = (live.clone(), config.clone());
    Ok(live.run(async move { is_detached(&handle, &config).await })?)
}

/// Reports that the command has nothing left to do: an earlier run may have done it without an answer.
pub fn say_is_detached(config: &VolumeConfig) -> anyhow::Result<Verdict> {
    print_line(&format!(
        "{} is a plain image already: the volume was detached, or rescued, before; nothing was changed",
        home_of(config)
    ))?;
    Ok(Verdict::Good)
}

/// A time span as text.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn spans_are_told_in_the_unit_that_fits() {
        let told = [1_999, 119_000, 120_000, 7_200_000, 172_800_000].map(duration);
        assert_eq!(told, ["1 s", "119 s", "2 min", "2 h", "2 days"]);
    }
}
