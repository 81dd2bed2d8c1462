//! `tantalum create VOLUME.toml`.
use crate::Verdict;
use crate::common::{discard_unfinished, print_line};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::{Size, human_bytes};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, config, create_volume};

/// Make a new, empty volume
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The volume's configuration; written first, commented, where it does not exist
    volume: PathBuf,
    /// What hosts see, for a configuration that does not exist yet (such as 1GiB)
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Give up what the volume's file or device holds
    #[arg(long)]
    force: bool,
}

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
    }
    let superblock = created?;
    print_line(&format!(
        "{}: a volume of {} in {} ({} zones of {}), identity {:032x}",
        path.display(),
        human_bytes(superblock.pages * PAGE_BYTES as u64),
        config.data_path()?.display(),
        superblock.zones,
        human_bytes(u64::from(superblock.slots_per_zone) * PAGE_BYTES as u64),
        superblock.volume_id
    ))?;
    Ok(Verdict::Good)
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
            && Size::parse_bytes(capacity)? != config.capacity_pages()? * PAGE_BYTES as u64
        {
            let says = &config.device.capacity;
            bail!("{} says device.capacity = \"{says}\": change it there", path.display());
        }
        return Ok((config, false));
    }
    let Some(capacity) = &args.capacity else {
        bail!("{} does not exist; --capacity SIZE makes one", path.display());
    };
    let text = config::template(capacity);
    // Parsed before it is written: a wrong capacity leaves no file.
    let config = VolumeConfig::parse(&text, path)?;
    write_whole(path, &text).with_context(|| format!("writing {}", path.display()))?;
    Ok((config, true))
}

/// Writes a new file, so that it is there whole or not at all whenever this is cut short.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".creating");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)
}
