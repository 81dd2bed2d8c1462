//! `tantalum curve TRACE`: the misses of LRU at many cache sizes, in one pass over the trace.
use super::replay::pages::curve_page;
use crate::common::{CacheSize, TraceArgs, ratios};
use anyhow::{Context, bail};
use tantalum_base::ErrorKind;
use tantalum_base::size::Size;
use tantalum_console::Verdict;
use tantalum_console::interruption;
use tantalum_console::output::{OutputArgs, quoted};
use tantalum_policy::PolicySpec;
use tantalum_replay::miss_ratio_curve::{Curve, CurveOptions, CurvePoint, Sampling};
use tantalum_report::{Report, Table, Value, config_hash, schema};
use tantalum_runtime::supervision;

/// Miss-ratio curve of LRU: all cache sizes in one pass over a trace, exact or sampled
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Only LRU has such a curve: other policies are refused, with the command that counts them
    #[arg(long, value_name = "POLICY,...", hide = true)]
    policy: Vec<String>,
    /// Cache sizes: pages (4096, 4k), bytes (64MiB) or a share of the distinct pages (10%); by default powers of two up
    /// to all distinct pages
    #[arg(long, value_name = "SIZE,...", allow_negative_numbers = true)]
    size: Vec<String>,
    /// Follow only this share of the pages, such as 0.01 or 1% (SHARDS)
    #[arg(
        long,
        value_name = "RATE",
        value_parser = rate,
        conflicts_with = "sample_pages",
        allow_negative_numbers = true
    )]
    sample: Option<f64>,
    /// Follow at most this many pages: constant memory (SHARDS with a fixed size)
    #[arg(long, value_name = "PAGES", value_parser = sample_pages)]
    sample_pages: Option<u32>,
    /// Seed that selects the pages to follow
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    sample_seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "Exact counts are those of `replay --policy lru`, to the unit, for all \
sizes at once. A sample takes little memory and time; for about 95 of 100 samples, the exact \
miss ratio is within +- of the printed one.

After Ctrl-C or SIGTERM curve prints the curve of the requests that were read so far, and says so; \
the exit status is 130 or 143. A second signal ends it at once.

Examples:
  tantalum curve tpcc.csv.zst --size 1%,5%,10%,50%
  tantalum curve io_traces.csv.gz --page-size 16KiB --sample-pages 8192 --format csv";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format_beside(&args.trace.files()?)?;
    check_policy(args)?;
    let sizes = match &args.size[..] {
        [] => None,
        sizes => Some(CacheSize::parse_list(&sizes.join(","))?),
    };
    let sampling = match (args.sample, args.sample_pages) {
        (Some(rate), _) => Sampling::Rate(rate),
        (None, Some(pages)) => Sampling::Pages(pages),
        (None, None) => Sampling::None,
    };
    let trace_seed = args.trace.seed()?;
    interruption::watch()?;
    // After an interruption, the curve covers the requests read so far.
    let mut is_whole = true;
    let events = args.trace.events("events read")?.map_while(|event| match event {
        Err(error) if error.kind() == ErrorKind::Interrupted => {
            is_whole = false;
            None
        }
        event => Some(event),
    });
    let curve = Curve::of(events, &CurveOptions { sampling, seed: args.sample_seed });
    if !is_whole && curve.is_err() {
        // The sample of the requests so far is too small.
        supervision::check_stop()?;
    }
    let curve = curve?;
    let distinct_pages = curve.distinct_pages();
    let cache_pages: Vec<u64> = match &sizes {
        Some(sizes) => {
            let pages = args.trace.cache_pages(sizes, distinct_pages)?;
            pages.into_iter().map(u64::from).collect()
        }
        None => powers_of_two(distinct_pages),
    };
    let mut table = Table::new(schema::CURVE);
    for (at, pages) in cache_pages.iter().enumerate() {
        let asked = sizes.as_ref().map(|sizes| sizes[at].text());
        push(&mut table, &args.trace.name(), &curve, &curve.point(*pages), asked);
    }
    let mut parts = args.trace.config();
    parts.push(format!("curve={sampling:?}"));
    let sampled = sampling != Sampling::None;
    parts.extend(sampled.then(|| format!("sample_seed={}", args.sample_seed)));
    parts.extend(cache_pages.iter().map(|pages| format!("cache_pages={pages}")));
    // One seed is shown: that of a generated trace, or else that of the sampling.
    let seed = if sampled && trace_seed == 0 { args.sample_seed } else { trace_seed };
    let mut report = Report::new(seed, config_hash(parts), table);
    if !is_whole {
        interruption::mark(&mut report, curve.point(1).requests, None, "requests");
    }
    args.trace.tell(&mut report);
    let page = curve_page(&args.trace.name(), &report);
    args.output.print_page(&report, format, &page)?;
    Ok(interruption::verdict(&report))
}

/// Parses a share of the pages: `0.01` or `1%`.
fn rate(text: &str) -> anyhow::Result<f64> {
    let rate = match Size::parse(text) {
        Ok(Size::Share(share)) => Some(share),
        _ => text.parse().ok(),
    };
    rate.filter(|rate| *rate > 0.0 && *rate <= 1.0)
        .context("accepted: a share of the pages over 0 and at most 1, such as 0.01 or 1%")
}

/// Parses a number of pages to follow: `8192` or `8k`.
fn sample_pages(text: &str) -> anyhow::Result<u32> {
    match Size::parse(text) {
        Ok(Size::Count(pages @ 1..)) if pages <= u64::from(u32::MAX) => Ok(pages as u32),
        _ => bail!("accepted: a number of pages, such as 8192 or 8k"),
    }
}

/// Refuses policies other than LRU, and names the command that counts them.
fn check_policy(args: &Args) -> anyhow::Result<()> {
    let policies = match &args.policy[..] {
        [] => return Ok(()),
        given => PolicySpec::parse_list(&given.join(" "))?,
    };
    if policies.iter().all(|policy| policy.text() == "lru") {
        return Ok(());
    }
    let names: Vec<&str> = policies.iter().map(PolicySpec::text).collect();
    let names = names.join(",");
    let sizes = match &args.size[..] {
        [] => "1%,2%,5%,10%,20%,50%".to_owned(),
        sizes => sizes.join(","),
    };
    bail!(
        "--policy {names}: only LRU can be counted for all sizes in one pass; `tantalum replay {} \
         --policy {names} --size {sizes}` counts others, one run per size",
        quoted(&args.trace.trace.display().to_string())
    )
}

/// 1, 2, 4 and so on, and the first size that holds all pages.
fn powers_of_two(distinct_pages: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        (0..u64::BITS).map(|bit| 1 << bit).take_while(|pages| *pages < distinct_pages).collect();
    sizes.push(distinct_pages.max(1));
    sizes
}

/// Appends a row. `asked` is the size as the user wrote it.
fn push(table: &mut Table, trace: &str, curve: &Curve, point: &CurvePoint, asked: Option<&str>) {
    // Six decimals are as many as are meaningful for a share.
    let rounded = |share| Value::rounded(share, 1e6);
    let (rate, sampled_requests) = match curve.sample() {
        Some((rate, requests)) => (rounded(rate), requests.into()),
        None => (Value::Null, Value::Null),
    };
    let (hit_ratio, miss_ratio) = ratios(point.requests, point.misses());
    table.push_named([
        ("trace", trace.into()),
        ("policy", "lru".into()),
        ("cache_pages", point.cache_pages.into()),
        ("requests", point.requests.into()),
        ("misses", point.misses().into()),
        ("hit_ratio", hit_ratio),
        ("miss_ratio", miss_ratio),
        ("read_misses", point.read_misses.into()),
        ("write_misses", point.write_misses.into()),
        ("physical_reads", point.misses().into()),
        ("physical_writes", point.physical_writes.into()),
        ("dirty_pages_at_end", point.dirty_pages_at_end.into()),
        ("miss_ratio_error", point.miss_ratio_error.map_or(Value::Null, rounded)),
        ("sample_rate", rate),
        ("sampled_requests", sampled_requests),
        ("cache_size", asked.into()),
    ]);
}
