//! `tantalum create VOLUME.toml`.
use crate::Verdict;
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::PAGE_BYTES;
use tantalum_base::size::human_bytes;
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
    let config = if path.exists() {
        if args.capacity.is_some() {
            bail!("{} exists: change device.capacity there", path.display());
        }
        VolumeConfig::read(path)?
    } else {
        let Some(capacity) = &args.capacity else {
            bail!("{} does not exist; --capacity SIZE makes one", path.display());
        };
        let text = config::template(capacity);
        // Parsed before it is written: a wrong capacity leaves no file.
        let config = VolumeConfig::parse(&text, path)?;
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        config
    };
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let (made, force) = (config.clone(), args.force);
    let superblock = live.run(async move { create_volume(&handle, &made, force).await })?;
    println!(
        "{}: a volume of {} in {} ({} zones of {}), identity {:032x}",
        path.display(),
        human_bytes(superblock.pages * PAGE_BYTES as u64),
        config.data_path()?.display(),
        superblock.zones,
        human_bytes(u64::from(superblock.slots_per_zone) * PAGE_BYTES as u64),
        superblock.volume_id
    );
    Ok(Verdict::Good)
}
