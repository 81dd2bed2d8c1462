//! `tantalum create VOLUME.toml`.
use crate::commands::room::{tell_room, tell_rounded};
use crate::commands::tiered::{Tiers, refuse_other_claim, refuse_other_places, warn_of_memory};
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::{DurabilityConfig, NewConfig, NewSettings};
use tantalum_volume::{VolumeConfig, config, create_volume};

const PAGE: u64 = PAGE_BYTES as u64;

/// Make a new, empty volume
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration; if it does not exist, it is written first, with comments
    volume: PathBuf,
    /// Capacity that hosts see, for a new configuration: bytes with a unit (1GiB, 500MB)
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Make a tiered volume over this slow home: a file or block device
    #[arg(long, value_name = "PATH", requires = "flash", requires = "flash_size")]
    home: Option<PathBuf>,
    /// The flash that caches the home: a file or a block device
    #[arg(long, value_name = "PATH", requires = "home")]
    flash: Option<PathBuf>,
    /// Bytes of the flash to use: at least 60MiB with a write cache of 8MiB, more with a larger one
    #[arg(long, value_name = "SIZE", requires = "home")]
    flash_size: Option<String>,
    /// The journal of the home: a file on storage that is not lost with the flash; by default HOME.journal. Required if
    /// the home is a block device
    #[arg(long, value_name = "PATH", requires = "home")]
    journal: Option<PathBuf>,
    /// Mark on the home while it has a cache: xor (prevents mounting it by mistake) or none (it stays a plain image);
    /// by default xor
    #[arg(long, value_name = "CLAIM", value_parser = ["xor", "none"], requires = "home")]
    claim: Option<String>,
    /// What survives a power cut, for a new configuration: on_ack (all acknowledged writes; for programs that never
    /// flush) or on_flush (all flushed writes and a prefix of the rest; for programs that flush). By default on_flush
    /// for NBD clients and on_ack for all others; commits survive under both
    #[arg(long, value_name = "MODE", conflicts_with = "home")]
    durability: Option<String>,
    /// Size of the write cache in memory, for a new configuration; by default 8MiB
    #[arg(long, value_name = "SIZE")]
    cache: Option<String>,
    /// Memory of the buffer, which keeps pages for repeated reads, for a new configuration; by default none
    #[arg(long, value_name = "SIZE")]
    buffer: Option<String>,
    /// Do not allocate space for the content of the file: creation is immediate at any size, but a full file system is
    /// noticed only later, at a write. Discarded pages free their space (see media.sparse in the configuration)
    #[arg(long)]
    sparse: bool,
    /// Give up the content of the volume's file or device
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str =
    "The configuration names the file of the data, by default data.tantalum in the same folder, \
and lists all other settings with their defaults.

Examples:
  tantalum create vol/VOLUME.toml --capacity 1GiB
  tantalum create vol/VOLUME.toml --capacity 20GB --durability on_flush --cache 64MiB --buffer 1GiB
  tantalum create big/VOLUME.toml --capacity 1TiB --sparse
  tantalum create vol/VOLUME.toml --capacity 100GiB --home /slow/data.img --flash /ssd/cache --flash-size 10GiB
  tantalum create vol/VOLUME.toml --force";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let path = &args.volume;
    let new = NewConfig::at(path);
    let (config, is_new) = configuration(args)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let (made, force) = (config.clone(), args.force);
    let created = live.run(async move { create_volume(&handle, &made, force).await });
    if let Err(error) = &created
        && is_new
    {
        new.discard_after(error);
        if !args.force && has_data(&config) {
            let data = config.data_path()?;
            bail!(
                "{} exists already, perhaps for another configuration: a new volume needs its own \
                 folder (--force gives up the file)",
                data.display()
            );
        }
    }
    let superblock = match created {
        // For a tiered volume, the error already contains advice.
        Err(error) if error.kind() == ErrorKind::OutOfSpace && config.home.is_none() => {
            return Err(error).context(
                "there is no room for the volume: make room, name another place, or choose a smaller --capacity or --sparse",
            );
        }
        created => created?,
    };
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
    tell_room(&config, superblock.store_bytes())?;
    tell_durability(&config)?;
    warn_of_memory(&config);
    Ok(Verdict::Good)
}

/// Prints the durability if the user has not chosen one.
fn tell_durability(config: &VolumeConfig) -> anyhow::Result<()> {
    let (own, over_nbd) = (config.durability(), config.durability_over_nbd());
    if own == over_nbd {
        return Ok(());
    }
    let told = format!(
        "durability: {} over NBD, whose clients flush (file systems, QEMU); {} for programs that open the volume \
         themselves or use it over a local socket (SQLite, C, Rust); --durability chooses one for both",
        over_nbd.name(),
        own.name()
    );
    Ok(print_line(&told)?)
}

/// Whether anything exists at the path of the volume's data.
fn has_data(config: &VolumeConfig) -> bool {
    let there = config.data_path().ok().and_then(|data| std::fs::metadata(data).ok());
    there.is_some_and(|there| there.len() > 0)
}

/// The configuration, and whether this call wrote it.
fn configuration(args: &Args) -> anyhow::Result<(VolumeConfig, bool)> {
    let path = &args.volume;
    check_texts(args)?;
    if path.exists() {
        let config = VolumeConfig::read(path)?;
        refuse_contradictions(args, &config)?;
        return Ok((config, false));
    }
    let Some(capacity) = &args.capacity else {
        bail!("{} does not exist; --capacity SIZE makes one", path.display());
    };
    let settings = NewSettings {
        durability: args.durability.as_deref(),
        cache: args.cache.as_deref(),
        buffer: args.buffer.as_deref(),
        sparse: args.sparse,
        claim: args.claim.as_deref(),
        home_size: None,
    };
    if let (Some(home), Some(flash), Some(flash_size)) = (&args.home, &args.flash, &args.flash_size)
    {
        let tiers = Tiers { home, flash, flash_size, journal: args.journal.as_deref() };
        return Ok((tiers.write(path, capacity, settings)?, true));
    }
    Ok((config::write_new(path, capacity, &settings)?, true))
}

/// Refuses invalid options before they are written to a file. Later, a message would name a line of that file instead of the
/// option.
fn check_texts(args: &Args) -> anyhow::Result<()> {
    for (option, size) in
        [("--capacity", &args.capacity), ("--cache", &args.cache), ("--buffer", &args.buffer)]
    {
        if let Some(size) = size
            && Size::parse_bytes(size).context(option)? == 0
        {
            bail!("{option}: {size} is zero");
        }
    }
    if let Some(mode) = &args.durability
        && !["on_ack", "on_flush"].contains(&mode.as_str())
    {
        bail!("--durability: {mode:?} is not one of on_ack, on_flush");
    }
    Ok(())
}

/// Refuses options that contradict an existing configuration.
fn refuse_contradictions(args: &Args, config: &VolumeConfig) -> anyhow::Result<()> {
    let named = [&args.home, &args.flash, &args.journal];
    refuse_other_places(config, named.map(Option::as_deref))?;
    refuse_other_claim(config, args.claim.as_deref())?;
    let path = config.path.display();
    let pages = |size: &str| Ok::<_, anyhow::Error>(Size::parse_bytes(size)?.div_ceil(PAGE));
    let device = &config.device;
    if let Some(capacity) = &args.capacity
        && pages(capacity)? != config.capacity_pages()?
    {
        // An existing volume does not open if its configuration has another capacity.
        let is_made = config.data_path().is_ok_and(|data| data.exists());
        let way = match is_made && !args.force {
            true => format!("`tantalum resize {path} {capacity}` enlarges the volume"),
            false => "change it there".to_owned(),
        };
        bail!("{path} says device.capacity = \"{}\": {way}", device.capacity);
    }
    if let Some(cache) = &args.cache
        && pages(cache)? != pages(&device.cache)?
    {
        bail!("{path} says device.cache = \"{}\": change it there", device.cache);
    }
    if let Some(buffer) = &args.buffer
        && pages(buffer)? != u64::from(config.buffer_pages()?)
    {
        let says = config.buffer.as_ref().map_or("no [buffer]".to_owned(), |buffer| {
            format!("buffer.size = \"{}\"", buffer.size)
        });
        bail!("{path} says {says}: change it there");
    }
    let says = device.durability.map(DurabilityConfig::name);
    if let Some(mode) = &args.durability
        && Some(mode.as_str()) != says
    {
        let says = match says {
            Some(says) => format!("device.durability = \"{says}\""),
            None => "no device.durability".to_owned(),
        };
        bail!("{path} says {says}: change it there");
    }
    if args.sparse && !config.media.sparse {
        bail!("{path} does not say media.sparse = true: change it there");
    }
    Ok(())
}
