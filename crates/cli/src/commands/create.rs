//! `tantalum create VOLUME.toml`.
use crate::Verdict;
use crate::commands::tiered::write_tiered;
use crate::common::{discard_unfinished, print_line};
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::{Size, human_bytes};
use tantalum_report::number;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, config, create_volume};

/// Make a new, empty volume
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration; written first, commented, where it does not exist
    volume: PathBuf,
    /// What hosts see, for a configuration that does not exist yet: bytes with a unit (1GiB, 500MB)
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Make a tiered volume: a file or block device that is its slow home
    #[arg(long, value_name = "PATH", requires = "flash", requires = "flash_size")]
    home: Option<PathBuf>,
    /// The flash that caches the home: a file or a block device
    #[arg(long, value_name = "PATH", requires = "home")]
    flash: Option<PathBuf>,
    /// How much of the flash is used
    #[arg(long, value_name = "SIZE", requires = "home")]
    flash_size: Option<String>,
    /// Make the file without room for its content: at once, however large; a full file system is met
    /// later, at a write (see media.sparse in the configuration)
    #[arg(long)]
    sparse: bool,
    /// Give up what the volume's file or device holds
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str =
    "The configuration says where the data is, which is data.tantalum in the same \
folder where nothing else is said, and lists all other settings with their defaults.

Examples:
  tantalum create vol/VOLUME.toml --capacity 1GiB
  tantalum create big/VOLUME.toml --capacity 1TiB --sparse
  tantalum create vol/VOLUME.toml --capacity 100GiB --home /slow/data.img --flash /ssd/cache --flash-size 10GiB
  tantalum create vol/VOLUME.toml --force";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let path = &args.volume;
    let (config, is_new) = configuration(args)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let (made, force) = (config.clone(), args.force);
    let created = live.run(async move { create_volume(&handle, &made, force).await });
    if created.is_err() && is_new {
        discard_unfinished(path);
        if !args.force && has_data(&config) {
            let data = config.data_path()?;
            bail!(
                "{} is there already, perhaps another configuration's: a new volume wants a folder of its \
                 own (--force gives up what is there)",
                data.display()
            );
        }
    }
    let superblock = created?;
    tell_rounded(&config)?;
    let over = config.home.as_ref().map(|home| home.home_path(&config.path));
    let over = over.map_or_else(String::new, |home| format!(" over {}", home.display()));
    print_line(&format!(
        "{}: a volume of {} in {}{over} ({} zones of {}), identity {:032x}",
        path.display(),
        human_bytes(superblock.pages * PAGE_BYTES as u64),
        config.data_path()?.display(),
        superblock.zones,
        human_bytes(u64::from(superblock.slots_per_zone) * PAGE_BYTES as u64),
        superblock.volume_id
    ))?;
    Ok(Verdict::Good)
}

/// Says in one line which sizes were not taken to the byte.
pub fn tell_rounded(config: &VolumeConfig) -> anyhow::Result<()> {
    let rounded = config.rounded_sizes()?;
    let told = rounded.iter().map(|size| {
        format!("{} = \"{}\" is {} bytes", size.key, size.text, number::thousands(size.bytes))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if !rounded.is_empty() {
        print_line(&format!("{}: in whole pages of 4 KiB, {told}", config.path.display()))?;
    }
    Ok(())
}

/// Whether something is where the volume's data would go.
fn has_data(config: &VolumeConfig) -> bool {
    let there = config.data_path().ok().and_then(|data| std::fs::metadata(data).ok());
    there.is_some_and(|there| there.len() > 0)
}

/// The configuration, and whether it was written just now.
fn configuration(args: &Args) -> anyhow::Result<(VolumeConfig, bool)> {
    let path = &args.volume;
    if let Some(capacity) = &args.capacity {
        // Before it stands in a file, where a message would name a line of that.
        Size::parse_bytes(capacity).context("--capacity")?;
    }
    if path.exists() {
        let config = VolumeConfig::read(path)?;
        if let Some(capacity) = &args.capacity
            && Size::parse_bytes(capacity)?.div_ceil(PAGE_BYTES as u64)
                != config.capacity_pages()?
        {
            let says = &config.device.capacity;
            bail!("{} says device.capacity = \"{says}\": change it there", path.display());
        }
        if args.sparse && !config.media.sparse {
            bail!("{} does not say media.sparse = true: change it there", path.display());
        }
        return Ok((config, false));
    }
    let Some(capacity) = &args.capacity else {
        bail!("{} does not exist; --capacity SIZE makes one", path.display());
    };
    if let (Some(home), Some(flash), Some(size)) = (&args.home, &args.flash, &args.flash_size) {
        return Ok((write_tiered(path, capacity, flash, size, home)?, true));
    }
    Ok((config::write_new(path, capacity, args.sparse)?, true))
}
