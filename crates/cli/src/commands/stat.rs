//! `tantalum stat VOLUME.toml`, and `tantalum stat HOME`.
use super::home_stat;
use super::told_counters::{tell_counters, tell_holder};
use super::{stat_page, stat_text};
use anyhow::Context;
use std::path::PathBuf;
use tantalum::front_end::counters_of;
use tantalum_base::ErrorKind;
use tantalum_console::Verdict;
use tantalum_console::output::OutputArgs;
use tantalum_media::block_store::holder;
use tantalum_report::{Column, Report, Style, Table, Value, config_hash, schema};
use tantalum_runtime::Live;
use tantalum_runtime::live::LiveOptions;
use tantalum_volume::asking::ask_stat;
use tantalum_volume::config::Kind;
use tantalum_volume::{
    OpenOptions, Stat, VolumeConfig, open_tiered_volume, open_volume, superblock_at,
};

/// Print the properties of a volume: its content, how full and how worn it is
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The volume's configuration; or a home that has a cache: an image or a block device
    volume: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str =
    "stat writes nothing: a volume that was not closed is recovered in memory alone. While the volume \
is served, stat asks its server. While another program has it open, stat prints the fields that do \
not change, the holder, and the counters of that program.

Examples:
  tantalum stat vol/VOLUME.toml
  tantalum stat vol/VOLUME.toml --format json
  tantalum stat /dev/sdb";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format()?;
    if let Some(claim) = home_stat::claim_at(&args.volume)? {
        return home_stat::tell(&args.volume, &claim, &args.output);
    }
    let config = VolumeConfig::read(&args.volume)?;
    let told = figures(&config)?;
    let value = |column: &Column| match column.key {
        "volume" => Ok(args.volume.display().to_string().into()),
        key => value(column, told.text(key).unwrap_or_default()),
    };
    let row: anyhow::Result<Vec<Value>> = schema::VOLUME_STAT.iter().map(value).collect();
    let mut table = Table::new(schema::VOLUME_STAT);
    table.push(row?);
    let parts = [format!("{config:?}")];
    let mut report = Report::new(0, config_hash(parts), table);
    report.lists.push(("zone_fill", zone_fill(&told)?));
    report.lists.push(("zone_wear", zone_wear(&told)?));
    report.text = Some(stat_text::text(&report.table));
    args.output.print_page(&report, format, &stat_page::page(&report))?;
    Ok(Verdict::Good)
}

/// The figures of the volume of `config`, which is opened here if no other process has it open.
fn figures(config: &VolumeConfig) -> anyhow::Result<Stat> {
    match open(config) {
        // Another process has it open: perhaps a server.
        Err(error) if error.kind() == ErrorKind::Locked => match ask_stat(&config.path)? {
            Some(told) => Ok(told),
            None => Ok(held(config)?.ok_or(error)?),
        },
        // A user may be permitted to ask the server, but not to open the volume.
        Err(error) if error.kind() == ErrorKind::Io => {
            ask_stat(&config.path).ok().flatten().ok_or(error.into())
        }
        told => Ok(told?),
    }
}

/// The figures of a volume that no other process can write to, as it is open here.
fn open(config: &VolumeConfig) -> tantalum_base::Result<Stat> {
    let live = Live::new(LiveOptions::default())?;
    let (handle, config) = (live.clone(), config.clone());
    live.run(async move {
        let options = OpenOptions::READ_ONLY;
        let opened = config.without_buffer();
        match config.kind {
            Kind::Flash => {
                let (volume, report) = open_volume(&handle, &opened, options).await?;
                let mut stat = Stat::of_flash(&config, &volume, &report, options)?;
                stat.put_content(&*volume).await;
                Ok(stat)
            }
            Kind::Tiered => {
                let (volume, report) = open_tiered_volume(&handle, &opened, options).await?;
                let mut stat = Stat::of_tiered(&config, &volume, &report)?;
                stat.put_content(&*volume).await;
                Ok(stat)
            }
        }
    })
}

/// The fields of a volume that another process has open: that process may change all of the store except the
/// superblock, and may publish its counters. `None` if the process is unknown.
fn held(config: &VolumeConfig) -> tantalum_base::Result<Option<Stat>> {
    let path = config.data_path()?;
    let Some(pid) = holder(&path) else { return Ok(None) };
    let mut stat = Stat::of_closed(config, &superblock_at(&path)?)?;
    tell_holder(&mut stat, pid);
    if let Some(told) = counters_of(config).filter(|told| told.pid == pid) {
        tell_counters(&mut stat, &told)?;
    }
    Ok(Some(stat))
}

/// The value in `column` for the reported text.
fn value(column: &Column, text: &str) -> anyhow::Result<Value> {
    Ok(match column.style {
        _ if text.is_empty() => Value::Null,
        Style::Text => text.into(),
        Style::Seconds => {
            let seconds = text.parse().with_context(|| format!("{}: {text:?}", column.key))?;
            Value::rounded(seconds, 1e3)
        }
        _ => Value::Count(text.parse().with_context(|| format!("{}: {text:?}", column.key))?),
    })
}

/// The number called `name`; 0 if the server of an older program does not report it.
fn number(told: &Stat, name: &str) -> anyhow::Result<u64> {
    let text = told.text(name).unwrap_or("0");
    text.parse().with_context(|| format!("{name}: {text:?}"))
}

/// The numbers called `name`.
fn numbers(told: &Stat, name: &str) -> anyhow::Result<Vec<u64>> {
    let text = told.text(name).unwrap_or_default();
    let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    numbers.with_context(|| format!("{name}: {text:?}"))
}

/// Zones by the live part of each, one row per tenth.
fn zone_fill(told: &Stat) -> anyhow::Result<Table> {
    let mut table = Table::new(schema::ZONE_FILL);
    for (tenths, zones) in (0u64..).zip(numbers(told, "zones_by_fill")?) {
        table.push_named([("live_percent_max", (tenths * 10).into()), ("zones", zones.into())]);
    }
    Ok(table)
}

/// Zones by the number of their resets, up to the most worn.
fn zone_wear(told: &Stat) -> anyhow::Result<Table> {
    let mut table = Table::new(schema::ZONE_WEAR);
    let (width, most) = (number(told, "resets_width")?, number(told, "zone_resets_max")?);
    let mut from = number(told, "zone_resets_min")?;
    for zones in numbers(told, "zones_by_resets")? {
        if from > most {
            break;
        }
        let to = (from + width - 1).min(most);
        let row = [("resets_min", from.into()), ("resets_max", to.into()), ("zones", zones.into())];
        table.push_named(row);
        from += width;
    }
    Ok(table)
}
