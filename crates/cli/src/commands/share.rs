//! `tantalum share VOLUME.toml A B LEN`.
use crate::Verdict;
use crate::common::print_line;
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::size::{Size, human_bytes};
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, PageDevice, PageNo, PageRange};
use tantalum_runtime::live::LiveOptions;
use tantalum_runtime::{LifeCycle, Live};
use tantalum_volume::{VolumeConfig, open_volume};

/// Let pages of a volume take other pages' content without writing it again, all or nothing
///
/// The command opens the volume itself: while a server or another program has it open, it is refused.
/// Through NBD there is no such command; stop the server, share, and start it again. One command takes
/// what the free space of the device has room for, `share_pairs_max` in `tantalum stat`: some 5 % of the
/// capacity. A longer range goes in several commands, each all or nothing by itself; the refusal says in which.
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
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

const AFTER_HELP: &str = "Examples:
  tantalum share vol/VOLUME.toml 1024 0 64
  tantalum share vol/VOLUME.toml 4MiB 0B 256KiB";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let to = pages("A", &args.to)?;
    let from = pages("B", &args.from)?;
    let length = pages("LEN", &args.length)?;
    if length == 0 {
        bail!("LEN: {} are no pages to share", args.length);
    }
    let config = VolumeConfig::read(&args.volume)?;
    let live = Live::new(LiveOptions::default())?;
    let handle = live.clone();
    let statistics = live.run(async move {
        let (volume, _) = open_volume(&handle, &config).await?;
        let most = u64::from(volume.limits().share_pairs_max);
        let shared = match split(most, to, from, length) {
            Some(parts) => Err(Error::new(ErrorKind::TooLarge, parts)),
            None => volume.share_range(PageNo(to), PageNo(from), length).await,
        };
        let statistics = volume.device().statistics().ftl;
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

/// How to share `length` pages in parts where one share takes at most `most`; `None` where it fits.
fn split(most: u64, to: u64, from: u64, length: u64) -> Option<String> {
    if most == 0 || length <= most {
        return None;
    }
    let (whole, rest) = (length / most, length % most);
    let parts = length.div_ceil(most);
    let (last, at) = if rest > 0 { (rest, whole * most) } else { (most, (whole - 1) * most) };
    Some(format!(
        "a share of {length} pages is over the limit of {most}; {parts} shares do it, each all or nothing by \
         itself: A {to} B {from} LEN {most}, both {most} further each time, up to A {} B {} LEN {last}",
        to.saturating_add(at),
        from.saturating_add(at),
    ))
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
