//! `tantalum share VOLUME.toml A B LEN`.
use crate::Verdict;
use crate::common::print_line;
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{PAGE_BYTES, PageDevice, PageNo, PageRange};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::{VolumeConfig, open_volume};

/// Let pages of a volume take other pages' content without writing it again, all or nothing
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// The first page that takes content: a count of pages (64, 4k) or bytes (256KiB)
    #[arg(value_name = "A")]
    to: String,
    /// The first page whose content is taken
    #[arg(value_name = "B")]
    from: String,
    /// How much, likewise; the two ranges must not overlap
    #[arg(value_name = "LEN")]
    length: String,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let to = pages("A", &args.to)?;
    let from = pages("B", &args.from)?;
    let length = pages("LEN", &args.length)?;
    let config = VolumeConfig::read(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let statistics = live.run(async move {
        let (volume, _) = open_volume(&handle, &config).await?;
        let shared = volume.device().share_range(PageNo(to), PageNo(from), length).await;
        let statistics = volume.statistics().ftl;
        // What was refused left the volume as it was; closing it must be tried all the same.
        let closed = volume.close().await;
        shared.and(closed).map(|()| statistics)
    })?;
    let range = |first| PageRange::new(PageNo(first), length);
    print_line(&format!(
        "{}: pages {} have the content of {} ({}); {} slots of the medium hold several pages",
        args.volume.display(),
        range(to),
        range(from),
        human_bytes(length * PAGE_BYTES as u64),
        statistics.shared_slots,
    ))?;
    Ok(Verdict::Good)
}

/// A place or a length in whole pages.
fn pages(name: &str, text: &str) -> anyhow::Result<u64> {
    match Size::parse(text).with_context(|| name.to_owned())? {
        Size::Count(pages) => Ok(pages),
        Size::Bytes(bytes) if bytes.is_multiple_of(PAGE_BYTES as u64) => {
            Ok(bytes / PAGE_BYTES as u64)
        }
        Size::Bytes(_) => bail!("{name}: {text} is no multiple of {PAGE_BYTES} bytes"),
        Size::Share(_) => bail!("{name}: {text} is no count of pages and no size in bytes"),
    }
}
