//! `tantalum attach --plan`: the space and the settings that attach would use, the reasons, and the speed of home and
//! flash.
use crate::commands::device_speed::{self, FlashSpeed, HomeSpeed};
use crate::commands::room::{of_what, tell_rounded};
use crate::commands::tiered::{
    AttachArgs, Tiers, capacity_text, duration, existing_config, home_bytes, home_of, odd_size,
    tell_no_claim, warn_of_memory,
};
use std::path::Path;
use tantalum_base::size::human_bytes;
use tantalum_base::{ErrorKind, PAGE_BYTES};
use tantalum_console::Verdict;
use tantalum_console::output::print_line;
use tantalum_report::number;
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::config::NewSettings;
use tantalum_volume::refusals::OPTIONS_MISSING;
use tantalum_volume::{
    Holder, StoreSpace, VolumeConfig, check_attach, dirty_bytes_max, holder_of, is_ordered,
    needs_no_claim, refuse_without_space, spaces,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The smallest flash that is proposed: with the settings of a new configuration, one of less than 60 MiB is refused.
const PROPOSED_MIN: u64 = 64 * MIB;

/// A flash is worthwhile only if its random reads are at least this many times as fast as the home's.
const CLEARLY_FASTER: f64 = 2.0;

/// A proposed size, and the reason.
struct Proposal {
    text: String,
    reason: String,
}

/// Runs the command.
pub fn run(args: &AttachArgs) -> anyhow::Result<Verdict> {
    let (config, proposal, gets_none) = configuration(args)?;
    let live = Live::new(LiveOptions::default())?;
    let (handle, checked, force) = (live.clone(), config.clone(), args.force);
    live.run(async move { check_attach(&handle, &checked, force).await })?;
    let spaces = spaces(&config)?;
    tell_rounded(&config)?;
    tell_places(&config, &spaces, proposal.as_ref())?;
    tell_settings(&config)?;
    warn_of_memory(&config);
    if gets_none {
        tell_no_claim(&config);
    }
    tell_speeds(&config)?;
    print_line("a plan: nothing was made, and the home was only read")?;
    match refuse_without_space(&spaces) {
        Ok(()) => Ok(Verdict::Good),
        Err(error) => {
            print_line(&format!("does not fit: {error}"))?;
            Ok(Verdict::FoundWrong)
        }
    }
}

/// The configuration that exists or would be written; the proposed size of the flash, if none was given; and whether
/// the home gets no claim although the command line does not ask for that.
fn configuration(args: &AttachArgs) -> anyhow::Result<(VolumeConfig, Option<Proposal>, bool)> {
    if args.volume.exists() {
        return Ok((existing_config(args)?, None, false));
    }
    let (Some(home), Some(flash)) = (&args.home, &args.flash) else {
        let context = format!(
            "{} {OPTIONS_MISSING} and --flash are needed for a plan",
            args.volume.display()
        );
        return Err(OPTIONS_MISSING.error(ErrorKind::InvalidInput, context).into());
    };
    let home_bytes = home_bytes(home)?;
    let capacity = capacity_text(home_bytes);
    let gets_none = args.claim.is_none() && needs_no_claim(home)?;
    let claim = if gets_none { Some("none") } else { args.claim.as_deref() };
    let home_size = odd_size(home_bytes, &capacity);
    let settings = NewSettings { claim, home_size, ..NewSettings::default() };
    let with = |flash_size: &str| {
        let tiers = Tiers { home, flash, flash_size, journal: args.journal.as_deref() };
        tiers.parse(&args.volume, &capacity, settings)
    };
    if let Some(flash_size) = &args.flash_size {
        return Ok((with(flash_size)?, None, gets_none));
    }
    // The proposed size does not matter here: only the place of the journal is needed.
    let places = spaces(&with(&size_text(PROPOSED_MIN))?)?;
    let [_, journal] = &places;
    let proposal = propose(home_bytes, &holder_of(flash)?, &journal.holder);
    Ok((with(&proposal.text)?, Some(proposal), gets_none))
}

/// A tenth of the home, or less if flash or journal have less room.
fn propose(home_bytes: u64, flash: &Holder, journal: &Holder) -> Proposal {
    let mut sizes = vec![(home_bytes / 10, "a tenth of the home".to_owned())];
    match flash {
        Holder::Device { bytes } => sizes.push((*bytes, "all of the device".to_owned())),
        Holder::FileSystem { free_bytes: Some(free), mounted_at, .. } => {
            let reason = format!("half of the free space at {}", mounted_at.display());
            sizes.push((free / 2, reason));
        }
        Holder::FileSystem { .. } => {}
    }
    // The journal is always smaller than the flash: about four fifths of it.
    match journal {
        Holder::Device { bytes } => {
            sizes.push((*bytes, "limited by the journal's device".to_owned()))
        }
        Holder::FileSystem { free_bytes: Some(free), mounted_at, number, .. } => {
            let is_other =
                !matches!(flash, Holder::FileSystem { number: its, .. } if its == number);
            let reason = format!("limited by the room for the journal at {}", mounted_at.display());
            sizes.extend(is_other.then_some((*free, reason)));
        }
        Holder::FileSystem { .. } => {}
    }
    let least = sizes.into_iter().min_by_key(|(bytes, _)| *bytes);
    let (bytes, reason) = least.unwrap_or((PROPOSED_MIN, String::new()));
    match bytes < PROPOSED_MIN {
        true => Proposal { text: size_text(PROPOSED_MIN), reason: "the smallest size".into() },
        false => Proposal { text: size_text(bytes), reason },
    }
}

/// The size as an argument of `--flash-size`, rounded down.
fn size_text(bytes: u64) -> String {
    match bytes >= 10 * GIB {
        true => format!("{}GiB", bytes / GIB),
        false => format!("{}MiB", bytes / MIB),
    }
}

/// Prints a row of the plan: subject, quantity, reason.
fn row(what: &str, value: &str, reason: &str) -> std::io::Result<()> {
    print_line(&format!("{what:<12} {value:>11}  {reason}"))
}

/// Prints the rows of home, flash and journal: size, path, reason, and whether they fit.
fn tell_places(
    config: &VolumeConfig,
    spaces: &[StoreSpace; 2],
    proposal: Option<&Proposal>,
) -> anyhow::Result<()> {
    let [flash, journal] = spaces;
    row("home", &human_bytes(config.size_bytes()?), &home_of(config))?;
    row("", "", "as large as the volume; it keeps its content")?;
    row("flash", &human_bytes(flash.bytes), &flash.path.display().to_string())?;
    match proposal {
        Some(Proposal { text, reason }) => {
            row("", "", &format!("proposed: {reason}; accept it with --flash-size {text}"))?;
        }
        None => row("", "", "as given by --flash-size or the configuration")?,
    }
    row("", "", &fit(flash, spaces))?;
    row("journal", &human_bytes(journal.bytes), &journal.path.display().to_string())?;
    row("", "", "room for all dirty pages, and a quarter more")?;
    row("", "", &fit(journal, spaces))?;
    if matches!(journal.holder, Holder::FileSystem { in_memory: true, .. }) {
        row("", "", "in memory: lost when the machine stops; --journal names another place")?;
    }
    Ok(())
}

/// Whether a store fits. If the other store is on the same file system, both must fit together.
fn fit(space: &StoreSpace, spaces: &[StoreSpace; 2]) -> String {
    let lies_there = |other: &&StoreSpace| match (&other.holder, &space.holder) {
        (Holder::FileSystem { number, .. }, Holder::FileSystem { number: its, .. }) => {
            number == its
        }
        _ => other.store == space.store,
    };
    let shared: Vec<StoreSpace> = spaces.iter().filter(lies_there).cloned().collect();
    let says = match (refuse_without_space(&shared), shared.len()) {
        (Ok(()), 1) => "fits",
        (Ok(()), _) => "fits, together with the other store on this file system",
        (Err(_), 1) => "DOES NOT FIT",
        (Err(_), _) => "DOES NOT FIT together with the other store on this file system",
    };
    let what = of_what(space);
    format!("{says}: takes {}{what}", human_bytes(space.bytes))
}

/// Prints the rows of the settings.
fn tell_settings(config: &VolumeConfig) -> anyhow::Result<()> {
    let Some(home) = &config.home else { return Ok(()) };
    if is_ordered(config) {
        row(
            "destage",
            "ordered",
            "in epochs, through the journal: if the flash is lost, the last seconds",
        )?;
        row("", "", "are lost, and nothing else (`tantalum rescue`). Costs a second write.")?;
        row("", "", "\"dense\" saves that, but without its flash the home is of no use")?;
    } else {
        row("destage", "dense", "the tracks with the most changes first, each page written once;")?;
        row("", "", "without its flash the home is of no use. \"ordered\" can be rescued")?;
    }
    let dirty = human_bytes(dirty_bytes_max(config)?);
    row(
        "dirty_max",
        &home.dirty_max,
        &format!("up to {dirty} may be newer in the flash than at home;"),
    )?;
    row("", "", "`detach` destages as much. A smaller dirty_max makes the journal smaller")?;
    match &home.stream_max {
        Some(stream_max) => {
            row("stream_max", stream_max, "longer scans and backups do not stay in the flash")?
        }
        None => {
            row(
                "stream_max",
                "none",
                "scans and backups stay in the flash, too, and evict pages in use.",
            )?;
            row("", "", "\"4MiB\" lets longer ones bypass it, if the home is fast at them")?;
        }
    }
    Ok(row("", "", &format!("these three settings are in [home] of {}", config.path.display()))?)
}

/// Measures home and flash, and prints a comparison.
fn tell_speeds(config: &VolumeConfig) -> anyhow::Result<()> {
    let home_path = config.home.as_ref().map(|home| home.home_path(&config.path));
    let home = home_path.map(|path| told_of("home", device_speed::of_home(&path)));
    let home = home.transpose()?.flatten();
    if let Some(home) = &home {
        tell_home(home, dirty_bytes_max(config)?)?;
    }
    let flash = told_of("flash", device_speed::of_flash(&config.data_path()?))?;
    if let Some(flash) = &flash {
        tell_flash(flash, &config.data_path()?)?;
    }
    match (home, flash) {
        (Some(home), Some(flash)) => tell_comparison(&home, &flash),
        _ => Ok(()),
    }
}

/// The measurement. If it failed, prints a row with the reason and returns `None`.
fn told_of<T>(what: &str, measured: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    match measured {
        Ok(measured) => Ok(Some(measured)),
        Err(error) => {
            row(&format!("{what} speed"), "unknown", &format!("{error:#}"))?;
            Ok(None)
        }
    }
}

fn tell_home(home: &HomeSpeed, dirty_bytes: u64) -> anyhow::Result<()> {
    let reads = per_second(home.reads_per_second);
    row("home speed", &reads, "reads of 4 KiB at random places, one after the other")?;
    let megabytes = number::figures(home.stream_bytes_per_second / 1e6);
    row("", &format!("{megabytes} MB/s"), "reads of 256 KiB in a row")?;
    let best = dirty_bytes as f64 / home.stream_bytes_per_second;
    let worst = (dirty_bytes / PAGE_BYTES as u64) as f64 / home.reads_per_second;
    let (best, worst) = (span(best.min(worst)), span(best.max(worst)));
    row(
        "",
        "",
        &format!(
            "if it writes as fast as it reads, dirty_max is destaged in {best} (neighbours) to"
        ),
    )?;
    row("", "", &format!("{worst} (single pages)"))?;
    if !home.is_direct {
        row("", "", "direct I/O does not work there: the page cache may have answered")?;
    }
    if home.holes_share > 0.1 {
        let percent = (home.holes_share * 100.0).round();
        row("", "", &format!("{percent} % of it are holes, which need no read of the device"))?;
    }
    Ok(())
}

fn tell_flash(flash: &FlashSpeed, path: &Path) -> anyhow::Result<()> {
    let reads = per_second(flash.reads_per_second);
    row("flash speed", &reads, "reads of 4 KiB at random places, one after the other")?;
    match flash.writes_per_second {
        Some(writes) => row("", &per_second(writes), "writes of 4 KiB, each made durable")?,
        None => row("", "", &format!("{} is a device: it was not written", path.display()))?,
    }
    if !flash.is_direct {
        row("", "", "direct I/O does not work there: the page cache may have answered")?;
    }
    Ok(())
}

/// Prints how many times as fast as the home the flash is, and whether that is enough.
fn tell_comparison(home: &HomeSpeed, flash: &FlashSpeed) -> anyhow::Result<()> {
    let times = flash.reads_per_second / home.reads_per_second;
    let told = number::figures((times * 10.0).round() / 10.0);
    row("flash/home", &format!("{told}x"), "reads of 4 KiB of the flash for each of the home")?;
    if times < CLEARLY_FASTER {
        eprintln!(
            "warning: the flash is not clearly faster than the home ({told} times as many reads a \
             second): a cache there helps little"
        );
    }
    if let Some(writes) = flash.writes_per_second.filter(|writes| *writes < home.reads_per_second) {
        eprintln!(
            "warning: the flash makes only {} writes a second durable, fewer than the home serves \
             reads: a single client waits for each of its writes",
            number::figures(writes.round())
        );
    }
    Ok(())
}

fn per_second(rate: f64) -> String {
    let rounded = if rate < 10.0 { (rate * 10.0).round() / 10.0 } else { rate.round() };
    format!("{}/s", number::figures(rounded))
}

/// A time span as text.
fn span(seconds: f64) -> String {
    match seconds < 1.0 {
        true => "less than 1 s".to_owned(),
        // A longer span than a `u64` of milliseconds holds is cut off: no plan needs it.
        false => duration((seconds * 1000.0) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_system(number: u64, free_bytes: u64) -> Holder {
        let (mounted_at, free_bytes) = (format!("/mnt/{number}").into(), Some(free_bytes));
        Holder::FileSystem { mounted_at, number, free_bytes, in_memory: false }
    }

    #[test]
    fn a_tenth_of_the_home_is_proposed_where_there_is_room() {
        let propose = |flash, journal| propose(1000 * GIB, &flash, &journal).text;
        let large = || file_system(2, 4000 * GIB);
        assert_eq!(propose(large(), large()), "100GiB");
        assert_eq!(propose(file_system(1, 60 * GIB), large()), "30GiB");
        assert_eq!(propose(file_system(1, 6 * GIB), large()), "3072MiB");
        assert_eq!(propose(large(), file_system(1, 20 * GIB)), "20GiB");
        // Both on one file system: flash and journal together take at most nine tenths of the free space.
        assert_eq!(propose(file_system(2, 60 * GIB), file_system(2, 60 * GIB)), "30GiB");
        assert_eq!(propose(Holder::Device { bytes: 50 * GIB }, large()), "50GiB");
        assert_eq!(propose(file_system(1, MIB), large()), "64MiB");
    }

    #[test]
    fn spans_are_told_in_the_unit_that_fits() {
        assert_eq!([0.3, 1.9, 7200.0].map(span), ["less than 1 s", "1 s", "2 h"]);
        assert!(span(f64::INFINITY).ends_with(" days"));
    }
}
