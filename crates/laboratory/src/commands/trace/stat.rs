//! `tantalum trace stat TRACE`.
use crate::common::TraceArgs;
use anyhow::bail;
use tantalum_base::PageNo;
use tantalum_console::Verdict;
use tantalum_console::output::OutputArgs;
use tantalum_console::progress::Progress;
use tantalum_report::{Page, Plot, Report, Table, Value, config_hash, schema};
use tantalum_trace::layout::Extent;
use tantalum_trace::{AnyReader, BlockOp, BlockStat, PageStat, open};

/// Measure a trace: requests, pages, writes, re-use, locality, working set
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Add a row for each volume of a block trace
    #[arg(long)]
    by_volume: bool,
    /// Count the calls and bytes of a block trace by volume and operation, instead of its pages
    #[arg(long, conflicts_with = "by_volume")]
    blocks: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "Examples:
  tantalum trace stat tpcc.csv.zst
  tantalum trace stat usr_0.csv.gz --page-size 8KiB --by-volume
  tantalum trace stat 'zipf:pages=100k,requests=1m,theta=0.9,writes=0.3'";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let format = args.output.format_beside(&args.trace.files()?)?;
    let seed = args.trace.seed()?;
    let table = if args.blocks { blocks(args)? } else { pages(args)? };
    let mut parts = args.trace.config();
    parts.push(format!("stat=blocks:{}", args.blocks));
    parts.extend(args.by_volume.then(|| "by_volume".to_owned()));
    let mut report = Report::new(seed, config_hash(parts), table);
    args.trace.tell(&mut report);
    let page = page(&args.trace.name(), &report);
    args.output.print_page(&report, format, &page)?;
    Ok(Verdict::Good)
}

/// The HTML page with the rows.
fn page(name: &str, report: &Report) -> Page {
    let table = &report.table;
    let shown = |key: &str| {
        let row = table.rows().first();
        table.index(key).zip(row).map(|(at, row)| table.columns()[at].show(&row[at]))
    };
    let verdict = match ["requests", "distinct_pages", "write_share", "reuse_share"].map(shown) {
        [Some(requests), Some(pages), Some(writes), Some(reuse)] => format!(
            "{requests} requests for pages, {pages} of them distinct: {writes} are writes, {reuse} return to a page"
        ),
        _ => format!("Calls of {name}, by volume and operation"),
    };
    let by_volume = |title, y| Plot::new(title, "volume", y, &[]);
    let by_kind = |title, y| Plot::new(title, "file_kind", y, &["op"]);
    // The first row is of all volumes together, and has no volume name.
    Page {
        title: format!("Content of {name}"),
        verdict,
        plots: vec![
            by_volume("Requests by volume", &["reads", "writes"]),
            by_volume("Pages by volume", &["distinct_pages", "written_pages"]),
            by_kind("Calls", &["calls"]),
            by_kind("Bytes", &["bytes"]),
        ],
        ..Page::default()
    }
}

fn pages(args: &Args) -> anyhow::Result<Table> {
    let mut table = Table::new(schema::PAGE_STAT);
    let name = args.trace.name();
    if !args.by_volume {
        let stat = PageStat::of(args.trace.events("events counted")?)?;
        table.push_named(row(&name, None, &stat));
        return Ok(table);
    }
    if args.trace.options().renumber {
        bail!("--by-volume tells volumes apart by their pages, which --renumber changes");
    }
    let events = args.trace.expression()?.open(&args.trace.options())?;
    let Some(layout) = events.layout() else {
        bail!("{} has pages, and no volumes to count by", args.trace.trace.display());
    };
    let extents: Vec<Extent> = layout.extents().to_vec();
    let mut whole = PageStat::default();
    let mut volumes = vec![PageStat::default(); extents.len()];
    for event in Progress::counter("events counted").count(events) {
        let event = event?;
        whole.add(event);
        // Commit points belong to no volume.
        if let Some((page, _)) = event.range() {
            let at = extents.partition_point(|extent| extent.first_page <= page.0);
            volumes[at - 1].add(event);
        }
    }
    table.push_named(row(&name, None, &whole));
    for (extent, stat) in extents.iter().zip(&volumes) {
        table.push_named(row(&name, Some(&extent.volume), stat));
    }
    Ok(table)
}

fn row<'a>(trace: &str, volume: Option<&str>, stat: &PageStat) -> [(&'a str, Value); 17] {
    let commits = if volume.is_some() { Value::Null } else { stat.commits.into() };
    [
        ("trace", trace.into()),
        ("volume", volume.map_or(Value::Null, Value::from)),
        ("requests", stat.requests().into()),
        ("reads", stat.reads.into()),
        ("writes", stat.writes.into()),
        ("commits", commits),
        ("trims", stat.trims.into()),
        ("write_share", rounded(stat.write_share())),
        ("distinct_pages", stat.distinct_pages().into()),
        ("written_pages", stat.written_pages.into()),
        ("max_page", stat.max_page.map(|PageNo(page)| page).into()),
        ("reuse_share", rounded(stat.reuse_share())),
        ("reuse_distance_p50", stat.reuse_distance_at(0.5).into()),
        ("reuse_distance_p90", stat.reuse_distance_at(0.9).into()),
        ("sequential_share", rounded(stat.sequential_share())),
        ("hottest_20_share", rounded(stat.hottest_share(0.2))),
        ("working_set_pages", Value::Real((stat.working_set_pages() * 10.0).round() / 10.0)),
    ]
}

fn blocks(args: &Args) -> anyhow::Result<Table> {
    let path = &args.trace.trace;
    let AnyReader::Block(mut reader) = open(path, &args.trace.options())? else {
        bail!("{} has pages; --blocks counts the calls of a block trace", path.display());
    };
    let progress = Progress::counter("events counted");
    let mut stat = BlockStat::default();
    for event in progress.count(&mut reader) {
        stat.add(event?);
    }
    let wanted = args.trace.options();
    wanted.account.add_dropped(&reader.dropped());
    if let Some(told) = args.trace.left_out() {
        eprintln!("tantalum: {}: counted {told}", args.trace.name());
    }
    let mut table = Table::new(schema::BLOCK_STAT);
    let rows = stat.rows();
    let mut requests = 0;
    for (kind, op, count) in
        rows.filter(|row| wanted.has_volume(&reader.names()[usize::from(row.0.0)]))
    {
        if matches!(op, BlockOp::Read | BlockOp::Write) {
            requests += count.calls;
        }
        table.push_named([
            ("trace", args.trace.name().into()),
            ("file_kind", reader.names()[usize::from(kind.0)].as_str().into()),
            ("op", char::from(op.letter()).to_string().into()),
            ("calls", count.calls.into()),
            ("bytes", count.bytes.into()),
        ]);
    }
    wanted.account.set_requests(requests);
    Ok(table)
}

/// Rounds to six decimals: as many as are meaningful for a share, and few enough to read.
fn rounded(share: f64) -> Value {
    Value::rounded(share, 1e6)
}
