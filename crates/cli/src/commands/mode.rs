//! `tantalum mode`: the mode of a tiered volume's cache, changed while it is served.
use anyhow::{Context, bail};
use std::path::PathBuf;
use tantalum_base::size::human_bytes;
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_cache::Mode;
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_volume::VolumeConfig;
use tantalum_volume::asking::{ask_mode, control_path};
use tantalum_volume::config::Kind;
use tantalum_volume::refusals::{NOT_SERVED, NOT_TIERED};

/// Change the mode of a tiered volume's cache while it is served
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration
    volume: PathBuf,
    /// write-back, write-through, read-cache or off; by default, the present mode is printed
    mode: Option<String>,
}

const AFTER_HELP: &str = "The command ends when the new mode holds for all writes acknowledged \
before. For every mode but write-back that is when they are at home: until then mode prints how \
many dirty pages are left, and clients go on. The next opening of the volume takes home.mode of \
its configuration.

Examples:
  tantalum mode vol/VOLUME.toml
  tantalum mode vol/VOLUME.toml off";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let mode = args.mode.as_deref().map(Mode::parse).transpose()?;
    let config = VolumeConfig::read(&args.volume)?;
    let path = config.path.display();
    if config.kind != Kind::Tiered {
        let context = format!("{path} {NOT_TIERED}: only a tiered volume has modes");
        return Err(NOT_TIERED.error(ErrorKind::InvalidInput, context).into());
    }
    let name = mode.map_or("", Mode::name);
    let Some(lines) = ask_mode(&config.path, name)? else {
        let context = format!(
            "{path} {NOT_SERVED} (no server listens at {}): `tantalum serve {path}` serves it; or \
             set home.mode in it, the mode in which it is served next",
            control_path(&config.path).display()
        );
        return Err(NOT_SERVED.error(ErrorKind::InvalidInput, context).into());
    };
    let mut left = 0;
    for line in lines {
        let line = line?;
        match line.split_once(' ') {
            Some(("left", pages)) => {
                left = pages.parse().context("the server's answer")?;
                eprintln!("{} left", amount(left));
            }
            Some(("mode", mode)) => {
                let home = if left == 0 {
                    "home has everything".to_owned()
                } else {
                    format!("home lacks {}", amount(left))
                };
                print_line(&format!("{path}: {mode}, {home}"))?;
                return Ok(Verdict::Good);
            }
            Some(("error", error)) => bail!("{path}: {error}"),
            _ => bail!("{path}: the server answers {line:?}"),
        }
    }
    bail!("{path}: the server ended before it answered")
}

fn amount(pages: u64) -> String {
    format!("{pages} pages ({})", human_bytes(pages * PAGE_BYTES as u64))
}
